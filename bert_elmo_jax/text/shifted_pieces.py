"""SentencePiece models whose ids are shifted, as XLM-R numbers them, as the contents of a `tokenizer.json`.

Such a model begins with its own `<unk>`, `<s>`, `</s>`. The network numbers `<s>` 0, `<pad>` 1, `</s>` 2, `<unk>` 3,
then the model's pieces from the fourth on as 4, 5, …, and `<mask>` last.
"""

import base64
from typing import Any

from bert_elmo_jax.text.sentencepiece import read_sentencepiece
from bert_elmo_jax.text.tokenizer import SPACE_MARK

FIRST, LAST = ("<s>", "<pad>", "</s>", "<unk>"), "<mask>"


def spec_of_shifted_model(model: bytes, source: str) -> dict[str, Any]:
    """Return a SentencePiece model with shifted ids as the contents of a `tokenizer.json`."""
    from sentencepiece import sentencepiece_model_pb2

    read_sentencepiece(model, source)
    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    if proto.trainer_spec.model_type != proto.trainer_spec.UNIGRAM or len(proto.pieces) < len(FIRST):
        raise ValueError(
            f"{source} is not a unigram model of {len(FIRST)} or more pieces, which shifted ids (XLM-R) need"
        )
    vocabulary = [(name, 0.0) for name in FIRST] + [(piece.piece, piece.score) for piece in proto.pieces[3:]]
    marks = {"type": "Metaspace", "replacement": SPACE_MARK, "prepend_scheme": "always", "split": True}
    charsmap = base64.b64encode(proto.normalizer_spec.precompiled_charsmap).decode()
    return {
        "added_tokens": [],
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": charsmap} if charsmap else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, marks]},
        "post_processor": {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0]}
        | {"trim_offsets": False, "add_prefix_space": False},
        "decoder": marks,
        "model": {"type": "Unigram", "unk_id": 3, "vocab": [*vocabulary, (LAST, 0.0)], "byte_fallback": False},
    }
