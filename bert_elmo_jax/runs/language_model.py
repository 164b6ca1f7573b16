"""Train language models further on the texts of a task, without labels: the second of ULMFiT's three stages.

Howard and Ruder 2018, https://arxiv.org/abs/1801.06146, section 3.2. Each model is a run directory below the task's.
"""

import dataclasses
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
from ml_collections import ConfigDict

from bert_elmo_jax.data.corpora.prepare import OtherPlan, Request, prepare
from bert_elmo_jax.data.corpora.reading import Reading
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.files import read_json
from bert_elmo_jax.heads.document_head import NAME
from bert_elmo_jax.inference.read_model import read_model
from bert_elmo_jax.inference.run_directory import is_run_directory, write_run_directory
from bert_elmo_jax.report.language import Language, Translate, english
from bert_elmo_jax.report.page import draw_table
from bert_elmo_jax.report.svg import format_number
from bert_elmo_jax.runs.adaptation import HELD_OUT, write_texts
from bert_elmo_jax.runs.pretraining import pretrain
from bert_elmo_jax.runs.start_run import say
from bert_elmo_jax.runs.task_data import Data, class_weights, count_steps
from bert_elmo_jax.runs.train_run import SharedBy
from bert_elmo_jax.runs.trainable import BEFORE
from bert_elmo_jax.runs.transfer import build_transfer
from bert_elmo_jax.runs.with_documents import (
    BACKWARD,
    RULE,
    DocumentStart,
    check_documents,
    count_words,
    direction_of,
    list_asked,
    read_unlabelled,
)
from bert_elmo_jax.text import Tokenizer, WordVocabulary
from bert_elmo_jax.text.words import WORD_SPECIALS, split_line
from bert_elmo_jax.train.metrics import read_metrics

TUNED = "adapted"  # the folder of the tuned language model
FEWEST = 10  # different texts: of fewer, none may be held out
# Fields that all runs of a grid share.
STAGES = ("lm", "backward", "unlabelled", "rates", "drop_factor", "dtype", "preset", "vocab_size", "add_words")


def check_stages(config: ConfigDict, settings: Sequence[Mapping[str, Any]]) -> None:
    """Raise ValueError for contradictory fields of the language model, or settings of a grid that would need two."""
    for name in (name for setting in settings for name in setting):
        if name.partition(".")[0] in STAGES:
            raise ValueError(
                f"--grid names {name}, but all runs of a grid share one tuned language model: start a run "
                "for each value"
            )
    if config.unlabelled and not config.lm.epochs:
        raise ValueError(
            f"config.unlabelled={config.unlabelled} is read by the language model only, and config.lm.epochs=0: leave "
            "one of them out"
        )


def tune_language_models(
    config: ConfigDict,
    workdir: Path,
    data: Data,
    start: DocumentStart,
    parallel: SharedBy = "jit",
    language: Language = "en",
    configs: Sequence[ConfigDict] = (),
) -> tuple[DocumentStart, int]:
    """Tune each model below `workdir`; return them, and the exit status: 0, or 75 if it was stopped.

    `configs` are those of the runs of a grid.
    """
    for run_config in configs or [config]:
        check_classifier(run_config, data, start)
    texts = [example.text for example in data.train] + read_unlabelled(config, data.task)
    if start.vocabulary is None:
        start = start._replace(vocabulary=count_words(texts, config.vocab_size))
        say(f"{start.vocabulary.vocab_size:,} words of the task's texts are the vocabulary")
    elif start.stored is not None:
        start = add_new_words(start, texts, config.add_words)
    if not config.lm.epochs:
        say("stage 2 of 3, the language model on the task's texts, is left out: config.lm.epochs=0")
        return start, 0
    tuned, status = tune(config, workdir / TUNED, texts, start._replace(other=None), parallel, language)
    if status or start.other is None:
        return tuned, status
    other, status = tune(config, workdir / f"{TUNED}_{BACKWARD}", texts, start.other, parallel, language)
    return tuned._replace(other=other), status


