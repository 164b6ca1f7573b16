"""CoVe's entry in the registry."""

from jax.sharding import PartitionSpec as P

from bert_elmo_jax.families.cove.config import PRESETS, CoveConfig
from bert_elmo_jax.families.cove.decoder import init_cove_params
from bert_elmo_jax.families.cove.formats import FORMATS
from bert_elmo_jax.families.cove.model import Cove
from bert_elmo_jax.families.family import Family, Head
from bert_elmo_jax.families.words import Words
from bert_elmo_jax.lazy_imports import lazy_function

FAMILY = Family(
    name="cove",
    called="a CoVe",
    config=CoveConfig,
    module=Cove,
    inputs=Words(
        vocab_size=50_000,
        encoder=lazy_function("bert_elmo_jax.families.cove.encoder", "CoveEncoder"),
        special_ids=lambda words: {"bos_id": words.bos_id, "eos_id": words.eos_id, "unk_id": words.unk_id},
        vectors=lambda config: config.vector_size if config.vocab_size is None else None,
    ),
    objectives={"translate": lazy_function("bert_elmo_jax.families.cove.objective", "translate_objective")},
    heads={"decoder": Head()},  # made by init
    formats=FORMATS,
    # The LSTMs are small, and every step of a loop would wait for the other devices.
    sharding=(
        (r"decoder/output/kernel$", P("fsdp", "tensor")),
        (r"decoder/output/bias$", P("tensor")),
        (r"decoder/embedding$|encoder/embeddings/word$", P("tensor", "fsdp")),
    ),
    presets=PRESETS,
    init=lambda config, key, heads: init_cove_params(config, key, decoder="decoder" in heads),
    decoder=lazy_function("bert_elmo_jax.families.cove.decoder", "cove_decoder"),
)
