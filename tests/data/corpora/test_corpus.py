import bz2
import gzip
import itertools
import json
import lzma
import os

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.data.corpora import unpack as unpack_module
from bert_elmo_jax.data.corpora.corpus import iterate_documents, iterate_lines, iterate_sample
from bert_elmo_jax.data.corpora.describe_source import describe
from bert_elmo_jax.data.corpora.reading import BadInput, Reading, Source, Tally, find_files, has_text
from bert_elmo_jax.data.corpora.unpack import needs_unpacking, unpack


def documents(path, reading=None, cuts=()):
    """Read all documents of a file, in one or several ranges."""
    reading = reading or Reading()
    tally = Tally(reading)
    source = describe(str(path), str(path))
    edges = sorted({0, source.size, *(c for c in cuts if c < source.size)})
    all_documents = []
    for start, end in itertools.pairwise(edges):
        all_documents += [(place, list(s)) for place, s in iterate_documents(source, start, end, tally)]
    return all_documents, tally


def texts(all_documents):
    return [sentences for _, sentences in all_documents]


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


READ = [  # a file, how it is read, and the sentences of its documents
    ("One. Two.\n\nThree.", {"documents": "file"}, [["One. Two.", "Three."]]),
    ("One. Two.\n\nThree.", {"documents": "file", "split": "sentences"}, [["One.", "Two.", "Three."]]),
    ("One. Two.\n\nThree.", {"split": "sentences"}, [["One.", "Two."], ["Three."]]),
    ("\n\none\ntwo\n \t \n\nthree\n세 번째\n\n", {}, [["one", "two"], ["three", "세 번째"]]),
    ("첫. 좋다!\n\n \n둘째\r\n셋", {"documents": "line", "split": "sentences"}, [["첫.", "좋다!"], ["둘째"], ["셋"]]),
    ("첫\n\u3000\n둘\n\u00a0\u2003\n강\n", {}, [["첫"], ["둘"], ["강"]]),
    ("첫\n\u3000 \n둘\n".encode("cp949"), {"encoding": "cp949"}, [["첫"], ["둘"]]),
    ("하나\n둘\n".encode("utf-8-sig"), {"encoding": "utf-8-sig"}, [["하나", "둘"]]),
    ("하나\n둘\n", {"encoding": "utf-8-sig"}, [["하나", "둘"]]),
    ("첫 줄 똠방각하\n둘째 줄\n".encode("cp949"), {"encoding": "cp949"}, [["첫 줄 똠방각하", "둘째 줄"]]),
]


@pytest.mark.parametrize(("content", "options", "expected"), READ)
def test_documents_do_not_depend_on_the_ranges(tmp_path, content, options, expected):
    path, reading = write(tmp_path / "a.txt", content), Reading(**options)
    assert not needs_unpacking(str(path), reading)
    all_documents, _ = documents(path, reading)
    assert texts(all_documents) == expected
    for cut in range(1, path.stat().st_size):
        assert documents(path, reading, [cut])[0] == all_documents


def test_places_of_documents_and_lines_of_json(tmp_path):
    assert [place for place, _ in documents(write(tmp_path / "a.txt", READ[3][0]))[0]] == [2, 15]
    path = write(tmp_path / "a.jsonl", json.dumps({"review": "하나\r\n둘\n\n셋"}) + "\r\n\n")
    assert texts(documents(path, Reading(text_field="review"))[0]) == [["하나", "둘", "셋"]]


LINES = st.lists(st.sampled_from(["", " ", "a", "bb bb", "세 글자", "x" * 40]), max_size=14)
CUTS = st.lists(st.integers(1, 250), max_size=6)


@given(LINES, st.booleans(), CUTS, st.sampled_from(["blank_line", "line", "file"]))
def test_ranges_that_cover_a_file_yield_every_document_once(tmp_path_factory, lines, newline, cuts, kind):
    path = write(tmp_path_factory.mktemp("corpus") / "a.txt", "\n".join(lines) + "\n" * newline)
    assert documents(path, Reading(documents=kind), cuts)[0] == documents(path, Reading(documents=kind))[0]


@given(LINES, CUTS)
def test_json_ranges_yield_every_record_once(tmp_path_factory, lines, cuts):
    content = "".join(json.dumps({"text": line}, ensure_ascii=False) + "\n" for line in lines)
    path = write(tmp_path_factory.mktemp("corpus") / "a.jsonl", content)
    assert documents(path, cuts=cuts)[0] == documents(path)[0]
    assert [t for t in texts(documents(path)[0]) if t] == [[line.strip()] for line in lines if line.strip()]


