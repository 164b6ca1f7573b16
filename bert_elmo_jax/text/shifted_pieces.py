"""SentencePiece models whose ids are shifted, as XLM-R numbers them, as the contents of a `tokenizer.json`.

Such a model begins with its own `<unk>`, `<s>`, `</s>`. The network numbers `<s>` 0, `<pad>` 1, `</s>` 2, `<unk>` 3,
then the model's pieces from the fourth on as 4, 5, …, and `<mask>` last.
"""

import base64
from pathlib import Path
from typing import Any

from bert_elmo_jax.files import read_json

FIRST, LAST = ("<s>", "<pad>", "</s>", "<unk>"), "<mask>"
CLASSES = ("XLMRobertaTokenizer", "XLMRobertaTokenizerFast")
WHOLE_CLASSES = ("PreTrainedTokenizerFast", "TokenizersBackend")  # classes that read only tokenizer.json
MODEL_TYPES = ("xlm-roberta", "xlm-roberta-xl")


def is_shifted(folder: Path) -> bool:
    """Return True if a folder says that its SentencePiece model has shifted ids."""
    named = read_json(folder / "tokenizer_config.json", default={}).get("tokenizer_class")
    if named is not None:
        return named in CLASSES
    return read_json(folder / "config.json", default={}).get("model_type") in MODEL_TYPES


def prefers_file(folder: Path) -> bool:
    """Return True if the model of a folder is read through a `tokenizer.json`, real or made from a shifted model."""
    named = read_json(folder / "tokenizer_config.json", default={}).get("tokenizer_class")
    return is_shifted(folder) or (named in WHOLE_CLASSES and (folder / "tokenizer.json").is_file())


def spec_of_shifted_model(model: bytes, source: str) -> dict[str, Any]:
    """Return a SentencePiece model with shifted ids as the contents of a `tokenizer.json`."""
    from sentencepiece import sentencepiece_model_pb2

    from bert_elmo_jax.text.sentencepiece import read_sentencepiece

    read_sentencepiece(model, source)
    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    if proto.trainer_spec.model_type != proto.trainer_spec.UNIGRAM or len(proto.pieces) < len(FIRST):
        raise ValueError(
            f"{source} is not a unigram model of {len(FIRST)} or more pieces, which shifted ids (XLM-R) need"
        )
    vocabulary = [(name, 0.0) for name in FIRST] + [(piece.piece, piece.score) for piece in proto.pieces[3:]]
    marks = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
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
