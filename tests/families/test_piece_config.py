"""The fields that transformers share: earlier names, and texts that fingerprints hash."""

import dataclasses
import hashlib
import json

import pytest

from bert_elmo_jax.families import get_family
from bert_elmo_jax.inference.model_kinds import read_config
from bert_elmo_jax.train import same_run

SIZES = {"vocab_size": 60, "hidden_size": 16, "num_layers": 2, "num_heads": 2, "feed_forward_size": 24}
SIZES |= {"max_positions": 32}
BERT = get_family("bert").config


@pytest.mark.parametrize(
    ("name", "fields", "digest"),
    [
        ("bert", {}, "98286f980875a8a7"),
        ("bert", {"attention": "causal", "implementation": "fused", "norm": "pre"}, "4b824ec833db5f8c"),
        ("roberta", {}, "46a33940367829b9"),
        ("distilbert", {}, "d64235726808856a"),
        ("electra", {}, "63ac7fdf2385197c"),
        ("gpt", {}, "15c22fa1c6b7a03c"),
        ("modernbert", {}, "82140983472f642a"),
        ("transformer", {}, "441f88afa08a0792"),
        ("bart", {}, "131582eded7a6cca"),
    ],
)
def test_the_text_of_a_configuration_is_that_of_the_first_runs(name, fields, digest):
    text = str(get_family(name).config(**SIZES, **fields))
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == digest, text


def old_fields(config):
    """Return the fields of a BERT as earlier versions stored them."""
    fields = dataclasses.asdict(config)
    fields["implementation"] = fields.pop("attention")
    return fields | {"attention": "causal" if fields.pop("causal") else "bidirectional"}


@pytest.mark.parametrize("config", [BERT(), BERT(causal=True, attention="fused")], ids=["plain", "causal"])
def test_models_and_runs_of_earlier_versions_are_read(config, tmp_path):
    old = old_fields(config)
    assert BERT(**old) == config
    assert read_config(old, "bert", "model.json") == config
    (tmp_path / "run.json").write_text(json.dumps({"steps": 9, "model": old, "implementation": "reference"}))
    same_run(tmp_path, {"steps": 9, "model": dataclasses.asdict(config), "attention": "reference"})
    with pytest.raises(ValueError, match=r"model.causal: .*then, .*now"):
        same_run(tmp_path, {"steps": 9, "model": {**dataclasses.asdict(config), "causal": not config.causal}})


def test_a_word_of_the_package_for_the_direction_is_no_attention_of_other_families():
    with pytest.raises(ValueError, match="attention is 'causal'; it is one of reference, fused, splash"):
        get_family("roberta").config(attention="causal")
