"""ALBERT: Lan et al. 2019, https://arxiv.org/abs/1909.11942; the original: https://github.com/google-research/albert.

A BERT whose layers share their parameters, with narrow embeddings, pretrained on the order of two texts, too.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from bert_elmo_jax.families.albert.formats import FILE, FORMATS
from bert_elmo_jax.families.family import TRANSFORMER_SHARDING, Family, Head
from bert_elmo_jax.families.huggingface_config import MOST_LAYERS, ConfigFile
from bert_elmo_jax.families.piece_config import PieceConfig, placed
from bert_elmo_jax.families.piece_embeddings import Embeddings
from bert_elmo_jax.families.piece_module import PieceModule
from bert_elmo_jax.families.pieces import Pieces, piece_objectives
from bert_elmo_jax.nn import Dense, dropout
from bert_elmo_jax.nn.transformer import MaskedLM, NextSentence


@dataclass(frozen=True)
class AlbertConfig(PieceConfig):
    """The sizes of an ALBERT, whose layers are in `groups`; the first `num_layers / groups` use the first, and so on.

    >>> AlbertConfig(num_layers=12, groups=2, layers_per_group=3).layer_owners
    [0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5]
    """

    vocab_size: int = 30000
    embedding_size: int = placed(128, after="vocab_size")
    activation: str = "gelu_new"
    dropout: float = 0.0
    attention_dropout: float = 0.0
    classifier_dropout: float = 0.1
    type_vocab_size: int = placed(2, after="max_positions")
    norm_eps: float = placed(1e-12, after="activation")
    groups: int = placed(1, after="num_layers")
    layers_per_group: int = 1

    FILE: ClassVar[ConfigFile] = FILE
    PRESETS: ClassVar[dict[str, dict[str, Any]]] = {
        "base": {}, "large": {"num_layers": 24, "hidden_size": 1024, "num_heads": 16, "feed_forward_size": 4096},
        "xlarge": {"num_layers": 24, "hidden_size": 2048, "num_heads": 16, "feed_forward_size": 8192},
        "xxlarge": {"hidden_size": 4096, "num_heads": 64, "feed_forward_size": 16384},
    }  # fmt: skip

    def __post_init__(self, implementation: str | None) -> None:
        super().__post_init__(implementation)
        n, inner = self.num_layers, self.layers_per_group
        if n % inner or not self.groups * inner <= n <= MOST_LAYERS:
            raise ValueError(f"num_layers is {n}; it must be a multiple of layers_per_group ({inner}), from "
                             f"{self.groups * inner} (of {self.groups} groups) to {MOST_LAYERS}")  # fmt: skip

    @property
    def layer_owners(self) -> list[int]:
        """For each layer, the number of the one whose parameters it has."""
        inner, uses = self.layers_per_group, self.num_layers // self.layers_per_group
        return [int(n / (uses / self.groups)) * inner + k for n in range(uses) for k in range(inner)]


class Albert(PieceModule):
    """The encoder; see `PieceModule`. Layer 0 is the projected embeddings."""

    config: AlbertConfig

    def embed(self, tokens: Any, types: Any, positions: Any, key: Any) -> Any:
        """Return the sums of three narrow embeddings, normalised and projected."""
        c = self.config
        x = Embeddings(c, c.type_vocab_size, c.embedding_size, name="embeddings")(tokens, types, positions)
        return Dense(c.hidden_size, c.initializer_range, c.dtype, name="project")(dropout(x, c.dropout, key))


objectives = piece_objectives("albert", "sop", "nsp", "sentences", "documents")
heads = {"mlm": Head(MaskedLM), "nsp": Head(NextSentence, pooled=True)}
FAMILY = Family(
    name="albert", called="an ALBERT", config=AlbertConfig, module=Albert, inputs=Pieces(vocab_size=30_000),
    objectives=objectives, heads=heads, formats=FORMATS, sharding=TRANSFORMER_SHARDING, presets=AlbertConfig.PRESETS,
)  # fmt: skip
