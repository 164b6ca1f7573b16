"""Examples of `bert_elmo_jax.train.checkpoint`."""

from pathlib import Path

from bert_elmo_jax.train.checkpoint import damage, write_file_list


def test_example_of_write_file_list():
    import tempfile

    folder = Path(tempfile.mkdtemp())
    _ = (folder / "a.txt").write_text("강")
    write_file_list(folder)
    assert damage(folder) == []
