"""Prepare a language model with ULMFiT's classifier of documents for fine-tuning: the third of its three stages."""

import dataclasses
import functools
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
from ml_collections import ConfigDict

from bert_elmo_jax import train
from bert_elmo_jax.data.tasks.batches import Collate
from bert_elmo_jax.data.tasks.document_rows import collate_documents, make_document_rows
from bert_elmo_jax.data.tasks.files import read_lines
from bert_elmo_jax.data.tasks.task import Task, has_plain_lines, read_examples
from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.families import Family, all_families, get_family
from bert_elmo_jax.families.documents import count_parts
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.heads.document_head import NAME, document_loss, keep_figures
from bert_elmo_jax.heads.pool_classifier import running_figures
from bert_elmo_jax.inference.document_model import document_rows, document_scores
from bert_elmo_jax.inference.predictions import make_label
from bert_elmo_jax.inference.read_model import read_model
from bert_elmo_jax.inference.run_directory import StoredModel, describe_run
from bert_elmo_jax.runs.initial_state import adopt_config
from bert_elmo_jax.runs.prepared_task import Predict, PreparedTask, Put
from bert_elmo_jax.runs.start_run import say
from bert_elmo_jax.runs.task_data import Data, class_weights, count_steps
from bert_elmo_jax.runs.transfer import build_transfer, hold
from bert_elmo_jax.runs.with_head import list_presets
from bert_elmo_jax.text import Tokenizer, WordVocabulary, load_tokenizer
from bert_elmo_jax.text.words import split_line

RULE = "punctuation"  # splits the words of a vocabulary that is made of the task's texts
BACKWARD = "backward"  # the folder of the classifier of the other direction


class DocumentStart(NamedTuple):
    """A language model without a classifier; `other` is the model of the other direction, if there is one.

    `source` is the model to begin with; without one, the model is new. `vocabulary` is None until the words of the
    task's texts are counted.
    """

    family: Family
    model: Any
    vocabulary: Any
    stored: StoredModel | None
    source: str | None
    other: "DocumentStart | None" = None


def start_documents(config: ConfigDict, init: str | None, tokenizer: str | None) -> DocumentStart:
    """Return the models of `init` and `config.backward`, or a new model of `config.preset`."""
    if init is not None:
        if tokenizer is not None:
            raise ValueError(f"--tokenizer={tokenizer} was given with --init={init}, which has its own: leave it out")
        start = _start_pretrained(config, init, "--init")
        return start._replace(other=_start_other(config, start)) if config.backward else start
    if config.backward:
        raise ValueError(
            f"config.backward={config.backward} needs --init=…, the model of the other direction; leave it out for a "
            "model from scratch"
        )
    family, model = find_preset(config.preset)
    vocabulary = None if tokenizer is None else load_vocabulary(tokenizer)
    return DocumentStart(family, adopt_config(model, list_asked(config, family)), vocabulary, None, None)


def _start_pretrained(config: ConfigDict, source: str, flag: str) -> DocumentStart:
    stored = read_model(source)
    family = None if stored.network else get_family(stored.kind)
    if family is None or family.inputs.documents is None:
        called = f"of the kind {stored.kind}" if family is None else family.called
        raise ValueError(
            f"{flag}={source} is {called}, and this config trains a classifier of whole documents on "
            f"{_known_families()}: give one (a run of pretrain, or a folder of fastai), or choose another config, "
            "such as --config=finetune"
        )
    if stored.tokenizer is None:
        raise ValueError(f"{flag}={source} has no vocabulary: put its list of words or its tokenizer into the folder")
    model = adopt_config(dataclasses.replace(stored.config, classifier=()), list_asked(config, family))
    return DocumentStart(family, model, stored.tokenizer, stored, source)


def _start_other(config: ConfigDict, start: DocumentStart) -> DocumentStart:
    other = _start_pretrained(config, config.backward, "config.backward")
    for name, flag, one, expected in (
        (start.source, "--init", start, "forward"),
        (config.backward, "config.backward", other, "backward"),
    ):
        direction = direction_of(one)
        if direction != expected:
            raise ValueError(
                f"{flag}={name} is a {direction} model, expected a {expected} one: exchange them, or leave one out"
            )
    if other.vocabulary.fingerprint != start.vocabulary.fingerprint:
        raise ValueError(
            f"config.backward={config.backward} has another vocabulary ({other.vocabulary.vocab_size:,} words) than "
            f"--init={start.source} ({start.vocabulary.vocab_size:,} words): give the models of one corpus"
        )
    return other


def direction_of(start: DocumentStart) -> str:
    """Return the reading direction of a model, "forward" or "backward"."""
    assert start.family.inputs.documents is not None
    return start.family.inputs.documents.direction(start.model)


def list_asked(config: ConfigDict, family: Family, factor: float | None = None) -> dict[str, Any]:
    """Return the fields of a model that a run chooses: its type of numbers, and its rates of dropout."""
    assert family.inputs.documents is not None
    for name in config.rates:
        if name not in family.inputs.documents.rates:
            rates = ", ".join(family.inputs.documents.rates)
            raise ValueError(f"config.rates has {name!r}; {family.called} has the rates {rates}")
    factor = config.drop_factor if factor is None else factor
    return {"dtype": config.dtype, **{name: factor * rate for name, rate in config.rates.items()}}


def find_preset(name: str) -> tuple[Family, Any]:
    """Return the family and the configuration of a preset, or of a model whose sizes are taken."""
    presets = list_presets(documents=True)
    if name in presets:
        family, sizes = presets[name]
        return family, family.config(vocab_size=family.inputs.vocab_size, **sizes)
    if Path(name).exists():
        stored = read_model(name)
        if not stored.network and (family := get_family(stored.kind)).inputs.documents is not None:
            return family, dataclasses.replace(stored.config, classifier=())
    listed, hint = ", ".join(presets), did_you_mean(name, presets)
    raise ValueError(f"config.preset={name!r} is neither a preset ({listed}) nor {_known_families()}{hint}")


