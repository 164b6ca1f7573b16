"""Paired benchmarks: results name their peer, the page has the results' figures, and all sides run at toy size."""

import dataclasses
import json
import re
import shutil
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from absl.testing import flagsaver

ROOT = Path(__file__).parents[2]
PEER = {"name": "AllenNLP on PyTorch", "version": "2.10.1, torch 2.13.0", "precision": "float32"}
MACHINE = {"processor": "a processor", "cores": 2, "memory_gib": 8, "instructions": ["AVX-512"], "amx": False}


@pytest.fixture(scope="module")
def speed(program):
    return program("benchmarks.speed")


@pytest.fixture
def results(speed):
    return sys.modules["experiments.benchmarks._results"]


@pytest.fixture
def page(speed):
    return sys.modules["experiments.benchmarks._page"]


@pytest.fixture
def compare(results):
    """Make a comparison; keywords change its fields."""

    def make(**changed):
        versions = {"jax": "0.12.0.1", "python": "3.12.3"}
        fields = {"work": "elmo", "case": "small, 32 × 20 words: forward", "precision": "float32", "ours": (1.0,) * 7,
                  "theirs": (2.0,) * 7, "machine": MACHINE, "versions": versions, "date": "2026-01-01"}  # fmt: skip
        return results.Comparison(**{**fields, "peer": results.Peer(**PEER), **changed})

    return make


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("name", " ", "name is needed"),
        ("version", "newest", "version is needed"),
        ("precision", "", "precision is one of float32, bfloat16, int8"),
    ],
)
def test_a_peer_is_named_in_full(results, field, value, message):
    with pytest.raises(ValueError, match=message):
        results.Peer(**{**PEER, field: value})
    with pytest.raises(TypeError):
        results.Peer(**{name: value for name, value in PEER.items() if name != field})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"ours": (1.0,) * 6, "theirs": (1.0,) * 6}, "6 turns: a result needs 7"),
        ({"ours": (1.0,) * 8}, "not in turn"),
        ({"precision": "half"}, "precision='half'"),
        ({"machine": {"cores": 2}}, "processor not given"),
        ({"versions": {"python": "3.12"}}, "jax not given"),
    ],
)
def test_a_comparison_is_whole(compare, changed, message):
    with pytest.raises(ValueError, match=message):
        compare(**changed)


def test_results_are_read_as_written_and_merged_by_their_key(results, compare, tmp_path):
    file, old = tmp_path / "bench.json", [compare(), compare(precision="bfloat16"), compare(work="tagger")]
    assert results.read_results(file) == []
    results.write_results(file, old)
    assert results.read_results(file) == sorted(old, key=lambda one: one.key)
    new = compare(theirs=(4.0,) * 7)
    other_jax = compare(versions={"jax": "0.10.2", "python": "3.11.7"})
    merged = results.merge(old, [new, other_jax])
    assert len(merged) == 4 and merged[1:3] == old[1:] and new in merged and old[0] not in merged
    entry = json.loads(file.read_text())["comparisons"][1]
    assert (entry["ratio"], entry["median"], entry["turns"]) == (0.5, {"ours": 1.0, "theirs": 2.0}, 7)
    entry["peer"]["version"] = ""
    file.write_text(json.dumps({"comparisons": [entry]}))
    with pytest.raises(ValueError, match="version is needed"):
        results.read_results(file)


def test_the_ratio_is_the_median_of_the_turns(compare):
    ours = (1.0, 1.0, 1.0, 1.0, 9.0, 9.0, 9.0)
    assert compare(ours=ours, theirs=(1.0, 2.0, 2.0, 2.0, 9.0, 9.0, 9.0)).ratio == 1.0


def test_both_pages_have_the_tables(page, results, compare, tmp_path):
    other = {**MACHINE, "processor": "another"}
    peer = results.Peer("AllenNLP on PyTorch", "2.11", "float32")
    comparisons = [compare(), compare(work="tagger", case="training"), compare(case="original, 32 × 20 words: forward")]
    for extra in ([], [compare(case="small, one sentence of 20 words: forward", machine=other, peer=peer)]):
        texts = [page.render([*comparisons, *extra], language) for language in page.LANGUAGES]
        figures = [re.findall(r"[\d.]+", text.split("\n\n", 1)[1]) for text in texts]
        tables = [re.findall(r"^\|.*\|$", text, re.M) for text in texts]
        assert len(tables[0]) == len(tables[1]) == len(comparisons) + 4 + 3 * len(extra)
        assert all("2.10.1" in text and "**0.50**" in text for text in texts)
        assert figures[0].count("0.50") == figures[1].count("0.50") == len(comparisons) + len(extra)
        assert ("- A: " in texts[0] and "| B |" in texts[0]) == bool(extra)
    assert "forward" not in texts[1] and "순방향" in texts[1] and "태거" in texts[1]


