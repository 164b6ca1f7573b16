"""A process that loads models, and answers with their parameters, vectors and predictions.

It reads a request from each line of its standard input, and writes an answer of one line. It uses the public names of
`bert_elmo_jax` only.
"""

import dataclasses
import hashlib
import json
import sys

import numpy as np


def flat(tree, name=""):
    """The arrays of a tree of dictionaries, lists, tuples and dataclasses, by their paths."""
    if dataclasses.is_dataclass(tree):
        tree = {field.name: getattr(tree, field.name) for field in dataclasses.fields(tree)}
    if hasattr(tree, "items"):
        parts = tree.items()
    elif isinstance(tree, list | tuple):
        parts = enumerate(tree)
    else:
        return {name: np.asarray(tree)}
    found = {}
    for key, part in parts:
        found |= flat(part, f"{name}/{key}" if name else str(key))
    return found


def summary(array):
    """An array's digest, and two numbers that another computer reaches nearly."""
    exact = array.astype(np.float64)
    bits = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
    return {
        "shape": list(array.shape), "dtype": str(array.dtype), "sha256": bits, "sum": float(exact.sum()),
        "l2": float(np.sqrt((exact**2).sum())),
    }  # fmt: skip


def pairs(inputs):
    """Turn the lists of a request into tuples, which `encode` and `predict` read as pairs."""
    return [tuple(one) if isinstance(one, list) else one for one in inputs]


def vectors(model, asked):
    """The arrays that a model gives for the inputs of a request."""
    found = {}
    if "encode" in asked:
        encoded = model.encode(pairs(asked["encode"]), layers="all")
        found |= {"encode/layers": encoded.layers, "encode/mask": encoded.mask, "encode/last": encoded.last}
        found |= {"encode/pooled": encoded.pooled}
        found |= flat(list(encoded.words("mean")), "encode/words") | flat(list(encoded.offsets), "encode/offsets")
    if "tokens" in asked:
        output = model.forward(tokens=np.array(asked["tokens"]))
        names = ("last", "layers", "attentions", "pooled", "mlm_logits", "nsp_logits")
        found |= {f"forward/{name}": getattr(output, name) for name in names if getattr(output, name) is not None}
    if "sentences" in asked:
        sentences = asked["sentences"]
        encoded = model.encode(sentences)
        found |= {"encode/layers": encoded.layers, "encode/mask": encoded.mask}
        found |= {"mix": model.mix(encoded, weights=[0.5, 0.3, 0.2], gamma=2.0)}
        carried = model.encode(sentences, state=model.zero_state(len(sentences)))
        found |= flat(carried.state, "state")
        found |= {"warm/layers": model.encode(sentences, warmup=1).layers}
    return {name: np.asarray(array) for name, array in found.items() if array is not None}


def plain(value):
    """A prediction as plain values."""
    if dataclasses.is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if hasattr(value, "items"):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return value.item() if isinstance(value, np.generic) else value


def answer(asked):
    """The answer to a request."""
    from bert_elmo_jax import load

    model = load(asked["path"])
    arrays = flat(model.params)
    found = {"params": {name: summary(array) for name, array in sorted(arrays.items())}}
    if "vectors" in asked:
        given = vectors(model, asked)
        np.savez_compressed(asked["vectors"], **given)
        found["vectors"] = {name: summary(array) for name, array in given.items()}
    if "masked" in asked:
        found["guesses"] = plain(model.fill_mask(asked["masked"], top=5))
    if "predict" in asked:
        found["predictions"] = plain(model.predict(pairs(asked["predict"])))
    return found


if __name__ == "__main__":
    # Libraries print to standard output now and then, which belongs to the answers.
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        try:
            reply = {"found": answer(json.loads(line))}
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), file=answers, flush=True)
