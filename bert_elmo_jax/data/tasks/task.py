"""Tasks: the layout of their files, what to predict, and how to truncate texts; saved together with the model."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from bert_elmo_jax.data.arrow_files import is_arrow
from bert_elmo_jax.data.corpora.reading import plain_name
from bert_elmo_jax.data.tasks.examples import (
    ChoiceExample,
    ParsedSentence,
    Question,
    SentenceExample,
    TaggedSentence,
    TextExample,
)
from bert_elmo_jax.data.tasks.files import BadRow, OnBad, list_files, read_lines, stop
from bert_elmo_jax.data.tasks.labels import compose, find_labels, find_tags, label_ids, tag_ids
from bert_elmo_jax.data.tasks.layouts import LAYOUTS, Layout, read_swag, read_texts, stream_texts
from bert_elmo_jax.data.tasks.question_files import read_qamr, read_squad
from bert_elmo_jax.data.tasks.sentence_files import choose_loss, find_top_score, read_sentences
from bert_elmo_jax.data.tasks.tables import find_format
from bert_elmo_jax.data.tasks.tagged import TAG_LAYOUTS, TagLayout, are_columns, read_tagged
from bert_elmo_jax.data.tasks.trees import check_column, read_trees
from bert_elmo_jax.did_you_mean import did_you_mean

Kind = Literal["classification", "regression", "tags", "choice", "questions", "sentences", "trees"]
Example = TextExample | TaggedSentence | ParsedSentence | ChoiceExample | Question | SentenceExample

# For users' own files, with columns given by name.
OWN_TAGS = ("entities", "tags")
OWN_FILES = ("classification", "regression", "entities", "tags", "sentences", "rank")
QUESTIONS = ("squad", "korquad", "qamr")
TREES = "dependencies"
TASKS = (*OWN_FILES, *LAYOUTS, *TAG_LAYOUTS, "swag", *QUESTIONS, TREES)


@dataclass(frozen=True)
class Task:
    """A fine-tuning task; create it with `task_named`.

    `labels` are the labels of the training data in the order of their ids; `max_length` limits the pieces of a row.
    With `context`, tagged sentences see the surrounding document. Contexts of questions are split into windows,
    `stride` pieces apart. If some questions are `unanswerable`, "no answer" wins if its score exceeds the best answer's
    by more than `null_threshold`. Vectors of sentences are trained by a `loss`, and scores divided by `top_score`;
    `prompt` is put before each text (of a reranker, before the first of a pair), and texts are lower-cased first if
    `lowercase`. With `both_orders`, pairs are read in both orders. With `multi_label`, each label is right or wrong by
    itself. A `pipeline` reads and answers as transformers' pipelines do; it is the task of a released model.
    `activation` turns the outputs of a reranker into scores, such as sigmoid, identity or tanh. A parser may read a
    `tag_column`, upos or xpos; `tags` are the tags in its training data.

    >>> task_named("sst2").kind, task_named("ud_upos", max_length=256).max_length
    ('classification', 256)
    """

    name: str
    kind: Kind
    layout: Layout | TagLayout | None = None
    labels: tuple[str, ...] = ()
    max_length: int = 128
    context: bool = False
    stride: int = 128
    question_length: int = 64
    longest_answer: int = 30
    unanswerable: bool = False
    null_threshold: float = 0.0
    loss: str = ""
    top_score: float = 0.0
    prompt: str = ""
    lowercase: bool = False
    both_orders: bool = False
    multi_label: bool = False
    pipeline: bool = False
    activation: str = ""
    tag_column: str = ""
    tags: tuple[str, ...] = ()

    @property
    def entities(self) -> bool:
        """True if the tags mark entities."""
        return isinstance(self.layout, TagLayout) and self.layout.entities

    @property
    def characters(self) -> bool:
        """True if the words of a sentence are the characters of a text."""
        return isinstance(self.layout, TagLayout) and self.layout.characters

    @property
    def pairs(self) -> bool:
        """True if each example has two texts."""
        return isinstance(self.layout, Layout) and self.layout.pair is not None


def task_named(
    name: str,
    *,
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    file: str | Path = "",
    **options: Any,
) -> Task:
    """Return the task called `name`; for your own files, also give the columns of text, pair and label, and a file.

    >>> task_named("classification", text="review", label="stars").layout.label
    'stars'
    >>> task_named("tags", text="1", label="3", file="train.conllu").layout
    TagLayout(word=1, tag=3, entities=False, table='conllu', characters=False)
    """
    if name not in TASKS:
        raise ValueError(f"there is no task {name!r}; there are {', '.join(TASKS)}{did_you_mean(name, TASKS)}")
    columns = {key: value for key, value in {"text": text, "pair": pair, "label": label}.items() if value is not None}
    if name not in OWN_FILES and columns:
        shown = ", ".join(f"{key}={value!r}" for key, value in columns.items())
        raise ValueError(f"{shown}: {name!r} has fixed columns; leave it out, or use one of {', '.join(OWN_FILES)}")
    if name in OWN_TAGS:
        if pair is not None:
            raise ValueError(f"pair={pair!r}: {name!r} has one column of words; leave it out")
        return Task(name, "tags", _tag_layout(file, text, label, entities=name == "entities"), **options)
    if name == "sentences":
        layout = Layout(text or "", pair or "", label or "", regression=True)
        return Task(name, "sentences", layout, **options)
    if name == "rank":  # of pairs with a label of 0 or 1, or a score between them
        layout = Layout(text or "query", pair or "passage", label or "label", regression=True)
        return Task(name, "regression", layout, activation="sigmoid", **options)
    if name in TAG_LAYOUTS:
        return Task(name, "tags", TAG_LAYOUTS[name], **options)
    if name == TREES:
        check_column(options.get("tag_column", ""))
        return Task(name, "trees", **options)
    if name not in ("classification", "regression", *LAYOUTS):
        return Task(name, "choice" if name == "swag" else "questions", **options)
    layout = LAYOUTS.get(name) or Layout(text or "text", pair, label or "label", regression=name == "regression")
    return Task(name, "regression" if layout.regression else "classification", layout, **options)


def _tag_layout(file: str | Path, word: str | None, tag: str | None, *, entities: bool) -> TagLayout:
    first = list_files(file)[0]
    if is_arrow(first) or find_format(first) == "jsonl":
        return TagLayout(word or "words", tag or "tags", entities, table="jsonl")
    if find_format(first) == "csv":
        remedy = "write lines of a word, a tab and its tag, and a blank line after each sentence, into a .tsv"
        raise BadRow(first, 1, "words and tags are not read from a csv", remedy)
    usual = TagLayout(1, 3, entities, "conllu") if plain_name(first).endswith(".conllu") else TagLayout(0, -1, entities)
    columns = []
    for option, value, default in (("text", word, usual.word), ("label", tag, usual.tag)):
        try:
            columns.append(int(default if value is None else value))
        except ValueError:
            problem = f"{option}={value!r} for {file}: its columns have no names"
            raise ValueError(f"{problem}; give a number from 0 (or -1, the last)") from None
    return dataclasses.replace(usual, word=columns[0], tag=columns[1])


def read_examples(
    path: str | Path, task: Task, *, labelled: bool = True, encoding: str = "utf-8", on_bad: OnBad = stop
) -> Sequence[Example]:
    r"""Read the examples of a file, of several with commas between, or of a glob.

    `labelled=False` ignores labels, and `on_bad` gets the errors about rows of tables.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "train.tsv"
    >>> _ = file.write_text("id\tdocument\tlabel\n1\t정말 재미있다\t1\n", encoding="utf-8")
    >>> read_examples(file, task_named("nsmc"))[0].text
    '정말 재미있다'
    """
    examples: list[Example] = []
    for file in list_files(path):
        more = _read_file(file, task, labelled, encoding, on_bad)
        if examples and task.kind == "tags":  # documents are numbered within their file
            first = examples[-1].document + 1  # type: ignore[union-attr]
            more = [dataclasses.replace(each, document=each.document + first) for each in more]
        examples.extend(more)
    return examples


def stream_examples(
    path: str | Path, task: Task, *, encoding: str = "utf-8", on_bad: OnBad = stop
) -> Iterator[Example]:
    """Yield the unlabelled examples of a file or several; of texts in Parquet files, few are in memory at a time."""
    for file in list_files(path):
        if is_arrow(file) and isinstance(task.layout, Layout) and task.kind != "sentences":
            texts = stream_texts(file, task.name if task.name in LAYOUTS else task.layout, on_bad)
            yield from map(_to_question, texts) if task.kind == "questions" else texts
        else:
            yield from read_examples(file, task, labelled=False, encoding=encoding, on_bad=on_bad)


def has_plain_lines(file: str, task: Task, encoding: str = "utf-8") -> bool:
    """Return whether a file is a `.txt` with a text per line, and not a file of the task that happens to end so.

    Those of NSMC, MRPC, SNLI and CoNLL-2003 do.
    """
    if not plain_name(file).endswith(".txt"):
        return False
    if isinstance(task.layout, Layout) and task.layout.table == "tsv":
        header = set(read_lines(file, encoding)[0].split("\t"))
        return not {task.layout.text, task.layout.pair or task.layout.text} <= header
    columns = isinstance(task.layout, TagLayout) and task.layout.table == "columns"
    return not (columns and are_columns(read_lines(file, encoding)))


def _read_file(path: str, task: Task, labelled: bool, encoding: str, on_bad: OnBad) -> Sequence[Any]:
    if task.kind == "sentences":
        assert isinstance(task.layout, Layout)
        return read_sentences(path, task.layout, labelled=labelled, encoding=encoding, on_bad=on_bad)
    if isinstance(task.layout, Layout):
        # Named layouts have additional rules, such as TREC's coarse labels.
        layout = task.name if task.name in LAYOUTS else task.layout
        examples = read_texts(path, layout, labelled=labelled, encoding=encoding, on_bad=on_bad)
        return [_to_question(example) for example in examples] if task.kind == "questions" else examples
    if on_bad is not stop:
        raise ValueError(
            f"--on_bad=skip is for tables with a text in each row, and {path} has {task.kind}: leave it out"
        )
    if isinstance(task.layout, TagLayout):
        tag_layout = task.layout
        if task.name in OWN_TAGS:  # predictions may be for a file of another format than the training data
            usual = _tag_layout(path, None, None, entities=tag_layout.entities)
            tag_layout = tag_layout if tag_layout.table == usual.table else usual
        return read_tagged(path, tag_layout, tagged=labelled, encoding=encoding)
    if task.kind == "trees":
        return read_trees(path, parsed=labelled, tag_column=task.tag_column, encoding=encoding)
    if task.kind == "choice":
        return read_swag(path, labelled=labelled, encoding=encoding)
    if task.name == "qamr":
        return read_qamr(path)
    return read_squad(path, answered=labelled, encoding=encoding)


def _to_question(example: TextExample) -> Question:
    """Return the question about a context that a row of a table has."""
    return Question(str(example.line), example.text, example.pair or "", (), example.file, example.line)


def with_labels(task: Task, train: Sequence[Any]) -> Task:
    """Return the task with the labels of its training data, and whether some questions have no answer."""
    if task.kind == "classification":
        return dataclasses.replace(task, labels=tuple(find_labels(train)))
    if task.name == "rank":
        check_labels(task, train)
    if task.kind == "tags":
        return dataclasses.replace(task, labels=tuple(find_tags(train, entities=task.entities)))
    if task.kind == "trees":
        labels = sorted({relation for sentence in train for relation in sentence.relations})
        tags = sorted({tag for sentence in train for tag in sentence.tags or ()})
        return dataclasses.replace(task, labels=tuple(labels), tags=tuple(tags))
    if task.kind == "questions":
        return dataclasses.replace(task, unanswerable=any(not question.answers for question in train))
    if task.kind == "sentences":
        return dataclasses.replace(task, loss=choose_loss(task.loss, train))
    return task


def with_spelling(task: Task, examples: Sequence[Any]) -> Sequence[Any]:
    """Return the examples with the task's spelling of each label and tag that equals one of the task's only in NFC."""
    labels, spelled = set(task.labels), {compose(label): label for label in task.labels}

    def spell(label: str) -> str:
        return label if label in labels else spelled.get(compose(label), label)

    if task.kind == "classification" and any(example.label not in labels for example in examples):
        return [dataclasses.replace(example, label=spell(example.label)) for example in examples]
    if task.kind == "tags" and any(tag not in labels for example in examples for tag in example.tags):
        return [dataclasses.replace(example, tags=tuple(map(spell, example.tags))) for example in examples]
    return examples


def with_top_score(task: Task, examples: Sequence[Any]) -> Task:
    """Return the task with the score of equal texts, unless it is known."""
    return dataclasses.replace(task, top_score=task.top_score or find_top_score(examples))


def check_labels(task: Task, examples: Sequence[Any]) -> None:
    """Raise with file and line if an example's label is not a label of the task."""
    if task.kind == "classification":
        label_ids(examples, task.labels)
    elif task.kind == "tags":
        for sentence in examples:
            tag_ids(sentence, task.labels)
    elif task.name == "rank":
        for example in examples:
            if not 0 <= float(example.label) <= 1:
                problem = f"the label {example.label}, and labels of rank are 0, 1 or between them"
                raise BadRow(example.file, example.line, problem, "divide scores by the highest possible one")
    elif task.kind == "sentences":
        for example in examples:
            if example.label is None:
                problem = "no column of scores, and sentences are evaluated by the rank correlation with scores"
                raise BadRow(example.file, 1, problem, "give a file with scores, such as sts-dev.csv")
    elif task.kind == "questions" and not task.unanswerable:
        for question in examples:
            if not question.answers:
                problem = f"question {question.id!r} has no answer, while all training questions have one"
                raise BadRow(question.file, question.line, problem, "train on data with such questions, or remove it")


