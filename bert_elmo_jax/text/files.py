"""Facts that our tokenizers save in `tokenizer_config.json`."""

from pathlib import Path
from typing import Any

# The key of our own entries in `tokenizer_config.json`.
OWN_KEY = "bert_elmo_jax"


def check_fingerprint(config: dict[str, Any], fingerprint: str, file: Path) -> None:
    """Raise if the config was saved with another tokenizer; a config without a fingerprint passes."""
    saved = config.get(OWN_KEY, {}).get("fingerprint", fingerprint)
    if saved != fingerprint:
        raise ValueError(
            f"{file} does not match the tokenizer_config.json in its folder (fingerprint {fingerprint[:12]}…, expected "
            f"{saved[:12]}…): one of the two was edited or replaced. Restore both, or delete tokenizer_config.json to "
            "use the file as a released one."
        )