def write_zst(path, data):
    half = len(data) // 2  # two frames, as parallel compressors write them; the second as `zstd --long=28` does
    long = zstandard.ZstdCompressionParameters.from_level(1, window_log=28)
    second = zstandard.ZstdCompressor(compression_params=long).compressobj()
    path.write_bytes(zstandard.compress(data[:half]) + second.compress(data[half:]) + second.flush())


WRITERS = {
    ".gz": lambda path, data: path.write_bytes(gzip.compress(data[:9]) + gzip.compress(data[9:])),
    ".xz": lambda path, data: path.write_bytes(lzma.compress(data)),
    ".bz2": lambda path, data: path.write_bytes(bz2.compress(data)),
    ".zst": write_zst,
}
TEXT = "".join(f"{n} 번째 줄, line {n}\n" for n in range(20_000))


@pytest.mark.parametrize("ending", WRITERS)
def test_compressed_files_are_unpacked_and_damaged_ones_raise(tmp_path, ending):
    path, target = tmp_path / f"a.txt{ending}", tmp_path / "plain"
    WRITERS[ending](path, TEXT.encode())
    packed = path.read_bytes()
    assert needs_unpacking(str(path), Reading())
    unpack(str(path), target, Tally(Reading()))
    assert target.read_text(encoding="utf-8") == TEXT
    path.write_text("plain text")
    with pytest.raises(BadInput, match="damaged or truncated"):
        unpack(str(path), target, Tally(Reading()))
    for share in (0.5, 0.99):
        path.write_bytes(packed[: int(len(packed) * share)])
        target.unlink(missing_ok=True)
        with pytest.raises(BadInput, match=r"a\.txt.*line \d+: a damaged or truncated compressed file.*again"):
            unpack(str(path), target, Tally(Reading()))
        assert not target.exists()
        tally = Tally(Reading(on_bad="skip"))
        unpack(str(path), target, tally)
        assert TEXT.startswith(target.read_text(encoding="utf-8", errors="ignore")[:-2])
        if ending != ".bz2":  # whose blocks, of up to 900 kB, are readable as a whole
            assert target.stat().st_size > 0.2 * len(TEXT.encode())
        assert sum(tally.skipped.values()) == 1


@pytest.mark.parametrize("ending", WRITERS)
def test_files_that_unpack_to_far_more_than_a_text_are_refused(tmp_path, monkeypatch, ending):
    """A few kilobytes would fill memory, or the disk."""
    path, target = tmp_path / f"a.txt{ending}", tmp_path / "plain"
    WRITERS[ending](path, bytes(1 << 25))
    assert max(map(len, unpack_module.raw_blocks(str(path)))) <= 1 << 26
    monkeypatch.setattr(unpack_module, "SMALL_UNPACKED", 1 << 20)
    with pytest.raises(BadInput, match="more than 200 times as large when unpacked"):
        unpack(str(path), target, Tally(Reading(on_bad="skip")))
    assert not target.exists()


def test_wide_encodings_become_plain_lines(tmp_path):
    path, target = tmp_path / "a.txt", tmp_path / "plain"
    path.write_text(TEXT, encoding="utf-16")
    reading = Reading(encoding="utf-16")
    assert needs_unpacking(str(path), reading)
    unpack(str(path), target, Tally(reading))
    source = describe(str(path), str(target))
    [(_, sentences)] = [(p, list(s)) for p, s in iterate_documents(source, 0, source.size, Tally(reading))]
    assert sentences == TEXT.splitlines()


@pytest.mark.parametrize("on_bad", ["error", "skip"])
@pytest.mark.parametrize("encoding", ["utf-8", "cp949"])
def test_windows_line_ends_and_byte_order_marks_are_removed_and_counted(tmp_path, on_bad, encoding):
    path = write(tmp_path / "a.txt", "하나\r\n둘\n\r\n셋\r\n".encode(encoding))
    all_documents, tally = documents(path, Reading(on_bad=on_bad, encoding=encoding))
    assert texts(all_documents) == [["하나", "둘"], ["셋"]]
    assert tally.skipped == {"a Windows line end (CR LF)": 2}
    all_documents, tally = documents(write(path, "하나\r\n".encode("utf-8-sig")), Reading(on_bad=on_bad))
    assert texts(all_documents) == [["하나"]]
    assert tally.skipped == {"a byte-order mark": 1, "a Windows line end (CR LF)": 1}


