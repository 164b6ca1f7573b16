"""Examples of `bert_elmo_jax.toyworld.hangul`."""

from bert_elmo_jax.toyworld.hangul import attributive, honorific, particle, past, present


def test_example_of_honorific():
    assert [
        honorific("고치"),
        honorific("찾"),
        honorific("만들"),
        honorific("듣", irregular=True),
        honorific("먹"),
    ] == ["고치시", "찾으시", "만드시", "들으시", "드시"]


def test_example_of_attributive():
    assert [
        attributive("크"),
        attributive("작"),
        attributive("길"),
        attributive("맛있"),
        attributive("하얗", True),
    ] == ["큰", "작은", "긴", "맛있는", "하얀"]


def test_example_of_particle():
    assert (particle("책", "topic"), particle("나무", "subject"), particle("눈", "object")) == (
        "책은",
        "나무가",
        "눈을",
    )


def test_example_of_past():
    assert [
        past("찾"),
        past("보"),
        past("고르"),
        past("바쁘"),
        past("하"),
        past("가꾸"),
        past("줍", irregular=True),
    ] == ["찾았", "봤", "골랐", "바빴", "했", "가꿨", "주웠"]


def test_example_of_present():
    assert [present("고치"), present("찾"), present("만들"), present("줍")] == ["고친다", "찾는다", "만든다", "줍는다"]
