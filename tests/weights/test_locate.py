"""Examples of `bert_elmo_jax.weights.parameter_tree`."""

from bert_elmo_jax.weights.parameter_tree import ancestors, encoder_prefix, locate


def test_example_of_ancestors():
    assert ancestors("module.bert.", ".") == ["module.bert.", "module.", ""]


def test_example_of_encoder_prefix():
    assert (
        encoder_prefix({"bert.embeddings.word.weight": 0, "bert.pooler.bias": 0}, "embeddings.word.weight", ".", "x")
        == "bert."
    )


def test_example_of_locate():
    assert locate({"nsp/bias": "cls.bias"}, {"module.cls.bias": "module.cls.bias"}, "module.bert.", ".") == (
        {"nsp/bias": "module.cls.bias"},
        {"nsp/bias": "cls.bias"},
    )
