"""ELMo's entry in the registry."""

from jax.sharding import PartitionSpec as P

from bert_elmo_jax.families.elmo.config import PRESETS, ElmoConfig
from bert_elmo_jax.families.elmo.formats import FORMATS
from bert_elmo_jax.families.elmo.model import Elmo, init_elmo_params
from bert_elmo_jax.families.family import Family, Head
from bert_elmo_jax.families.words import Words
from bert_elmo_jax.lazy_imports import lazy_function

FAMILY = Family(
    name="elmo",
    called="an ELMo",
    config=ElmoConfig,
    module=Elmo,
    inputs=Words(
        vocab_size=793_471,
        encoder=lazy_function("bert_elmo_jax.families.elmo.encoder", "ElmoEncoder"),
        # Characters need no vocabulary, unless a head predicts words.
        reads_vocabulary=lambda config, heads: config.input == "words" or "lm" in heads,
        directions=lambda config: {"forward": (0, config.width), "backward": (config.width, 2 * config.width)},
    ),
    objectives={"bilm": lazy_function("bert_elmo_jax.families.elmo.objective", "bilm_objective")},
    heads={"lm": Head()},  # both directions share one softmax, made by init
    formats=FORMATS,
    sharding=(
        (r"(forward|backward)/layer_\d+/input_kernel$", P("fsdp", "tensor")),
        # Not over fsdp: without a projection, XLA (of JAX 0.10 and 0.12) would compute wrong gradients in the loop.
        (r"(forward|backward)/layer_\d+/state_kernel$", P(None, "tensor")),
        (r"(forward|backward)/layer_\d+/bias$", P("tensor")),
        (r"(forward|backward)/layer_\d+/projection$", P("tensor", "fsdp")),
        (r"highway_\d+/(carry|transform)/kernel$", P("fsdp", "tensor")),
        (r"lm/embedding$", P("tensor", "fsdp")),
        (r"lm/bias$", P("tensor")),
        (r"carry/(cell|hidden)$", P(None, None, ("data", "fsdp"))),
    ),
    presets=PRESETS,
    init=lambda config, key, heads: init_elmo_params(config, key, lm="lm" in heads),
)
