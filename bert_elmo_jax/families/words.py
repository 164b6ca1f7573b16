"""Families that read words: the vocabulary or the vectors of a folder, batches with tables of words, the next steps."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from bert_elmo_jax.families.family import Family, Inputs, Shapes
from bert_elmo_jax.families.init_params import param_shapes
from bert_elmo_jax.families.pieces import TASK, TASK_TITLE, check_heads, vector_steps
from bert_elmo_jax.programs import show_program
from bert_elmo_jax.text import WordTable, WordVocabulary, load_tokenizer


@dataclass(frozen=True, kw_only=True)
class Words(Inputs):
    """Texts are read as words, and task networks read the encoder's layers."""

    name: ClassVar[str] = "words"
    tokenizers: ClassVar[str] = "words"
    toy_tokenizer: ClassVar[str] = "words"
    takes_heads: ClassVar[bool] = False
    adapts: ClassVar[bool] = True
    folds_case: ClassVar[bool] = False

    # The width of word vectors that are stored in a file of their own, not as parameters; None if it needs none.
    vectors: Callable[[Any], int | None] = lambda config: None
    reads_pieces: bool = False  # the words may be the pieces of a tokenizer
    # Finds the vocabulary of a folder; None: a `WordVocabulary`.
    find_vocabulary: Callable[[Path], Any] | None = None

    def find_tokenizer(self, family: Family, folder: Path, config: Any, lowercase: bool | None) -> Any:
        """Return the vocabulary of a folder, the table of its word vectors, or None."""
        if (width := self.vectors(config)) is not None:
            return _find_table(folder, width, family.called)
        if self.find_vocabulary is None:
            return _find_words(folder, config.vocab_size)
        vocabulary = self.find_vocabulary(folder)
        if vocabulary is not None:
            _check_size(f"the vocabulary in {folder}", vocabulary.vocab_size, config.vocab_size)
        return vocabulary

    def load_corpus_tokenizer(self, corpus: Path, kind: str) -> Any:
        """Return the vocabulary of a prepared corpus, or its tokenizer if the words may be pieces."""
        if kind == "words":
            return WordVocabulary.load(corpus / "tokenizer")
        if not self.reads_pieces:
            raise self.wrong_corpus(corpus, kind)
        return load_tokenizer(corpus / "tokenizer")

    def begin_from(
        self, params: Mapping[str, Any], tokenizer: Any, same: bool
    ) -> tuple[Mapping[str, Any], dict[str, Any]]:
        """Return the encoder alone for data with other words, which the softmax does not have."""
        return params if same else {"encoder": params["encoder"]}, {"vocab_size": tokenizer.vocab_size}

    def needs_same_vocabulary(self, stored: Any) -> bool:
        """Return True: the ids of words differ in every corpus."""
        return True

    def split(self, devices: int) -> dict[str, int]:
        """Return the number of parts of a batch: each device has a table of the distinct words of its rows."""
        return {"shards": devices}

    def join_phases(self, phases: Sequence[tuple[int, Any]]) -> Any:
        """Return the batches of the only phase."""
        [(_, batches)] = phases
        return batches

    def shapes(self, family: Family, config: Any, fields: Mapping[str, Any], source: str) -> Shapes:
        """Return the shapes of the encoder and of its pretraining heads."""
        check_heads(fields["heads"], list(family.heads), source)
        return param_shapes(family, config, fields["heads"])

    def next_steps(self, run: Path) -> list[tuple[str, str]]:
        """Return the use of the vectors, a look at neighbours, and the training of a task network."""
        path = shlex.quote(str(run))
        finetune = f"""{show_program("finetune")} --config=bcn --config.encoder={path} \\
    --task=classification {TASK} --workdir={path}_reviews"""
        return [*vector_steps(run), (TASK_TITLE, finetune)]


def _find_table(folder: Path, width: int, called: str) -> WordTable | None:
    table = WordTable.find(folder, width)
    if table is not None and table.width != width:
        raise ValueError(
            f"{table.source} has vectors of {table.width} numbers, {called} here reads {width}: they do not belong "
            "together"
        )
    return table


def _find_words(folder: Path, vocab_size: int | None) -> WordVocabulary | None:
    files = [folder / "words.txt"] if (folder / "words.txt").is_file() else sorted(folder.glob("vocab*.txt"))
    if not files:
        return None
    if len(files) > 1:
        raise ValueError(
            f"{folder} holds {len(files)} word vocabularies: {', '.join(file.name for file in files)}. Call the one "
            "of this model words.txt."
        )
    vocabulary = WordVocabulary.load(files[0])
    if vocab_size is not None:
        _check_size(str(files[0]), len(vocabulary), vocab_size)
    return vocabulary


def _check_size(source: str, words: int, vocab_size: int) -> None:
    if words != vocab_size:
        raise ValueError(f"{source} has {words} words, the model {vocab_size}: they do not belong together")
