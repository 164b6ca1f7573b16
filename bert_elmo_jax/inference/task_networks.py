"""The networks of tasks, and all differences between them."""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bert_elmo_jax.data.tasks.answers import answers_of_words
from bert_elmo_jax.data.tasks.batches import Batch
from bert_elmo_jax.data.tasks.labels import legal_transitions
from bert_elmo_jax.data.tasks.question_rows import collate_questions, reading_rows, training_rows, words_of_questions
from bert_elmo_jax.data.tasks.task import Kind, Task
from bert_elmo_jax.data.tasks.tree_rows import collate_trees, make_training_rows, make_tree_rows
from bert_elmo_jax.data.tasks.word_rows import (
    Layers,
    WordRow,
    collate_texts,
    collate_words,
    count_cut,
    make_text_rows,
    make_word_rows,
    words_of_sentences,
    words_of_texts,
)
from bert_elmo_jax.inference.predictions import (
    SEARCHED,
    AnswerOptions,
    CharacterTags,
    Prediction,
    Tags,
    Tree,
    make_answer,
    make_label,
)
from bert_elmo_jax.networks import NetworkConfig, bidaf, parser, tagger, text_classifiers
from bert_elmo_jax.networks.word_network import Encode
from bert_elmo_jax.text import Lexicon


@dataclass(frozen=True)
class Network:
    """A network as functions; rows have a `width`, a `content` that identifies them, and `texts` for an encoder."""

    config: type[NetworkConfig]
    kind: Kind  # kind of its tasks
    pairs: bool | None  # whether examples have two texts; None: either
    counted: str | None  # the field of the configuration with the number of labels
    loss: Callable[[Any, Encode | None], Any]  # for `train.make_step`
    # (configuration, task, encode) -> function of parameters and a batch
    outputs: Callable[[Any, Task, Encode | None], Callable[[Any, Mapping[str, Any]], Any]]
    words: Callable[[Task, Sequence[Any]], Iterable[Sequence[str]]]  # all texts of examples, for the lexicon
    training_rows: Callable[[Task, Sequence[Any], Lexicon], tuple[list[Any], list[str]]]  # with notes for the user
    reading_rows: Callable[[Task, Sequence[Any], Lexicon], list[Any]]  # of examples without labels
    collate: Callable[..., Batch]  # (rows, height, lexicon=…, layers=…, targets=…)
    # (task, examples, rows, outputs of each row, number of candidates for a question)
    predictions: Callable[[Task, Sequence[Any], Sequence[Any], Sequence[Any], int], list[Prediction]]


def network_name(config: NetworkConfig) -> str:
    """Return the name of the network of a configuration."""
    return next(name for name, network in NETWORKS.items() if isinstance(config, network.config))


def check_task(name: str, task: Task) -> None:
    """Raise if a network is not for a task."""
    network = NETWORKS[name]
    configs = " or ".join(
        f"--config={other}"
        for other, of in {**NETWORKS, "finetune": None}.items()
        if of is None or (of.kind == task.kind and of.pairs in (None, task.pairs))
    )
    if task.kind != network.kind:
        raise ValueError(
            f"config.network={name} is for {network.kind}, and --task={task.name} is {task.kind}: choose another "
            f"config, such as {configs}"
        )
    if network.pairs not in (None, task.pairs):
        texts = {True: "pairs of texts", False: "single texts"}
        raise ValueError(
            f"config.network={name} is for {network.kind} of {texts[bool(network.pairs)]}, and --task={task.name} has "
            f"{texts[task.pairs]}: name the column of the second text with --pair=…, or choose another config, such as "
            f"{configs}"
        )


def tag_predictions(
    task: Task, sentences: Sequence[Any], rows: Sequence[WordRow], outputs: Sequence[tuple[np.ndarray, np.ndarray]]
) -> list[Any]:
    """Return the predictions of a tagger for the rows of sentences, with the words as they were given."""
    predictions, kind = [], CharacterTags if task.characters else Tags
    for row, (numbers, shares) in zip(rows, outputs):
        tags = tuple(task.labels[tag] for tag in numbers[: row.width])
        predictions.append(
            kind(sentences[row.example].words, tags, tuple(np.clip(shares[: row.width], 0.0, 1.0).tolist()))
        )
    return predictions


def tree_predictions(
    task: Task, sentences: Sequence[Any], rows: Sequence[WordRow], outputs: Sequence[tuple[np.ndarray, np.ndarray]]
) -> list[Any]:
    """Return the predictions of a parser for the rows of sentences, with the words as they were given."""
    return [
        Tree(
            sentences[row.example].words,
            tuple(heads[: row.width].tolist()),
            tuple(task.labels[number] for number in relations[: row.width]),
        )
        for row, (heads, relations) in zip(rows, outputs)
    ]


