"""Runs the model of this folder, an ELMo or a tagger, on sentences, without the package that trained it.

  python run.py "words between spaces" "another sentence"      # or one sentence per line on standard input

It prints the layers of an ELMo's words, [layers, words, numbers], or each word with its tag. It needs numpy,
onnxruntime (for onnx/) or jax (for model.stablehlo), and tokenizers if the tagger reads pieces. With QUANTIZED=1 it
uses onnx/model_quantized.onnx.
"""

import functools
import hashlib
import json
import sys
import unicodedata
from typing import Any

import numpy as np

from bert_elmo_jax.exports.load_graph import FOLDER, choose_width, find_tokenizer, load_graph, print_lines, use_utf8
from bert_elmo_jax.exports.read_words import read_words

BEGIN, END, PADDING = 259, 260, 261  # marks of a word; 0 is for words that only fill a row


@functools.cache
def read_model() -> dict[str, Any]:
    """Return the description of the model."""
    description: dict[str, Any] = json.loads((FOLDER / "export.json").read_text("utf-8"))
    return description


@functools.cache
def read_vocabulary() -> tuple[dict[str, int], dict[str, int]]:
    """Return the ids of the words in the table of the tagger, and of those that have a vector behind it."""
    model = read_model()
    words = {word: n for n, word in enumerate(model["words"], model["specials"])}
    return words, {word: n for n, word in enumerate(model["later_words"], model["specials"] + len(model["words"]))}


@functools.cache
def load_tokenizer() -> Any:
    """Return the tokenizer, which pads as the model needs it."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(find_tokenizer())
    tokenizer.enable_padding(pad_id=read_model()["pad_id"], pad_token=read_model()["pad_token"])
    return tokenizer


def read_characters(sentences: Any, width: int, size: int) -> Any:
    """Return the bytes + 1 of each word, cut to `size` - 2, between the marks of a word."""
    table = np.zeros((len(sentences), width, size), np.int64)
    for row, words in enumerate(sentences):
        for place, word in enumerate(words):
            ids = [BEGIN, *(byte + 1 for byte in word.encode()[: size - 2]), END]
            table[row, place] = PADDING
            table[row, place, : len(ids)] = ids
    return table


def number_words(model: Any, sentences: Any, width: int) -> Any:
    """Return the ids of words in the table of the tagger; unknown words have 0, or -1 if they have random vectors."""
    ids = np.zeros((len(sentences), width), np.int64)
    unknown = -1 if "word_vectors" in model["inputs"] else 0
    words, later = read_vocabulary()
    for row, sentence in enumerate(sentences):
        for place, word in enumerate(sentence):
            ids[row, place] = words.get(word, later.get(word, later.get(word.lower(), unknown)))
    return ids


def draw_vectors(model: Any, sentences: Any, ids: Any) -> Any:
    """Return the random vector of each word without an id, which depends on the word and the seed alone."""
    vectors = np.zeros((*ids.shape, model["width"]), np.float32)
    for row, place in zip(*np.nonzero(ids < 0)):
        text = f"{model['seed']} {sentences[row][place]}".encode("utf-8", "replace")
        key = int.from_bytes(hashlib.blake2b(text, digest_size=16).digest(), "little")
        draw = np.random.Generator(np.random.Philox(key=key)).uniform(-(3**0.5), 3**0.5, model["width"])
        vectors[row, place] = draw.astype(np.float32) * np.float32(model["scale"])
    return vectors


def read_pieces(model: Any, sentences: Any, width: int) -> dict[str, Any]:
    """Return the pieces of sentences, their mask, and the place of each word's first piece."""
    read, places = read_words(load_tokenizer(), sentences, model["unk_token"])
    if len(read[0].ids) > model["max_length"]:
        raise ValueError(f"a sentence has {len(read[0].ids)} pieces; the model reads {model['max_length']}: split it")
    for row in read:
        row.pad(choose_width(len(row.ids), model["max_length"]), pad_id=model["pad_id"], pad_token=model["pad_token"])
    first = np.zeros((len(sentences), width), np.int64)
    for number, (words, of_words) in enumerate(zip(sentences, places)):
        first[number, : len(words)] = of_words
    ids, mask = (np.array([getattr(r, name) for r in read], np.int64) for name in ("ids", "attention_mask"))
    return {"input_ids": ids, "attention_mask": mask, "first_pieces": first}


def predict(texts: Any, first: int = 0) -> Any:
    """Return the layers of each sentence's words, or a list of words with their tags; errors count from `first`."""
    if not texts:
        return []
    model = read_model()
    split = list if model.get("tags_characters") else str.split
    sentences = [split(text) if isinstance(text, str) else list(text) for text in texts]
    for number, (text, words) in enumerate(zip(texts, sentences), first):
        if not words:
            raise ValueError(f"sentence {number} is {text!r}; expected words, not an empty text")
    lengths = np.array(list(map(len, sentences)))
    width = choose_width(int(lengths.max()), None)
    read = sentences
    if model["composed"]:  # as the words that the model was trained on
        read = [[unicodedata.normalize("NFC", word) for word in words] for words in sentences]
    arrays = {name: read_characters(read, width, size) for name, size in model["characters"].items()}
    if "word_ids" in model["inputs"]:
        arrays["word_ids"] = number_words(model, read, width)
        arrays["word_mask"] = (np.arange(width)[None, :] < lengths[:, None]).astype(np.int64)
    if "word_vectors" in model["inputs"]:
        arrays["word_vectors"] = draw_vectors(model, read, arrays["word_ids"])
    if "first_pieces" in model["inputs"]:
        arrays |= read_pieces(model, read, width)
    run = load_graph("model", tuple(model["outputs"]))
    outputs = dict(zip(model["outputs"], run({name: arrays[name] for name in model["inputs"]})))
    if model["kind"] == "words":
        return [layers[:, :size].tolist() for layers, size in zip(outputs["layers"], lengths)]
    return [
        [(word, model["labels"][tag]) for word, tag in zip(words, row)]
        for words, row in zip(sentences, outputs["tags"])
    ]


if __name__ == "__main__":
    if sys.argv[1:] in (["--help"], ["-h"]):
        print(__doc__.strip())
        sys.exit()
    use_utf8()
    try:
        print_lines(predict, sys.argv[1:] or (line.rstrip("\n") for line in sys.stdin))
    except ValueError as error:
        sys.exit(f"run.py: {error}")
    except Exception as error:  # of the libraries, about files that are missing or damaged
        sys.exit(f"run.py: {type(error).__name__}: {str(error).strip() or 'the folder is not complete'}")
