"""Export to transformers and back, for every head: the same numbers there, and the same bits on return."""

import json
import shutil

import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.families.roberta.family import RobertaConfig
from bert_elmo_jax.families.roberta.formats import WEIGHTS
from bert_elmo_jax.inference import write_run_directory
from bert_elmo_jax.inference.convert import convert
from bert_elmo_jax.text import load_tokenizer, train_wordpiece

from ..huggingface_models import Model, random_params
from ..peers import their_warnings

write = WEIGHTS.write

pytestmark = pytest.mark.peers


@pytest.mark.parametrize(("model_type", "title"), [("xlm-roberta", "XLMRoberta"), ("camembert", "Camembert")])
def test_variants_are_read_and_written(peers, tmp_path, model_type, title):
    torch, transformers = peers
    with their_warnings():
        sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
        config = getattr(transformers, f"{title}Config")(vocab_size=90, max_position_embeddings=30, **sizes)
        model = getattr(transformers, f"{title}ForMaskedLM")(config).eval()
        for value in model.parameters():
            torch.nn.init.normal_(value, std=0.2)
        model.save_pretrained(tmp_path / "theirs")
    ours = load(tmp_path / "theirs")
    assert ours.config.model_type == model_type and ours.config.max_positions == 28
    ids = np.arange(2, 58).reshape(2, 28)
    mask = np.ones_like(ids)
    ids[0, :9], mask[0, :9] = 1, 0
    with torch.no_grad():
        theirs = model(torch.from_numpy(ids), attention_mask=torch.from_numpy(mask)).logits.numpy()
    np.testing.assert_allclose(
        ours.forward(ids, np.zeros_like(ids), mask).logits[mask == 1], theirs[mask == 1], atol=1e-4
    )
    write(tmp_path / "ours", ours.params, ours.config)
    with their_warnings():
        again = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "ours")
    assert type(again) is type(model)
    for name, value in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], value), name


def test_an_exported_byte_level_bpe_is_the_same_there(peers, goldens, tmp_path):
    _, transformers = peers
    convert(str(goldens / "roberta_tiny"), tmp_path / "out")
    with their_warnings():
        theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    cases = json.loads((goldens / "roberta_tiny" / "encodings.json").read_text(encoding="utf-8"))
    for case in cases["single"]:
        assert theirs(case["text"])["input_ids"] == case["ids"], case["text"]
    for case in cases["pairs"]:
        assert theirs(case["a"], case["b"])["input_ids"] == case["ids"], case
    assert theirs.model_max_length == 48 and theirs.mask_token == "<mask>"


def test_a_small_xlmr_with_its_sentencepiece(peers, goldens, tmp_path):
    torch, transformers = peers
    folder = tmp_path / "theirs"
    shutil.copytree(goldens / "tokenizers" / "xlmr_tiny", folder)
    pieces = len(load_tokenizer(folder).tokens)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
    with their_warnings():
        sizes |= {"max_position_embeddings": 66, "type_vocab_size": 1}
        config = transformers.XLMRobertaConfig(vocab_size=pieces, **sizes)
        model = transformers.XLMRobertaForMaskedLM(config).eval()
        model.save_pretrained(folder)
        theirs = transformers.AutoTokenizer.from_pretrained(folder)
    texts = [("배를 타고", "the sea"), ("The ship", "강을 건넜다 <mask>")]
    convert(str(folder), tmp_path / "ours")
    ours, again = load(folder), load(tmp_path / "ours")
    with their_warnings():
        exported = transformers.AutoTokenizer.from_pretrained(tmp_path / "ours")
    assert exported.model_max_length == 64
    for pair in texts:
        ids = ours.tokenizer.encode(*pair).ids
        assert ids.tolist() == theirs(*pair)["input_ids"] == exported(*pair)["input_ids"]
        assert ids.tolist() == again.tokenizer.encode(*pair).ids.tolist()
        with torch.no_grad():
            hidden = model.roberta(**exported(*pair, return_tensors="pt")).last_hidden_state[0].numpy()
        np.testing.assert_allclose(ours.encode([pair]).last[0], hidden, atol=1e-4)
        np.testing.assert_allclose(again.encode([pair]).last[0], hidden, atol=1e-4)


def test_a_wordpiece_for_two_types_is_exported_for_one(peers, tmp_path):
    torch, transformers = peers
    tokenizer = train_wordpiece(["the ship sank 배를 타고"] * 9, vocab_size=60)
    config = RobertaConfig(tokenizer.vocab_size, 32, 2, 4, 48, 24, pad_id=tokenizer.pad_id)
    params = random_params(Model(config, "", ("mlm",)))
    write_run_directory(tmp_path / "run", config, params, tokenizer, run={})
    convert(str(tmp_path / "run"), tmp_path / "out")
    pair = ("the ship", "배를 타고")
    with their_warnings():
        theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
        model = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "out").eval()
        with torch.no_grad():
            logits = model(**theirs(*pair, return_tensors="pt")).logits.numpy()
    for folder in ("run", "out"):
        ours = load(tmp_path / folder)
        ids = ours.tokenizer.encode(*pair).ids[None]
        np.testing.assert_allclose(ours.forward(ids).logits, logits, rtol=1e-4, atol=1e-3)
    assert not ours.tokenizer.encode(*pair).types.any()
