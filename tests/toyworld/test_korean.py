"""Examples of `bert_elmo_jax.toyworld.korean`."""

from bert_elmo_jax.toyworld.korean import inflect, render


def test_example_of_inflect():
    from bert_elmo_jax.toyworld.lexicon import entry

    assert (inflect(entry("mend=고치다"), "past"), inflect(entry("mend=고치다"), "past+honorific")) == (
        "고쳤다",
        "고치셨다",
    )


def test_example_of_render():
    from bert_elmo_jax.toyworld.shapes import Shape

    assert [token if isinstance(token, str) else token.name for token in render(Shape("do", place=True))] == [
        "hero",
        "place",
        "thing",
        "verb",
        ".",
    ]
