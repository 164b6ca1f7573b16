"""Training of vocabularies: counts, alphabets, the same bytes for every order and number of threads, refusals."""

import json
import os
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from bert_elmo_jax import text
from bert_elmo_jax.text import train_byte_bpe, train_sentencepiece, train_wordpiece, training
from bert_elmo_jax.text.tokenizer import SPECIALS
from bert_elmo_jax.text.tokenizer_specs import compile_spec
from bert_elmo_jax.text.wordpiece_files import WordPieceOptions

from .conftest import TEXTS


def test_counts_alphabets_and_pieces():
    counts = training.count_strings(["the sea\nthe ship", "the\tsea"])
    assert counts == {"sea": 1, "ship": 1, "the": 2, "the\tsea": 1}
    words = Counter({"sea": 3, "배": 1})
    alphabet = training.choose_alphabet(words, 20, lambda character: [character, character.upper()])
    assert alphabet == ["A", "E", "S", "a", "e", "s", "배", "배"]
    rules = compile_spec(WordPieceOptions(lowercase=True).spec(SPECIALS), "the rules")
    assert training.count_words(["A ship, a sea."], rules) == {",": 1, ".": 1, "a": 2, "sea": 1, "ship": 1}
    pieces = training.learn_pieces(Counter({"sea": 3, "seas": 2, ".": 9}), 15)
    assert pieces[5:] == ["##a", "##e", "##s", ".", "a", "e", "s", "##ea", "sea", "seas"]
    rules = dict(training.nfc_rules())
    spellings = ("하\u11ab", "\u1112\u1161\u11ab", "e\u0301", "\u200b")
    assert [rules[spelling] for spelling in spellings] == ["한", "한", "é", ""]


TRAINERS = [
    ("train_wordpiece", 300, {}),
    ("train_sentencepiece", 250, {"model": "unigram"}),
    ("train_sentencepiece", 250, {"model": "bpe"}),
    ("train_byte_bpe", 400, {}),
]
TRAIN = """
import json, sys
from bert_elmo_jax import text
for number, (name, size, options) in enumerate(json.loads(sys.argv[2])):
    getattr(text, name)(json.load(open(sys.argv[1])), size, **options).save(f"{sys.argv[3]}/{number}")
"""


def test_training_is_deterministic_and_silent(tmp_path):
    # With few letters and short words, most merges are ties.
    rng = np.random.Generator(np.random.PCG64(0))
    lines = ["".join(rng.choice(list("abc가나다 "), 30)) for _ in range(200)] + TEXTS
    file = tmp_path / "lines.json"
    file.write_text(json.dumps([lines[i] for i in rng.permutation(len(lines))]))
    for number, (name, size, options) in enumerate(TRAINERS):
        getattr(text, name)(lines, size, **options).save(tmp_path / "here" / str(number))
    files = {path.relative_to(tmp_path / "here"): path.read_bytes() for path in tmp_path.glob("here/*/*")}
    assert len(files) == 8
    for threads in ("1", "3"):
        done = subprocess.run(
            [sys.executable, "-c", TRAIN, file, json.dumps(TRAINERS), tmp_path / threads],
            env={**os.environ, "RAYON_NUM_THREADS": threads, "OMP_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        )
        assert (done.stdout, done.stderr) == ("", "")
        for name, content in files.items():
            assert (tmp_path / threads / name).read_bytes() == content, (threads, name)


REFUSED = [  # trainer, texts, size, and message
    (train_wordpiece, TEXTS, 30, r"vocab_size=30 is too small: .* alone take \d+"),
    (train_sentencepiece, TEXTS, 30, r"vocab_size=30 is too small: .* alone take \d+"),
    (train_byte_bpe, TEXTS, 260, r"vocab_size=260 is too small: the 5 special pieces and the 256 bytes .* 261"),
    (train_wordpiece, ["", " \n"], 100, "no words"),
    (train_sentencepiece, ["", "\0 \u200b"], 100, "no words"),
    (train_byte_bpe, ["", " \n"], 300, "no words"),
    (train_sentencepiece, ["x" * 10_000], 100, "or only too long ones"),
    (train_wordpiece, "the river", 100, "Put it in a list"),
    (train_byte_bpe, "the river", 300, "Put it in a list"),
    (train_wordpiece, [b"the"], 100, "found b'the', a bytes"),
    *(
        (train, ["half \ud83d"], 300, "lone surrogate")
        for train in (train_wordpiece, train_sentencepiece, train_byte_bpe)
    ),
]


@pytest.mark.usefixtures("as_users_run")
def test_invalid_training_arguments_raise():
    for train, texts, size, message in REFUSED:
        with pytest.raises((ValueError, TypeError), match=message):
            train(texts, size)
