"""Runs the model of this folder on texts, without the package that trained it.

  python run.py "a text" "another text"           # or one text per line on standard input
  python run.py "a text<TAB>its pair"             # of a reader: a question, a tab, and the context

It needs numpy, tokenizers, and onnxruntime (for onnx/) or jax (for model.stablehlo). With QUANTIZED=1 it uses
onnx/model_quantized.onnx.
"""

import functools
import json
import sys
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from bert_elmo_jax.evals.character_tags import spread_tags
from bert_elmo_jax.exports.load_graph import FOLDER, choose_width, find_tokenizer, load_graph, print_lines, use_utf8
from bert_elmo_jax.exports.read_words import read_words

FILE = FOLDER / "export.json"
MODEL: dict[str, Any] = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}


@functools.cache
def load_tokenizer() -> Any:
    """Return the tokenizer, which cuts and pads as the model needs it."""
    tokenizer = Tokenizer.from_file(find_tokenizer())
    tokenizer.enable_truncation(MODEL["max_length"], strategy="longest_first", direction=find_direction())
    tokenizer.enable_padding(pad_id=MODEL["pad_id"], pad_token=MODEL["pad_token"])
    return tokenizer


@functools.cache
def load_plain_tokenizer() -> Any:
    """Return the tokenizer without the step that puts special pieces around texts, which `post_process` does later."""
    with open(find_tokenizer(), encoding="utf-8") as file:
        plain = dict.fromkeys(("truncation", "padding", "post_processor"))
        return Tokenizer.from_str(json.dumps({**json.load(file), **plain}))


def find_direction() -> str:
    """Return the side at which a long text is cut."""
    return "left" if MODEL["cuts_start"] else "right"


def encode(texts: Any) -> Any:
    """Return the pieces of texts or pairs, and the arrays that the model reads."""
    prompt = MODEL["prompt"]  # of a pair before its first text
    texts = [prompt + text if isinstance(text, str) else (prompt + text[0], *text[1:]) for text in texts]
    if MODEL["lowercase"]:
        texts = [tuple(part.lower() for part in text) if isinstance(text, tuple) else text.lower() for text in texts]
    if MODEL["cuts_pairs"] and not all(isinstance(text, str) for text in texts):
        read = [load_tokenizer().encode(text) if isinstance(text, str) else read_pair(*text) for text in texts]
    else:
        read = load_tokenizer().encode_batch(texts)
    return read, make_arrays(read)


