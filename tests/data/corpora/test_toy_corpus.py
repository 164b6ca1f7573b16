import json

import pytest

from bert_elmo_jax.data.corpora.store import open_store
from bert_elmo_jax.data.corpora.toy_corpus import toy_corpus, toy_pairs

SMALL = {"tokenizer": "words", "documents": 6, "topics": 2, "words": 2, "heldout": 0.0, "shards": 1}


def test_a_world_of_other_options_is_made_again_unless_a_run_has_read_it(tmp_path):
    folder = toy_corpus(tmp_path / "toyworld", **SMALL)
    manifest = folder / "manifest.json"
    before = manifest.stat().st_mtime_ns
    assert toy_corpus(folder, **SMALL) == folder and manifest.stat().st_mtime_ns == before
    assert len(open_store(toy_corpus(folder, **{**SMALL, "documents": 9}))) == 9
    assert {len(document) for document in open_store(toy_pairs(folder, **{**SMALL, "language": "en,ko"}))} == {2}
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(ValueError, match=r"toyworld was made with pairs=True, language='en,ko', vocab_size=1000: use"):
        toy_corpus(folder, **SMALL)


def test_a_world_of_an_earlier_version_is_used(tmp_path):
    folder = toy_corpus(tmp_path / "toyworld", **SMALL)
    (folder / "world.json").unlink()
    assert len(open_store(toy_corpus(folder, **{**SMALL, "documents": 9}))) == 6


def test_a_folder_with_the_plan_of_something_else_is_kept(tmp_path):
    (tmp_path / "plan.json").write_text(json.dumps({"holidays": ["Jeju"]}))
    with pytest.raises(ValueError, match=r"has a plan\.json of something else"):
        toy_corpus(tmp_path, **SMALL)
    assert "Jeju" in (tmp_path / "plan.json").read_text()
