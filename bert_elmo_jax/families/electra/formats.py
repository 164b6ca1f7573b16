"""ELECTRA as Hugging Face transformers stores it, with a generator in a folder of its own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bert_elmo_jax.families.huggingface_config import USUAL_FIELDS, ConfigFile, class_names
from bert_elmo_jax.families.huggingface_weights import WeightFile
from bert_elmo_jax.families.replaced import take_generator


def _add_generator(values: dict[str, Any]) -> dict[str, Any]:
    """Add the generator's size, which no file has: the paper's for a discriminator of this width."""
    return values | {"generator_size": 1 / 3 if values.get("hidden_size") == 768 else 1 / 4}


FILE = ConfigFile(
    called="an ELECTRA",
    model_type="electra",
    names=USUAL_FIELDS | {"embedding_size": "embedding_size"},
    architectures=class_names("Electra", replaced="ForPreTraining"),
    # The first layer of the head for multiple choice.
    only={"summary_type": "first", "summary_use_proj": True, "summary_activation": "gelu"},
    harmless=frozenset({"summary_last_dropout", "summary_first_dropout"}),  # our heads have one rate of dropout
    written={"summary_type": "first", "summary_use_proj": True, "summary_activation": "gelu"},
    to_ours=_add_generator,
)
WEIGHTS = WeightFile(
    family="electra",
    config_file=FILE,
    prefix="electra.",
    encoder={"embeddings/norm": "embeddings.LayerNorm", "project": "embeddings_project"},
    heads={
        "mlm": {"mlm/dense": "generator_predictions.dense", "mlm/norm": "generator_predictions.LayerNorm"},
        "replaced": {
            "replaced/dense": "discriminator_predictions.dense",
            "replaced/out": "discriminator_predictions.dense_prediction",
        },
        "span": {"span": "qa_outputs"},
        "classify": {"encoder/pooler": "classifier.dense", "classify": "classifier.out_proj"},
        "choice": {"encoder/pooler": "sequence_summary.summary", "choice": "classifier"},
        "tag": {"tag": "classifier"},
    },
    biases={"mlm/bias": "generator_lm_head.bias"},
    decoder="generator_lm_head",
)


def write(folder: str | Path, params: Mapping[str, Any], config: Any, **options: Any) -> None:
    """Write a folder that transformers can load; see `WeightFile.write`.

    The generator that a discriminator was pretrained with is written, too, to the folder `generator` in it.
    """
    WEIGHTS.write(folder, {name: part for name, part in params.items() if name != "generator"}, config, **options)
    if "generator" in params:
        generator_config, generator = take_generator(config, params)
        WEIGHTS.write(Path(folder) / "generator", generator, generator_config)


FORMATS = {"huggingface": WEIGHTS.format()._replace(write=write)}
