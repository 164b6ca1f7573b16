"""Files of fastai: other sizes, names of other versions, vocabularies, and refused files."""

import json
import pickle
import shutil
import zipfile

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from bert_elmo_jax import load
from bert_elmo_jax.families.awd_lstm.fastai import direction_of, read_config, read_weights
from bert_elmo_jax.families.awd_lstm.vocabulary import find_vocabulary
from bert_elmo_jax.inference.convert import convert
from bert_elmo_jax.inference.read_model import detect, read_model
from bert_elmo_jax.text import FastaiVocabulary

from .conftest import draw_tensors, run_lm, save_tensors

ITOS = ["xxunk", "xxpad", "xxbos", "xxmaj", "the", "bank", "of", "river", "은행"]


@pytest.mark.parametrize(
    ("sizes", "options"),
    [
        ((9, 5, 7, 2), {"tied": False}),
        ((11, 6, 3, 4), {"bias": False}),
        ((7, 4, 99, 1), {"tied": False, "bias": False}),
    ],
)
def test_other_sizes_and_softmaxes(tmp_path, sizes, options):
    tensors = draw_tensors(*sizes, **options)
    lm = load(save_tensors(tmp_path, tensors))
    words = np.random.default_rng(1).integers(0, sizes[0], (3, 6))
    layers, logits = run_lm(tensors, words, sizes[-1])
    first = lm.forward(words=words[:, :3])
    second_half = lm.forward(words=words[:, 3:], state=first.state)
    for ours, theirs in zip(zip(first.layers, second_half.layers), layers, strict=True):
        np.testing.assert_allclose(np.concatenate(ours, axis=1), theirs, rtol=0, atol=1e-5)
    np.testing.assert_allclose(np.concatenate([first.logits, second_half.logits], axis=1), logits, rtol=0, atol=1e-5)
    assert (lm.config.tie_softmax, lm.config.output_bias) == (options.get("tied", True), options.get("bias", True))
    # Written and read again it is the same.
    convert(str(tmp_path), tmp_path / "b", to_format="fastai")
    written = load_file(tmp_path / "b" / "lm.safetensors")
    assert written.keys() == tensors.keys()
    for name in tensors:
        if "bias_" not in name:  # only the sum of the two biases is kept
            np.testing.assert_array_equal(written[name], tensors[name], err_msg=name)
    for n in range(sizes[-1]):
        ends = [f"0.rnns.{n}.module.bias_{part}_l0" for part in ("ih", "hh")]
        np.testing.assert_allclose(*(sum(part[end] for end in ends) for part in (written, tensors)), rtol=0, atol=1e-6)


def rename(tensors, kind):
    """Return tensors under the names of another file of fastai."""
    if kind == "encoder":
        return {name.removeprefix("0."): array for name, array in tensors.items() if name.startswith("0.")}
    renamed_tensors = dict(tensors)
    for name in tensors:
        if name.endswith("weight_hh_l0_raw"):
            number = name.split(".")[2]
            if kind == "1":  # also holds what weight drop made of the matrix in the last step
                renamed_tensors[f"0.rnns.{number}.module.weight_hh_l0"] = 0 * tensors[name]
            elif kind == "0.7":
                renamed_tensors[f"0.rnns.{number}.module.weight_hh_l0_raw"] = renamed_tensors.pop(name)
    if kind == "0.7":
        renamed_tensors["0.encoder_with_dropout.embed.weight"] = renamed_tensors.pop("0.encoder_dp.emb.weight")
    return renamed_tensors


@pytest.mark.parametrize("kind", ["1", "0.7", "encoder"])
def test_names_of_other_files(tmp_path, kind):
    tensors = draw_tensors(9, 5, 7, 2)
    lm = load(save_tensors(tmp_path, rename(tensors, kind)))
    words = np.random.default_rng(1).integers(0, 9, (2, 5))
    layers, logits = run_lm(tensors, words, 2)
    output = lm.forward(words=words)
    np.testing.assert_allclose(output.last, layers[-1], rtol=0, atol=1e-5)
    if kind == "encoder":
        assert output.logits is None and set(lm.params) == {"encoder"}
    else:
        np.testing.assert_allclose(output.logits, logits, rtol=0, atol=1e-5)