def _known_families() -> str:
    return " or ".join(family.called for family in all_families() if family.inputs.documents is not None)


def load_vocabulary(source: str) -> Any:
    """Return the tokenizer or the words of a folder, a run directory or a prepared corpus."""
    folder = Path(source) / "tokenizer"
    folder = folder if folder.is_dir() else Path(source)
    return WordVocabulary.load(folder) if (folder / "words.txt").is_file() else load_tokenizer(folder)


def read_unlabelled(config: ConfigDict, task: Task) -> list[str]:
    """Return the texts of the files of `config.unlabelled`: tables as --train, or .txt files with a text per line."""
    texts: list[str] = []
    for file in filter(None, (part.strip() for part in config.unlabelled.split(","))):
        if has_plain_lines(file, task, config.encoding):
            file_texts = [line.strip() for line in read_lines(file, config.encoding) if line.strip()]
        else:
            examples: Sequence[Any] = read_examples(file, task, labelled=False, encoding=config.encoding)
            file_texts = [example.text for example in examples]
        if not file_texts:
            raise ValueError(f"config.unlabelled={file} has no texts: give a file with some, or leave it out")
        texts += file_texts
    return texts


def count_words(texts: Sequence[str], size: int) -> WordVocabulary:
    """Return the most frequent words of texts as a vocabulary.

    >>> count_words(["the sea", "the river"], 5).words
    ('<S>', '</S>', '<UNK>', 'the', 'river')
    """
    counts = Counter(word for text in texts for word in split_line(text, RULE))
    built = WordVocabulary.build(counts, size=size)
    return WordVocabulary(built.words, built.counts, rule=RULE)


def check_documents(config: ConfigDict, task: Task) -> None:
    """Raise ValueError for a task or for fields that a classifier of documents does not have."""
    if task.kind != "classification" or task.pairs:
        kind = "pairs of texts" if task.pairs else task.kind
        raise ValueError(
            f"this config is for classification of single texts, and --task={task.name} has {kind}: choose another "
            "config, such as --config=finetune"
        )
    d = config.documents
    if config.accumulate != 1:
        raise ValueError(
            f"config.accumulate={config.accumulate}: batch norm needs the mean of a whole batch; use 1, and a smaller "
            "config.batch_size for less memory"
        )
    if config.batch_size < 2:
        raise ValueError(f"config.batch_size={config.batch_size}: batch norm needs two documents in a batch, or more")
    if len(d.dropout) != len(d.sizes) + 1:
        raise ValueError(
            f"config.documents.dropout={tuple(d.dropout)}: expected {len(d.sizes) + 1} rates, one "
            f"for each of the sizes {tuple(d.sizes)} and one for the classes"
        )


def prepare_documents(
    config: ConfigDict,
    data: Data,
    start: DocumentStart,
    placement: train.Placement = train.ONE_DEVICE,
    report: bool = True,
) -> PreparedTask:
    """Return a language model with a new classifier for the classes of the task."""
    family, task = start.family, data.task
    reader = family.inputs.documents
    assert reader is not None
    if start.vocabulary is None:
        texts = [example.text for example in data.train] + read_unlabelled(config, task)
        start = start._replace(vocabulary=count_words(texts, config.vocab_size))
    vocabulary, d = start.vocabulary, config.documents
    sizes = {"vocab_size": vocabulary.vocab_size, "classifier": (*d.sizes, len(task.labels)), "pooling": d.pooling}
    model = dataclasses.replace(start.model, **sizes)
    params = init_params(family, model, jax.random.key(config.seed), (NAME,))
    if start.stored is not None:
        params["encoder"] = start.stored.params["encoder"]
        if report and NAME in start.stored.params:
            say(f"{start.source} has a classifier of another task: it is not used")
    params = jax.tree.map(lambda x: jax.numpy.array(x), params)  # a copy: steps donate arrays
    read = functools.partial(reader.read, model, vocabulary)
    rows = make_document_rows(data.train, read, task.labels)
    dev_rows = document_rows(family, model, vocabulary, data.dev)
    length = count_steps(config, len(rows))
    rate, method, frozen = build_transfer(config, family.depth_of, params, length)
    pool = functools.partial(reader.pool, model, last=count_parts(d.gradient_words, d.part))
    loss = document_loss(pool, d.dropout, class_weights(config.class_weights, task, data.train), placement.axis)
    folders = () if start.other is None else (BACKWARD,)
    longest = max(row.width for row in rows)

    def describe(workdir: Path) -> None:
        describe_run(workdir, model, params, vocabulary, task=task, average_with=folders)

    def open_task(workdir: Path) -> tuple[Collate, Predict]:
        kind = "pieces" if isinstance(vocabulary, Tokenizer) else "words"
        say(f"documents of up to {longest:,} {kind}, {direction_of(start)}")

        def predict(params: Any, put: Put) -> list[Any]:
            dev_scores = document_scores(family, model, params, dev_rows, config.batch_size, put=put)
            return [make_label(task, scores) for scores in dev_scores]

        return functools.partial(collate_documents, part=d.part), predict

    return PreparedTask(
        task, rows, length, params, hold(loss, frozen), {"cross_entropy": 1.0}, rate, method, describe,
        open_task,
        lambda batch: int(batch["lengths"].sum()), family.sharding,
        carry=jax.tree.map(lambda x: jax.numpy.array(x), running_figures(params[NAME])), change_step=keep_figures,
    )  # fmt: skip
