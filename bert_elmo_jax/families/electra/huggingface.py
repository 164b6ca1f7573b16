"""ELECTRA as Hugging Face transformers stores it: the names of its tensors, and a generator in its own folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bert_elmo_jax.families.electra.config import FILE, ElectraConfig
from bert_elmo_jax.families.huggingface_weights import WeightFile

WEIGHTS = WeightFile(
    family="electra",
    config_file=FILE,
    prefix="electra.",
    encoder={"embeddings/norm": "embeddings.LayerNorm", "project": "embeddings_project"},
    tables={
        "embeddings/word": "embeddings.word_embeddings",
        "embeddings/position": "embeddings.position_embeddings",
        "embeddings/type": "embeddings.token_type_embeddings",
    },
    layers="encoder.layer",
    layer={
        "attention/query": "attention.self.query",
        "attention/key": "attention.self.key",
        "attention/value": "attention.self.value",
        "attention/output": "attention.output.dense",
        "attention/norm": "attention.output.LayerNorm",
        "feed_forward/up": "intermediate.dense",
        "feed_forward/down": "output.dense",
        "feed_forward/norm": "output.LayerNorm",
    },
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
read_config, read_weights = WEIGHTS.read_config, WEIGHTS.read_weights


def write(folder: str | Path, params: Mapping[str, Any], config: ElectraConfig, **known: Any) -> None:
    """Write a folder that transformers can load; see `WeightFile.write`.

    The generator that a discriminator was pretrained with is written, too, to the folder `generator` in it.
    """
    WEIGHTS.write(folder, {name: part for name, part in params.items() if name != "generator"}, config, **known)
    if "generator" in params:
        from bert_elmo_jax.families.electra.model import take_generator

        own, generator = take_generator(config, params)
        files = {name: known[name] for name in ("vocab", "tokenizer") if name in known}
        WEIGHTS.write(Path(folder) / "generator", generator, own, **files)
