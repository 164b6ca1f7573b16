"""Examples of `bert_elmo_jax.nn.layers`."""


def test_example_of_layer_numbers():
    from bert_elmo_jax.nn.layers import layer_numbers

    assert (
        layer_numbers([0, -1], num_layers=12),
        layer_numbers("all", num_layers=2),
        layer_numbers(None, num_layers=2),
    ) == ([0, 12], [0, 1, 2], [])