def read_pair(first: str, second: str) -> Any:
    """Return the pieces of a pair, cut as in training.

    A question keeps its first pieces. Of other pairs the longer text is cut, and the first one keeps a piece more if
    both are long and their room is odd; in the library `tokenizers` the longer one does.
    """
    length = MODEL["max_length"] - load_tokenizer().num_special_tokens_to_add(True)  # of both texts
    a, b = load_plain_tokenizer().encode_batch([first, second])
    if MODEL["kind"] == "read":
        a.truncate(MODEL["question_length"])
        if len(a) >= length:
            raise ValueError(f"a question leaves no room for its context in {MODEL['max_length']} pieces")
    else:
        a.truncate(length - min(len(b), max(length // 2, length - len(a))), direction=find_direction())
    b.truncate(length - len(a), direction=find_direction())
    return load_tokenizer().post_process(a, b)


def make_arrays(read: Any) -> dict[str, Any]:
    """Return the arrays that the model reads."""
    width = choose_width(max(len(row.ids) for row in read), MODEL["max_length"])
    for row in read:
        row.pad(width, pad_id=MODEL["pad_id"], pad_token=MODEL["pad_token"])
    columns = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
    return {name: np.array([getattr(r, columns[name]) for r in read], np.int64) for name in MODEL["inputs"]}


def predict(texts: Any, first: int = 0) -> Any:
    """Return a plain value for each text: a label, a number, tags, an answer, or vectors.

    Errors count the texts from `first`.
    """
    if not texts:
        return []
    expected, counts = {"read": ("a question, a tab and the context", [2]), "sentences": ("one text", [1])}.get(
        MODEL["kind"], ("a text or a pair", [1, 2])
    )
    for number, text in enumerate(texts, first):
        parts = [text] if isinstance(text, str) else text
        if len(parts) not in counts or not all(part.strip() for part in parts):
            raise ValueError(f"text {number} is {text!r:.200}; expected {expected}, not empty")
    kind = MODEL["kind"]
    places: list[list[Any]] = []
    sentences: list[list[str]] = []
    if kind == "tag" and MODEL["tags_characters"]:
        texts = [text if isinstance(text, str) else "\t".join(text) for text in texts]
        read, arrays = encode(texts)
    elif kind == "tag":
        sentences = [(text if isinstance(text, str) else " ".join(text)).split() for text in texts]
        read, places = read_words(load_tokenizer(), sentences, MODEL["unk_token"])
        arrays = make_arrays(read)
    else:
        read, arrays = encode(texts)
    outputs = dict(zip(MODEL["outputs"], load_graph("model", tuple(MODEL["outputs"]))(arrays)))
    if kind == "sentences":
        return [vector.tolist() for vector in outputs["sentence_embedding"]]
    if kind == "vectors":
        return [row[mask > 0].tolist() for row, mask in zip(outputs["last_hidden_state"], arrays["attention_mask"])]
    if kind == "read":
        return [_answer(*row) for row in zip(texts, read, outputs["start_logits"], outputs["end_logits"])]
    if kind == "tag" and MODEL["tags_characters"]:
        return [_character_tags(*row) for row in zip(texts, read, outputs["logits"])]
    if kind == "tag":
        return [_tags(*row) for row in zip(sentences, places, outputs["logits"])]
    scores, labels = outputs["logits"].astype(np.float64), MODEL["labels"]
    if MODEL["activation"] == "softmax":
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        scores /= scores.sum(axis=1, keepdims=True)
    elif MODEL["activation"] == "sigmoid":
        scores = 1 / (1 + np.exp(-scores))
    if kind == "regress" and len(labels) > 1:
        return [{"values": dict(zip(labels, row.tolist()))} for row in scores]
    if not labels:
        return [row[0] if len(row) == 1 else row.tolist() for row in scores]
    if MODEL["several"]:
        return [{labels[n]: float(row[n]) for n in np.argsort(-row) if row[n] >= 0.5} for row in scores]
    return [{"label": labels[row.argmax()], "probability": float(row.max())} for row in scores]


def _tags(words: Any, places: Any, scores: Any) -> Any:
    """Return each word with the tag of its first piece; the tag of a word that was cut is None."""
    tags = [None if place is None else MODEL["labels"][scores[place].argmax()] for place in places]
    return list(zip(words, tags))


def _character_tags(text: Any, read: Any, scores: Any) -> Any:
    """Return each character with its tag; the tag of a character behind the cut is None."""
    places = [n for n, part in enumerate(read.sequence_ids) if part == 0]
    piece_tags = [MODEL["labels"][scores[place].argmax()] for place in places]
    end = read.offsets[places[-1]][1] if read.overflowing else len(text)
    offsets = trim_spaces(text, read.offsets)
    tags = tag_characters(text[:end], [offsets[place] for place in places], piece_tags)
    return list(zip(text, tags + [None] * (len(text) - end)))


def tag_characters(text: str, offsets: Any, piece_tags: Any) -> list[Any]:
    """Return the tag of each character, from the places of the pieces in the text and their tags."""
    first = {start: tag for (start, _), tag in reversed(list(zip(offsets, piece_tags)))}
    return spread_tags(text, [first.get(n, "") for n in range(len(text))])


def trim_spaces(text: str, offsets: Any) -> list[tuple[int, int]]:
    """Return the places of pieces without the spaces that they begin with.

    >>> trim_spaces("a river", [(0, 1), (1, 7)])
    [(0, 1), (2, 7)]
    """
    return [(end - len(text[start:end].lstrip()), end) for start, end in offsets]


def _answer(pair: Any, read: Any, starts: Any, ends: Any) -> Any:
    """Return the best span of the context, or "" for no answer; without windows, a long context is cut."""
    places = [n for n, part in enumerate(read.sequence_ids) if part == 1]
    spans = [(starts[a] + ends[b], a, b) for i, a in enumerate(places) for b in places[i : i + MODEL["longest_answer"]]]
    if not spans:
        raise ValueError(f"the question {pair[0]!r:.60} leaves no room for its context in {MODEL['max_length']} pieces")
    score, first, last = max(spans)
    if MODEL["null_threshold"] is not None and starts[0] + ends[0] - score > MODEL["null_threshold"]:
        return {"answer": "", "start": 0, "end": 0}
    if MODEL["whole_words"]:
        words = [(n, read.word_ids[n]) for n in places]
        first = next(n for n, word in words if word == read.word_ids[first])
        last = [n for n, word in words if word == read.word_ids[last]][-1]
    begin, end = read.offsets[first][0], read.offsets[last][1]
    if MODEL["trims_spaces"]:
        answer = pair[1][begin:end]
        begin += len(answer) - len(answer.lstrip())
        end = begin + len(answer.strip())
    return {"answer": pair[1][begin:end], "start": begin, "end": end}


if __name__ == "__main__":
    if sys.argv[1:] in (["--help"], ["-h"]):
        print(__doc__.strip())
        sys.exit()
    use_utf8()
    try:
        lines = sys.argv[1:] or (line.rstrip("\n") for line in sys.stdin)
        print_lines(predict, (tuple(line.split("\t")) if "\t" in line else line for line in lines))
    except ValueError as error:
        sys.exit(f"run.py: {error}")
    except Exception as error:  # of the libraries, about files that are missing or damaged
        sys.exit(f"run.py: {type(error).__name__}: {str(error).strip() or 'the folder is not complete'}")
