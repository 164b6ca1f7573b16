"""Examples of `bert_elmo_jax.toyworld.english`."""

from bert_elmo_jax.toyworld.english import comparative, inflect, past, plural, render


def test_example_of_plural():
    assert [plural(word) for word in ("net", "box", "lily", "day", "branch")] == [
        "nets",
        "boxes",
        "lilies",
        "days",
        "branches",
    ]


def test_example_of_comparative():
    assert [comparative(word) for word in ("small", "strange", "pretty")] == ["smaller", "stranger", "prettier"]


def test_example_of_inflect():
    from bert_elmo_jax.toyworld.lexicon import entry

    assert (inflect(entry("catch/caught=잡다"), "past"), inflect(entry("catch/caught=잡다"), "third")) == (
        "caught",
        "catches",
    )


def test_example_of_render():
    from bert_elmo_jax.toyworld.shapes import Shape

    assert [
        token if isinstance(token, str) else token.form for token in render(Shape("act", subject="many", place=True))
    ] == ["The", "many", "past", "plain", "the", "plain", "."]


def test_example_of_past():
    assert [past(word) for word in ("pull", "admire", "carry", "play")] == ["pulled", "admired", "carried", "played"]