def task_to_json(task: Task) -> dict[str, Any]:
    """Return the task as plain values, for `model.json`."""
    return dataclasses.asdict(task)


def task_from_json(fields: Mapping[str, Any], source: str) -> Task:
    """Return the task from the result of `task_to_json`; raise on invalid fields."""
    values = dict(fields)
    if values.get("kind") not in get_args(Kind):
        raise ValueError(f"{source}: task.kind is {values.get('kind')!r}; expected one of {', '.join(get_args(Kind))}")
    labels = values.get("labels", ())
    if not isinstance(labels, list | tuple) or not all(isinstance(label, str) for label in labels):
        raise ValueError(f"{source}: task.labels is {labels!r:.60}; expected a list of strings")
    values |= {"labels": tuple(labels), "tags": tuple(values.get("tags", ()))}
    if values["kind"] in ("classification", "tags", "trees") and not labels:
        raise ValueError(f"{source}: task.labels is empty; copy the file again from the run")
    try:
        if isinstance(layout := values.get("layout"), Mapping):
            layout_class: Any = TagLayout if values["kind"] == "tags" else Layout
            values["layout"] = layout_class(**{k: tuple(v) if isinstance(v, list) else v for k, v in layout.items()})
        return Task(**values)
    except TypeError as error:
        raise ValueError(f"{source}: task is invalid in this version ({error}); copy it again from the run") from error