def check_classifier(config: ConfigDict, data: Data, start: DocumentStart) -> None:
    """Raise ValueError for fields of the classifier that cannot be used, before hours of a language model."""
    check_documents(config, data.task)
    class_weights(config.class_weights, data.task, data.train)
    length, family = count_steps(config, len(data.train)), start.family
    model = dataclasses.replace(start.model, classifier=(*config.documents.sizes, len(data.task.labels)))
    shapes = jax.eval_shape(lambda: init_params(family, model, jax.random.key(0), (NAME,)))
    build_transfer(config, family.depth_of, shapes, length, report=False)


def add_new_words(start: DocumentStart, texts: Sequence[str], least: int) -> DocumentStart:
    """Add words that occur at least `least` times in texts to the models of both directions."""
    vocabulary = start.vocabulary
    if isinstance(vocabulary, Tokenizer) or not least:
        return start
    counts = Counter(word for text in texts for word in split_line(text, vocabulary.rule or RULE))
    lower = isinstance(vocabulary, WordVocabulary)
    new_words = [word for word, count in counts.most_common() if count >= least and is_new(word, vocabulary, lower)]
    if not new_words:
        return start
    say(f"{len(new_words):,} words of the task's texts are new to {start.source}: each gets the mean of its vectors")

    def extend(one: DocumentStart) -> DocumentStart:
        assert one.family.inputs.documents is not None and one.stored is not None
        vocabulary, params = one.family.inputs.documents.add_words(one.vocabulary, one.stored.params, new_words)
        config = dataclasses.replace(one.stored.config, vocab_size=vocabulary.vocab_size)
        stored = dataclasses.replace(one.stored, config=config, params=params, tokenizer=vocabulary)
        return one._replace(vocabulary=vocabulary, stored=stored)

    return extend(start)._replace(other=None if start.other is None else extend(start.other))


def is_new(word: str, vocabulary: Any, cased: bool) -> bool:
    """Return True for a word that a vocabulary lacks; without `cased`, also in lower case."""
    return word not in vocabulary and word not in WORD_SPECIALS and (cased or word.lower() not in vocabulary)


def tune(
    config: ConfigDict,
    folder: Path,
    texts: Sequence[str],
    start: DocumentStart,
    parallel: SharedBy = "jit",
    language: Language = "en",
) -> tuple[DocumentStart, int]:
    """Train a language model on texts in a folder, unless it is done; return it, and the exit status.

    A model that is done goes through `pretrain`, too, which refuses other weights, fields or texts than it had.
    """
    folder.mkdir(parents=True, exist_ok=True)
    manifest = prepare_texts(folder, texts, start, config.train)
    say(f"stage 2 of 3: the language model reads the task's texts {direction_of(start)}: {folder}")
    recipe = build_recipe(config, start, manifest, folder / "corpus")
    status = pretrain(
        recipe, folder, init=find_init(folder, start), parallel=parallel, program="tune", origin=start.source,
        language=language,
    )  # fmt: skip
    return (start if status else start._replace(stored=read_model(str(folder)))), status


