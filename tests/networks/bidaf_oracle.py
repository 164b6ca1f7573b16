"""The reader in plain numpy as a reference: one question and one word at a time, without padding."""

import numpy as np

from .text_oracle import bilstm, dense, softmax


def relu(x):
    return np.maximum(x, 0)


def characters_of(ids, p):
    """Return a word's largest value of each filter, with the word padded to the maximum length."""
    table = np.concatenate([np.zeros((1, p["embedding"].shape[1])), p["embedding"]])
    word = table[list(ids) + [261] * (50 - len(ids))]
    kernel, bias = p["conv_0"]["kernel"], p["conv_0"]["bias"]
    wide = len(kernel)
    responses = [np.einsum("we,wef->f", word[n : n + wide], kernel) for n in range(len(word) - wide + 1)]
    return relu(np.max(responses, axis=0) + bias)


def mixed(layers, mix):
    return mix["gamma"] * np.einsum("l,ltd->td", softmax(mix["weights"]), layers)


def words_of(text, p):
    """Return the vectors [T, E] of a text: {"words", "characters", "layers"}."""
    table = np.concatenate([p["words"]["specials"], p["words"]["table"]])
    x = table[text["words"]]
    if "characters" in text:
        spelled = [characters_of(word, p["words"]["characters"]) for word in text["characters"]]
        x = np.concatenate([x, np.array(spelled)], axis=-1)
    return x


def read(text, p, places):
    x = words_of(text, p)
    if "input" in places:
        x = np.concatenate([x, mixed(text["layers"], p["mix"]["input"])], axis=-1)
    x = bilstm(p["first_layer"], x)
    if "output" in places:
        x = np.concatenate([x, mixed(text["layers"], p["mix"]["output"])], axis=-1)
    return x


def answer(context, question, p, places=(), unanswerable=False):
    """Return the scores of starts and ends [T], and of "no answer"."""
    x, y = read(context, p, places), read(question, p, places)
    flow = p["flow"]
    scores = np.array([[flow["of_x"] @ a + flow["of_y"] @ b + flow["both"] @ (a * b) for b in y] for a in x])
    back = softmax(scores.max(axis=1)) @ x
    rows = []
    for a, of_a in zip(x, scores):
        c = softmax(of_a) @ y
        rows.append(np.concatenate([a, c, a * c, back * c]))
    x = relu(dense(p["merge"], np.array(rows)))
    inner = bilstm(p["self_layer"], x)
    rows = []
    for n, a in enumerate(inner):
        other_words = [m for m in range(len(inner)) if m != n]
        c = np.zeros_like(a)
        if other_words:
            of_a = np.array(
                [p["self_flow"]["of_y"] @ inner[m] + p["self_flow"]["both"] @ (a * inner[m]) for m in other_words]
            )
            c = softmax(of_a) @ inner[other_words]
        rows.append(np.concatenate([a, c, a * c]))
    x = x + relu(dense(p["self_merge"], np.array(rows)))
    from_start = bilstm(p["start_layer"], x)
    from_end = bilstm(p["end_layer"], np.concatenate([x, from_start], axis=-1))
    start, end = from_start @ p["start"], from_end @ p["end"]
    if not unanswerable:
        return start, end, -np.inf
    summaries = [softmax(start) @ from_start, softmax(end) @ from_end, softmax(x @ p["none_flow"]) @ x]
    hidden = relu(dense(p["none_hidden"], np.concatenate(summaries)))
    return start, end, dense(p["none"], hidden)[0]
