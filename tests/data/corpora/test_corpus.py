import bz2
import gzip
import itertools
import json
import lzma

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from bert_elmo_jax.data.corpora.corpus import iterate_documents, iterate_lines, iterate_sample
from bert_elmo_jax.data.corpora.reading import BadInput, Reading, Source, Tally, describe, find_files, has_text
from bert_elmo_jax.data.corpora.unpack import needs_unpacking, unpack


def documents(path, reading=None, cuts=()):
    """Read all documents of a file, in one or several ranges."""
    reading = reading or Reading()
    tally = Tally(reading)
    source = describe(str(path), str(path))
    edges = sorted({0, source.size, *(c for c in cuts if c < source.size)})
    found = []
    for start, end in itertools.pairwise(edges):
        found += [(place, list(s)) for place, s in iterate_documents(source, start, end, tally)]
    return found, tally


def texts(found):
    return [sentences for _, sentences in found]


def test_blank_lines_end_documents(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("\n\none\ntwo\n \t \n\nthree\n세 번째\n\n".encode())
    found, _ = documents(path)
    assert found == [(2, ["one", "two"]), (15, ["three", "세 번째"])]


def test_files_as_documents_and_sentence_splitting(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("One. Two.\n\nThree.", encoding="utf-8")
    assert texts(documents(path, Reading(documents="file"))[0]) == [["One. Two.", "Three."]]
    assert texts(documents(path, Reading(documents="file", split="sentences"))[0]) == [["One.", "Two.", "Three."]]
    assert texts(documents(path, Reading(split="sentences"))[0]) == [["One.", "Two."], ["Three."]]


LINES = st.lists(st.sampled_from(["", " ", "a", "bb bb", "세 글자", "x" * 40]), max_size=14)


@given(LINES, st.booleans(), st.lists(st.integers(1, 250), max_size=6), st.sampled_from(["blank_line", "line", "file"]))
def test_ranges_that_cover_a_file_yield_every_document_once(tmp_path_factory, lines, newline, cuts, kind):
    path = tmp_path_factory.mktemp("corpus") / "a.txt"
    path.write_bytes(("\n".join(lines) + "\n" * newline).encode())
    reading = Reading(documents=kind)
    assert documents(path, reading, cuts)[0] == documents(path, reading)[0]


@given(LINES, st.lists(st.integers(1, 250), max_size=6))
def test_json_ranges_yield_every_record_once(tmp_path_factory, lines, cuts):
    path = tmp_path_factory.mktemp("corpus") / "a.jsonl"
    path.write_text("".join(json.dumps({"text": line}, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    assert documents(path, cuts=cuts)[0] == documents(path)[0]
    assert [t for t in texts(documents(path)[0]) if t] == [[line.strip()] for line in lines if line.strip()]


def test_json_lines_inside_a_record_are_its_sentences(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"review": "하나\r\n둘\n\n셋"}) + "\r\n\n", encoding="utf-8")
    assert texts(documents(path, Reading(text_field="review"))[0]) == [["하나", "둘", "셋"]]


def write_zst(path, data):
    half = len(data) // 2  # two frames, as parallel compressors write them
    path.write_bytes(zstandard.compress(data[:half]) + zstandard.compress(data[half:]))


WRITERS = {
    ".gz": lambda path, data: path.write_bytes(gzip.compress(data[:9]) + gzip.compress(data[9:])),
    ".xz": lambda path, data: path.write_bytes(lzma.compress(data)),
    ".bz2": lambda path, data: path.write_bytes(bz2.compress(data)),
    ".zst": write_zst,
}
TEXT = "".join(f"{n} 번째 줄, line {n}\n" for n in range(20_000))


@pytest.mark.parametrize("ending", WRITERS)
def test_compressed_files_are_unpacked(tmp_path, ending):
    path, target = tmp_path / f"a.txt{ending}", tmp_path / "plain"
    WRITERS[ending](path, TEXT.encode())
    assert needs_unpacking(str(path), Reading())
    unpack(str(path), target, Tally(Reading()))
    assert target.read_text(encoding="utf-8") == TEXT


@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("keep", [0.5, 0.99])
def test_truncated_compressed_file_raises(tmp_path, ending, keep):
    path, target = tmp_path / f"a.txt{ending}", tmp_path / "plain"
    WRITERS[ending](path, TEXT.encode())
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * keep)])
    with pytest.raises(BadInput, match=r"a\.txt.*line \d+: a damaged or truncated compressed file.*again"):
        unpack(str(path), target, Tally(Reading()))
    assert not target.exists()
    tally = Tally(Reading(on_bad="skip"))
    unpack(str(path), target, tally)
    assert TEXT.startswith(target.read_text(encoding="utf-8", errors="ignore")[:-2])
    assert sum(tally.skipped.values()) == 1


