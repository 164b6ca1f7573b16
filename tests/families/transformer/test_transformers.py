"""Export to transformers and back: the same numbers there, and the same bits on return."""

import dataclasses

import jax
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.families.transformer.config import TransformerConfig
from bert_elmo_jax.families.transformer.marian import read_config, read_weights, write
from bert_elmo_jax.weights.parameter_tree import flatten

from ..peers import their_warnings

pytestmark = pytest.mark.peers
SMALL = TransformerConfig(
    50, 32, 2, 4, 48, 24, output_bias=True, initializer_range=0.02, pad_id=49,
    start_id=49, end_ids=(0,),
)  # fmt: skip
CONFIGS = {
    "opus": dataclasses.replace(SMALL, activation="swish", forbidden_ids=(49,), forced_end_id=0),
    "renormalised": dataclasses.replace(SMALL, forbidden_ids=(49,), renormalize_logits=True),
    "deep encoder": dataclasses.replace(
        SMALL, num_layers=3, decoder_layers=1, decoder_heads=2, decoder_feed_forward_size=20, scale_embeddings=False
    ),
    "two vocabularies": dataclasses.replace(
        SMALL, share_embeddings=False, vocab_size=70, target_vocab_size=50, activation="gelu"
    ),
    "own softmax": dataclasses.replace(SMALL, share_embeddings=False, tie_output=False, activation="gelu_new"),
    "odd": dataclasses.replace(SMALL, hidden_size=33, num_heads=3, decoder_heads=11),
}


def random_params(config):
    params = init_params(get_family("transformer"), config, jax.random.key(0), ("decoder",), pooler=False)
    rng = np.random.default_rng(0)
    return jax.tree.map(lambda x: (np.asarray(x) + rng.normal(0, 0.2, x.shape)).astype(np.float32), params)


@pytest.mark.parametrize("name", CONFIGS)
def test_out_and_back_is_exact(peers, tmp_path, name):
    torch, transformers = peers
    config = CONFIGS[name]
    params = random_params(config)
    write(tmp_path / "ours", params, config)
    assert read_config(tmp_path / "ours") == config
    with their_warnings():
        model, info = transformers.MarianMTModel.from_pretrained(
            tmp_path / "ours", output_loading_info=True, attn_implementation="eager"
        )
    assert not (info["missing_keys"] or info["unexpected_keys"] or info["mismatched_keys"]), info
    source = np.arange(12).reshape(2, 6) % 50
    mask = np.array([[1] * 6, [1, 1, 1, 0, 0, 0]])
    target = np.array([[49, 3, 4, 5], [49, 8, 7, 0]])
    with torch.no_grad():
        theirs = model.eval()(
            input_ids=torch.from_numpy(source), attention_mask=torch.from_numpy(mask),
            decoder_input_ids=torch.from_numpy(target), output_hidden_states=True, output_attentions=True,
        )  # fmt: skip
    ours = load(tmp_path / "ours").forward(source=source, source_mask=mask, target=target)
    np.testing.assert_allclose(ours.logits, theirs.logits.numpy(), rtol=1e-4, atol=1e-4)
    for one, other in zip(ours.cross_attentions, theirs.cross_attentions, strict=True):
        np.testing.assert_allclose(one, other.numpy(), rtol=1e-4, atol=1e-5)
    for one, other in zip(ours.encoder_layers, theirs.encoder_hidden_states, strict=True):
        np.testing.assert_allclose(one[mask == 1], other.numpy()[mask == 1], rtol=1e-4, atol=1e-4)
    with their_warnings():
        model.save_pretrained(tmp_path / "theirs")
    read, report = read_weights(tmp_path / "theirs")
    assert not (report.unexpected or report.missing)
    assert read_config(tmp_path / "theirs") == config
    again, before = flatten(read), flatten(params)
    assert again.keys() == before.keys()
    for path in again:
        np.testing.assert_array_equal(again[path], before[path], err_msg=path)


def test_texts_are_written_as_the_folder_says(peers, tmp_path):
    torch, transformers = peers
    config, sources = CONFIGS["opus"], [[7, 8, 28, 9, 15], [3, 4, 5]]
    config = dataclasses.replace(config, max_new=9, beams=3, length_penalty=0.5, no_repeat_ngram_size=2)
    write(tmp_path / "ours", random_params(config), config)
    assert load(tmp_path / "ours").config == config
    with their_warnings():
        model = transformers.MarianMTModel.from_pretrained(tmp_path / "ours").eval()
    for source, (text,) in zip(sources, load(tmp_path / "ours").generate(source=sources), strict=True):
        with torch.no_grad(), their_warnings():
            sequences = model.generate(torch.tensor([source]), do_sample=False)
        assert text.ids == sequences[0].tolist()[1 : 1 + len(text.ids)]


@pytest.mark.parametrize("name", ["opus", "renormalised", "two vocabularies"])
def test_generated_texts_are_the_same(peers, tmp_path, name):
    torch, transformers = peers
    config, sources = CONFIGS[name], [[7, 8, 28, 9, 15], [3, 4, 5]]
    write(tmp_path / "ours", random_params(config), config)
    with their_warnings():
        model = transformers.MarianMTModel.from_pretrained(tmp_path / "ours").eval()
    ours = load(tmp_path / "ours").generate(source=sources, max_new=7, beams=4, length_penalty=0.6, n_best=3)
    for source, texts in zip(sources, ours, strict=True):
        with torch.no_grad(), their_warnings():
            beams = model.generate(
                torch.tensor([source]), max_new_tokens=7, num_beams=4, length_penalty=0.6, num_return_sequences=3,
                do_sample=False, output_scores=True, return_dict_in_generate=True,
            )  # fmt: skip
        for text, sequence, score in zip(texts, beams.sequences.tolist(), beams.sequences_scores.tolist(), strict=True):
            assert text.ids == sequence[1 : 1 + len(text.ids)] and text.score == pytest.approx(score, abs=1e-4)
