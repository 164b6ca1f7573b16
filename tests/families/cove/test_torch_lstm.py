"""Files of torch's LSTM: names, prefixes, refused files, and written files."""

import io
import json
import os
import pickle
import shutil
import zipfile

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from bert_elmo_jax import load
from bert_elmo_jax.families.cove.torch_lstm import read_config, read_weights, write
from bert_elmo_jax.inference.convert import convert
from bert_elmo_jax.inference.read_model import detect, read_model

from .conftest import draw_tensors, save_lstm

OTHER = {"0.encoder.weight": np.zeros((3, 2), np.float32), "0.rnns.0.weight_hh_l0_raw": np.zeros(3, np.float32)}


def rewrite(source, target, replace):
    """Write a .pth again with some bytes of its pickle replaced by as many others."""
    with zipfile.ZipFile(source) as before, zipfile.ZipFile(target, "w") as after:
        for info in before.infolist():
            data = before.read(info)
            for old, new in replace.items() if info.filename.endswith("data.pkl") else ():
                assert old in data and len(old) == len(new)
                data = data.replace(old, new)
            after.writestr(info.filename, data)
    return target


@pytest.mark.parametrize("prefix", ["", "rnn."])
def test_names_with_and_without_prefix(tmp_path, tensors, goldens, prefix):
    folder = save_lstm(tmp_path, {prefix + name: array for name, array in tensors.items()})
    (tmp_path / "pth").mkdir()
    shutil.copy(goldens / "cove_tiny" / "wmtlstm.pth", tmp_path / "pth")
    assert load(folder).fingerprint == load(tmp_path / "pth").fingerprint
    params, report = read_weights(folder)
    assert report.mapped["encoder/layer_1/backward/bias"] == (
        f"{prefix}bias_ih_l1_reverse + {prefix}bias_hh_l1_reverse"
    )
    assert params["encoder"]["layer_0"]["forward"]["input_kernel"].shape == (24, 96)


def test_the_format_is_found_by_names(goldens, tmp_path, tensors):
    assert detect(goldens / "cove_tiny") == detect(goldens / "cove_tiny" / "wmtlstm.pth") == "cove"
    shutil.copy(goldens / "cove_tiny" / "wmtlstm.pth", tmp_path / "vectors_of_a_thesis.PTH")
    assert detect(tmp_path) == detect(tmp_path / "vectors_of_a_thesis.PTH") == "cove"
    save_file(tensors, tmp_path / "wmtlstm.safetensors")
    with pytest.raises(ValueError, match=r"2 CoVes, give the path of one: vectors_of_a_thesis.PTH, wmtlstm.safet"):
        read_model(tmp_path)
    assert read_model(tmp_path / "wmtlstm.safetensors").config.lstm_size == 24


def test_a_pth_of_another_model(goldens, tmp_path):
    other = rewrite(
        goldens / "cove_tiny" / "wmtlstm.pth", tmp_path / "lm.pth", {b"rnn.weight_ih_l0q": b"cnn.weight_ih_l0q"}
    )
    message = r"lm.pth is a file of PyTorch, but of no model known here: its tensors are cnn.weight_ih_l0, .*CoVe \(a"
    with pytest.raises(ValueError, match=message):
        load(other)
    with pytest.raises(FileNotFoundError, match=r"holds no weights. Looked for .*CoVe \(a .pth file with weight_ih_l0"):
        load(tmp_path)
    with pytest.raises(ValueError, match=r"lm.pth holds no CoVe: it has no weight_ih_l0 \(nor rnn.weight_ih_l0\) but"):
        read_config(other)