BAD = [  # a file, the place and the problem, a part of the remedy, and the texts left if bad lines are skipped
    (b"fine\nbad \xff\xfe here\n", "line 2: invalid UTF-8", "--encoding", [["fine"]]),
    ("맞다\n".encode("cp949"), "line 1: invalid UTF-8", "--encoding=cp949", []),
    ("text".encode("utf-16"), "line 1: a NUL byte|line 1: invalid", "--encoding", []),
    (b"a\nb\0c\n", "line 2: a NUL byte", "remove", [["a"]]),
    (b"a\rb\n", "line 1: a carriage return", "skip", [["a b"]]),
    (b"a\rb\r\n", "line 1: a carriage return", "skip", [["a b"]]),
    (b"a\n" + b"x" * 10_000_000 + b"\nb\n", "line 2: a line of more than 4 MB", "--max_line_mb", [["a", "b"]]),
    (b"a\n" + b"x" * 10_000_000, "line 2: a line of more than 4 MB", "--max_line_mb", [["a"]]),
    (b"\xed\xa0\x80\n", "line 1: invalid UTF-8", "--on_bad=skip", []),
    ('{"text": "a"}\n{"body": "b"}\n', "line 2: no field 'text' .the record has 'body'.", "--text_field", ...),
    ('{"text": "a"}\nnot json\n', "line 2: not JSON", "write one JSON object per line", ...),
    ('{"text": 3}\n', "line 1: field 'text' is not text but int", "--text_field", ...),
    ('{"text": null}\n', "line 1: field 'text' is not text but NoneType", "--text_field", ...),
    ('["text"]\n', "line 1: a JSON record that is not an object but list", "write", ...),
    ('{"text": "half \\ud83d"}\n', "line 1: a lone surrogate", "write the text out again", ...),
    ('{"text": "nul \\u0000"}\n', "line 1: a NUL character", "remove", ...),
    ('{"text": ' + "1" * 5000 + "}\n", "line 1: not JSON", "one JSON object", ...),
    ("[" * 100_000 + "\n", "line 1: not JSON", "one JSON object", ...),
]


@pytest.mark.parametrize(("content", "where", "remedy", "left"), BAD, ids=range(len(BAD)))
def test_bad_lines_raise_or_are_counted(tmp_path, content, where, remedy, left):
    is_json = left is ...
    path = write(tmp_path / ("bad.jsonl" if is_json else "bad.txt"), content)
    with pytest.raises(BadInput, match=rf"{path.name}, (?:{where})") as caught:
        documents(path)
    assert remedy in str(caught.value) and "\n" not in str(caught.value)
    all_documents, tally = documents(path, Reading(on_bad="skip"))
    if is_json:
        assert sum(tally.skipped.values()) == 1
    else:
        assert texts(all_documents) == left and sum(tally.skipped.values()) >= 1


def test_sample_continues_through_small_files(tmp_path):
    sources = []
    for n in range(3000):
        path = write(tmp_path / f"{n}.txt", f"{n} " + "word " * 150 + "\n")
        sources.append(describe(str(path), str(path)))
    sample = list(iterate_sample(sources, Reading(), 1.0, seed=0))
    assert 0.9 < sum(len(s) + 1 for s in sample) / (1 << 20) < 1.01
    assert len(set(sample)) == len(sample)  # stretches do not overlap


def test_bad_utf_16_character_affects_only_its_line(tmp_path):
    data = ("좋다\n" * 6 + "나쁘다").encode("utf-16-le") + b"\x00\xd8" + ("\n" + "좋다\n" * 1000).encode("utf-16-le")
    path = write(tmp_path / "a.txt", data)
    tally = Tally(Reading(encoding="utf-16-le", on_bad="skip"))
    unpack(str(path), tmp_path / "plain", tally)
    source = describe(str(path), str(tmp_path / "plain"))
    with pytest.raises(BadInput, match=r"a\.txt, line 7: a NUL, or invalid utf-16-le"):
        [list(s) for _, s in iterate_documents(source, 0, source.size, Tally(Reading(encoding="utf-16-le")))]
    assert [list(s) for _, s in iterate_documents(source, 0, source.size, tally)] == [["좋다"] * 1006]
    assert tally.skipped == {"a NUL, or invalid utf-16-le": 1}


