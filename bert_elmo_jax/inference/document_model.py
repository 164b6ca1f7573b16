"""A classifier of documents of any length, in one direction or the mean of two: examples in, predictions out."""

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32

from bert_elmo_jax.data.tasks.document_rows import collate_documents, make_document_rows
from bert_elmo_jax.data.tasks.task import Example, Task
from bert_elmo_jax.families import Family
from bert_elmo_jax.inference.predictions import AnswerOptions, Prediction, make_label, softmax
from bert_elmo_jax.inference.read_model import checkpoint_of
from bert_elmo_jax.inference.row_outputs import compute_outputs
from bert_elmo_jax.inference.run_directory import StoredModel, read_run_directory
from bert_elmo_jax.inference.task_model import Predictor
from bert_elmo_jax.progress_bars import BarPart

PART = 70  # words that are read at a time; up to rounding, no result depends on it


class DocumentModel(Predictor):
    """The classifier of a ULMFiT run; `load` makes it from the run directory.

    `encoder` is the language model below the classifier, without a head. With `others`, such as the classifier of the
    other direction, the probabilities of all are averaged.
    """

    def __init__(self, encoder: Any, family: Family, task: Task, averaged_with: Sequence["DocumentModel"] = ()):
        self.encoder, self.family, self.task, self.others = encoder, family, task, tuple(averaged_with)
        self.config, self.params, self.source = encoder.config, encoder.params, encoder.source

    def __repr__(self) -> str:
        more = "".join(f" and {other.encoder!r}" for other in self.others)
        return f"DocumentModel({self.encoder!r}{more}: {', '.join(self.labels)})"

    def rows_of(self, examples: Sequence[Example]) -> tuple[Sequence[Any], Callable[..., list[Any]]]:
        """Return the rows of examples, and the function that computes their scores."""
        members = [self, *self.others]
        rows = [document_rows(model.family, model.config, model.encoder.vocabulary, examples) for model in members]

        def compute(*, batch_size: int, progress: bool | BarPart) -> list[Any]:
            # A part of a bar counts texts, not the texts of each member.
            shown = [progress, *[progress if isinstance(progress, bool) else False] * len(self.others)]
            scores = [
                document_scores(model.family, model.config, model.params, model_rows, batch_size, progress=bar)
                for model, model_rows, bar in zip(members, rows, shown)
            ]
            return scores[0] if len(scores) == 1 else [mean_scores(label_scores) for label_scores in zip(*scores)]

        return rows[0], compute

    def predictions(
        self, examples: Sequence[Example], rows: Sequence[Any], scores: Sequence[Any], options: AnswerOptions
    ) -> list[Prediction]:
        """Return the predictions from the scores of rows."""
        return [make_label(self.task, label_scores) for label_scores in scores]


def document_rows(family: Family, config: Any, vocabulary: Any, examples: Sequence[Any]) -> list[Any]:
    """Return the rows of examples, without labels."""
    assert family.inputs.documents is not None
    read = functools.partial(family.inputs.documents.read, config, vocabulary)
    return make_document_rows(examples, read, (), labelled=False)


def document_scores(
    family: Family,
    config: Any,
    params: Mapping[str, Any],
    rows: Sequence[Any],
    batch_size: int,
    *,
    put: Callable[[Any], Any] = dict,
    progress: bool | BarPart = False,
) -> list[Float32[np.ndarray, "C"]]:
    """Return the scores of rows; the memory does not depend on their lengths."""
    reader = family.inputs.documents
    assert reader is not None

    def run(batch: Mapping[str, np.ndarray]) -> Float32[np.ndarray, "B C"]:
        words = batch["words"]
        return reader.classify(config, params, words.reshape(len(words), -1), batch["lengths"], words.shape[-1], put)

    make = functools.partial(collate_documents, part=PART, targets=False)
    return compute_outputs(run, rows, batch_size, make, in_parts=True, progress=progress)


def mean_scores(scores: Sequence[Float32[np.ndarray, "C"]]) -> Float32[np.ndarray, "C"]:
    """Return scores whose softmax is the mean of the softmax of each.

    >>> [round(p, 2) for p in softmax(mean_scores([*np.log(np.float32([[0.5, 0.5], [0.9, 0.1]]))])).tolist()]
    [0.7, 0.3]
    """
    mean = np.mean([softmax(np.asarray(one, np.float32)) for one in scores], axis=0)
    return np.log(np.maximum(mean, np.finfo(np.float32).tiny)).astype(np.float32)


def load_documents(family: Family, model: StoredModel, path: str | Path) -> DocumentModel:
    """Return the classifier of a run directory, with those that are averaged with it."""
    run, _ = checkpoint_of(Path(path).expanduser())
    averaged_with = []
    for name in model.average_with:
        if Path(name).name != name or name in ("", "..") or (run / name).is_symlink():
            raise ValueError(f"{run / 'model.json'}: average_with names {name!r}; expected a folder of this run")
        other = read_run_directory(run / name)
        if other.average_with:
            raise ValueError(f"{run / name / 'model.json'}: average_with may only be in {run / 'model.json'}")
        if other.task is None or model.task is None or other.task.labels != model.task.labels:
            raise ValueError(f"{run / name} has other labels than {run}: they do not belong together; copy it again")
        averaged_with.append(load_documents(family, other, run / name))
    encoder = family.inputs.make_encoder(family, model.config, model.params, model.tokenizer, str(path))
    encoder.check_words()
    assert model.task is not None
    return DocumentModel(encoder, family, model.task, averaged_with)
