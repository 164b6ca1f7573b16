"""One sentence as several models read it: guesses for each word, neighbours of each word, and attention."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from bert_elmo_jax.evals.attention_heads import word_maps
from bert_elmo_jax.families.piece_encoder import PieceEncoder
from bert_elmo_jax.inference.kept_vectors import VectorFolder
from bert_elmo_jax.inference.word_layers import Words
from bert_elmo_jax.report.figures import Arcs, Bars, Figure, Panels
from bert_elmo_jax.report.language import Language
from bert_elmo_jax.report.results import count_columns

TOP = 5  # guesses and neighbours of a word
WIDEST = 50  # columns of a sentence above a figure
LABELS: Mapping[str, Mapping[Language, str]] = {
    "hidden": {"en": "guesses with the word hidden", "ko": "단어를 가렸을 때의 추측"},
    "next": {"en": "guesses from the words before", "ko": "앞의 단어만 보았을 때의 추측"},
    "near": {"en": "nearest words, layer {}: cosine", "ko": "가장 가까운 단어, {}층: 코사인"},
    "attention": {"en": "attention, layer {}, head {}", "ko": "어텐션, {}층 헤드 {}"},
    "probabilities": {
        "en": "Probabilities; other words share the rest.",
        "ko": "확률이며, 나머지는 다른 단어들의 것입니다.",
    },
    "cosines": {
        "en": "Cosines of vectors in context: 1 is the same direction.",
        "ko": "문맥 속 벡터의 코사인이며, 1은 같은 방향입니다.",
    },
    "strongest": {
        "en": "Of all heads, the one that attends most to another word; the wider a line, the larger the weight.",
        "ko": "다른 단어에 가장 크게 주목하는 헤드입니다. 선이 굵을수록 가중치가 큽니다.",
    },
}


class Near(NamedTuple):
    """An occurrence whose vector is near to a word's: its cosine, the number of its sentence, its place there."""

    cosine: float
    sentence: int
    place: int


@dataclass(frozen=True, eq=False)
class Reading:
    """A sentence read by one model.

    `shown` are the words with the special pieces, such as `[CLS]`, in their order, and `places` says for each word
    its place among them (None: the model has no piece for it). `maps` are the attention between all that is shown.
    `near[layer][word]` are occurrences in other sentences, each of another word. `guesses[word]` are pieces with their
    probabilities: a masked language model guesses the hidden word, a language model guesses from the words before it.
    A field is None if the model cannot compute it.
    """

    words: tuple[str, ...]
    shown: tuple[str, ...]
    places: tuple[int | None, ...]
    maps: Float[np.ndarray, "L A S S"] | None
    near: Mapping[int, list[list[Near]]]
    guesses: list[list[tuple[str, float]]] | None
    guessed: Literal["hidden", "next"] | None

    def __repr__(self) -> str:
        maps = "no maps" if self.maps is None else f"maps {list(self.maps.shape)}"
        return f"Reading({len(self.words)} words, {maps}, neighbours in {len(self.near)} layers, {self.guessed})"


def read_sentence(encoder: Any, words: Words, sentences: Sequence[Words], folder: VectorFolder) -> Reading:
    """Return how an encoder reads the words of a sentence; neighbours are searched in `sentences`.

    >>> import tempfile
    >>> from bert_elmo_jax import load
    >>> folder, others = VectorFolder(tempfile.mkdtemp()), [["큰", "배"], ["배를", "탔다"]]
    >>> read_sentence(load("tests/goldens/bert_tiny"), ["배가", "왔다"], others, folder)
    Reading(2 words, maps [3, 4, 4, 4], neighbours in 4 layers, hidden)
    """
    near = find_near(encoder, words, sentences, folder)
    if not isinstance(encoder, PieceEncoder):
        return Reading(tuple(words), tuple(words), tuple(range(len(words))), None, near, None, None)
    text = encoder.tokenizer.encode_words(list(words))
    if len(text) > encoder.config.max_positions:
        raise ValueError(f"{len(text)} pieces, but the model takes {encoder.config.max_positions}: give fewer words")
    shown: list[str] = []
    piece_of: list[int] = []
    place_of: dict[int, int] = {}
    for token, word in zip(text.tokens, np.asarray(text.word_ids).tolist()):
        if word < 0 or word not in place_of:
            place_of |= {word: len(shown)} if word >= 0 else {}
            shown.append(token if word < 0 else words[word])
        piece_of.append(place_of[word] if word >= 0 else len(shown) - 1)
    places = tuple(place_of.get(n) for n in range(len(words)))
    maps: Any = None
    output: Any = encoder.forward(np.asarray(text.ids)[None])
    if output.attentions is not None:
        maps = word_maps(np.asarray(output.attentions, np.float64)[:, 0], np.array(piece_of), len(shown))
    guesses, guessed = _guess(encoder, words, text, output)
    return Reading(tuple(words), tuple(shown), places, maps, near, guesses, guessed)


