"""Every class of transformers that a family reads: written and read again, and the numbers of transformers itself."""

import dataclasses
import json

import numpy as np
import pytest
from safetensors.numpy import load_file

from bert_elmo_jax import load
from bert_elmo_jax.families.forward import Request, run
from bert_elmo_jax.heads.task_head import TaskHead, task_outputs
from bert_elmo_jax.inference.convert import convert
from bert_elmo_jax.text import train_wordpiece

from .huggingface_models import CLASSES, LABELS, assert_same, random_params
from .peers import their_warnings

KINDS = {"classify": "classification", "choice": "choice", "tag": "tags", "span": "questions"}


@pytest.mark.parametrize("name", CLASSES)
def test_written_and_read_again_is_the_same(tmp_path, name):
    model, params, folder = CLASSES[name], random_params(name), tmp_path / "out"
    model.format.write(folder, params, model.config)
    read, report = model.format.read_weights(folder)
    if model.heads == ("mlm",) and not model.pooler:  # ModernBERT's head of masked words is read as the pooler, too
        read["encoder"].pop("pooler", None)
    assert_same(read, params)
    assert report.heads == model.heads and not (report.skipped or report.unexpected or report.missing)
    assert {tensor.split(".")[0] for tensor in load_file(folder / "model.safetensors")} == set(model.parts.split())
    assert json.loads((folder / "config.json").read_text())["architectures"] == name.split()[:1]
    assert model.format.read_config(folder) == model.config
    assert not list(folder.glob("*unfinished*")) and len({file.stat().st_mode for file in folder.iterdir()}) == 1


def released_heads():
    """Return the classes with the head of a task: one for each head in every run, each of another family."""
    of_heads: dict[str, list[str]] = {}
    for name, model in CLASSES.items():
        if model.heads and model.heads[0] in KINDS:
            of_heads.setdefault(model.heads[0], []).append(name)
    quick = [names[number] for number, names in enumerate(of_heads.values())]
    return [
        name if name in quick else pytest.param(name, marks=pytest.mark.long)
        for names in of_heads.values()
        for name in names
    ]


TOKENIZER = train_wordpiece(["the ship sank ."] * 9, vocab_size=40)
INPUTS = {
    "classify": ["the ship", ("the ship", "sank")],
    "choice": [("the ship", ["sank", "the ship", "."])],
    "tag": ["the ship sank"],
    "span": [("the ship", "the ship sank .")],
}


@pytest.mark.parametrize("name", released_heads())
def test_a_written_head_predicts_after_every_conversion(tmp_path, name):
    model, head = CLASSES[name], CLASSES[name].heads[0]
    labels = [f"label {number}" for number in range(LABELS[head])] if head in LABELS else None
    config = dataclasses.replace(model.config, pad_id=TOKENIZER.pad_id)
    model.format.write(tmp_path / "out", random_params(model._replace(config=config), scale=0.3), config, labels=labels)
    TOKENIZER.save(tmp_path / "out")
    loaded = load(tmp_path / "out")
    predictions = loaded.predict(INPUTS[head])
    assert loaded.heads == (head,) and list(loaded.labels) == (labels or [])
    assert len(predictions) == len(INPUTS[head]) and type(predictions[0]).__name__ in KINDS_OF_PREDICTIONS[head]
    logits = loaded.forward(np.array([[8, 9, 10, 11, 0]]), mask=np.array([[1, 1, 1, 1, 0]])).logits
    inside = (1, 5) if head in ("tag", "span") else (1,)
    assert logits.shape == (*inside, LABELS.get(head, 2 if head == "span" else 1)) and np.isfinite(logits).all()
    convert(str(tmp_path / "out"), tmp_path / "run", to_format="run")
    convert(str(tmp_path / "run"), tmp_path / "again")
    for folder in ("run", "again"):
        converted = load(tmp_path / folder)
        assert (converted.task, converted.config) == (loaded.task, loaded.config)
        assert_same(converted.params, loaded.params)


KINDS_OF_PREDICTIONS = {"classify": "Label", "choice": "Choice", "tag": "Tags", "span": "AnswerSpan"}


def our_outputs(model, params, tokens, mask):
    """Return the outputs in the order that transformers uses."""
    family, config, heads = model.family, model.config, model.heads
    if heads and heads[0] in KINDS:
        task = family.task_head(heads[0])
        head = TaskHead(
            KINDS[heads[0]], LABELS.get(heads[0], 1), at_end=family.causal(config), pools_pieces=task.pooled,
            use_bias=task.bias,
        )  # fmt: skip
        batch = {"tokens": tokens, "types": np.zeros_like(tokens), "segments": mask}
        scores = task_outputs(family.build(config, pooler=head.pooled), head, params, batch)
        return list(scores) if isinstance(scores, tuple) else [scores]
    pieces = next((name for name in heads if name != "nsp"), "lm" if "lm" in family.heads else None)
    request = Request(head=pieces, nsp="nsp" in heads, pooled=model.pooler and not heads)
    output = run(family, config, params, tokens, None, None, mask, request=request)
    outputs = (output.logits, output.nsp_logits) if heads or pieces else (output.last, output.pooled)
    return [array for array in outputs if array is not None]


@pytest.mark.peers
@pytest.mark.parametrize("name", CLASSES)
def test_transformers_gives_the_same_numbers_and_the_same_file(peers, tmp_path, name):
    torch, transformers = peers
    model, params = CLASSES[name], random_params(name, scale=0.3)
    model.format.write(tmp_path / "ours", params, model.config)
    with their_warnings():
        theirs, info = getattr(transformers, name.split()[0]).from_pretrained(
            tmp_path / "ours", output_loading_info=True, attn_implementation="eager"
        )
    assert not info["missing_keys"] and not info["unexpected_keys"] and not info["mismatched_keys"], info
    choice = model.heads == ("choice",)
    shape = (2, 3, 12) if choice else (2, 12)
    tokens = (8 + np.arange(np.prod(shape)).reshape(shape) * 7 % 40).astype(np.int32)  # no special ids
    mask = np.ones(shape, np.int32)
    inputs = {"input_ids": torch.from_numpy(tokens).long()}
    if not model.family.causal(model.config):  # OpenAIGPTDoubleHeadsModel takes no mask of several choices
        mask[1, ..., 8:] = 0
        inputs["attention_mask"] = torch.from_numpy(mask).long()
    if choice and model.family.name == "gpt":
        inputs["mc_token_ids"] = torch.full(shape[:2], shape[2] - 1)
    with torch.no_grad():
        outputs = theirs.eval()(**inputs, **({"use_cache": False} if model.family.name == "gpt" else {}))
    outputs = [outputs.mc_logits] if choice and model.family.name == "gpt" else list(outputs.values())
    for ours, other in zip(our_outputs(model, params, tokens, mask), outputs, strict=True):
        ours, other = np.asarray(ours), other.numpy()
        real = mask == 1 if ours.shape[: mask.ndim] == mask.shape else slice(None)
        limits = {"rtol": 1e-4, "atol": 1e-4}
        if model.family.name == "modernbert":
            limits = {"rtol": 0, "atol": 1e-5 * np.abs(other).max()}
        np.testing.assert_allclose(ours[real], other[real], **limits)

    with their_warnings():
        theirs.save_pretrained(tmp_path / "theirs")
    read, report = model.format.read_weights(tmp_path / "theirs")
    if model.heads == ("mlm",) and not model.pooler:
        read["encoder"].pop("pooler", None)
    assert_same(read, params)
    assert not (report.unexpected or report.missing)
    if model.family.name == "modernbert":
        assert model.format.read_config(tmp_path / "theirs") == model.config