def test_korean_has_every_work_case_and_peer(page, speed):
    assert [*page.ENGLISH.works] == [*page.KOREAN.works] == speed.NAMES
    names = [case for work in speed.WORKS for case in work.cases.values()]
    for side in (ROOT / "experiments" / "benchmarks" / "peers").glob("[a-z]*.py"):
        names += re.findall(r'NAME = "(.*)"|"name": "(.*?)"', side.read_text("utf-8"))[0:1] or []
    for name in [name if isinstance(name, str) else "".join(name) for name in names]:
        assert page.translate(name, page.KOREAN) != name, name


def test_the_pages_are_those_of_the_results(page, results):
    folder = ROOT / "docs" / "results"
    comparisons = results.read_results(folder / "bench.json")
    for language in page.LANGUAGES:
        text = (folder / language.file).read_text(encoding="utf-8")
        assert page.insert(text, page.render(comparisons, language)) == text, (
            "python -m experiments.benchmarks.speed --what=render"
        )
    with pytest.raises(ValueError, match="once each"):
        page.insert("# A page", "tables")


SIDE = """
import json, sys
said = {said}
print(json.dumps(said), flush=True)
for line in sys.stdin:
    print({seconds}, flush=True)
"""


@pytest.fixture
def side(tmp_path):
    """Make an interpreter that is one side for every program."""

    def make(name, seconds=1.0, **answer):
        file = tmp_path / name
        file.write_text(f"#!{sys.executable}\n" + SIDE.format(said=answer, seconds=seconds))
        file.chmod(0o755)
        return str(file)

    return make


def test_two_processes_take_turns(speed, side, monkeypatch, tmp_path, capsys):
    for name in ("speed.md", "speed.ko.md"):
        shutil.copy(ROOT / "docs" / "results" / name, tmp_path / name)
    monkeypatch.setattr(sys.modules["experiments.benchmarks._turns"], "SETTLE", 0.0)
    monkeypatch.setattr(speed, "check_interpreter", lambda *args: None)
    right, wrong = side("peer", 3.0, peer=PEER, check=[0.0]), side("wrong", 3.0, peer=PEER, check=[1.0])
    ours = side("ours", 1.5, versions={"jax": "0.12.0", "python": "3.12.1"}, check=[0.0])
    monkeypatch.setattr(speed.sys, "executable", ours)
    work = dataclasses.replace(speed.WORKS[0], prepare=lambda *args: None, precisions=("float32",))
    monkeypatch.setattr(speed, "WORKS", [work])
    flags = {"peer_python": right, "what": ["step"], "results": str(tmp_path)}
    with flagsaver.flagsaver(**flags, turns=1):
        speed.main()
    assert "nothing is kept" in capsys.readouterr().out and not (tmp_path / "bench.json").exists()
    with flagsaver.flagsaver(**flags):
        speed.main()
    assert "ratio 0.500 (7 turns)" in capsys.readouterr().out
    (comparison,) = speed.read_results(tmp_path / "bench.json")
    assert (comparison.peer.name, comparison.medians, comparison.versions["jax"]) == (
        PEER["name"],
        (1.5, 3.0),
        "0.12.0",
    )
    assert "**0.50**" in (tmp_path / "speed.ko.md").read_text(encoding="utf-8")
    with flagsaver.flagsaver(**{**flags, "peer_python": wrong}), pytest.raises(ValueError, match="compute the same"):
        speed.main()


