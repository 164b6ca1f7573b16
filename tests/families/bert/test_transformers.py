"""Export to transformers and back, for every head: the same numbers there, and the same bits on return."""

import json

import numpy as np
import pytest

from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.bert.huggingface import bert_shapes, read_weights, write
from bert_elmo_jax.weights.parameter_tree import flatten, nest, part

from ..peers import their_warnings

pytestmark = pytest.mark.peers
CONFIG = BertConfig(
    vocab_size=50,
    hidden_size=32,
    num_layers=2,
    num_heads=4,
    feed_forward_size=48,
    max_positions=24,
    activation="gelu_new",
)
MODELS = {
    (): "BertModel",
    ("mlm",): "BertForMaskedLM",
    ("nsp",): "BertForNextSentencePrediction",
    ("mlm", "nsp"): "BertForPreTraining",
    ("classify",): "BertForSequenceClassification",
    ("choice",): "BertForMultipleChoice",
    ("tag",): "BertForTokenClassification",
    ("span",): "BertForQuestionAnswering",
}
WITHOUT_POOLER = {("mlm",), ("tag",), ("span",)}  # transformers builds these models without one


def random_params(heads):
    rng = np.random.default_rng(len(heads))
    parts = {"encoder", *heads} | ({"pooler"} if heads not in WITHOUT_POOLER else set())
    return nest(
        {
            path: rng.normal(scale=0.3, size=shape).astype(np.float32)
            for path, shape in bert_shapes(CONFIG, {"classify": 3, "tag": 5}).items()
            if part(path) in parts
        }
    )


@pytest.mark.parametrize("heads", MODELS, ids="+".join)
def test_out_and_back_is_exact(peers, tmp_path, heads):
    torch, transformers = peers
    params = random_params(heads)
    labels = ["O", "B-인명", "I-인명", "B-지명", "I-지명"] if heads == ("tag",) else None
    write(tmp_path / "ours", params, CONFIG, labels=labels)
    with their_warnings():
        model, info = getattr(transformers, MODELS[heads]).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"] and not info["mismatched_keys"], info
    if labels:
        assert [model.config.id2label[number] for number in range(5)] == labels

    model.eval()
    ids = torch.arange(2 * 3 * 7).reshape(2, 3, 7) % 50 if heads == ("choice",) else torch.arange(14).reshape(2, 7)
    with torch.no_grad():
        output = model(ids, output_hidden_states=True)
    outputs = {name: np.asarray(value) for name, value in output.items() if name != "hidden_states"}
    last = np.asarray(output.hidden_states[-1])
    check_logits(params, heads, outputs, last)

    # Back through both of their formats: theirs, and a state dictionary as torch saves it, old and new.
    with their_warnings():
        model.save_pretrained(tmp_path / "theirs")
    folders = [tmp_path / "theirs"]
    for layout in (True, False):
        folder = tmp_path / f"pickled-{layout}"
        folder.mkdir()
        torch.save(model.state_dict(), folder / "pytorch_model.bin", _use_new_zipfile_serialization=layout)
        (folder / "config.json").write_text((tmp_path / "theirs" / "config.json").read_text())
        folders.append(folder)
    for folder in folders:
        read, report = read_weights(folder)
        assert not (report.unexpected or report.missing)
        a, b = flatten(read), flatten(params)
        assert a.keys() == b.keys()
        for path in a:
            np.testing.assert_array_equal(a[path], b[path], err_msg=f"{folder.name}: {path}")


def check_logits(params, heads, outputs, last):
    """Their logits are our head's parameters applied to their last layer."""

    def dense(x, p):
        return x @ p["kernel"] + p["bias"]

    pooled = np.tanh(dense(last[:, 0], params["encoder"]["pooler"])) if "pooler" in params["encoder"] else None
    for head in heads:
        if head in ("nsp", "classify", "choice"):
            wanted = dense(pooled, params[head])
            given = outputs.get("seq_relationship_logits", outputs.get("logits"))
            np.testing.assert_allclose(given.reshape(wanted.shape), wanted, rtol=1e-4, atol=1e-4)
        elif head == "tag":
            np.testing.assert_allclose(outputs["logits"], dense(last, params["tag"]), rtol=1e-4, atol=1e-4)
        elif head == "span":
            both = np.stack([outputs["start_logits"], outputs["end_logits"]], -1)
            np.testing.assert_allclose(both, dense(last, params["span"]), rtol=1e-4, atol=1e-4)
        else:
            x = dense(last, params["mlm"]["dense"])
            x = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
            x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)
            x = x * params["mlm"]["norm"]["scale"] + params["mlm"]["norm"]["bias"]
            wanted = x @ params["encoder"]["embeddings"]["word"].T + params["mlm"]["bias"]
            given = outputs.get("prediction_logits", outputs.get("logits"))
            np.testing.assert_allclose(given, wanted, rtol=1e-4, atol=1e-4)


def test_the_golden_exported_gives_their_frozen_outputs(peers, tmp_path, goldens):
    torch, transformers = peers
    folder = goldens / "bert_tiny"
    params, _ = read_weights(folder)
    write(tmp_path / "out", params, BertConfig.from_json(folder / "config.json"))
    inputs = {name: torch.from_numpy(value) for name, value in np.load(folder / "inputs.npz").items()}
    inputs = {name: inputs[name] for name in ("input_ids", "attention_mask", "token_type_ids")}
    with their_warnings(), torch.no_grad():
        models = [
            transformers.BertForPreTraining.from_pretrained(path, attn_implementation="eager").eval()
            for path in (folder, tmp_path / "out")
        ]
        before, after = (model(**inputs, output_hidden_states=True) for model in models)
    for a, b in zip(before.hidden_states, after.hidden_states):
        assert torch.equal(a, b)
    assert torch.equal(before.prediction_logits, after.prediction_logits)
    assert torch.equal(before.seq_relationship_logits, after.seq_relationship_logits)
    frozen = np.load(folder / "outputs.npz")
    np.testing.assert_allclose(after.prediction_logits.numpy(), frozen["mlm_logits"], rtol=1e-4, atol=1e-4)


def test_their_tokenizer_reads_our_vocabulary(peers, tmp_path):
    _, transformers = peers
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "강", "##물", "은", "##은", "the", "River", "river"]
    write(tmp_path, random_params(()), CONFIG, vocab=pieces, tokenizer={"do_lower_case": False, "strip_accents": False})
    with their_warnings():
        tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    tokens = tokenizer.convert_ids_to_tokens(tokenizer("강물은 the River [MASK]")["input_ids"])
    assert tokens == ["[CLS]", "강", "##물", "##은", "the", "River", "[MASK]", "[SEP]"]
    assert tokenizer.model_max_length == CONFIG.max_positions
    assert json.loads((tmp_path / "tokenizer_config.json").read_text())["tokenizer_class"] == "BertTokenizer"
