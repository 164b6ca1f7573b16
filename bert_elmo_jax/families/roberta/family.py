"""RoBERTa: Liu et al. 2019, https://arxiv.org/abs/1907.11692; XLM-R: https://arxiv.org/abs/1911.02116.

A BERT that differs in its embeddings: positions are numbered from `pad_id` + 1, and there is one type. The original is
https://github.com/facebookresearch/fairseq/tree/main/examples/roberta.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from bert_elmo_jax.families.family import TRANSFORMER_SHARDING, Family, Head
from bert_elmo_jax.families.huggingface_config import ConfigFile
from bert_elmo_jax.families.piece_config import PieceConfig, placed
from bert_elmo_jax.families.piece_embeddings import Embeddings, count_pieces
from bert_elmo_jax.families.piece_module import PieceModule
from bert_elmo_jax.families.pieces import Pieces, piece_objectives
from bert_elmo_jax.families.roberta.formats import FILE, FORMATS
from bert_elmo_jax.nn import dropout
from bert_elmo_jax.nn.transformer import MaskedLM

LARGE = {"num_layers": 24, "hidden_size": 1024, "num_heads": 16, "feed_forward_size": 4096}
KLUE, XLMR = {"vocab_size": 32000}, {"vocab_size": 250002, "model_type": "xlm-roberta"}


@dataclass(frozen=True)
class RobertaConfig(PieceConfig):
    """The sizes of a RoBERTa. The mathematics is the same for each `model_type`, its name in `config.json`.

    `max_positions` is the longest text: the `max_position_embeddings` of released models, 514, count `pad_id` + 1 more.

    >>> RobertaConfig.preset("klue-base").vocab_size, RobertaConfig.preset("xlmr-large").num_layers
    (32000, 24)
    >>> RobertaConfig().to_huggingface()["max_position_embeddings"]
    514
    """

    vocab_size: int = 50265
    pad_id: int = 1
    model_type: Literal["roberta", "xlm-roberta", "camembert"] = "roberta"
    type_vocab_size: int = placed(1, after="max_positions")
    norm_eps: float = placed(1e-5, after="activation")

    FILE: ClassVar[ConfigFile] = FILE
    PRESETS: ClassVar[dict[str, dict[str, Any]]] = {
        "base": {}, "large": LARGE, "klue-small": KLUE | {"num_layers": 6}, "klue-base": KLUE, "xlmr-base": XLMR,
        "klue-large": KLUE | LARGE, "xlmr-large": XLMR | LARGE,
    }  # fmt: skip


class Roberta(PieceModule):
    """The encoder; see `PieceModule`. Without `positions`, pieces other than `pad_id` are counted from 0."""

    config: RobertaConfig

    def count_positions(self, tokens: Any) -> Any:
        """Return the positions of rows, which may be padded on the left."""
        return count_pieces(tokens, self.config.pad_id)

    def embed(self, tokens: Any, types: Any, positions: Any, key: Any) -> Any:
        """Return the sums of three embeddings, normalised; a model of one type ignores `types`."""
        c = self.config
        embeddings = Embeddings(c, c.type_vocab_size, first=c.pad_id + 1, name="embeddings")
        x = embeddings(tokens, types if c.type_vocab_size > 1 else None, positions)
        return dropout(x, c.dropout, key)


FAMILY = Family(
    name="roberta",
    called="a RoBERTa",
    config=RobertaConfig,
    module=Roberta,
    inputs=Pieces(vocab_size=50_265),
    objectives=piece_objectives("roberta", "sentences", "documents"),
    heads={"mlm": Head(lambda config: MaskedLM(config, "gelu"))},  # even if the layers have another activation
    formats=FORMATS,
    sharding=TRANSFORMER_SHARDING,
    presets=RobertaConfig.PRESETS,
)
