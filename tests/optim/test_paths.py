"""Examples of `bert_elmo_jax.optim.paths`."""


def test_example_of_path_name():
    import jax

    from bert_elmo_jax.optim.paths import path_name

    assert [
        path_name(path) for path, _ in jax.tree_util.tree_leaves_with_path({"encoder": {"layer_0": {"bias": 0}}})
    ] == ["encoder/layer_0/bias"]
