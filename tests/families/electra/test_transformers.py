"""Export to transformers and back, for every head: the same numbers there, and the same bits on return."""

import jax
import numpy as np
import pytest

from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.electra.huggingface import read_weights, write
from bert_elmo_jax.heads.task_head import TaskHead, task_outputs
from bert_elmo_jax.weights.parameter_tree import flatten

from ..peers import their_warnings
from .test_huggingface import CONFIG, MODELS, random_params

pytestmark = pytest.mark.peers
FAMILY = get_family("electra")
HEADS = {
    "classify": TaskHead("classification", 3),
    "choice": TaskHead("choice"),
    "tag": TaskHead("tags", 5),
    "span": TaskHead("questions"),
}


def our_outputs(params, head, ids):
    if not head or head in ("mlm", "replaced"):
        from bert_elmo_jax.families.forward import Wanted, run

        output = run(FAMILY, CONFIG, params, ids, None, None, None, wanted=Wanted(head=head))
        return [output.logits if head else output.last]
    module = FAMILY.build(CONFIG, pooler=HEADS[head].pooled)
    batch = {"tokens": ids, "types": np.zeros_like(ids), "segments": np.ones_like(ids)}
    output = task_outputs(module, HEADS[head], params, batch)
    return list(output) if isinstance(output, tuple) else [output]


@pytest.mark.parametrize("name", MODELS)
def test_out_and_back_is_exact(peers, tmp_path, name):
    torch, transformers = peers
    heads, _ = MODELS[name]
    params = jax.tree.map(lambda x: 0.3 * x, random_params(heads))
    write(tmp_path / "ours", params, CONFIG)
    with their_warnings():
        model, info = getattr(transformers, name).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"] and not info["mismatched_keys"], info
    shape = (2, 3, 7) if heads == ("choice",) else (2, 7)
    ids = (np.arange(np.prod(shape)).reshape(shape) % 50).astype(np.int32)
    with torch.no_grad():
        output = model.eval()(torch.from_numpy(ids).long())
    for ours, theirs in zip(our_outputs(params, next(iter(heads), None), ids), output.values(), strict=True):
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-4, atol=1e-4)
    with their_warnings():
        model.save_pretrained(tmp_path / "theirs")
    read, report = read_weights(tmp_path / "theirs")
    assert not (report.unexpected or report.missing)
    ours, theirs = flatten(read), flatten(params)
    assert ours.keys() == theirs.keys()
    for path in ours:
        np.testing.assert_array_equal(ours[path], theirs[path], err_msg=path)
