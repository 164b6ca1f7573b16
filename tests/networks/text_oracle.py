"""The networks of texts in numpy as a reference: one example at a time, without batches, padding or masks."""

import numpy as np

GATES = 4


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    odds = np.exp(x - x.max(axis=-1, keepdims=True))
    return odds / odds.sum(axis=-1, keepdims=True)


def dense(p, x):
    return x @ p["kernel"] + p["bias"]


def lstm(p, x):
    """Compute one direction of an LSTM with gates i, j, f, o; 1 is added to f."""
    size = p["state_kernel"].shape[0]
    cell = hidden = np.zeros(size)
    outputs = []
    for step in x:
        i, j, f, o = np.split(step @ p["input_kernel"] + hidden @ p["state_kernel"] + p["bias"], GATES)
        cell = sigmoid(f + 1) * cell + sigmoid(i) * np.tanh(j)
        hidden = sigmoid(o) * np.tanh(cell)
        outputs.append(hidden)
    return np.array(outputs)


def bilstm(p, x):
    return np.concatenate([lstm(p["forward"], x), lstm(p["backward"], x[::-1])[::-1]], axis=1)


def embedded(params, ids):
    return np.concatenate([params["words"]["specials"], params["words"]["table"]])[ids]


def with_encoder(params, x, layers, place):
    """Apply equation 1 of the ELMo paper, if there is a mixture at that place."""
    if place not in params.get("mix", {}):
        return x
    mix = params["mix"][place]
    return np.concatenate([x, mix["gamma"] * np.tensordot(softmax(mix["weights"]), layers, 1)], axis=1)


def aligned(x, other):
    return softmax(x @ other.T) @ other


def bcn(params, texts):
    """Return the scores of one text or two, each (ids, layers)."""
    read = []
    for ids, layers in texts:
        x = with_encoder(params, embedded(params, ids), layers, "input")
        read.append(bilstm(params["encoder_lstm"], np.maximum(dense(params["feed"], x), 0)))
    pooled = []
    for (_, layers), x, other in zip(texts, read, read[::-1]):
        partner = aligned(x, other)
        x = bilstm(params["integrator"], np.concatenate([x, x - partner, x * partner], axis=1))
        x = with_encoder(params, x, layers, "output")
        pooled += [x.max(axis=0), x.mean(axis=0), x.min(axis=0), softmax(x @ params["attend"]) @ x]
    y = np.concatenate(pooled)
    for n in range(3):
        y = dense(params[f"maxout_{n}"], y).reshape(-1, 4).max(axis=1)
    return y


def esim(params, texts):
    """Return the scores of a pair of texts, each (ids, layers)."""
    read = []
    for ids, layers in texts:
        x = bilstm(params["encoder_lstm"], with_encoder(params, embedded(params, ids), layers, "input"))
        read.append(with_encoder(params, x, layers, "output"))
    pooled = []
    for x, other in zip(read, read[::-1]):
        partner = aligned(x, other)
        x = np.maximum(dense(params["project"], np.concatenate([x, partner, x - partner, x * partner], axis=1)), 0)
        x = bilstm(params["composition"], x)
        pooled += [x.mean(axis=0), x.max(axis=0)]
    return dense(params["labels"], np.tanh(dense(params["hidden"], np.concatenate(pooled))))