def _best_tags(
    config: tagger.TaggerConfig, task: Task, encode: Encode | None
) -> Callable[[Any, Mapping[str, Any]], Any]:
    legal = legal_transitions(task.labels, config.scheme or None)
    return functools.partial(tagger.best_tags, config, legal, encode=encode)


def _collate_words(
    rows: Sequence[Any], height: int, lexicon: Lexicon, layers: Layers | None = None, *, targets: bool = True
) -> Batch:
    return collate_words(rows, height, lexicon, layers, tags=targets)


def _labelled_rows(task: Task, examples: Sequence[Any], lexicon: Lexicon) -> tuple[list[Any], list[str]]:
    rows: list[Any] = make_text_rows(examples, lexicon, task.labels, task.max_length)
    cut = count_cut(examples, task.max_length)
    note = f"{cut:,} of {sum(len(row.texts) for row in rows):,} texts have more than {task.max_length} words"
    return rows, [f"{note}: the first {task.max_length} are read (config.max_length)"] if cut else []


def _answered_rows(task: Task, questions: Sequence[Any], lexicon: Lexicon) -> tuple[list[Any], list[str]]:
    rows, windowed, inexact, left_out = training_rows(questions, lexicon, task.max_length)
    notes = (
        (windowed, f"contexts have more than {task.max_length} words: one window of each is read (config.max_length)"),
        (inexact, "answers begin or end inside a word: the whole word is learned"),
        (left_out, "questions are left out: no window holds their answer"),
    )
    return list(rows), [f"of {len(questions):,} questions {count:,} {note}" for count, note in notes if count]


def _answers(
    task: Task, questions: Sequence[Any], rows: Sequence[Any], outputs: Sequence[Any], n_best: int
) -> list[Prediction]:
    threshold = task.null_threshold if task.unanswerable else None
    answers = answers_of_words(
        questions, rows, outputs, n_best=max(SEARCHED, n_best), longest=task.longest_answer, null_threshold=threshold
    )
    return [make_answer(answer, AnswerOptions(n_best)) for answer in answers]


def _of_texts(config: type[NetworkConfig], pairs: bool | None) -> Network:
    """Return a network for labelled texts."""
    return Network(
        config=config,
        kind="classification",
        pairs=pairs,
        counted="num_labels",
        loss=text_classifiers.label_loss,
        outputs=lambda config, task, encode: (
            lambda params, batch: text_classifiers.label_scores(config, params, batch, encode=encode)[0]
        ),
        words=lambda task, examples: (
            words for example in examples for words in words_of_texts(example, task.max_length)
        ),
        training_rows=_labelled_rows,
        reading_rows=lambda task, examples, lexicon: make_text_rows(
            examples, lexicon, task.labels, task.max_length, labelled=False
        ),
        collate=collate_texts,
        predictions=lambda task, examples, rows, outputs, n_best: [make_label(task, output) for output in outputs],
    )


NETWORKS: Mapping[str, Network] = {
    "tagger": Network(
        config=tagger.TaggerConfig,
        kind="tags",
        pairs=None,
        counted="num_tags",
        loss=tagger.tagger_loss,
        outputs=_best_tags,
        words=lambda task, examples: words_of_sentences(examples),
        training_rows=lambda task, examples, lexicon: (make_word_rows(examples, lexicon, task.labels), []),
        reading_rows=lambda task, examples, lexicon: make_word_rows(examples, lexicon, task.labels, labelled=False),
        collate=_collate_words,
        predictions=lambda task, examples, rows, outputs, n_best: tag_predictions(task, examples, rows, outputs),
    ),
    "bcn": _of_texts(text_classifiers.BcnConfig, None),
    "esim": _of_texts(text_classifiers.EsimConfig, True),
    "bidaf": Network(
        config=bidaf.BidafConfig,
        kind="questions",
        pairs=None,
        counted=None,
        loss=bidaf.bidaf_loss,
        outputs=lambda config, task, encode: functools.partial(bidaf.answer_scores, config, encode=encode),
        words=lambda task, questions: words_of_questions(questions),
        training_rows=_answered_rows,
        reading_rows=lambda task, questions, lexicon: reading_rows(questions, lexicon),
        collate=collate_questions,
        predictions=_answers,
    ),
    "parser": Network(
        config=parser.ParserConfig,
        kind="trees",
        pairs=None,
        counted="num_labels",
        loss=parser.parser_loss,
        outputs=lambda config, task, encode: functools.partial(parser.parse, config, encode=encode),
        words=lambda task, examples: words_of_sentences(examples),
        training_rows=lambda task, examples, lexicon: make_training_rows(examples, lexicon, task.labels, task.tags),
        reading_rows=lambda task, examples, lexicon: make_tree_rows(examples, lexicon, task.tags),
        collate=collate_trees,
        predictions=lambda task, examples, rows, outputs, n_best: tree_predictions(task, examples, rows, outputs),
    ),
}
