"""OpenAI's own files, written from the golden weights: the same numbers, and clear lines about damaged ones."""

import json
import shutil

import jax
import numpy as np
import pytest
from safetensors.numpy import load_file

from bert_elmo_jax import load
from bert_elmo_jax.families.gpt.config import GptConfig
from bert_elmo_jax.families.gpt.openai import names, read_config, read_weights

ORDER = ("attn.c_attn", "attn.c_proj", "ln_1", "mlp.c_fc", "mlp.c_proj", "ln_2")


@pytest.fixture(scope="module")
def gpt2_written(goldens, tmp_path_factory, write_bundle):
    """Write the weights of `gpt2_tiny` as a TensorFlow checkpoint, with the slots of an optimiser."""
    tensors = {}
    for name, value in load_file(goldens / "gpt2_tiny" / "model.safetensors").items():
        path = name.removeprefix("transformer.").replace("h.", "h").replace(".", "/")
        if not path.startswith("w"):
            norm = "ln_" in path
            path = path.removesuffix("/weight").removesuffix("/bias")
            path += "/b" if name.endswith(".bias") else "/g" if norm else "/w"
        else:
            path = path.removesuffix("/weight")
        tensors[f"model/{path}"] = value[None] if path.endswith("/w") else value
    tensors |= {"model/wte/Adam": tensors["model/wte"], "beta1_power": np.float32(0.9)}
    folder = tmp_path_factory.mktemp("openai") / "117M"
    folder.mkdir()
    write_bundle(folder / "model.ckpt", tensors)
    sizes = {"n_vocab": 400, "n_ctx": 64, "n_embd": 48, "n_head": 4, "n_layer": 3}
    (folder / "hparams.json").write_text(json.dumps(sizes))
    (folder / "checkpoint").write_text('model_checkpoint_path: "model.ckpt"\n')
    for ours, theirs in (("vocab.json", "encoder.json"), ("merges.txt", "vocab.bpe")):
        shutil.copyfile(goldens / "gpt2_tiny" / ours, folder / theirs)
    return folder


@pytest.fixture
def gpt2_folder(gpt2_written, tmp_path):
    return shutil.copytree(gpt2_written, tmp_path / "117M")


@pytest.fixture
def gpt1_folder(goldens, tmp_path):
    """Write the weights of `gpt_tiny` as one flat array in ten files."""
    stored = load_file(goldens / "gpt_tiny" / "model.safetensors")
    stored = {name.removeprefix("transformer."): value for name, value in stored.items()}
    arrays = [stored["positions_embed.weight"], stored["tokens_embed.weight"]]
    for layer in range(3):
        for module in ORDER:
            weight = stored[f"h.{layer}.{module}.weight"]
            arrays += [weight if weight.ndim == 1 else weight[None], stored[f"h.{layer}.{module}.bias"]]
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "params_shapes.json").write_text(json.dumps([list(array.shape) for array in arrays]))
    flat = np.concatenate([array.ravel() for array in arrays])
    for number, part in enumerate(np.array_split(flat, 11)):
        np.save(folder / f"params_{number}.npy", part)
    (folder / "hparams.json").write_text('{"n_head": 4}')
    return folder


def test_a_checkpoint_of_gpt2_gives_its_numbers(goldens, gpt2_folder):
    ours, theirs = load(gpt2_folder), load(goldens / "gpt2_tiny")
    assert ours.config == theirs.config
    inputs = np.load(goldens / "gpt2_tiny" / "inputs.npz")
    logits, expected = (m.forward(inputs["input_ids"], mask=inputs["attention_mask"]).logits for m in (ours, theirs))
    np.testing.assert_array_equal(logits, expected)
    assert ours.tokenizer.encode("Hello, world!").ids.tolist() == theirs.tokenizer.encode("Hello, world!").ids.tolist()
    _, report = read_weights(gpt2_folder)
    assert set(report.skipped) == {"model/wte/Adam", "beta1_power"} and not report.unexpected
    by_prefix = load(gpt2_folder / "model.ckpt").params
    jax.tree.map(np.testing.assert_array_equal, by_prefix, ours.params)


def test_the_array_of_gpt1_gives_its_numbers(goldens, gpt1_folder):
    ours, golden = load(gpt1_folder), np.load(goldens / "gpt_tiny" / "golden.npz")
    logits = np.asarray(ours.forward(tokens=golden["input_ids"]).logits)
    assert np.abs(logits - golden["logits"]).max() <= 1e-5 * np.abs(golden["logits"]).max()
    assert not read_weights(gpt1_folder)[1].unexpected


