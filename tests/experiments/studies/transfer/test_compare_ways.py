"""The study of ways of transfer on a small model: its scores, drifts and files."""

import pytest

from bert_elmo_jax.toyworld import ToyWorld
from experiments.configs import finetune, tagger
from experiments.studies.transfer.compare_ways import EXAMPLES, study_transfer, write_senses, write_study

from ...task_files import write_model

WORLD = ToyWorld("en", topics=2, words=2)


def test_words_of_several_senses_are_entities(tmp_path):
    files = write_senses(tmp_path, WORLD)
    sentences = (tmp_path / "train.conll").read_text(encoding="utf-8").strip().split("\n\n")
    assert sorted(files) == ["dev", "train"] and len(sentences) == EXAMPLES["train"]
    assert all("\tB-" in sentence for sentence in sentences)
    assert write_senses(tmp_path, WORLD) == files


@pytest.mark.long
def test_a_study(tmp_path, capsys):
    model = str(write_model(tmp_path / "model", num_layers=2))
    head, network = finetune.entities(), tagger.get_config()
    head.update(context=False, max_length=32)
    findings = study_transfer({"small": model}, WORLD, head, network, seeds=(0,), steps=3, ways=("upper", "frozen"))
    end, _, gradients = findings.tables.values()
    assert end[0] == ["way", "F1", "encoder", "embeddings", "layer 1", "layer 2"]
    upper, frozen = end[1:]
    assert frozen[2:] == ["0.000"] * 4
    assert upper[3:5] == ["0.000", "0.000"] and float(upper[5]) > 0
    assert gradients[1][1:3] == ["–", "–"] and float(gradients[1][3]) > 0
    path = write_study(findings, tmp_path / "new")
    assert path.read_text(encoding="utf-8").startswith("<svg")
    assert "drift at the end" in capsys.readouterr().out


def test_a_way_that_is_not_known(tmp_path):
    with pytest.raises(ValueError, match=r"'half' is not a way of this study; it has all, head_first, gradual"):
        study_transfer({}, WORLD, finetune.get_config(), tagger.get_config(), ways=("half",))
