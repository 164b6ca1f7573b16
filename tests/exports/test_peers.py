"""Exported folders load unchanged in sentence-transformers and optimum, quantised files included."""

import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.exports.export_model import export_model

from .test_export_model import GOLDENS, sentence_model

TEXTS = ["The river is old.", "bank"]


@pytest.mark.peers
@pytest.mark.long
def test_sentence_transformers_reads_the_onnx_file(tmp_path):
    pytest.importorskip("optimum.onnxruntime", reason="needs optimum[onnxruntime]")
    sentence_transformers = pytest.importorskip("sentence_transformers", reason="needs the peers extra")
    model = sentence_model(tmp_path / "model")
    export_model(model, tmp_path / "out")
    theirs = sentence_transformers.SentenceTransformer(str(tmp_path / "out"), backend="onnx").encode(TEXTS)
    assert np.abs(theirs - model.sentences(TEXTS)).max() < 1e-5


@pytest.mark.peers
@pytest.mark.long
@pytest.mark.parametrize("file, limit", [("model.onnx", 1e-5), ("model_quantized.onnx", 0.1)])
def test_optimum_reads_both_files_of_a_classifier(file, limit, tmp_path):
    runtime = pytest.importorskip("optimum.onnxruntime", reason="needs optimum[onnxruntime]")
    transformers = pytest.importorskip("transformers", reason="needs the peers extra")
    model = load(GOLDENS / "released_heads" / "roberta_nli3")
    export_model(model, tmp_path / "out", int8=True)
    theirs = runtime.ORTModelForSequenceClassification.from_pretrained(
        tmp_path / "out", subfolder="onnx", file_name=file
    )
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    pairs = [("The river had risen.", "The water was high."), ("bank", "The river is old.")]
    logits = theirs(**tokenizer(*zip(*pairs), padding=True, return_tensors="pt")).logits.detach().numpy()
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    ours = [[one.probabilities[label] for label in model.labels] for one in model.predict(pairs)]
    assert np.abs(shares - np.array(ours)).max() < limit
