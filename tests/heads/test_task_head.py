"""Examples of `bert_elmo_jax.heads.task_head`."""

import jax
import jax.numpy as jnp

from bert_elmo_jax.heads.task_head import TaskHead, coefficients, init_task_head, task_outputs


def test_example_of_init_task_head():
    assert init_task_head(TaskHead("choice"), jax.random.key(0), 8)["kernel"].shape == (8, 1)


def test_example_of_task_outputs():
    from bert_elmo_jax.families.bert.family import FAMILY
    from bert_elmo_jax.families.init_params import init_task_params

    config = FAMILY.config(vocab_size=50, hidden_size=8, num_layers=1, num_heads=2, feed_forward_size=16)
    head, ones = TaskHead("choice"), jnp.ones((2, 4, 5), jnp.int32)
    params = init_task_params(FAMILY, config, head, jax.random.key(0))
    encoder = FAMILY.build(config, pooler=head.pooled)
    assert task_outputs(encoder, head, params, {"tokens": ones, "types": ones, "segments": ones}).shape == (2, 4)


def test_example_of_coefficients():
    assert coefficients("questions") == {"start": 0.5, "end": 0.5}
