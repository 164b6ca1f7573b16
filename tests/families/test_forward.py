"""`logits` come from the head that the weights have, under any name."""

import dataclasses
import functools

import flax.linen as nn
import jax
import numpy as np
import pytest

from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.family import Head
from bert_elmo_jax.families.forward import Request, choose_head, run
from bert_elmo_jax.families.init_params import init_params, param_shapes
from bert_elmo_jax.weights.parameter_tree import nest


class Replaced(nn.Module):
    """A head that belongs to no family, with one number per piece."""

    config: object

    @nn.compact
    def __call__(self, hidden, words, positions=None):
        return nn.Dense(1, name="dense")(hidden)[..., 0]


BERT = get_family("bert")
FAMILY = dataclasses.replace(
    BERT, heads={"nsp": BERT.heads["nsp"], "replaced": Head(Replaced), "mlm": BERT.heads["mlm"]}
)
CONFIG = BERT.config(vocab_size=30, hidden_size=8, num_layers=1, num_heads=2, feed_forward_size=16)
TOKENS = np.ones((2, 3), np.int32)


@pytest.mark.parametrize(
    ("heads", "chosen", "shape"),
    [
        (("mlm",), "mlm", (2, 3, 30)),
        (("replaced", "nsp"), "replaced", (2, 3)),
        (("mlm", "replaced"), "mlm", (2, 3, 30)),
        (("nsp",), None, None),
    ],
)
def test_logits_of_the_head_that_there_is(heads, chosen, shape):
    params = nest({path: np.zeros(shape, np.float32) for path, shape in param_shapes(FAMILY, CONFIG, heads).items()})
    assert choose_head(FAMILY, params) == chosen
    request = Request(head=chosen, nsp="nsp" in heads)
    compute = functools.partial(run, FAMILY, CONFIG, request=request)
    output = jax.eval_shape(compute, params, TOKENS, None, None, None)
    assert (output.logits is None) if shape is None else (output.logits.shape == shape)
    assert (output.mlm_logits is not None) == (chosen == "mlm")
    assert (output.nsp_logits is not None) == ("nsp" in heads)
    assert chosen is None or f"{chosen}_logits {list(shape)}" in repr(output)


def test_a_new_head_changes_no_other_part():
    init = functools.partial(init_params, FAMILY, CONFIG, jax.random.key(0))
    one, both = (init(heads) for heads in (("mlm",), ("replaced", "mlm")))
    for part in one:
        jax.tree.map(np.testing.assert_array_equal, one[part], both[part])
    again = init(("replaced",))["replaced"]
    jax.tree.map(np.testing.assert_array_equal, again, both["replaced"])
