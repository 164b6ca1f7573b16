"""The weight formats of BERT, and how their files are found."""

from pathlib import Path

from bert_elmo_jax.families.family import WeightFormat
from bert_elmo_jax.families.huggingface_format import CLASSIFIERS, huggingface_format
from bert_elmo_jax.lazy_imports import lazy_function

GOOGLE = "bert_elmo_jax.families.bert.google"
OTHERS = "hparams.json"  # is in the folder of checkpoints of models other than BERT


def is_prefix(path: Path) -> bool:
    """Return True for the prefix of a checkpoint, unless an `hparams.json` in its folder shows another family."""
    from bert_elmo_jax.weights.sorted_table import is_table

    if (path.parent / OTHERS).is_file():
        return False
    return path.with_name(path.name.removesuffix(".index") + ".index").is_file() or is_table(path)


def find_files(folder: Path) -> list[str]:
    """Return the names of a folder's checkpoints; [] if they are another family's."""
    return [] if (folder / OTHERS).is_file() else sorted(index.name for index in folder.glob("*.index"))


FORMATS = {
    "huggingface": huggingface_format("bert_elmo_jax.families.bert.huggingface", "bert", ""),
    "google": WeightFormat(
        owner="Google",
        looks_like="a TensorFlow checkpoint, *.index",
        files=find_files,
        read_config=lazy_function(GOOGLE, "read_config"),
        read_weights=lazy_function(GOOGLE, "read_weights"),
        classifiers=CLASSIFIERS,
        is_file=is_prefix,
    ),
}
