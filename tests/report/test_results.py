"""Examples of `bert_elmo_jax.report.results`."""

from pathlib import Path

from bert_elmo_jax.report.results import Result, add_published, write_results, write_rows


def test_example_of_add_published():
    assert [result.encoder for result in add_published([Result("pos", "mine", "1", 0.9)])][:2] == [
        "mine",
        "biLM (Peters et al. 2018)",
    ]


def test_example_of_write_results():
    import tempfile

    file = write_results(Path(tempfile.mkdtemp()) / "table.csv", [Result("pos", "mine", "1", 0.5, 4)])
    assert file.read_text(encoding="utf-8-sig").splitlines()[1] == "pos,mine,1,0.5,4,"


def test_example_of_write_rows():
    import tempfile

    file = write_rows(Path(tempfile.mkdtemp()) / "table.csv", [["word", "cosine"], ["배", 0.5]])
    assert (file.read_bytes()[:3], file.read_text(encoding="utf-8-sig").splitlines()[1]) == (b"\xef\xbb\xbf", "배,0.5")


def test_formulas_are_guarded_on_request(tmp_path):
    rows = [["=word", "cosine"], ["=1+1", -0.5], ["@배", "-2"]]
    text = write_rows(tmp_path / "a.csv", rows, guarded=True).read_text(encoding="utf-8-sig")
    assert text.splitlines() == ["'=word,cosine", "'=1+1,-0.5", "'@배,'-2"]
    assert write_rows(tmp_path / "b.csv", rows).read_text(encoding="utf-8-sig").splitlines()[1] == "=1+1,-0.5"
    results = [Result("=pos", "mine", "-1", 0.5, 4)]
    text = write_results(tmp_path / "c.csv", results, guarded=True).read_text(encoding="utf-8-sig")
    assert text.splitlines()[1] == "'=pos,mine,'-1,0.5,4,"


def test_a_result_is_printed_in_per_cent():
    assert repr(Result("pos", "runs/elmo", "1", 0.973, 25094)) == "pos, runs/elmo, layer 1: 97.3 %"
