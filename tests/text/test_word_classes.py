"""Examples of `bert_elmo_jax.text.lexicon`."""

from bert_elmo_jax.text.lexicon import word_class


def test_example_of_word_class():
    assert [
        word_class(word) for word in ("1,204", "3월", "NATO", "Merkel", "walking", "well-known", "...", "漢字")
    ] == ["number", "number-and-letters", "capitals", "capitalised", "-ing", "hyphen", "marks", "ideographs"]
    assert [word_class(word) for word in ("강가에서", "예뻤다", "커피를", "iPhone은", "ㅋㅋㅋ", "배")] == [
        "~에서",
        "~다",
        "~를",
        "Hangul-and-others",
        "Hangul",
        "Hangul",
    ]
