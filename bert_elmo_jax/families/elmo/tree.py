"""The parameter tree of ELMo and its language-model head: the shape of every tensor."""

from bert_elmo_jax.families.elmo.config import ElmoConfig
from bert_elmo_jax.nn.char_cnn import NUM_IDS

DIRECTIONS = ("forward", "backward")


def elmo_shapes(config: ElmoConfig, lm: bool = False) -> dict[str, tuple[int, ...]]:
    """Return the shape of every tensor of an ELMo, by its path in the tree; `lm` says whether it has that head.

    >>> shapes = elmo_shapes(ElmoConfig.preset("original", vocab_size=793471), lm=True)
    >>> shapes["encoder/forward/layer_1/state_kernel"], shapes["encoder/token/conv_6/kernel"], shapes["lm/bias"]
    ((512, 16384), (7, 16, 1024), (793471,))
    """
    width, cells = config.width, config.cell_size
    shapes = _characters(config) if config.input == "characters" else _words(config)
    for direction in DIRECTIONS:
        for layer in range(config.num_layers):
            path = f"encoder/{direction}/layer_{layer}"
            shapes |= {f"{path}/{kernel}": (width, 4 * cells) for kernel in ("input_kernel", "state_kernel")}
            shapes[f"{path}/bias"] = (4 * cells,)
            if config.projection:
                shapes[f"{path}/projection"] = (cells, width)
    if lm:
        if config.vocab_size is None:
            raise ValueError(
                "the parameters have a head lm, but vocab_size is None: nothing says how many words it has"
            )
        if not config.tie_softmax:
            shapes["lm/embedding"] = (config.vocab_size, width)
        shapes["lm/bias"] = (config.vocab_size,)
    return shapes


def _words(config: ElmoConfig) -> dict[str, tuple[int, ...]]:
    assert config.vocab_size is not None  # the configuration has seen to it
    return {"encoder/token/embedding": (config.vocab_size, config.width)}


def _characters(config: ElmoConfig) -> dict[str, tuple[int, ...]]:
    filters, embedding = config.num_filters, config.char_embedding_size
    shapes: dict[str, tuple[int, ...]] = {"encoder/token/embedding": (NUM_IDS, embedding)}
    for n, (width, number) in enumerate(config.filters):
        shapes |= {f"encoder/token/conv_{n}/kernel": (width, embedding, number)}
        shapes |= {f"encoder/token/conv_{n}/bias": (number,)}
    for n in range(config.num_highways):
        for gate in ("carry", "transform"):
            shapes |= _dense(f"encoder/token/highway_{n}/{gate}", filters, filters)
    if config.token_projection:
        shapes |= _dense("encoder/token/projection", filters, config.width)
    return shapes


def _dense(path: str, inputs: int, outputs: int) -> dict[str, tuple[int, ...]]:
    return {f"{path}/kernel": (inputs, outputs), f"{path}/bias": (outputs,)}
