"""The fields about writing in a model's files that `generate` does not follow, and the message that names them."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Fields that change what transformers writes and that no family follows, with the values that change nothing.
NOT_FOLLOWED: Mapping[str, tuple[Any, ...]] = {
    "do_sample": (False,), "repetition_penalty": (1,), "encoder_repetition_penalty": (1,), "num_beam_groups": (1,),
    "encoder_no_repeat_ngram_size": (0,), "diversity_penalty": (0,), "penalty_alpha": (0,), "suppress_tokens": ([],),
    "begin_suppress_tokens": ([],), "sequence_bias": ({},),
}  # fmt: skip
# Those that only models which translate follow.
OF_TRANSLATORS: Mapping[str, tuple[Any, ...]] = {
    "num_beams": (1,), "length_penalty": (1,), "no_repeat_ngram_size": (0,), "early_stopping": (False,),
    "max_length": (20,), "max_new_tokens": (), "min_length": (0,), "min_new_tokens": (0,), "bad_words_ids": ([],),
    "forced_bos_token_id": (), "forced_eos_token_id": (), "renormalize_logits": (False,),
}  # fmt: skip


def warn_of_ignored(
    fields: Mapping[str, Any], path: Path, neutral: Mapping[str, tuple[Any, ...]] = NOT_FOLLOWED
) -> None:
    """Log the fields of writing that are not followed; a field with a `neutral` value changes nothing."""
    ignored = {
        name: value
        for name, values in neutral.items()
        if (value := fields.get(name)) is not None and value not in values
    }
    if ignored:
        described = ", ".join(f"{name}={value!r:.40}" for name, value in ignored.items())
        logging.getLogger(__name__).warning(
            "%s asks for %s, which `generate` does not take from a file: give its own options", path, described
        )
