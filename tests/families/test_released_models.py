"""Small replicas of the models of docs/models.json, with the settings of their config.json, against transformers."""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from bert_elmo_jax import load

from ..conftest import GOLDENS
from .replicas import MODELS, draw_batch, draw_weight, read_models, shrink

GOLDEN = dict(np.load(GOLDENS / "released_models.npz"))
SHAPES = json.loads(GOLDEN["shapes"].tobytes())


def list_models():
    """Yield each model; in `make test`, the first of each kind of configuration: other tests have all heads."""
    kinds = set()
    for model in read_models():
        kind = model["config"]["model_type"]
        yield pytest.param(model, marks=pytest.mark.long if kind in kinds else (), id=model["name"])
        kinds.add(kind)


@pytest.fixture
def replica(request, tmp_path):
    """Write a replica of a model as a released folder, and load it."""
    config = shrink(request.param["config"])
    weights = {name: draw_weight(name, tuple(shape)) for name, shape in SHAPES[request.param["name"]].items()}
    save_file(weights, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return request.param, config, load(tmp_path)


@pytest.mark.parametrize("replica", [*list_models()], indirect=True)
def test_a_replica_computes_what_transformers_computes(replica):
    model, config, loaded = replica
    tokens, mask = draw_batch(config)
    theirs = {name.rpartition("|")[2]: x for name, x in GOLDEN.items() if name.startswith(f"{model['name']}|")}
    if config.get("is_encoder_decoder"):
        source = (
            {"tokens": tokens, "mask": mask}
            if config["model_type"] == "bart"
            else {"source": tokens, "source_mask": mask}
        )
        logits = loaded.forward(**source, target=tokens[:, :4]).logits
        np.testing.assert_allclose(logits, theirs["logits"], atol=1e-5 * np.abs(theirs["logits"]).max())
        return
    output, real = loaded.forward(tokens=tokens, mask=mask), mask > 0
    if "start_logits" in theirs:
        theirs["logits"] = np.stack([theirs["start_logits"], theirs["end_logits"]], axis=-1)
    ours = output.logits if "logits" in theirs else output.layers[-1]
    expected = theirs.get("logits", theirs.get("last_hidden_state"))
    ours = np.asarray(ours).reshape(expected.shape)
    if expected.shape[:2] == mask.shape:
        ours, expected = ours[real], expected[real]
    np.testing.assert_allclose(ours, expected, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("korean", [False, True])
def test_pages_are_those_of_the_list(monkeypatch, korean):
    monkeypatch.syspath_prepend(MODELS.parent)
    import models

    page = MODELS.with_name("models.ko.md" if korean else "models.md")
    assert page.read_text(encoding="utf-8") == models.render(read_models(), korean), "run python docs/models.py"