def test_the_tokenizer_beside_gpt1(goldens, gpt1_folder):
    source = goldens / "tokenizers" / "gpt_tiny"
    vocabulary = json.loads((source / "vocab.json").read_text("utf-8"))
    small = {piece: number for piece, number in vocabulary.items() if number < 150}
    (gpt1_folder / "encoder_bpe_40000.json").write_text(json.dumps(small), "utf-8")
    merges = [line for line in (source / "merges.txt").read_text("utf-8").split("\n") if in_vocabulary(line, small)]
    (gpt1_folder / "vocab_40000.bpe").write_text("\n".join(["#version: 0.2", *merges, ""]), "utf-8")
    model = load(gpt1_folder)
    assert model.tokenizer.kind == "suffix_bpe" and model.tokenizer.vocab_size == 150
    assert model.encode(["The ship sails."]).last.shape[2] == 48


def in_vocabulary(line, vocabulary):
    left, _, right = line.partition(" ")
    return all(piece in vocabulary for piece in (left, right, left + right))


def test_heads_that_the_files_do_not_name(gpt1_folder):
    (gpt1_folder / "hparams.json").unlink()
    with pytest.raises(ValueError, match=r"does not say how many heads a GPT-1 of width 48 has .*\"n_head\""):
        load(gpt1_folder)
    config = GptConfig(150, 48, 3, 4, 192, 40, norm_first=False)
    assert read_weights(gpt1_folder, config=config)[0]["encoder"]["embeddings"]["position"].shape == (40, 48)
    with pytest.raises(ValueError, match=r"are those of a GPT-1 .* norm_first=True"):
        read_weights(gpt1_folder, config=GptConfig(150, 48, 3, 4, 192, 40))


def test_the_released_width_has_twelve_heads_and_every_parameter_a_name(tmp_path):
    assert len(names(2)) == 2 + 2 * 16 + 2 and len(names(2, norm_first=False)) == 2 + 2 * 16
    layer = [[1, 768, 2304], [2304], [1, 768, 768], [768], [768], [768]]
    layer += [[1, 768, 3072], [3072], [1, 3072, 768], [768], [768], [768]]
    (tmp_path / "params_shapes.json").write_text(json.dumps([[512, 768], [40478, 768], *layer * 12]))
    assert read_config(tmp_path) == GptConfig.preset("gpt")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "params_3.npy").unlink(), r"params_shapes.json lists .* a file params_N.npy is missing"),
        (lambda f: (f / "params_3.npy").write_text("<html>"), r"params_3.npy is not an array of numpy but a web page"),
        (lambda f: np.save(f / "params_3x.npy", np.zeros(3)), r"params_3x.npy: expected a name such as params_0.npy"),
        (lambda f: np.save(f / "params_3.npy", np.zeros(3, np.float32)), r"beside it hold [\d,]+: a file"),
        (lambda f: (f / "params_shapes.json").write_text("[[40, 48], [150, 48], [3]]"), "lists 3 shapes that begin"),
        (lambda f: (f / "params_shapes.json").write_text("[1, 2]"), "is not a list of shapes"),
        (lambda f: (f / "hparams.json").write_text('{"n_head": 4, "n_ctx": 41}'), r"n_ctx is 41, but .* has 40"),
        (
            lambda f: (f / "hparams.json").write_text('{"n_head": 5}'),
            r"cannot be split evenly .*num_heads is its n_head",
        ),
    ],
)
def test_a_damaged_gpt1(gpt1_folder, damage, message):
    damage(gpt1_folder)
    with pytest.raises(ValueError, match=message):
        load(gpt1_folder)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"n_heads": 4}, r"has the field 'n_heads', which is of unknown meaning; did you mean n_head"),
        ({"n_head": "4"}, r"n_head is '4'; sizes are whole numbers"),
        ({"n_embd": 47}, r"hidden_size 47 cannot be split"),
        ({"n_layer": 4}, r"missing .*model/h3/"),
        ({"n_ctx": None}, r"n_ctx is None"),
    ],
)
def test_wrong_sizes_of_gpt2(gpt2_folder, sizes, message):
    file = gpt2_folder / "hparams.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | sizes))
    with pytest.raises(ValueError, match=message):
        load(gpt2_folder)


def test_missing_sizes_of_gpt2(gpt2_folder):
    (gpt2_folder / "hparams.json").write_text('{"n_vocab": 400}')
    with pytest.raises(ValueError, match=r"hparams.json lacks n_ctx, n_embd, n_head, n_layer"):
        load(gpt2_folder)
    (gpt2_folder / "hparams.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"hparams.json does not exist; it holds the sizes of the GPT-2"):
        read_config(gpt2_folder)