def test_on_a_gpu_the_figures_are_lines_of_json(speed, side, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(sys.modules["experiments.benchmarks._turns"], "SETTLE", 0.0)
    monkeypatch.setattr(speed, "check_interpreter", lambda *args: None)
    peer = side("peer", 2.0, peer=PEER, device="a card", check=[0.0])
    monkeypatch.setattr(speed.sys, "executable", side("ours", 1.0, versions={"jax": "0.12.0"}, check=[0.0]))
    works = [dataclasses.replace(work, prepare=lambda *args: None, precisions=("float32",)) for work in speed.WORKS]
    monkeypatch.setattr(speed, "WORKS", works)
    flags = {"peer_python": peer, "gpu": True, "turns": 2}
    output = tmp_path / "gpu.json"
    with flagsaver.flagsaver(**flags, tiny=True, output=str(output)):
        speed.main()
    lines = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert [line["work"] for line in lines] == ["encode", "generate", "generate"]
    assert {(line["ratio"], line["device"], line["tiny"]) for line in lines} == {(0.5, "a card", True)}
    with flagsaver.flagsaver(**flags), pytest.raises(ValueError, match="there is no GPU here"):
        monkeypatch.setattr(speed.shutil, "which", lambda name: None)
        speed.main()
    with flagsaver.flagsaver(**flags, tiny=True, what=["step"]), pytest.raises(ValueError, match="of encode, generate"):
        speed.main()
    cpu, gpu = (sys.modules["experiments.benchmarks._turns"].environment(on_gpu) for on_gpu in (False, True))
    assert cpu["JAX_PLATFORMS"] == "cpu" and gpu["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"


def test_more_sentences_for_a_gpu(program, tmp_path):
    inputs = program("benchmarks._inputs")
    inputs.write_settings(tmp_path, texts=["one"], batch_size=2, one="a")
    inputs.enlarge(tmp_path, None, count=30)
    settings = inputs.read_settings(tmp_path)
    assert (len(settings["texts"]), settings["batch_size"], settings["one"]) == (30, 256, "a")
    inputs.write_settings(tmp_path, cases={})
    inputs.enlarge(tmp_path, None)
    assert inputs.read_settings(tmp_path) == {"cases": {}}


def test_a_side_that_fails_or_lacks_its_libraries(speed, tmp_path):
    turns = sys.modules["experiments.benchmarks._turns"]
    file = tmp_path / "python"
    file.write_text(f"#!{sys.executable}\nraise SystemExit(3)\n")
    file.chmod(0o755)
    with pytest.raises(OSError, match="ended without an answer"), turns.start_side(str(file), "x", tmp_path, "float32"):
        pass
    with pytest.raises(ValueError, match=r"--peer_python=.* does not start"):
        turns.check_interpreter(str(file), ["torch"], "peer_python")
    with pytest.raises(ValueError, match="lacks no_such_library: install them there"):
        turns.check_interpreter(sys.executable, ["no_such_library", "json"], "peer_python")


@pytest.mark.parametrize(
    ("mine", "theirs", "message"),
    [
        ({"check": [1.0]}, {"check": [1.1]}, "do not compute the same"),
        ({"check": [float("nan")]}, {"check": [1.0]}, "do not compute the same"),
        ({"pieces": 3}, {"pieces": 4}, "ours reads 3 pieces, the peer 4"),
    ],
)
def test_sides_that_do_not_agree_are_not_timed(speed, mine, theirs, message):
    with pytest.raises(ValueError, match=message):
        speed.check_same(speed.WORKS[0], "float32", mine, theirs)


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        "step",
        "encode",
        "encode_onnx",
        "sentences_onnx",
        "deberta_step",
        "deberta_encode",
        "generate",
        "finetune",
        "tagger",
        "awd_lstm",
        "elmo",
    ],
)
def test_our_sides_run(speed, program, tmp_path, monkeypatch, one_device, name):
    work = next(work for work in speed.WORKS if work.name == name)
    work.prepare(tmp_path, True, None)
    passes, about = program(f"benchmarks.ours.{work.side}").make_passes(tmp_path, "float32")
    assert work.cases.keys() <= passes.keys() and np.isfinite(about["check"]).all()
    assert about["versions"]["jax"] == jax.__version__
    for run in passes.values():
        assert run() in (None, 10)


def test_distinct_words_with_their_marks_are_the_sentences(program):
    ours = program("benchmarks.ours.elmo")
    ids = ours.make_ids(3, 5)
    words, lengths, table = ours.prepare(ids)
    assert table.shape == (1, 16, 16) and lengths.tolist() == [7, 7, 7]
    np.testing.assert_array_equal(table[0][words[:, 1:-1]], ids[:, :, :16])
    assert (words[:, 0] == 0).all() and (words[:, -1] == 1).all()


@pytest.mark.long
def test_utilisation_at_toy_size(speed, one_device, tmp_path, capsys):
    with flagsaver.flagsaver(what=["utilisation"], tiny=True, peak=1.0, output=str(tmp_path / "found.json")):
        speed.main()
    report = json.loads((tmp_path / "found.json").read_text())
    assert report["card"] == jax.devices()[0].device_kind and report["peak"] == 1e12
    assert [one["case"].split(":")[0] for one in report["cases"]] == ["bert.py", "gpt.py", "elmo.py"]
    assert all(0 < one["utilisation"] < 1 for one in report["cases"]) and not report["left_out"]
    with flagsaver.flagsaver(what=["utilisation"], output="x"), pytest.raises(ValueError, match=r"--peak=312"):
        speed.main()


@pytest.mark.parametrize(
    ("kind", "peak"),
    [
        ("NVIDIA H100 80GB HBM3", 989e12),
        ("NVIDIA H100 PCIe", 756e12),
        ("NVIDIA A100-SXM4-80GB", 312e12),
        ("TPU v5 lite", 197e12),
        ("TPU v5p", None),
        ("TPU v6 lite", 918e12),
        ("NVIDIA L4", 121e12),
        ("NVIDIA L400", None),
    ],
)
def test_peaks(program, kind, peak):
    find = program("benchmarks._utilisation").find_peak
    if peak is None:
        with pytest.raises(ValueError, match="is not known"):
            find(kind, None)
    else:
        assert find(kind, None) == peak
