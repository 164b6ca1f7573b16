"""Names of paths."""

import jax

from bert_elmo_jax.optim.paths import path_name


def test_names_of_paths():
    [(path, _)] = jax.tree_util.tree_leaves_with_path({"encoder": {"layer_0": {"bias": 0}}})
    assert path_name(path) == "encoder/layer_0/bias"
