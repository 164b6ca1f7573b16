"""DistilBERT: Sanh et al. 2019, https://arxiv.org/abs/1910.01108.

A BERT with half the layers and without types. The released models have no pooler either; their classifiers have two
layers, with a relu between them. The first is the pooler here.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from bert_elmo_jax.families.distilbert.formats import FILE, FORMATS
from bert_elmo_jax.families.family import TRANSFORMER_SHARDING, Family, Head
from bert_elmo_jax.families.huggingface_config import ConfigFile
from bert_elmo_jax.families.piece_config import PieceConfig, placed
from bert_elmo_jax.families.piece_embeddings import Embeddings, interleaved_sinusoids
from bert_elmo_jax.families.piece_module import PieceModule
from bert_elmo_jax.families.pieces import Pieces, piece_objectives
from bert_elmo_jax.nn import dropout
from bert_elmo_jax.nn.transformer import MaskedLM


@dataclass(frozen=True)
class DistilBertConfig(PieceConfig):
    """The sizes of a DistilBERT; `sinusoidal` initialises positions, which are trained like other parameters.

    >>> DistilBertConfig.preset("multilingual").vocab_size
    119547
    """

    num_layers: int = 6
    classifier_dropout: float = 0.2  # of all task heads
    sinusoidal: bool = placed(False, after="max_positions")

    FILE: ClassVar[ConfigFile] = FILE
    PRESETS: ClassVar[dict[str, dict[str, int]]] = {
        "base": {}, "cased": {"vocab_size": 28996}, "multilingual": {"vocab_size": 119547},
    }  # fmt: skip


class DistilBert(PieceModule):
    """The encoder; see `PieceModule`."""

    config: DistilBertConfig
    POOLER = "relu"

    def embed(self, tokens: Any, types: Any, positions: Any, key: Any) -> Any:
        """Return the sums of word and position embeddings, normalised."""
        init = interleaved_sinusoids if self.config.sinusoidal else None
        x = Embeddings(self.config, init_positions=init, name="embeddings")(tokens, None, positions)
        return dropout(x, self.config.dropout, key)


FAMILY = Family(
    name="distilbert",
    called="a DistilBERT",
    config=DistilBertConfig,
    module=DistilBert,
    inputs=Pieces(),
    objectives=piece_objectives("distilbert", "sentences", "documents"),
    heads={"mlm": Head(MaskedLM)},
    formats=FORMATS,
    sharding=TRANSFORMER_SHARDING,
    presets=DistilBertConfig.PRESETS,
)
