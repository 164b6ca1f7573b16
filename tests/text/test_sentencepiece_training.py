"""Examples of `bert_elmo_jax.text.training`."""

from bert_elmo_jax.text.training import learn_model, nfc_rules


def test_example_of_nfc_rules():
    rules = dict(nfc_rules())
    assert [rules[spelling] for spelling in ("하\u11ab", "\u1112\u1161\u11ab", "e\u0301", "\u200b")] == [
        "한",
        "한",
        "é",
        "",
    ]


def test_example_of_learn_model():
    assert learn_model(["배를 타고 배를 보다"] * 3, 30) == learn_model(["배를 보다 배를 타고"] * 3, 30)
