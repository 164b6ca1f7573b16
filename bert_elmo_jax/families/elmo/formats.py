"""The weight format of ELMo."""

from pathlib import Path

from bert_elmo_jax.families.elmo.files import ENDINGS, elmo_files, named_options, named_weights
from bert_elmo_jax.families.family import WeightFormat
from bert_elmo_jax.lazy_imports import lazy_function

HDF5 = "bert_elmo_jax.families.elmo.hdf5_weights"


def _advice(folder: Path) -> str:
    names = [file.name for file in named_options(folder) + named_weights(folder)]
    files = ", ".join(names)
    return f"An ELMo needs both weights and options, found only {files}: add the other file." if names else ""


FORMATS = {
    "elmo": WeightFormat(
        owner="ELMo",
        looks_like=f"weights, *{' or *'.join(ENDINGS)}, and options.json",
        files=elmo_files,
        read_config=lazy_function(HDF5, "read_config"),
        read_weights=lazy_function(HDF5, "read_weights"),
        write=lazy_function(HDF5, "write"),
        is_file=lambda path: path.is_file() and path in named_weights(path.parent),
        advice=_advice,
    )
}
