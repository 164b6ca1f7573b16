"""Read the `tf_model.h5` of transformers' former TensorFlow classes, without TensorFlow."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from bert_elmo_jax.weights.hdf5 import read_hdf5
from bert_elmo_jax.weights.stored import StoredTensor

KINDS = {"kernel": "weight", "embeddings": "weight", "gamma": "weight", "beta": "bias"}


def read_keras(path: str | Path, *, shard: bool = False) -> dict[str, StoredTensor]:
    """Return the tensors of a file under the names and in the layout of PyTorch.

    Layers are groups, with weights under their full names. A shard has no groups, and most of its names lack the
    model's name.
    """
    tensors: dict[str, StoredTensor] = {}
    for stored_name, tensor in read_hdf5(path)[0].items():
        full_name = stored_name if shard else stored_name.partition("/")[2] or stored_name
        name = turn_name(full_name, has_model="model." in full_name or not shard)
        tensor = _turn(full_name, tensor)
        if name in tensors and not (tensor.shape == tensors[name].shape and tensor.equals(tensors[name])):
            raise ValueError(f"{path} holds {name} twice, with different numbers: download it again")
        tensors.setdefault(name, tensor)
    return tensors


def turn_name(name: str, has_model: bool = True) -> str:
    """Return PyTorch's name of a weight, whose first part is the model's name.

    `x___y` means y, and `_._` begins a further part.

    >>> turn_name("tf_bert/mlm___cls/predictions/transform/LayerNorm/gamma:0")
    'cls.predictions.transform.LayerNorm.weight'
    >>> turn_name("tf_bert_1/bert/encoder/layer_._0/output/dense/kernel:0")
    'bert.encoder.layer.0.output.dense.weight'
    """
    parts = name.removesuffix(":0").replace("_._", "/").split("/")
    if has_model and len(parts) > 1:
        del parts[0]
    parts = [part.rpartition("___")[2] for part in parts]
    return ".".join([*filter(None, parts[:-1]), KINDS.get(parts[-1], parts[-1])])


def _turn(name: str, tensor: StoredTensor) -> StoredTensor:
    kind, shape = name.removesuffix(":0").rpartition("/")[2], tensor.shape
    if kind == "kernel":
        return replace(tensor, shape=shape[::-1], read=lambda: tensor.read().T)
    if kind == "bias" and len(shape) == 2 and shape[0] == 1:  # of GPT-2's layers
        return replace(tensor, shape=shape[1:], read=lambda: np.reshape(tensor.read(), shape[1:]))
    return tensor
