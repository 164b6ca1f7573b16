"""The lexicon: the words of both languages with their senses, in lists addressed by name and topic."""

import functools
import re
from dataclasses import dataclass

from bert_elmo_jax.toyworld.topics import TOPICS


@dataclass(frozen=True)
class Entry:
    """One meaning with its word in each language.

    `sense_*` is set if the word has other senses in that language; `english_other` is an irregular plural, past or
    comparative; `irregular` marks a Korean stem whose final consonant changes (굽다 → 구웠다).
    """

    english: str
    korean: str
    english_other: str = ""
    sense_english: str = ""
    sense_korean: str = ""
    irregular: bool = False


@dataclass(frozen=True)
class Hero:
    """The main character of a document; elders take honorific agreement in Korean."""

    english: str
    korean: str
    pronoun: str
    korean_pronoun: str
    honorific: bool


HEROES = (
    Hero("Mina", "미나", "she", "그녀", False),
    Hero("Junho", "준호", "he", "그", False),
    Hero("Grandmother", "할머니", "she", "그분", True),
    Hero("Jimin", "지민", "she", "그녀", False),
    Hero("Grandfather", "할아버지", "he", "그분", True),
    Hero("Hyun", "현", "he", "그", False),
    Hero("Mother", "어머니", "she", "그분", True),
    Hero("Father", "아버지", "he", "그분", True),
)

# Lists shared by all topics. General verbs and looks follow the topic's own, so a sentence may say little about its
# topic: some uncertainty remains even for an ideal reader.
GENERAL = {
    "verbs": "see/saw=보다, find/found=찾다, like=좋아하다, draw/drew=그리다",
    "looks": "big=크다, small=작다, strange=이상하다, good=좋다",
    "comparisons": "big/bigger=크다, small=작다, good/better=좋다, pretty=예쁘다, cheap=싸다, strange=이상하다, "
    "nice=멋지다, rare=드물다",
    "landmarks": "tree=나무, door=문, wall=벽, window=창문, bench=의자, gate=대문, lamp=등불, fence=울타리, stone=돌, "
    "pole=기둥, stair=계단, sign=간판",
    "landmark_looks": "old=오래되다, big=크다, small=작다, white=하얗다*, tall=높다, low=낮다",
    "place_looks": "quiet=조용하다, old=오래되다, busy=분주하다, small=작다, big=크다, dark=어둡다*",
    "past_adverbs": "yesterday=어제, recently=최근에, earlier=아까, once=예전에",
    "present_adverbs": "often=자주, today=오늘, usually=보통, sometimes=가끔, nowadays=요즘",
    "sayings": "say/said=말하다",
    "beings": "be=있다",
    "times": "morning=아침, day=날, night=밤#night, evening=저녁, spring#season=봄, summer=여름, autumn=가을, "
    "winter=겨울",
}

_ENTRY = re.compile(
    r"(?P<english>[a-z]+)(#(?P<sense_english>[a-z]+))?(/(?P<english_other>[a-z]+))?"
    r"=(?P<korean>[가-힣]+)(?P<irregular>\*)?(#(?P<sense_korean>[a-z]+))?"
)


def entry(text: str) -> Entry:
    """Parse `english#sense/irregular=korean*#sense`."""
    match = _ENTRY.fullmatch(text.strip())
    if not match:
        raise ValueError(f"invalid lexicon entry {text.strip()!r}; expected english#sense/irregular=korean*#sense")
    fields = match.groupdict(default="")
    irregular = fields.pop("irregular") == "*"
    return Entry(**fields, irregular=irregular)


@dataclass(frozen=True)
class Topic:
    """A topic's English name, the preposition of its places, and word lists (things, verbs, looks in two groups)."""

    english: str
    preposition: str
    lists: dict[str, tuple[Entry, ...]]


@dataclass(frozen=True)
class Lexicon:
    """The topics in use and their common lists."""

    topics: tuple[Topic, ...]
    general: dict[str, tuple[Entry, ...]]

    def entries(self, name: str, topic: int, hero: int = 0) -> tuple[Entry | Hero, ...]:
        """Return the entries of a list for a topic and a hero, the most frequent first.

        `even0` and `odd0` are the two halves of `things0`, so that a thing is never compared with itself.
        """
        if name == "heroes":
            return (HEROES[hero],)
        if name == "prepositions":
            return (Entry(self.topics[topic].preposition, ""),)
        lists = self.topics[topic].lists
        if name.startswith(("even", "odd")):
            return lists[f"things{name[-1]}"][name.startswith("odd") :: 2]
        if name.startswith(("verbs", "looks")):
            return lists[name] + self.general[name[:-1]]
        return lists[name] if name in lists else self.general[name]


@functools.cache
def lexicon(topics: int, words: int) -> Lexicon:
    """Return the first `topics` topics with at most `words` entries per list."""

    def read(line: str, most: int) -> tuple[Entry, ...]:
        return tuple(entry(text) for text in line.split(","))[:most]

    stanzas = TOPICS.strip().split("\n\n")
    if not 2 <= topics <= len(stanzas):
        raise ValueError(f"topics={topics}: expected from 2 to {len(stanzas)} topics")
    if not 2 <= words <= 6:
        raise ValueError(f"words={words}: expected from 2 to 6 words per list")
    chosen = []
    for stanza in stanzas[:topics]:
        head, *lines = stanza.split("\n")
        lists: dict[str, tuple[Entry, ...]] = {}
        for line in lines:
            name, _, entries = line.partition(": ")
            if name in ("things", "verbs", "looks"):
                name += "1" if f"{name}0" in lists else "0"
            lists[name] = read(entries, words)
        english, _, preposition = head.split()
        chosen.append(Topic(english, preposition, lists))
    return Lexicon(tuple(chosen), {name: read(line, 12) for name, line in GENERAL.items()})