def test_long_line_in_the_tail_of_a_document_is_counted_once(tmp_path):
    path = write(tmp_path / "a.txt", b"one\n" * 500 + b"x" * 30_000 + b"\n" + b"two\n" * 500 + b"\nthree\n" * 300)
    for cuts in ((), (1000, 10_000, 33_000)):
        _, tally = documents(path, Reading(on_bad="skip", max_line_mb=0.02), cuts)
        assert sum(tally.skipped.values()) == 1


def test_files_are_found_once_and_others_raise(tmp_path):
    for name in ("b.txt", "a.txt", "[x].txt", "a.json"):
        write(tmp_path / name, "text")
    expected = [str(tmp_path / name) for name in ("[x].txt", "a.txt", "b.txt")]
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "same.txt").symlink_to(tmp_path / "b.txt")
    other_spellings = [f"{tmp_path}/a.txt", f"{tmp_path}/./a.txt", f"{tmp_path}/d/same.txt"]
    assert find_files([f"{tmp_path}/*.txt", *other_spellings], Tally(Reading())) == expected
    # A name, although it looks like a glob.
    assert find_files([f"{tmp_path}/[x].txt"], Tally(Reading())) == expected[:1]
    skipping = Tally(Reading(on_bad="skip"))
    assert find_files([str(tmp_path)], skipping) == []
    assert skipping.skipped == {"a folder, not a file": 1}
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link.txt").symlink_to(tmp_path / "nothing")
    for name in ("c4.JSON.gz", "page.html.xz", "sheet.xlsx", "rows.parquet.zst", "rows.parquet"):
        write(tmp_path / name, "text")
    assert find_files([f"{tmp_path}/rows.parquet"], Tally(Reading()))
    for name, message in (
        ("", r"a folder, not a file; name the files in it: --input='.*/\*\.txt'"),
        ("a.json", r"\.json is not supported; convert it to \.txt or \.jsonl, or name it \.jsonl if each line is"),
        ("c4.JSON.gz", r"\.json is not supported; convert it to \.txt or \.jsonl, or name it \.jsonl"),
        ("page.html.xz", r"\.html is not supported; convert it to \.txt or \.jsonl$"),
        ("sheet.xlsx", r"\.xlsx is not supported; convert it"),
        ("rows.parquet.zst", r"a compressed \.parquet is not supported; unpack it"),
        ("pipe", "not a regular file"),
        ("link.txt", "a broken link; fix or delete it"),
    ):
        with pytest.raises(BadInput, match=message):
            find_files([str(tmp_path / name)], Tally(Reading()))


def test_files_without_text_raise(tmp_path):
    for content, message in ((b"", "an empty file"), (b" \n\r\n\t\n" * 99, "only blank lines")):
        path = write(tmp_path / "a.txt", content)
        with pytest.raises(BadInput, match=message):
            has_text(describe(str(path), str(path)), Tally(Reading()))


def test_invalid_reading_options_raise():
    for encoding in ("utf-9", "base64", "a\0b"):
        with pytest.raises(ValueError, match="use"):
            Reading(encoding=encoding)


def test_lines_longer_than_a_block_keep_their_offsets(tmp_path):
    lines = [b"x" * 3_000_000, b"", b"short", b"y" * 2_000_000]
    path = write(tmp_path / "a.txt", b"\n".join(lines))
    source = Source(str(path), str(path), path.stat().st_size, "")
    expected = [(0, lines[0]), (3_000_001, b""), (3_000_002, b"short"), (3_000_008, lines[3])]
    for start, lines_from_there in ((0, expected), (5, expected[1:]), (3_000_009, [])):
        assert list(iterate_lines(source, start, Tally(Reading()))) == lines_from_there


def test_sample_is_seeded_bounded_and_spread(tmp_path):
    sources = []
    for name in "abc":
        path = write(
            tmp_path / f"{name}.txt", "".join(f"{name}{n}{' some words of a line' * 5}\n" for n in range(12_000))
        )
        sources.append(describe(str(path), str(path)))
    sample, again, other = (list(iterate_sample(sources, Reading(), 1.0, seed=seed)) for seed in (1, 1, 2))
    assert sample == again != other
    assert 0.9 < sum(len(s) + 1 for s in sample) / (1 << 20) < 1.1
    assert {s[0] for s in sample} == set("abc")
    assert len(list(iterate_sample(sources, Reading(), 100.0, seed=1))) == 36_000
