"""Korean morphology: particles that depend on the final consonant, and verb endings with their contractions."""

_FIRST = 0xAC00
_VOWELS = "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ"
_FINALS = ["", *"ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ"]
# A stem's last vowel contracts with the vowel of 아/어; ㅟ and ㅢ do not.
_CONTRACTED = {"ㅗ": "ㅘ", "ㅜ": "ㅝ", "ㅣ": "ㅕ", "ㅚ": "ㅙ", **{vowel: vowel for vowel in "ㅏㅓㅐㅔㅕㅖ"}}
_HONORIFIC_WORDS = {"먹": "드시", "자": "주무시", "말하": "말씀하시", "있": "계시"}
_PARTICLES = {"topic": ("은", "는"), "subject": ("이", "가"), "object": ("을", "를")}


def _split(syllable: str) -> tuple[int, str, str]:
    code = ord(syllable) - _FIRST
    return code // 588, _VOWELS[code % 588 // 28], _FINALS[code % 28]


def _join(initial: int, vowel: str, final: str) -> str:
    return chr(_FIRST + initial * 588 + _VOWELS.index(vowel) * 28 + _FINALS.index(final))


def _with_final(word: str, final: str) -> str:
    initial, vowel, _ = _split(word[-1])
    return word[:-1] + _join(initial, vowel, final)


def particle(word: str, kind: str) -> str:
    """Return the word with its topic, subject or object particle."""
    after_consonant, after_vowel = _PARTICLES[kind]
    return word + (after_consonant if _split(word[-1])[2] else after_vowel)


def _bright(syllable: str) -> bool:
    """Return True if vowel harmony asks for 아 (after ㅏ, ㅑ and ㅗ), False for 어."""
    return _split(syllable)[1] in "ㅏㅑㅗ"


def past(stem: str, irregular: bool = False) -> str:
    """Return the past stem, without its ending: 고치 → 고쳤 (다, 나요, 다고)."""
    initial, vowel, final = _split(stem[-1])
    if stem.endswith("하"):
        return stem[:-1] + "했"
    if irregular:
        return _irregular_past(stem, vowel, final)
    if final:
        return stem + ("았" if _bright(stem[-1]) else "었")
    if stem[-1] == "르" and len(stem) > 1:
        return _with_final(stem[:-1], "ㄹ") + ("랐" if _bright(stem[-2]) else "렀")
    if vowel == "ㅡ":
        bright = len(stem) > 1 and _bright(stem[-2])
        return stem[:-1] + _join(initial, "ㅏ" if bright else "ㅓ", "ㅆ")
    if vowel in _CONTRACTED:
        return stem[:-1] + _join(initial, _CONTRACTED[vowel], "ㅆ")
    return stem + "었"


def _irregular_past(stem: str, vowel: str, final: str) -> str:
    ending = "았" if _bright(stem[-1]) else "었"
    if final == "ㅂ":
        return _with_final(stem, "") + ("왔" if stem in ("돕", "곱") else "웠")
    if final in ("ㄷ", "ㅅ"):
        return _with_final(stem, "ㄹ" if final == "ㄷ" else "") + ending
    initial = _split(stem[-1])[0]  # of a stem that ends in ㅎ
    return stem[:-1] + _join(initial, {"ㅏ": "ㅐ", "ㅓ": "ㅐ", "ㅑ": "ㅒ", "ㅕ": "ㅖ"}[vowel], "ㅆ")


def _before_eu(stem: str, irregular: bool) -> str:
    """Return the form of the stem before 시 and ㄴ, with 으 after a consonant."""
    final = _split(stem[-1])[2]
    if final in ("", "ㄹ") or (irregular and final == "ㅎ"):
        return _with_final(stem, "")
    if irregular:
        changed = {"ㅂ": ("", "우"), "ㄷ": ("ㄹ", "으"), "ㅅ": ("", "으")}[final]
        return _with_final(stem, changed[0]) + changed[1]
    return stem + "으"


def honorific(stem: str, irregular: bool = False) -> str:
    """Return the honorific stem."""
    return _HONORIFIC_WORDS.get(stem) or _before_eu(stem, irregular) + "시"


def present(stem: str) -> str:
    """Return the plain present of a verb."""
    return _with_final(stem, "ㄴ") + "다" if _split(stem[-1])[2] in ("", "ㄹ") else stem + "는다"


def question(stem: str) -> str:
    """Return the present question form: 고치나요, 찾나요, 만드나요."""
    return (_with_final(stem, "") if _split(stem[-1])[2] == "ㄹ" else stem) + "나요"


def attributive(stem: str, irregular: bool = False) -> str:
    """Return the form of an adjective before its noun."""
    if stem.endswith(("있", "없")):
        return stem + "는"
    return _with_final(_before_eu(stem, irregular), "ㄴ")
