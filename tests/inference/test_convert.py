"""Examples of `bert_elmo_jax.inference.convert`."""

from pathlib import Path

from bert_elmo_jax.inference.convert import average_checkpoints


def test_example_of_average_checkpoints():
    import tempfile

    import numpy as np

    from bert_elmo_jax.train.checkpoint import save_params

    run = tempfile.mkdtemp()
    for step in (10, 20, 30):
        _ = save_params(run, step, {"dense": {"bias": np.full(2, step, np.float32)}})
    _ = Path(run, "model.json").write_text("{}")
    assert repr(average_checkpoints(run, 2)) == "([20, 30], {'dense': {'bias': array([25., 25.], dtype=float32)}})"
