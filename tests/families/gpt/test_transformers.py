"""Scales of scores and tokenizers of GPTs, against transformers."""

import dataclasses

import numpy as np
import pytest

from bert_elmo_jax.families.forward import Request, run
from bert_elmo_jax.families.gpt.family import FAMILY
from bert_elmo_jax.families.gpt.huggingface import write

from ..huggingface_models import GPT2, Model, random_params
from ..peers import their_warnings

pytestmark = pytest.mark.peers


@pytest.mark.parametrize("scale_attention", [True, False])
@pytest.mark.parametrize("scale_by_layer", [True, False])
def test_the_scales_of_scores(peers, tmp_path, scale_attention, scale_by_layer):
    torch, transformers = peers
    config = dataclasses.replace(
        GPT2, scale_attention=scale_attention, scale_by_layer=scale_by_layer, activation="gelu"
    )
    params = random_params(Model(config, "transformer"), scale=0.3)
    write(tmp_path / "ours", params, config)
    ids = np.arange(2 * 9).reshape(2, 9).astype(np.int32)
    with their_warnings():
        model = transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "ours", attn_implementation="eager")
    with torch.no_grad():
        theirs = model.eval()(torch.from_numpy(ids).long()).logits.numpy()
    ours = run(FAMILY, config, params, ids, None, None, None, request=Request(head="lm")).logits
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["gpt2_tiny", "gpt_tiny"])
def test_tokenizers(peers, goldens, tmp_path, name):
    """Transformers reads the saved files and gives the same ids."""
    from bert_elmo_jax.text import load_tokenizer

    _, transformers = peers
    ours = load_tokenizer(goldens / "tokenizers" / name)
    for file, content in ours.files_for_transformers(max_positions=64, types=False).items():
        (tmp_path / file).write_bytes(content)
    with their_warnings():
        theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for text in ("The ship, sails!", "배를 타고", "naïve  Café"):
        assert theirs(text)["input_ids"] == ours.encode(text).ids.tolist()
