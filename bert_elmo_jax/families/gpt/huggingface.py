"""GPT-2 and GPT-1 as Hugging Face transformers stores them: the names of their tensors."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from bert_elmo_jax.families.gpt.config import GptConfig
from bert_elmo_jax.families.gpt.json_fields import GPT1, GPT2, choose_file
from bert_elmo_jax.families.huggingface_weights import WeightFile
from bert_elmo_jax.files import read_json
from bert_elmo_jax.generation.file_rules import NOT_FOLLOWED, OF_TRANSLATORS, warn_of_ignored
from bert_elmo_jax.weights.parameter_tree import Report

CHOICE = {"choice": {"choice": "multiple_choice_head.summary"}}
GPT2_WEIGHTS = WeightFile(
    family="gpt",
    config_file=GPT2,
    prefix="transformer.",
    encoder={"norm": "ln_f"},
    tables={"embeddings/word": "wte", "embeddings/position": "wpe"},
    layers="h",
    layer={
        "attention/query": "attn.c_attn.query",
        "attention/key": "attn.c_attn.key",
        "attention/value": "attn.c_attn.value",
        "attention/output": "attn.c_proj",
        "attention/norm": "ln_1",
        "feed_forward/up": "mlp.c_fc",
        "feed_forward/down": "mlp.c_proj",
        "feed_forward/norm": "ln_2",
    },
    heads=CHOICE | {"classify": {"classify": "score"}, "tag": {"tag": "classifier"}, "span": {"span": "qa_outputs"}},
    decoder="lm_head",
    classifiers=(),  # every head has names of its own
    joined={"attn.c_attn": ("query", "key", "value")},
    turned=("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"),
    constants=(".attn.bias", ".attn.masked_bias", "position_ids"),
    bare=False,
)
GPT1_WEIGHTS = replace(
    GPT2_WEIGHTS,
    config_file=GPT1,
    encoder={},
    tables={"embeddings/word": "tokens_embed", "embeddings/position": "positions_embed"},
    heads=CHOICE | {"classify": {"classify": "score"}},
)


def read_config(folder: str | Path) -> GptConfig:
    """Return the configuration of a folder, from `config.json`.

    If `generation_config.json` names a piece that ends a text, it replaces the one of `config.json`. A GPT has one such
    piece, so several are logged and not used, and so are the other fields about writing.
    """
    folder = Path(folder)
    config: GptConfig = _of_folder(folder).read_config(folder)
    path = folder / "generation_config.json"
    generation = read_json(path, default={})
    warn_of_ignored(generation, path, {**NOT_FOLLOWED, **OF_TRANSLATORS})
    end = generation.get("eos_token_id")
    if isinstance(end, list) and len(end) == 1:
        [end] = end
    if isinstance(end, list) and end:
        logging.getLogger(__name__).warning(
            "%s has several pieces that end a text, eos_token_id=%.80r, and `generate` stops at %s only: give it ends=",
            path, end, config.end_id,
        )  # fmt: skip
    if isinstance(end, int) and 0 <= end < config.vocab_size:
        return replace(config, end_id=end)
    return config


def read_weights(
    folder: str | Path, *, config: Any = None, classifier: str | None = None
) -> tuple[dict[str, Any], Report]:
    """Return the parameter tree of a folder and a report on every tensor; raise if the decoder is not tied."""
    folder = Path(folder)
    config = config or read_config(folder)
    params, report = weight_file(config).read_weights(folder, config=config, classifier=classifier)
    untied = [name for name, why in report.skipped.items() if "differs from its tied tensor" in why]
    if untied:
        raise ValueError(
            f"{report.source}: {untied[0]} differs from the word embeddings, but a GPT scores pieces by its word "
            "embeddings alone (tie_word_embeddings); models with a decoder of their own are not supported"
        )
    return params, report


def write(folder: str | Path, params: Mapping[str, Any], config: GptConfig, **more: Any) -> None:
    """Write a folder that transformers can load; see `WeightFile.write`."""
    weight_file(config).write(folder, params, config, **more)


def _of_folder(folder: Path) -> WeightFile:
    path = folder / "config.json"
    return GPT1_WEIGHTS if path.is_file() and choose_file(path) is GPT1 else GPT2_WEIGHTS


def weight_file(config: GptConfig) -> WeightFile:
    """Return the names of the tensors of a GPT-2 or a GPT-1."""
    return GPT2_WEIGHTS if config.norm_first else GPT1_WEIGHTS
