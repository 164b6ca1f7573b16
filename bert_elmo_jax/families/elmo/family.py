"""ELMo's entry in the registry."""

from pathlib import Path

from jax.sharding import PartitionSpec as P

from bert_elmo_jax.families.elmo.config import PRESETS, ElmoConfig
from bert_elmo_jax.families.elmo.files import ENDINGS, elmo_files, named_options, named_weights
from bert_elmo_jax.families.elmo.model import Elmo, init_elmo_params
from bert_elmo_jax.families.family import Family, WeightFormat
from bert_elmo_jax.lazy_imports import lazy_function

HDF5 = "bert_elmo_jax.families.elmo.hdf5_weights"


def _advice(folder: Path) -> str:
    found = [file.name for file in named_options(folder) + named_weights(folder)]
    files = ", ".join(found)
    return f"An ELMo needs both weights and options, found only {files}: add the other file." if found else ""


FAMILY = Family(
    name="elmo",
    called="an ELMo",
    config=ElmoConfig,
    module=Elmo,
    inputs="words",
    objectives={"bilm": lazy_function("bert_elmo_jax.families.elmo.objective", "bilm_objective")},
    heads={"lm": None},  # both directions share one softmax, made by init
    formats={
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
    },
    encoder=lazy_function("bert_elmo_jax.families.elmo.encoder", "ElmoEncoder"),
    sharding=(
        (r"(forward|backward)/layer_\d+/(input|state)_kernel$", P("fsdp", "tensor")),
        (r"(forward|backward)/layer_\d+/bias$", P("tensor")),
        (r"(forward|backward)/layer_\d+/projection$", P("tensor", "fsdp")),
        (r"highway_\d+/(carry|transform)/kernel$", P("fsdp", "tensor")),
        (r"lm/embedding$", P("tensor", "fsdp")),
        (r"lm/bias$", P("tensor")),
        (r"carry/(cell|hidden)$", P(None, None, ("data", "fsdp"))),
    ),
    presets=PRESETS,
    vocab_size=793_471,
    init=lambda config, key, heads: init_elmo_params(config, key, lm="lm" in heads),
    # Characters need no vocabulary, unless a head predicts words.
    reads_vocabulary=lambda config, heads: config.input == "words" or "lm" in heads,
)
