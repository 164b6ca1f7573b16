"""The weight formats of GPT, and how OpenAI's files are found."""

from pathlib import Path

from bert_elmo_jax.families.family import WeightFormat
from bert_elmo_jax.families.huggingface_format import huggingface_format
from bert_elmo_jax.lazy_imports import lazy_function

OPENAI = "bert_elmo_jax.families.gpt.openai"
SIZES = "hparams.json"
SHAPES = "params_shapes.json"


def find_files(folder: Path) -> list[str]:
    """Return the names of the files of a released model in a folder; [] if there is none."""
    if (folder / SHAPES).is_file():
        return [SHAPES]
    return sorted(index.name for index in folder.glob("*.index")) if (folder / SIZES).is_file() else []


def is_prefix(path: Path) -> bool:
    """Return True for the prefix of a GPT-2's checkpoint, in a folder with `hparams.json`."""
    from bert_elmo_jax.weights.sorted_table import is_table

    index = path.with_name(path.name.removesuffix(".index") + ".index")
    return (path.parent / SIZES).is_file() and (index.is_file() or is_table(path))


FORMATS = {
    "huggingface": huggingface_format(
        "bert_elmo_jax.families.gpt.huggingface", "gpt2", "openai-gpt", classifiers=()
    )._replace(names=lazy_function("bert_elmo_jax.families.gpt.huggingface", "weight_file")),
    "openai": WeightFormat(
        owner="OpenAI",
        looks_like="hparams.json with *.index, or params_shapes.json",
        files=find_files,
        read_config=lazy_function(OPENAI, "read_config"),
        read_weights=lazy_function(OPENAI, "read_weights"),
        is_file=is_prefix,
    ),
}