def test_uncompressed_file_with_a_compressed_ending_raises(tmp_path):
    for ending in WRITERS:
        path = tmp_path / f"a.txt{ending}"
        path.write_text("plain text")
        with pytest.raises(BadInput, match="damaged or truncated"):
            unpack(str(path), tmp_path / "plain", Tally(Reading()))


def test_wide_encodings_become_plain_lines(tmp_path):
    path, target = tmp_path / "a.txt", tmp_path / "plain"
    path.write_text(TEXT, encoding="utf-16")
    reading = Reading(encoding="utf-16")
    assert needs_unpacking(str(path), reading)
    unpack(str(path), target, Tally(reading))
    source = describe(str(path), str(target))
    [(_, sentences)] = [(p, list(s)) for p, s in iterate_documents(source, 0, source.size, Tally(reading))]
    assert sentences == TEXT.splitlines()


def test_utf_8_sig_drops_the_byte_order_mark(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("하나\n둘\n".encode("utf-8-sig"))
    reading = Reading(encoding="utf-8-sig")
    assert not needs_unpacking(str(path), reading)
    assert texts(documents(path, reading)[0]) == [["하나", "둘"]]
    path.write_bytes("하나\n둘\n".encode())
    assert texts(documents(path, reading)[0]) == [["하나", "둘"]]


def test_korean_code_page(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("첫 줄 똠방각하\n둘째 줄\n".encode("cp949"))
    assert texts(documents(path, Reading(encoding="cp949"))[0]) == [["첫 줄 똠방각하", "둘째 줄"]]


@pytest.mark.parametrize("on_bad", ["error", "skip"])
@pytest.mark.parametrize("encoding", ["utf-8", "cp949"])
def test_windows_line_ends_and_byte_order_marks_are_removed_and_counted(tmp_path, on_bad, encoding):
    path = tmp_path / "a.txt"
    path.write_bytes("하나\r\n둘\n\r\n셋\r\n".encode(encoding))
    found, tally = documents(path, Reading(on_bad=on_bad, encoding=encoding))
    assert texts(found) == [["하나", "둘"], ["셋"]]
    assert tally.skipped == {"a Windows line end (CR LF)": 2}
    path.write_bytes("하나\r\n".encode("utf-8-sig"))
    found, tally = documents(path, Reading(on_bad=on_bad))
    assert texts(found) == [["하나"]]
    assert tally.skipped == {"a byte-order mark": 1, "a Windows line end (CR LF)": 1}


def test_lines_as_documents(tmp_path):
    """The documents do not depend on the ranges or on blank lines."""
    path = tmp_path / "a.txt"
    path.write_bytes("첫 후기. 좋다!\n\n \n둘째\r\n셋째 후기".encode())
    reading = Reading(documents="line", split="sentences")
    assert texts(documents(path, reading)[0]) == [["첫 후기.", "좋다!"], ["둘째"], ["셋째 후기"]]
    for cut in range(1, path.stat().st_size):
        assert documents(path, reading, [cut])[0] == documents(path, reading)[0]


BAD = [
    (b"fine\nbad \xff\xfe here\n", "line 2: invalid UTF-8", "--encoding", [["fine"]]),
    ("맞다\n".encode("cp949"), "line 1: invalid UTF-8", "--encoding=cp949", []),
    ("text".encode("utf-16"), "line 1: a NUL byte|line 1: invalid", "--encoding", []),
    (b"a\nb\0c\n", "line 2: a NUL byte", "remove", [["a"]]),
    (b"a\rb\n", "line 1: a carriage return", "skip", [["a b"]]),
    (b"a\rb\r\n", "line 1: a carriage return", "skip", [["a b"]]),
    (b"a\n" + b"x" * 10_000_000 + b"\nb\n", "line 2: a line of more than 4 MB", "--max_line_mb", [["a", "b"]]),
    (b"a\n" + b"x" * 10_000_000, "line 2: a line of more than 4 MB", "--max_line_mb", [["a"]]),
    (b"\xed\xa0\x80\n", "line 1: invalid UTF-8", "--on_bad=skip", []),
]


@pytest.mark.parametrize(("data", "where", "remedy", "left"), BAD, ids=range(len(BAD)))
def test_bad_text_raises_or_is_counted(tmp_path, data, where, remedy, left):
    path = tmp_path / "bad.txt"
    path.write_bytes(data)
    with pytest.raises(BadInput, match=rf"bad\.txt, (?:{where})") as caught:
        documents(path)
    assert remedy in str(caught.value)
    assert "\n" not in str(caught.value)
    found, tally = documents(path, Reading(on_bad="skip"))
    assert texts(found) == left
    assert sum(tally.skipped.values()) >= 1


BAD_JSON = [
    ('{"text": "a"}\n{"body": "b"}\n', "line 2: no field 'text' .the record has 'body'.", "--text_field"),
    ('{"text": "a"}\nnot json\n', "line 2: not JSON", "write one JSON object per line"),
    ('{"text": 3}\n', "line 1: field 'text' is not text but int", "--text_field"),
    ('{"text": null}\n', "line 1: field 'text' is not text but NoneType", "--text_field"),
    ('["text"]\n', "line 1: a JSON record that is not an object but list", "write"),
    ('{"text": "half \\ud83d"}\n', "line 1: a lone surrogate", "write the text out again"),
    ('{"text": "nul \\u0000"}\n', "line 1: a NUL character", "remove"),
    ('{"text": ' + "1" * 5000 + "}\n", "line 1: not JSON", "one JSON object"),
    ("[" * 100_000 + "\n", "line 1: not JSON", "one JSON object"),
]


@pytest.mark.parametrize(("data", "where", "remedy"), BAD_JSON)
def test_bad_json_raises_or_is_counted(tmp_path, data, where, remedy):
    path = tmp_path / "bad.jsonl"
    path.write_text(data)
    with pytest.raises(BadInput, match=rf"bad\.jsonl, {where}") as caught:
        documents(path)
    assert remedy in str(caught.value)
    _, tally = documents(path, Reading(on_bad="skip"))
    assert sum(tally.skipped.values()) == 1


def test_sample_continues_through_small_files(tmp_path):
    sources = []
    for n in range(3000):
        (tmp_path / f"{n}.txt").write_text(f"{n} " + "word " * 150 + "\n")
        sources.append(describe(str(tmp_path / f"{n}.txt"), str(tmp_path / f"{n}.txt")))
    sample = list(iterate_sample(sources, Reading(), 1.0, seed=0))
    assert 0.9 < sum(len(s) + 1 for s in sample) / (1 << 20) < 1.01
    assert len(set(sample)) == len(sample)  # stretches do not overlap


def test_bad_utf_16_character_affects_only_its_line(tmp_path):
    data = ("좋다\n" * 6 + "나쁘다").encode("utf-16-le") + b"\x00\xd8" + ("\n" + "좋다\n" * 1000).encode("utf-16-le")
    (tmp_path / "a.txt").write_bytes(data)
    reading = Reading(encoding="utf-16-le")
    tally = Tally(Reading(encoding="utf-16-le", on_bad="skip"))
    unpack(str(tmp_path / "a.txt"), tmp_path / "plain", tally)
    source = describe(str(tmp_path / "a.txt"), str(tmp_path / "plain"))
    with pytest.raises(BadInput, match=r"a\.txt, line 7: a NUL, or invalid utf-16-le"):
        [list(s) for _, s in iterate_documents(source, 0, source.size, Tally(reading))]
    [found] = [list(s) for _, s in iterate_documents(source, 0, source.size, tally)]
    assert found == ["좋다"] * 1006
    assert tally.skipped == {"a NUL, or invalid utf-16-le": 1}


def test_long_line_in_the_tail_of_a_document_is_counted_once(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"one\n" * 500 + b"x" * 30_000 + b"\n" + b"two\n" * 500 + b"\nthree\n" * 300)
    for cuts in ((), (1000, 10_000, 33_000)):
        _, tally = documents(tmp_path / "a.txt", Reading(on_bad="skip", max_line_mb=0.02), cuts)
        assert sum(tally.skipped.values()) == 1


def test_unsupported_files_raise(tmp_path):
    import os

    (tmp_path / "a.json").write_text("{}")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link.txt").symlink_to(tmp_path / "nothing")
    for name, message in (
        ("a.json", r"\.json is not supported; convert it to \.txt"),
        ("pipe", "not a regular file"),
        ("link.txt", "a broken link; fix or delete it"),
    ):
        with pytest.raises(BadInput, match=message):
            find_files([str(tmp_path / name)], Tally(Reading()))


def test_files_are_found_once_and_folders_raise(tmp_path):
    for name in ("b.txt", "a.txt", "[x].txt"):
        (tmp_path / name).write_text("text")
    tally = Tally(Reading())
    everything = [str(tmp_path / name) for name in ("[x].txt", "a.txt", "b.txt")]
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "same.txt").symlink_to(tmp_path / "b.txt")
    other_spellings = [f"{tmp_path}/a.txt", f"{tmp_path}/./a.txt", f"{tmp_path}/d/same.txt"]
    assert find_files([f"{tmp_path}/*.txt", *other_spellings], tally) == everything
    assert find_files([f"{tmp_path}/[x].txt"], tally) == everything[:1]  # a name, although it looks like a glob
    with pytest.raises(BadInput, match=r"a folder, not a file; name the files in it: --input='.*/\*\.txt'"):
        find_files([str(tmp_path)], tally)
    skipping = Tally(Reading(on_bad="skip"))
    assert find_files([str(tmp_path)], skipping) == []
    assert skipping.skipped == {"a folder, not a file": 1}


@pytest.mark.parametrize(("data", "what"), [(b"", "an empty file"), (b" \n\r\n\t\n" * 99, "only blank lines")])
def test_files_without_text_raise(tmp_path, data, what):
    path = tmp_path / "a.txt"
    path.write_bytes(data)
    with pytest.raises(BadInput, match=what):
        has_text(describe(str(path), str(path)), Tally(Reading()))


@pytest.mark.parametrize(
    "wrong",
    [
        {"documents": "page"},
        {"split": "words"},
        {"on_bad": "fix"},
        {"encoding": "utf-9"},
        {"max_line_mb": 0.0},
        {"max_line_mb": float("inf")},
        {"encoding": "base64"},
    ],
)
def test_invalid_reading_options_raise(wrong):
    with pytest.raises(ValueError, match="use"):
        Reading(**wrong)


def test_lines_longer_than_a_block_keep_their_offsets(tmp_path):
    path = tmp_path / "a.txt"
    lines = [b"x" * 3_000_000, b"", b"short", b"y" * 2_000_000]
    path.write_bytes(b"\n".join(lines))
    source = Source(str(path), str(path), path.stat().st_size, "")
    expected = [(0, lines[0]), (3_000_001, b""), (3_000_002, b"short"), (3_000_008, lines[3])]
    assert list(iterate_lines(source, 0, Tally(Reading()))) == expected
    assert list(iterate_lines(source, 5, Tally(Reading()))) == expected[1:]
    assert list(iterate_lines(source, 3_000_009, Tally(Reading()))) == []


def test_sample_is_seeded_bounded_and_spread(tmp_path):
    sources = []
    for name in "abc":
        path = tmp_path / f"{name}.txt"
        path.write_text("".join(f"{name}{n}{' some words of a line' * 5}\n" for n in range(12_000)))
        sources.append(describe(str(path), str(path)))
    sample = list(iterate_sample(sources, Reading(), 1.0, seed=1))
    assert sample == list(iterate_sample(sources, Reading(), 1.0, seed=1))
    assert sample != list(iterate_sample(sources, Reading(), 1.0, seed=2))
    assert 0.9 < sum(len(s) + 1 for s in sample) / (1 << 20) < 1.1
    assert {s[0] for s in sample} == set("abc")
    assert len(list(iterate_sample(sources, Reading(), 100.0, seed=1))) == 36_000
