"""New pieces around texts; on GPT's tokenizers they are tested in `tests/families/gpt/test_finetuning.py`."""

import pytest

from bert_elmo_jax.text import train_byte_bpe
from bert_elmo_jax.text.framing import add_frame, has_frame


def test_a_tokenizer_with_a_frame_keeps_it():
    tokenizer = train_byte_bpe(["the sea the ship"] * 9, vocab_size=300)
    assert has_frame(tokenizer)
    with pytest.raises(ValueError, match="the tokenizer already has the frame"):
        add_frame(tokenizer)