def find_near(
    encoder: Any, words: Words, sentences: Sequence[Words], folder: VectorFolder
) -> dict[int, list[list[Near]]]:
    """Return for each layer and word the nearest occurrences in sentences, at most one of each word there.

    A word whose vector is zero, as static vectors of unknown words are, has no neighbours and is none.
    """
    occurrence_vectors, query = folder.compute(encoder, sentences), folder.compute(encoder, [words])
    occurrences = [(n, place) for n, sentence in enumerate(sentences) for place in range(len(sentence))]
    near: dict[int, list[list[Near]]] = {}
    for layer in occurrence_vectors.layers:
        directions, others = _normalise(query.layer(layer)), _normalise(occurrence_vectors.layer(layer))
        with_vector = np.asarray(others.any(axis=1))
        near[layer] = []
        for direction, row in zip(directions, directions @ others.T):
            nearest: dict[str, Near] = {}
            order = np.argsort(-np.round(row, 6), kind="stable")
            for n in order[with_vector[order]].tolist() if direction.any() else ():
                sentence, place = occurrences[n]
                nearest.setdefault(sentences[sentence][place].lower(), Near(float(row[n]), sentence, place))
                if len(nearest) == TOP:
                    break
            near[layer].append([*nearest.values()])
    return near


def _normalise(vectors: Float[np.ndarray, "N D"]) -> Float[np.ndarray, "N D"]:
    rows = np.array(vectors, np.float64)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def _guess(encoder: PieceEncoder, words: Words, text: Any, output: Any) -> tuple[Any, Any]:
    """Return the guesses for each word and their kind, or two times None for a model that predicts no pieces."""
    tokenizer = encoder.tokenizer
    if "mlm" in encoder.params:
        mask = tokenizer.tokens[tokenizer.mask_id]
        hidden = ([*words[:n], mask, *words[n + 1 :]] for n in range(len(words)))
        ids = {token: n for n, token in enumerate(tokenizer.tokens)}
        every = (encoder.fill_mask(sentence, top=TOP) for sentence in hidden)
        guesses = [[(_spell(tokenizer, ids[g.piece]), g.probability) for g in each[:TOP]] for each in every]
        return guesses, "hidden"
    logits = None if output.logits is None else np.asarray(output.logits, np.float64)
    if not encoder.family.causal(encoder.config) or logits is None or logits.shape[:2] != (1, len(text)):
        return None, None
    scores = logits[0, :, : tokenizer.vocab_size]
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    first = {word: n for n, word in reversed([*enumerate(np.asarray(text.word_ids).tolist())])}
    guesses = []
    for word in range(len(words)):
        before = first.get(word, 0) - 1  # nothing stands before the first piece of a model without special pieces
        order = np.argsort(-chances[before], kind="stable")[:TOP].tolist() if before >= 0 else []
        guesses.append([(_spell(tokenizer, n), float(chances[before, n])) for n in order])
    return guesses, "next"


def _spell(tokenizer: Any, number: int) -> str:
    return tokenizer.decode([number]).strip() or str(tokenizer.tokens[number])


def choose_word(words: Words, wishes: Sequence[str]) -> int:
    """Return the place of the word to show first: the first wish, by default the last word with letters.

    >>> choose_word(["The", "bank", "."], []), choose_word(["The", "bank", "."], ["The"])
    (1, 0)
    """
    if not words:
        raise ValueError("the sentence has no words: give one as --sentence='…'")
    if not wishes:
        return max((n for n, word in enumerate(words) if any(map(str.isalpha, word))), default=0)
    if wishes[0] not in words:
        raise ValueError(f"{wishes[0]!r} is not in the sentence {' '.join(words)!r}: name a word of it")
    return list(words).index(wishes[0])


def strongest_head(reading: Reading, word: int) -> tuple[int, int, int]:
    """Return the layer and head (from 0) with the largest weight from a word to another one, and its place.

    Idle heads attend to punctuation, which therefore counts only in a sentence without other words.
    """
    assert reading.maps is not None
    own_place = reading.places[word]
    weights = reading.maps[:, :, own_place].copy() if own_place is not None else np.zeros(reading.maps.shape[:3])
    words = [place for place in reading.places if place is not None and place != own_place]
    words = [place for place in words if any(map(str.isalnum, reading.shown[place]))] or words
    outside = np.ones(weights.shape[2], bool)
    outside[words] = False
    weights[..., outside] = -1
    layer, head, place = np.unravel_index(int(weights.argmax()), weights.shape)
    return int(layer), int(head), int(place)