class Harm:
    """An object whose pickle runs a command when Python loads it."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return os.system, (f"touch {self.file}",)


@pytest.mark.parametrize("ending", [".pth", ".pt"])
def test_a_malicious_pickle_executes_nothing(goldens, tmp_path, ending):
    file, mark = tmp_path / f"wmtlstm{ending}", tmp_path / "harm"
    content = pickle.dumps({"weight_ih_l0": Harm(mark)}, protocol=2)
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("wmtlstm/data.pkl", content)
        archive.writestr("wmtlstm/byteorder", "little")
    for path in (file, tmp_path):
        with pytest.raises((ValueError, FileNotFoundError), match=r"asks for (posix|nt)\.system, which is refused"):
            load(path)
    assert not mark.exists()
    pickle.load(io.BytesIO(content))  # it is malicious
    assert mark.exists()


@pytest.mark.parametrize("content", [b"", b"<html>not found</html>", b"PK\3\4 cut", b"version https://git-lfs.github"])
def test_a_pth_that_is_none(tmp_path, content):
    (tmp_path / "wmtlstm.pth").write_bytes(content)
    for path in (tmp_path / "wmtlstm.pth", tmp_path):
        with pytest.raises((ValueError, FileNotFoundError), match=r"wmtlstm\.pth cannot be read as PyTorch weights"):
            load(path)


def change(tensors, **changed):
    """Return tensors with some replaced, or left out if None."""
    return {name: array for name, array in (tensors | changed).items() if array is not None}


SMALL = draw_tensors(4, 3, 2)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"weight_hh_l1": np.zeros((12, 4), np.float32)}, r"weight_hh_l1: \[12, 4\] of float32, expected \[12, 3\]"),
        ({"weight_ih_l1": np.zeros((12, 7), np.float32)}, r"weight_ih_l1: \[12, 7\] of float32, expected \[12, 6\]"),
        ({"weight_ih_l0": np.zeros((13, 4), np.float32)}, r"has the shape \[13, 4\]; an LSTM's is \[4 · cells, inp"),
        ({"weight_hh_l0": np.zeros((12, 3), np.int32)}, "weight_hh_l0: .* of int32, expected"),
        ({"weight_ih_l1_reverse": None}, "missing .*: weight_ih_l1_reverse"),
        ({"bias_hh_l0": None}, "missing .*: bias_hh_l0"),
        ({"weight_ih_l0_reverse": None}, "an LSTM of one direction .*; a CoVe reads both"),
        ({"weight_hr_l0": np.zeros((2, 3), np.float32)}, "an LSTM with a projection"),
        ({"bias_ih_l1": np.full(12, np.inf, np.float32)}, "NaN or infinity .* in bias_ih_l1"),
        ({"weight_ih_l99999": np.zeros((12, 6), np.float32)}, "names layer 99999 of an LSTM; at most 100 layers are"),
        ({"weight_hh_l2": np.zeros((12, 3), np.float32)}, r"missing .*: weight_ih_l2, "),
    ],
)
def test_tensors_that_do_not_fit(tmp_path, changed, message):
    with pytest.raises(ValueError, match=message):
        load(save_lstm(tmp_path, change(SMALL, **changed)))


def test_written_weights_are_those_read(tmp_path):
    cove = load(save_lstm(tmp_path / "first", SMALL))
    write(tmp_path / "second", cove.params, cove.config, labels=None, problem_type=None)
    written = load_file(tmp_path / "second" / "wmtlstm.safetensors")
    assert set(written) == set(SMALL)
    for name, array in SMALL.items():
        if name.startswith("weight"):
            assert (written[name] == array).all()
    for end in ("l0", "l1_reverse"):
        sums = [part[f"bias_ih_{end}"] + part[f"bias_hh_{end}"] for part in (written, SMALL)]
        np.testing.assert_allclose(*sums, rtol=0, atol=1e-6)
    half = {name: array.astype(np.float16) for name, array in SMALL.items()}
    params, report = read_weights(save_lstm(tmp_path / "half", {**half, **OTHER}))
    kernel = params["encoder"]["layer_0"]["forward"]["state_kernel"]
    assert kernel.dtype == np.float32 and (half["weight_hh_l0"][:3].astype(np.float32) == kernel[:, :3].T).all()
    assert report.unexpected == sorted(OTHER)


def test_conversions(goldens, tmp_path):
    """A run directory has the word vectors, so texts keep their vectors."""
    before = load(goldens / "cove_tiny").encode(["the bank of unheard", "배를 탔다"])
    convert(str(goldens / "cove_tiny"), tmp_path / "run", to_format="run")
    fields = json.loads((tmp_path / "run" / "model.json").read_text())
    assert (fields["family"], fields["tokenizer"]["kind"], fields["config"]["vocab_size"]) == ("cove", "vectors", None)
    after = load(tmp_path / "run").encode(["the bank of unheard", "배를 탔다"])
    assert all((ours == theirs).all() for ours, theirs in zip(after.layers, before.layers))
