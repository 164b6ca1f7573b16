"""BPE whose pieces mark the ends of words by `</w>`, as GPT-1 has it: lower-cased and split as BERT splits text."""

from collections.abc import Iterable, Mapping
from typing import Any

SUFFIX = "</w>"
UNKNOWN = "<unk>"


def is_suffix_bpe(merges: Iterable[tuple[str, str]], settings: Mapping[str, Any]) -> bool:
    """Return True if merges end words by `</w>`, or the settings name GPT-1's tokenizer.

    >>> is_suffix_bpe([("t", "h"), ("th", "e</w>")], {}), is_suffix_bpe([("Ġ", "t")], {})
    (True, False)
    """
    named = str(settings.get("tokenizer_class") or "").startswith("OpenAIGPTTokenizer")
    return named or any(right.endswith(SUFFIX) for _, right in merges)


def suffix_bpe_spec(
    vocabulary: Mapping[str, int], merges: Iterable[tuple[str, str]], unknown: str = UNKNOWN
) -> dict[str, Any]:
    """Return the contents of a `tokenizer.json` for a BPE with `</w>`, as transformers builds it for GPT-1.

    >>> suffix_bpe_spec({"<unk>": 0, "a</w>": 1}, [])["model"]["end_of_word_suffix"]
    '</w>'
    """
    model: dict[str, Any] = {"type": "BPE", "dropout": None, "unk_token": unknown, "continuing_subword_prefix": ""}
    model |= {"end_of_word_suffix": SUFFIX, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False}
    cleaning = {"clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True}
    return {
        "added_tokens": [],
        "normalizer": {"type": "BertNormalizer", **cleaning},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": None,
        "decoder": {"type": "BPEDecoder", "suffix": SUFFIX},
        "model": model | {"vocab": dict(vocabulary), "merges": [list(pair) for pair in merges]},
    }