def test_a_checkpoint_with_an_optimizer(goldens, tmp_path):
    """`learn.save` writes {"model": …, "opt": …}."""
    with zipfile.ZipFile(goldens / "awd_lstm_tiny" / "lm.pth") as before:
        files = {info.filename: before.read(info) for info in before.infolist()}
    name = next(name for name in files if name.endswith("data.pkl"))
    model = files[name]
    # PROTO 2, {"opt": {"state": [None]}, "model": <the old pickle>}
    head = b"\x80\x02}(X\x03\x00\x00\x00opt}X\x05\x00\x00\x00state]Nasc".removesuffix(b"c") + b"X\x05\x00\x00\x00model"
    files[name] = head + model.removeprefix(b"\x80\x02").removesuffix(b".") + b"u."
    with zipfile.ZipFile(tmp_path / "stage1.pth", "w") as after:
        for filename, data in files.items():
            after.writestr(filename, data)
    shutil.copy(goldens / "awd_lstm_tiny" / "itos.json", tmp_path)
    lm, plain = load(tmp_path / "stage1.pth"), load(goldens / "awd_lstm_tiny")
    assert lm.fingerprint == plain.fingerprint


def test_the_report_names_every_tensor(goldens):
    params, report = read_weights(goldens / "awd_lstm_tiny")
    assert set(params) == {"encoder", "lm"} and report.heads == ("lm",)
    assert report.mapped["encoder/layer_0/state_kernel"] == "0.rnns.0.weight_hh_l0_raw"
    assert report.mapped["encoder/layer_2/bias"] == "0.rnns.2.module.bias_ih_l0 + 0.rnns.2.module.bias_hh_l0"
    assert report.skipped == {
        "0.encoder_dp.emb.weight": "a copy of the embeddings", "1.decoder.weight": "tied to the embeddings",
    }  # fmt: skip
    assert not report.unexpected


def test_direction_by_the_name_of_the_file(tmp_path):
    tensors = draw_tensors(9, 5, 7, 2)
    (tmp_path / "a").mkdir()
    save_file(tensors, tmp_path / "a" / "lm_bwd.safetensors")
    assert load(tmp_path / "a").config.direction == "backward"
    convert(str(tmp_path / "a"), tmp_path / "b", to_format="fastai")
    assert load(tmp_path / "b").fingerprint == load(tmp_path / "a").fingerprint
    names = ["lstm_bwd.pth", "wt103-BWD.pth", "backwards.pt", "lm_fwd.pth", "abwd.pth", "lm.pth"]
    directions = [direction_of(tmp_path / name) for name in names]
    assert directions == ["backward"] * 3 + ["forward"] * 3


def test_a_vocabulary_beside_the_weights(tmp_path):
    save_tensors(tmp_path, draw_tensors(len(ITOS), 5, 7, 2))
    for name in ("itos.pkl", "itos_wt103.pkl", "my_vocab.pkl", "itos.json", "vocab.json", "itos.txt"):
        text = "\n".join(ITOS) if name.endswith("txt") else json.dumps(ITOS)
        (tmp_path / name).write_bytes(pickle.dumps(ITOS, 2) if name.endswith("pkl") else text.encode())
        lm = load(tmp_path)
        assert lm.vocabulary.ids(["The", "은행", "unheard"]).tolist() == [4, 8, 0]
        (tmp_path / name).unlink()
    encoding = lm.encode(["the bank", ["river"]])
    rows = lm.forward(words=[[2, 4, 5], [2, 7, 0]], lengths=[3, 2])
    for ours, ids in zip(encoding.layers, rows.layers):
        np.testing.assert_allclose(ours, ids[:, 1:], rtol=0, atol=1e-6)


def test_repeated_fillers_and_old_names():
    words = FastaiVocabulary(["_unk_", "_pad_", "the", "xxfake", "xxfake"])
    assert (words.unk_id, words.pad_id, words.bos_id, len(words)) == (0, 1, None, 5)
    with pytest.raises(ValueError, match="has repeated words: 'the'; each has one id"):
        FastaiVocabulary(["xxunk", "the", "the"])
    with pytest.raises(ValueError, match="has no xxunk among its 2 words: it is no vocabulary of fastai"):
        FastaiVocabulary(["the", "bank"])


