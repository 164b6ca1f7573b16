"""DeBERTa as Hugging Face transformers stores it: the names of its tensors."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from bert_elmo_jax.families.deberta.config import DebertaConfig
from bert_elmo_jax.families.deberta.json_fields import FILE
from bert_elmo_jax.families.huggingface_weights import USUAL_LAYER, USUAL_TABLES, WeightFile
from bert_elmo_jax.families.replaced import take_generator
from bert_elmo_jax.files import read_json
from bert_elmo_jax.weights.huggingface_files import read_folder
from bert_elmo_jax.weights.parameter_tree import Report

POOLER = {"encoder/pooler": "pooler.dense"}
# The names of the head of masked words: first the older ones, then the ones in the released files of version 3.
LEGACY = {"mlm/dense": "cls.predictions.transform.dense", "mlm/norm": "cls.predictions.transform.LayerNorm"}
LATER = {"mlm/dense": "lm_predictions.lm_head.dense", "mlm/norm": "lm_predictions.lm_head.LayerNorm"}
MODULES = {"query": "query_proj", "key": "key_proj", "value": "value_proj"}
MODULES |= {"position_key": "pos_key_proj", "position_query": "pos_query_proj"}
VERSION_2 = WeightFile(
    family="deberta",
    config_file=FILE,
    prefix="deberta.",
    encoder={
        "embeddings/project": "embeddings.embed_proj",
        "embeddings/norm": "embeddings.LayerNorm",
        "relative/norm": "encoder.LayerNorm",
        "layer_0/convolution": "encoder.conv.conv",
        "layer_0/convolution/norm": "encoder.conv.LayerNorm",
    },
    tables=USUAL_TABLES | {"relative/table": "encoder.rel_embeddings"},
    layer=USUAL_LAYER | {f"attention/{ours}": f"attention.self.{theirs}" for ours, theirs in MODULES.items()},
    heads={
        "mlm": LEGACY,
        "span": {"span": "qa_outputs"},
        "classify": POOLER | {"classify": "classifier"},
        "choice": POOLER | {"choice": "classifier"},
        "tag": {"tag": "classifier"},
    },
    biases={"mlm/bias": "cls.predictions.bias"},
    decoder="cls.predictions.decoder",
    unread={"mask_predictions.": "the head of replaced pieces of the released files, which reads other inputs"},
)
VERSION_1 = replace(
    VERSION_2,
    layer=dict(VERSION_2.layer)
    | {f"attention/{name}": f"attention.self.in_proj.{name}" for name in ("query", "key", "value")}
    | {"attention/position_key": "attention.self.pos_proj", "attention/position_query": "attention.self.pos_q_proj"},
    joined={"attention.self.in_proj": ("query", "key", "value")},
    by_head=True,
    renamed={
        "attention.self.q_bias": "attention.self.in_proj.query.bias",
        "attention.self.v_bias": "attention.self.in_proj.value.bias",
    },
)


def weight_file(config: DebertaConfig, legacy: bool | None = None) -> WeightFile:
    """Return the names of the tensors of a configuration; `legacy` replaces its names of the head of masked words."""
    file = VERSION_1 if config.model_type == "deberta" else VERSION_2
    if not config.absolute_positions:
        tables = {"deberta.embeddings.position_embeddings.": "position_biased_input is false"}
        file = replace(file, unread={**file.unread, **tables})
    if config.legacy if legacy is None else legacy:
        return file
    bias, decoder = "lm_predictions.lm_head.bias", "lm_predictions.lm_head.decoder"
    return replace(file, heads={**file.heads, "mlm": LATER}, biases={"mlm/bias": bias}, decoder=decoder)


def read_config(folder: str | Path) -> DebertaConfig:
    """Return the configuration of a folder, from its `config.json`."""
    config: DebertaConfig = VERSION_2.read_config(folder)
    return config


def read_weights(
    folder: str | Path, *, config: Any = None, classifier: str | None = None
) -> tuple[dict[str, Any], Report]:
    """Return the parameter tree of a folder and a report on every tensor.

    The names in the file decide where released folders lack fields: `legacy`, which names the head of masked words, and
    `architectures`, which tells a classifier of texts, with a pooler, from one of pieces.
    """
    config = config or read_config(folder)
    names = read_folder(Path(folder))[1]
    legacy = not any("lm_predictions." in name for name in names)
    if classifier is None and not read_json(Path(folder) / "config.json", default={}).get("architectures"):
        classifier = "classify" if any(name.endswith("pooler.dense.weight") for name in names) else "tag"
    return weight_file(config, legacy).read_weights(folder, config=config, classifier=classifier)


def write(folder: str | Path, params: Mapping[str, Any], config: DebertaConfig, **options: Any) -> None:
    """Write a folder that transformers can load; see `WeightFile.write`.

    The two tables of a discriminator's word embeddings are added up. Its generator is written, too, to the folder
    `generator` in it; transformers has no class for its head, which is left out.
    """
    if config.model_type == "deberta" and "choice" in params:
        raise ValueError(
            "transformers has no DeBERTa of version 1 with the head choice: leave it out, or use version 2"
        )
    if "generator" in params:
        generator_config, generator = take_generator(config, params)
        weight_file(generator_config).write(Path(folder) / "generator", generator, generator_config)
    tree = {name: part for name, part in params.items() if name not in ("generator", "replaced")}
    if config.embedding_difference:
        tables = dict(tree["encoder"]["embeddings"])
        tables["word"] = tables["word"] + tables.pop("difference")
        tree["encoder"] = {**tree["encoder"], "embeddings": tables}
        config = replace(config, embedding_difference=False)
    weight_file(config).write(folder, tree, config, **options)
