"""The loop that trains small models, and sentences as arrays."""

import jax.numpy as jnp
import numpy as np
import optax

from bert_elmo_jax.toyworld import ToyWorld
from experiments.studies.why_attention.small_training import first_above, fit, mean_loss, toy_texts


def test_sentences_come_back_from_their_ids():
    world = ToyWorld("ko", topics=2, words=2)
    texts = toy_texts(world, train=30, test=10)
    decoded_texts = [" ".join(texts.words[i - 2] for i in row if i) for row in (*texts.train, *texts.test)]
    world_texts = [sentence.text for i in range(40) for sentence in world.document(i).sentences]
    assert decoded_texts[:30] == world_texts[:30]
    assert set(decoded_texts[30:]) <= set(world_texts)
    last = next(i for i in range(40) if decoded_texts[29] in [s.text for s in world.document(i).sentences])
    assert decoded_texts[30] == world.document(last + 1).sentences[0].text  # documents of their own
    assert texts.size == len(world.network.words) + 2 and texts.train.max() < texts.size


def test_the_same_seed_trains_the_same_model():
    def run(seed):
        def loss(params, batch, key):
            return jnp.square(params - batch), batch

        draw = lambda key: jnp.asarray(0.0) + jnp.float32(key.dtype is not None)  # noqa: E731
        return fit(loss, jnp.zeros(()), draw, steps=5, optimiser=optax.sgd(0.1), seed=seed).losses

    np.testing.assert_array_equal(run(3), run(3))
    assert (np.diff(run(3)) < 0).all()


def test_weights_choose_what_counts():
    logits = jnp.array([[[2.0, 0.0], [0.0, 5.0]]])
    loss, right = mean_loss(logits, jnp.array([[0, 0]]), jnp.array([[1.0, 0.0]]))
    assert float(right) == 1 and float(loss) < 0.2


def test_a_level_that_is_never_reached():
    assert first_above(np.zeros(30), 0.5) is None
    assert first_above(np.ones(5), 0.5) is None  # fewer values than the mean needs