def prepare_texts(folder: Path, texts: Sequence[str], start: DocumentStart, source: str) -> dict[str, Any]:
    """Prepare each different text as a document of one sentence, in the ids of the model's vocabulary."""
    assert start.family.inputs.documents is not None
    vocabulary = start.family.inputs.documents.for_corpus(start.vocabulary)
    lines: list[list[str]]
    if isinstance(vocabulary, WordVocabulary):
        split = (split_line(text, vocabulary.rule or RULE) for text in texts)
        # Words that are known in lower case only, as in fastai's vocabularies, are written so.
        model_words = start.vocabulary
        lines = [
            [word if word in model_words or word.lower() not in model_words else word.lower() for word in one]
            for one in split
        ]
    else:
        lines = [text.split() for text in texts]
    count = write_texts(folder / "texts.txt", lines)
    if count < FEWEST:
        raise ValueError(
            f"{source} has {count} different texts, too few to tune a language model on: set config.lm.epochs=0, or "
            "give more texts with --config.unlabelled=FILE"
        )
    words = folder / "vocabulary"
    vocabulary.save(words)
    request = Request(
        (str(folder / "texts.txt"),), str(folder / "corpus"), tokenizer=str(words), word_rule="whitespace", shards=1,
        heldout=max(HELD_OUT, min(0.5, 5 / count)), reading=Reading(on_bad="skip"),
    )  # fmt: skip
    try:
        manifest = prepare(request)
    except OtherPlan:
        raise ValueError(
            f"{folder} was tuned on other texts, or with other words: restore the files and fields of this run, or "
            "choose another run directory"
        ) from None
    if not manifest["counts"]["heldout"]["documents"]:
        raise ValueError(
            f"{source} has {count} texts, too few to hold some out: set config.lm.epochs=0, or give more texts with "
            "--config.unlabelled=FILE"
        )
    return manifest


def find_init(folder: Path, start: DocumentStart) -> str | None:
    """Return the weights to begin with; those with new words, or of fastai, are written first."""
    same = start.vocabulary.vocab_size == start.model.vocab_size  # no words were added
    if start.stored is None or (same and isinstance(start.vocabulary, Tokenizer | WordVocabulary)):
        return start.source
    begun = folder / "start"
    if not is_run_directory(begun):
        shutil.rmtree(begun, ignore_errors=True)  # of a run that was killed while writing it
        assert start.family.inputs.documents is not None
        vocabulary = start.family.inputs.documents.for_corpus(start.vocabulary)
        params = {name: part for name, part in start.stored.params.items() if name in ("encoder", "lm")}
        config = dataclasses.replace(start.stored.config, classifier=())
        write_run_directory(begun, config, params, vocabulary, run={"program": "tune", "init": start.source})
    return str(begun)


def build_recipe(config: ConfigDict, start: DocumentStart, manifest: Mapping[str, Any], corpus: Path) -> ConfigDict:
    """Return the config of the language model's run: `config.lm`, and the model's own sizes."""
    counts, lm = manifest["counts"]["train"], config.lm.to_dict()
    words = counts["tokens"] + counts["sentences"]  # with the mark of each sentence
    steps = max(1, round(lm.pop("epochs") * words / (lm["batch_size"] * lm["length"])))
    every = max(1, steps // 4)
    rates = list_asked(config, start.family, lm.pop("drop_factor"))
    sizes = {**dataclasses.asdict(start.model), **rates, "classifier": ()}
    for name in ("eval_every", "checkpoint_every"):
        lm[name] = lm[name] or every
    return ConfigDict({
        **lm, "family": start.family.name, "data": str(corpus), "steps": steps, "accumulate": 1, "seed": config.seed,
        "log_every": config.log_every, "keep": 1, "stop_after_failures": config.stop_after_failures, "workers": 0,
        "mesh": config.mesh, "model": {name: value for name, value in sizes.items() if name != "vocab_size"},
    })  # fmt: skip


def describe_stages(workdir: Path, translate: Translate = english) -> list[tuple[str, str]]:
    """Return a section of the report, title and HTML: the perplexity of each tuned model, before and after."""
    rows = []
    for folder in (workdir / TUNED, workdir / f"{TUNED}_{BACKWARD}"):
        lines = read_metrics(folder) if (folder / "report.html").is_file() else []
        name = "held_out/perplexity"
        after = [line[name] for line in lines if name in line]
        if after:
            before = read_json(folder / BEFORE, default={}).get(name)
            rows.append([folder.name, "–" if before is None else format_number(before), format_number(after[-1])])
    if not rows:
        return []
    names = [translate(name) for name in ("language model", "before", "after")]
    return [(translate("Perplexity of held-out texts of the task"), draw_table(names, rows))]
