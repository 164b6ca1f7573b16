"""Families that read pieces: the tokenizer of a folder, the heads in `model.json`, the next steps of a run."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from ml_collections import ConfigDict

from bert_elmo_jax.families.family import Family, Inputs, ModelFields, Objective, Shapes
from bert_elmo_jax.families.init_params import SIZES, param_shapes
from bert_elmo_jax.heads.features import Features
from bert_elmo_jax.programs import show_program
from bert_elmo_jax.text import Tokenizer, load_tokenizer
from bert_elmo_jax.text.tokenizer_folder import BPE_PAIRS
from bert_elmo_jax.weights.parameter_tree import part

CLASSES = ("classify", "tag")  # heads whose size depends on the task
TASK = "--train=my.csv --dev=0.1 --text=review --label=stars"


class Pieces(Inputs):
    """Texts are read as the pieces of a tokenizer, and task heads read the encoder."""

    name: ClassVar[str] = "pieces"
    tokenizers: ClassVar[str] = "wordpiece or sentencepiece"
    toy_tokenizer: ClassVar[str] = "wordpiece"
    takes_heads: ClassVar[bool] = True
    adapts: ClassVar[bool] = False
    folds_case: ClassVar[bool] = True

    def find_tokenizer(self, family: Family, folder: Path, config: Any, lowercase: bool | None) -> Tokenizer | None:
        """Return the tokenizer of a folder, or None; raise if it pads with another piece than the model."""
        names = ("vocab.txt", *(name for pair in BPE_PAIRS for name in pair), "tokenizer.json", "*.model", "*.spm")
        if not any(any(folder.glob(name)) for name in names):
            return None
        tokenizer = load_tokenizer(folder, lowercase=lowercase)
        pad = getattr(config, "pad_id", tokenizer.pad_id)
        # A generative tokenizer has no pad piece of its own, and the config.json of a generative model may name none:
        # the piece that ends a text is then read as its pad.
        unnamed = family.causal(config) and pad == getattr(config, "end_id", None)
        if tokenizer.pad_id not in (pad, tokenizer.sep_id) and not unnamed:
            raise ValueError(
                f"{folder}: the pad piece of the tokenizer is {tokenizer.tokens[tokenizer.pad_id]!r} with the id "
                f"{tokenizer.pad_id}, that of the model has the id {pad}: they do not belong together. Copy the "
                "tokenizer of this model there, or correct pad_token_id in config.json."
            )
        return tokenizer

    def load_corpus_tokenizer(self, corpus: Path, kind: str) -> Tokenizer:
        """Return the tokenizer of a prepared corpus."""
        if kind == "words":
            raise self.wrong_corpus(corpus, kind)
        return load_tokenizer(corpus / "tokenizer")

    def make_encoder(self, family: Family, config: Any, params: Mapping[str, Any], tokenizer: Any, source: str) -> Any:
        """Return the family's encoder, or a `PieceEncoder`."""
        if self.encoder is not None:
            return super().make_encoder(family, config, params, tokenizer, source)
        from bert_elmo_jax.families.piece_encoder import PieceEncoder

        return PieceEncoder(family, config, params, tokenizer, source)

    def model_fields(self) -> ModelFields:
        """Return the fields of the pooler, the heads and their task."""
        return ModelFields(
            {
                "pooler": "true or false",
                "classes": "an object of whole numbers",  # the sizes of the heads in CLASSES
                "labels": "a list of strings or null",
                "problem_type": "a string or null",
            },
            {"task": "an object", "features": "an object or null", "sentences": "an object", "lora": "an object"},
        )

    def describe(self, shapes: Shapes) -> dict[str, Any]:
        """Return whether there is a pooler, and the sizes of the heads in CLASSES."""
        return {
            "pooler": any(part(name) == "pooler" for name in shapes),
            "classes": {head: shapes[f"{head}/kernel"][1] for head in CLASSES if shapes.get(f"{head}/kernel")},
        }

    def shapes(self, family: Family, config: Any, fields: Mapping[str, Any], source: str) -> Shapes:
        """Return the shapes of the encoder, of its heads, and of the layers of a sentence model."""
        features = read_features(fields.get("features"), source)
        sentences: Shapes = {}
        if "sentences" in fields:
            from bert_elmo_jax.families.sentence_files import head_from_json

            sentences = head_from_json(fields["sentences"], source).shapes()
        reader = [] if features is None else ["reader"]
        check_heads(fields["heads"], [*family.heads, *CLASSES, *SIZES, *reader, *map(part, sentences)], source)
        for head in fields["heads"]:
            if head in CLASSES and head not in fields["classes"]:
                raise ValueError(f"{source}: the field classes lacks the number of classes of the head {head!r}")
        pooler, outputs = fields["pooler"], fields["classes"]
        shapes = param_shapes(family, config, fields["heads"], pooler=pooler, outputs=outputs, features=features)
        return shapes | sentences

    def next_steps(self, run: Path) -> list[tuple[str, str]]:
        """Return the use of the vectors, a look at neighbours, and a fine-tuning."""
        path = shlex.quote(str(run))
        finetune = f"--task=classification {TASK} \\\n    --init={path} --workdir={path}_reviews"
        return [*vector_steps(run), (TASK_TITLE, f"{show_program('finetune')} {finetune}")]


def piece_objectives(family: str, *rows: str) -> dict[str, Callable[[ConfigDict, Any], Objective]]:
    """Return the objectives of masked pieces on these kinds of rows; nsp and sop read pairs."""

    def make(name: str, config: ConfigDict, model: Any) -> Objective:
        from bert_elmo_jax.families import get_family, piece_objective

        return piece_objective.piece_objective(get_family(family), config, model, name in ("nsp", "sop"))

    return {name: partial(make, name) for name in rows}


TASK_TITLE = "A task of your own: a table with a column of texts and one of labels"


def vector_steps(run: Path) -> list[tuple[str, str]]:
    """Return the next steps for the vectors of any encoder."""
    load = f"""from bert_elmo_jax import load
encoding = load({str(run)!r}).encode(["강가의 은행", "the bank of the river"])"""
    neighbours = f"""{show_program("probe")} --what=neighbours --model={shlex.quote(str(run))} --train=texts.txt \
--words=bank,은행 \\
    --output=analysis"""
    return [("Its vectors, in Python", load), ("Other uses of a word in your texts with a similar meaning", neighbours)]


def check_heads(heads: Sequence[str], allowed: Sequence[str], source: str) -> None:
    """Raise if `model.json` names a head that a model of its family cannot have."""
    for head in heads:
        if head not in allowed:
            raise ValueError(f"{source}: no head {head!r} is known; there are {', '.join(allowed)}")


def read_features(fields: Mapping[str, Any] | None, source: str) -> Features | None:
    """Return the features that a task's head reads, from `model.json`; None if it reads the last layer."""
    if fields is None:
        return None
    try:
        return Features(**{**fields, "layers": tuple(fields.get("layers", ()))})
    except (TypeError, ValueError) as error:
        raise ValueError(f"{source}: features: {error}; copy it again from the run") from error
