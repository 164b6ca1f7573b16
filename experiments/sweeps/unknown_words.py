r"""Six ways to treat words that training does not have, for a tagger and for a reader.

One vector for all of them; a vector for each class of words; the characters; the pretrained vector, also of a word that
is met first at test time; a random vector for each new word; and the pretrained one, else a random one. All rows begin
with the same pretrained vectors. The columns "new" count only entities with a word, or questions whose answer has a
word, that the training data lack.

Paper and expected score: Dhingra et al. 2017, https://arxiv.org/abs/1703.00993, for readers: pretrained vectors at test
time help clearly, random ones a little.
Scales: toy (minutes on two cores; words with several senses as entities, questions of the toy world, our own vectors of
its text), laptop (UNER English EWT, SQuAD 1.1, one seed, GloVe). Cost: toy, 700 seconds of processor time in 37 runs;
laptop is not measured yet.
Command: python -m experiments.sweep --sweep=unknown_words --jobs=2 --workdir=runs/sweeps
"""

from typing import Any

from bert_elmo_jax.sweeps.definition import Add, Paper
from bert_elmo_jax.sweeps.toy_tasks import ToyData

from ._scales import GLOVE, SQUAD, TOY_DOCUMENTS, UNER, toy

SCALES = ("toy", "laptop")
WAYS = ("unk", "classes", "characters", "vectors", "random", "vectors_or_random")
NOTES = {
    "toy": "A reader profits most where the answer has a new word: with its pretrained vector 56, with one vector for "
    "all new words 35, whose three seeds have a deviation of 13. Every new word of this world has a pretrained vector, "
    "so the last row equals the one with vectors. Hardly any way finds a new word as an entity."
}
PAPER = Paper.without_figures(("tagger", "tagger, new", "reader", "reader, new"), WAYS, "unk")
# So few examples that a tenth of the words, and of the answers, are new.
_WORLD = ToyData(topics=8, words=6, train=64, dev=256)
_QUESTIONS = {"task": "squad", **{part: _WORLD.file("questions", part) for part in ("train", "dev")}}
_TOY: dict[str, Any] = {
    "lstm_size": 24, "dropout": 0.1, "batch_size": 16, "min_count": 2, "patience": 0, "eval_every": 100_000,
    "optimizer.learning_rate": 5e-3,
}  # fmt: skip
_LAPTOP: dict[str, Any] = {
    "lstm_size": 64,
    "dropout": 0.2,
    "batch_size": 16,
    "patience": 0,
    "eval_every": 100_000,
    "vectors": GLOVE["vectors"],
}
TAGGER: dict[str, dict[str, Any]] = {
    "toy": {**_TOY, **toy(_WORLD, "senses"), "lstm_layers": 1, "epochs": 40.0},
    "laptop": {**_LAPTOP, **UNER, "share": 0.25, "epochs": 8.0},
}
READER: dict[str, dict[str, Any]] = {
    "toy": {**_TOY, **_QUESTIONS, "epochs": 40.0},
    "laptop": {**_LAPTOP, **SQUAD, "epochs": 3.0, "max_length": 200},
}
SEEDS = {"toy": (0, 1, 2), "laptop": (0,)}
OF = {
    "toy": ("words of several senses as entities (toy world), F1", "questions of the toy world, F1"),
    "laptop": ("UNER English EWT, a quarter of its sentences, F1", "SQuAD 1.1, F1"),
}


def sweep(add: Add) -> None:
    """Add a tagger and a reader for each way."""
    seeds, (entities, answers) = SEEDS[add.scale], OF[add.scale]
    more: dict[str, Any] = {}
    if add.scale == "toy":
        text = _WORLD.corpus("words", 8_192, TOY_DOCUMENTS)
        steps = {"steps": 1_000, "eval_every": 1_000, "checkpoint_every": 500}
        more["vectors"] = add.pretrain("vectors", "static:toy", data=text, **steps)
    for way in WAYS:
        tagger = {**TAGGER[add.scale], **more, "unknown": way}
        runs = add.transfer(way, "tagger", "tagger", of=entities, seeds=seeds, **tagger)
        add.figure(way, "tagger, new", runs, of=f"{entities}, with new words", score="unknown_f1", percent=True)
        reader = {**READER[add.scale], **more, "unknown": way}
        runs = add.transfer(way, "reader", "bidaf", of=answers, seeds=seeds, **reader)
        add.figure(way, "reader, new", runs, of=f"{answers}, new words in the answer", score="unknown_f1")