def draw_readings(readings: Mapping[str, Reading], sentences: Sequence[Words], word: int, language: Language) -> Panels:
    """Return one picture of a word of the sentence, with a column for each model and what it can show."""
    columns: dict[str, list[Figure]] = {}
    for name, reading in readings.items():
        figures: list[Figure] = []
        words = reading.words
        if reading.guesses is not None and reading.guesses[word]:
            after = words[word + 1 :] if reading.guessed == "hidden" else ()
            sentence = _shorten([*words[:word], "___", *after], word)
            pieces, chances = zip(*reading.guesses[word])
            figures.append(
                Bars(
                    LABELS[str(reading.guessed)][language],
                    pieces,
                    {sentence: chances},
                    LABELS["probabilities"][language],
                )
            )
        layer = max(reading.near)
        near = reading.near[layer][word]
        names = [sentences[n.sentence][n.place] for n in near]
        cosines = {_shorten([*words[:word], f"[{words[word]}]", *words[word + 1 :]], word): [n.cosine for n in near]}
        if near:
            figures.append(Bars(LABELS["near"][language].format(layer), names, cosines, LABELS["cosines"][language]))
        place = reading.places[word]
        if reading.maps is not None and place is not None:
            at, head, _ = strongest_head(reading, word)
            values = np.zeros(reading.maps.shape[2:])
            values[place] = reading.maps[at, head, place]
            title = LABELS["attention"][language].format(at + 1, head + 1)
            figures.append(Arcs(title, reading.shown, reading.shown, values, LABELS["strongest"][language]))
        columns[name] = figures
    return Panels(_shorten(next(iter(readings.values())).words, word), columns)


def _shorten(words: Sequence[str], centre: int) -> str:
    """Return words around one of them, with … where words are left out.

    >>> _shorten(["word"] * 20 + ["bank"] + ["word"] * 20, 20)
    '… word word word word bank word word word word …'
    """
    first, end = centre, centre + 1
    while (first > 0 or end < len(words)) and count_columns(" ".join(words[max(0, first - 1) : end + 1])) < WIDEST - 4:
        first, end = max(0, first - 1), min(len(words), end + 1)
    return " ".join([*["…"] * (first > 0), *words[first:end], *["…"] * (end < len(words))])


COLUMNS = ["word", "encoder", "kind", "layer", "other", "in", "value"]


def list_readings(readings: Mapping[str, Reading], sentences: Sequence[Words]) -> list[list[object]]:
    """Return guesses and neighbours of every word as table rows; the first row has the names of the columns."""
    rows: list[list[object]] = [[*COLUMNS]]
    for name, reading in readings.items():
        for n, word in enumerate(reading.words):
            guesses = reading.guesses[n] if reading.guesses is not None else []
            rows += [[word, name, reading.guessed, "", piece, "", chance] for piece, chance in guesses]
            for layer, near in reading.near.items():
                rows += [
                    [
                        word,
                        name,
                        "near",
                        layer,
                        sentences[o.sentence][o.place],
                        " ".join(sentences[o.sentence]),
                        o.cosine,
                    ]
                    for o in near[n]
                ]
    return rows


def format_readings(readings: Mapping[str, Reading], sentences: Sequence[Words], word: int) -> str:
    """Return the guesses for a word, its nearest words, and where it looks, as lines for a terminal."""
    lines = []
    for name, reading in readings.items():
        if reading.guesses is not None:
            guesses = ", ".join(f"{piece} {chance:.2f}" for piece, chance in reading.guesses[word])
            lines.append(f"{name}, {LABELS[str(reading.guessed)]['en']}: {guesses or 'none, as no word stands before'}")
        layer = max(reading.near)
        near = ", ".join(f"{sentences[n.sentence][n.place]} {n.cosine:.2f}" for n in reading.near[layer][word])
        lines.append(f"{name}, {LABELS['near']['en'].format(layer)}: {near or 'none, as the word has no vector'}")
        if reading.maps is not None and (place := reading.places[word]) is not None:
            layer, head, other = strongest_head(reading, word)
            weight = reading.maps[layer, head, place, other]
            link = f"{reading.words[word]} → {reading.shown[other]} {weight:.2f}"
            lines.append(f"{name}, strongest attention to another word: layer {layer + 1}, head {head + 1}: {link}")
    return "\n".join(lines)


def describe_reading(reading: Reading) -> dict[str, Any]:
    """Return a reading as plain data for a page, with weights in thousandths."""
    return {
        "words": reading.words, "shown": reading.shown, "places": reading.places, "guessed": reading.guessed,
        "guesses": reading.guesses and [[[piece, round(p, 3)] for piece, p in each] for each in reading.guesses],
        "near": {
            str(layer): [[[round(n.cosine, 3), n.sentence, n.place] for n in each] for each in of_layer]
            for layer, of_layer in reading.near.items()
        },
        "maps": None if reading.maps is None else np.round(1000 * reading.maps).astype(int).tolist(),
    }  # fmt: skip
