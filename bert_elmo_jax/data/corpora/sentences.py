"""Split English and Korean text into sentences by rules.

A sentence ends at `. ! ? …` (and closing quotes or brackets) before white space, unless the next letter is lower case,
or the full stop belongs to an abbreviation, an initial or a number. Korean web text often omits the space
("재밌다.다시 볼래요"): between Hangul, a full stop ends a sentence after a typical sentence-final syllable.
"""

import re

# Without their full stop. Abbreviations that may end a sentence ("etc.", "a.m.") are not listed.
ABBREVIATIONS = frozenset(
    "Mr Mrs Ms Messrs Mme Mlle Mdlle Dr Prof Rev Hon Esq St Ste Mt Ft Capt Cap Col Gen Lt Lieut Maj Sergt Sgt Corp Adm "
    "Cmdr Gov Sen Rep Pres Jun Jr Sr vs viz cf e.g i.e al approx dept Dept".split()
)
BEFORE_NUMBERS = frozenset(
    "No Nos no nos Vol vol pp p Ch ch Fig fig Eq Sec sec Jan Feb Mar Apr Aug Sept Sep Oct Nov Dec".split()
)
CLOSERS = "\"'”’»」』）)\\]}〉》"
CANDIDATE = re.compile(
    rf"(?<![.!?…])([.!?…]++)[{CLOSERS}]*+(\s+)|([。！？]++)[{CLOSERS}]*+(\s*)|(?<=[가-힣])([.!?…]++)()(?=[가-힣])"
)
LAST_WORD = re.compile(r"[^\s\"'“‘«「『(\[{—–-]+$")
INITIAL = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")
# The last syllables of Korean sentence endings: -다, -요, -죠, -까, -네, and the nominal -음/-함/-됨/-임 of reviews.
KOREAN_ENDING = frozenset("다요죠까네음함됨임군걸지라자")


def split_sentences(text: str) -> list[str]:
    """Split a paragraph into sentences; only the white space between them is dropped."""
    sentences: list[str] = []
    start = 0
    for match in CANDIDATE.finditer(text):
        latin, space, _cjk, cjk_space, korean, _ = match.groups()
        end = match.end()
        if end == len(text):
            break
        if latin and not _ends_here(text, start, match.start(), latin, end):
            continue
        if korean and text[match.start() - 1] not in KOREAN_ENDING:
            continue
        sentences.append(text[start : end - len(space or cjk_space or "")].strip())
        start = end
    if sentence := text[start:].strip():
        sentences.append(sentence)
    return sentences


def _ends_here(text: str, start: int, stop: int, mark: str, following: int) -> bool:
    """Return True if the mark at `stop`, followed by white space, ends the sentence that began at `start`."""
    if text[following].islower() or text[following] in ".!?…":  # ". . ." is one ellipsis
        return False
    before = text[stop - 1] if stop > start else ""
    if "가" <= before <= "힣":
        several = stop - 2 >= start and "가" <= text[stop - 2] <= "힣"
        return mark in (".", "!", "?") or (several and before in KOREAN_ENDING)  # "음... 글쎄" is one sentence
    if mark != ".":
        return True
    word = LAST_WORD.search(text, max(start, stop - 20), stop)
    if not word:
        return stop > start
    last = word.group()
    if last in ABBREVIATIONS:
        return False
    if last in BEFORE_NUMBERS and text[following].isdigit():  # "No. 5", but "No. I will not."
        return False
    if INITIAL.fullmatch(last):  # "J. R. Jones", but "and I. Then"
        return last == "I"
    return not (last.isdigit() and not text[start : word.start()].strip())  # "1. First"
