"""Fine-tuning on eight devices under pmap computes what it computes over a mesh, to rounding."""

import numpy as np
import pytest

from bert_elmo_jax.runs.config_files import read_config
from bert_elmo_jax.runs.finetuning import finetune
from bert_elmo_jax.train.checkpoint import load_params
from bert_elmo_jax.train.metrics import read_metrics
from bert_elmo_jax.weights.parameter_tree import flatten

from ..experiments.task_files import write_model, write_task
from .test_with_documents import write_lm

pytestmark = pytest.mark.devices

NETWORK = {"unknown": "unk", "word_size": 6, "lstm_size": 4, "lstm_layers": 1, "dropout": 0.0}
# For each kind of model: the config's file, the task, and further fields. Dropout would differ.
KINDS = {
    "head": ("finetune", "sst2", {"max_length": 32, "dropout": 0.0}),
    "adapters": ("finetune", "sst2", {"max_length": 32, "dropout": 0.0, "transfer": "lora", "lora.rank": 2}),
    "network": ("tagger", "entities", NETWORK),
    "documents": ("ulmfit", "classification", {"drop_factor": 0.0, "lm.epochs": 0.0, "documents.dropout": (0.0, 0.0)}),
}


def test_rows_that_the_devices_cannot_share(tmp_path):
    config, _ = read_config("tagger")
    config.update({**write_task(tmp_path / "files", "entities", count=32), **NETWORK, "batch_size": 12})
    with pytest.raises(ValueError, match=r"config.batch_size=12 cannot be shared by 8 devices"):
        finetune(config, tmp_path / "run")


@pytest.mark.parametrize("kind", ["head", *(pytest.param(kind, marks=pytest.mark.long) for kind in list(KINDS)[1:])])
def test_pmap_trains_as_a_mesh_does(kind, tmp_path):
    recipe, task, fields = KINDS[kind]
    config, _ = read_config(f"experiments/configs/{recipe}.py")
    config.update({**write_task(tmp_path / "files", task, count=32), "batch_size": 16, "epochs": 1.0, "log_every": 1})
    config.update_from_flattened_dict({name: value for name, value in fields.items() if name != "documents.dropout"})
    config.optimizer.learning_rate = 5e-3
    if "eps" in config.optimizer:  # otherwise Adam makes whole steps of gradients that are rounding errors
        config.optimizer.eps = 1e-4
    init = None
    if kind in ("head", "adapters"):
        init = str(write_model(tmp_path / "model"))
    elif kind == "documents":
        init = write_lm(tmp_path / "model")
        config.documents.update({"part": 8, "sizes": (8,), "dropout": fields["documents.dropout"]})
    for parallel in ("jit", "pmap"):
        assert finetune(config, tmp_path / parallel, init=init, parallel=parallel) == 0
    mesh, pmap = (
        [(line["loss"], line["gradient_norm"]) for line in read_metrics(tmp_path / parallel)]
        for parallel in ("jit", "pmap")
    )
    assert len(mesh) == 2
    np.testing.assert_allclose(pmap, mesh, rtol=1e-4)
    expected, params = (flatten(load_params(tmp_path / parallel)[1]) for parallel in ("jit", "pmap"))
    for name, values in params.items():
        np.testing.assert_allclose(values, expected[name], rtol=1e-3, atol=2e-5, err_msg=name)