@pytest.mark.usefixtures("as_users_run")
def test_vocabularies_that_are_refused(tmp_path):
    save_tensors(tmp_path, draw_tensors(9, 5, 7, 2))
    with pytest.raises(ValueError, match=r"has no vocabulary: put fastai's list of words \(itos.pkl\).*forward\(words"):
        load(tmp_path).encode(["a"])
    file = tmp_path / "itos.pkl"
    for content, message in (
        (pickle.dumps(ITOS[:-1]), "has 8 words, the model 9: they do not belong together"),
        (pickle.dumps(print), "cannot be read as a pickle of plain values: it asks for builtins.print, which is refu"),
        (pickle.dumps([1, 2]), "holds a list, not a list of words as fastai's `itos`"),
        (b"the\nbank\n", "it is not a pickle of protocol 2 or later but something else"),
    ):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            load(tmp_path)
    file.write_bytes(pickle.dumps(ITOS))
    (tmp_path / "other_vocab.pkl").write_bytes(pickle.dumps(ITOS))
    with pytest.raises(ValueError, match=r"holds 2 vocabularies: itos.pkl, other_vocab.pkl"):
        find_vocabulary(tmp_path)


def test_the_format_is_found_by_names(goldens, tmp_path):
    assert detect(goldens / "awd_lstm_tiny") == detect(goldens / "awd_lstm_tiny" / "lm.pth") == "fastai"
    assert detect(goldens / "cove_tiny" / "wmtlstm.pth") == "cove"
    shutil.copy(goldens / "awd_lstm_tiny" / "lm.pth", tmp_path / "a.PTH")
    shutil.copy(goldens / "awd_lstm_tiny" / "lm.pth", tmp_path / "b.pt")
    with pytest.raises(ValueError, match=r"2 AWD-LSTMs, give the path of one: a.PTH, b.pt \(such as"):
        load(tmp_path)
    assert read_model(tmp_path / "b.pt").config.num_layers == 3


FIRST = "0.rnns.0.module.weight_ih_l0"


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({FIRST + "_reverse": np.ones((28, 5), "f")}, "holds an LSTM of both directions"),
        ({"0.rnns.0.layers.0.linear.weight": np.ones((28, 5), "f"), FIRST: None}, "AWD-QRNN"),
        ({"0.encoder_dp.emb.weight": np.zeros((9, 5), "f")}, "encoder_dp.emb.weight is not the same as 0.encoder.weig"),
        ({"0.rnns.1.weight_hh_l0_raw": None}, "missing .*0.rnns.1.weight_hh_l0_raw"),
        (
            {"0.rnns.1.module.weight_ih_l0": np.zeros((20, 6), "f")},
            r"mis-shaped(.|\n)*weight_ih_l0: \[20, 6\] of float32, expected \[20, 7\]",
        ),
        ({"1.decoder.bias": np.full(9, np.nan, "f")}, "holds NaN or infinity .* in 1.decoder.bias"),
        ({"0.encoder.weight": None, "0.encoder_dp.emb.weight": None}, "has no embeddings 0.encoder.weight"),
        ({"1.layers.0.weight": np.zeros(15, "f")}, "is not batch norm and a linear layer, as in fastai 2"),
    ],
)
def test_files_that_are_refused(tmp_path, changes, message):
    changed = {**draw_tensors(9, 5, 7, 2), **changes}
    with pytest.raises(ValueError, match=message):
        load(save_tensors(tmp_path, {name: array for name, array in changed.items() if array is not None}))


def test_files_of_other_things(goldens, tmp_path):
    with pytest.raises(ValueError, match=r"holds no AWD-LSTM: it has no rnns.0.module.weight_ih_l0 but rnn.bias"):
        read_config(goldens / "cove_tiny" / "wmtlstm.pth")
    (tmp_path / "b.pth").write_bytes(b"<html>not found")
    with pytest.raises(ValueError, match=r"b.pth cannot be read as PyTorch weights: .* a web page"):
        load(tmp_path / "b.pth")


def test_pickled_code_is_not_executed(tmp_path):
    class Harm:
        def __reduce__(self):
            return print, ("executed",)

    with zipfile.ZipFile(tmp_path / "lm.pth", "w") as archive:
        archive.writestr("lm/data.pkl", pickle.dumps({FIRST: Harm()}))
    with pytest.raises(ValueError, match=r"it asks for builtins.print, which is refused"):
        load(tmp_path / "lm.pth")
