"""ELMo written out word by word in numpy, with switches that break one detail each.

A reference that shares no code with the model: loops instead of matrix products, float64 if requested, and its own
code for the marks of begin and end, state and characters.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Broken:
    """The details to get wrong."""

    forget_bias: float = 1.0
    gate_order: str = "ijfo"
    id_offset: int = 1
    padding_is_zero: bool = False
    no_proj_clip: bool = False
    no_cell_clip: bool = False
    no_skip: bool = False
    skip_in_state: bool = False
    skip_on_first: bool = False
    clip_after_skip: bool = False
    shared_directions: bool = False
    reverse_whole_row: bool = False
    no_carry_flip: bool = False
    h_before_x: bool = False


RIGHT = Broken()


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def clip(x, limit):
    return x if limit is None else np.clip(x, -limit, limit)


def character_ids(word, maximum, broken=RIGHT):
    """Return begin-word, bytes, end-word and padding, + 1; `word` may be the number of 'begin' or 'end', or None."""
    if word is None:
        return [0] * maximum
    middle = [word] if isinstance(word, int) else list(word.encode()[: maximum - 2])
    ids = [258, *middle, 259]
    return [i + broken.id_offset for i in ids + [260] * (maximum - len(ids))]


def token_vector(token, config, ids, broken=RIGHT):
    """Return one word's output of the character CNN, highway layers and projection."""
    dtype = token["embedding"].dtype
    table = np.concatenate([np.zeros_like(token["embedding"][:1]), token["embedding"]])
    x = table[ids]
    if broken.padding_is_zero:
        x = np.where(np.array(ids)[:, None] == 261, dtype.type(0), x)
    parts = []
    for n, (width, _) in enumerate(config.filters):
        conv = token[f"conv_{n}"]
        values = [np.einsum("we,wef->f", x[s : s + width], conv["kernel"]) for s in range(len(ids) - width + 1)]
        parts.append(np.max(values, axis=0) + conv["bias"])
    x = np.concatenate(parts)
    x = np.tanh(x) if config.char_activation == "tanh" else np.maximum(x, 0)
    for n in range(config.num_highways):
        carry, transform = (token[f"highway_{n}"][part] for part in ("carry", "transform"))
        gate = sigmoid(x @ carry["kernel"] + carry["bias"])
        if broken.no_carry_flip:
            gate = 1 - gate
        x = gate * np.maximum(x @ transform["kernel"] + transform["bias"], 0) + (1 - gate) * x
    if config.token_projection:
        x = x @ token["projection"]["kernel"] + token["projection"]["bias"]
    return x


def cell_step(layer, config, x, cell, hidden, broken=RIGHT):
    """Compute one LSTM step of one row."""
    from_input, from_state = (hidden, x) if broken.h_before_x else (x, hidden)
    parts = np.split(from_input @ layer["input_kernel"] + from_state @ layer["state_kernel"] + layer["bias"], 4)
    gate = dict(zip(broken.gate_order, parts, strict=True))
    cell = sigmoid(gate["f"] + broken.forget_bias) * cell + sigmoid(gate["i"]) * np.tanh(gate["j"])
    cell = cell if broken.no_cell_clip else clip(cell, config.cell_clip)
    hidden = sigmoid(gate["o"]) * np.tanh(cell)
    if config.projection:
        hidden = hidden @ layer["projection"]
        if not (broken.no_proj_clip or broken.clip_after_skip):
            hidden = clip(hidden, config.proj_clip)
    return cell, hidden


def read(encoder, config, tokens, state, direction, broken=RIGHT):
    """Read one row's token vectors in one direction; return the outputs of every layer and the final state."""
    sequence, layers, after = list(tokens), [], []
    for n in range(config.num_layers):
        cell, hidden = state[n]
        outputs = []
        for x in sequence:
            cell, hidden = cell_step(encoder[direction][f"layer_{n}"], config, x, cell, hidden, broken)
            y = hidden
            if config.skip_connections and not broken.no_skip and (n > 0 or broken.skip_on_first):
                y = y + x
                if broken.clip_after_skip:
                    y = clip(y, config.proj_clip)
                if broken.skip_in_state:
                    hidden = y
            outputs.append(y)
        sequence = outputs
        layers.append(outputs)
        after.append((cell, hidden))
    return layers, after


def encode(encoder, config, sentences, state=None, broken=RIGHT):
    """Encode every sentence separately: return its layers [L+1, words + 2, 2P], and the state after it.

    A sentence is a list of words (characters) or of ids (word input, marks included). `state[row][direction][layer]`.
    """
    dtype = encoder["forward"]["layer_0"]["bias"].dtype
    zero = [(np.zeros(config.cell_size, dtype), np.zeros(config.projection_size, dtype))] * config.num_layers
    longest = max((len(sentence) for sentence in sentences), default=0) + (0 if config.input == "words" else 2)
    results, states = [], []
    for row, sentence in enumerate(sentences):
        if config.input == "words":
            tokens = [encoder["token"]["embedding"][i] for i in sentence]
        else:
            words = [256, *sentence, 257]
            ids = [character_ids(word, config.max_characters, broken) for word in words]
            tokens = [token_vector(encoder["token"], config, i, broken) for i in ids]
        before = state[row] if state is not None else [zero, zero]
        ahead, after_ahead = read(encoder, config, tokens, before[0], "forward", broken)
        reading = tokens[::-1]
        if broken.reverse_whole_row:  # padding first, as if the row were full
            reading = [np.zeros_like(tokens[0])] * (longest - len(tokens)) + reading
        direction = "forward" if broken.shared_directions else "backward"
        back, after_back = read(encoder, config, reading, before[1], direction, broken)
        back = [outputs[len(outputs) - len(tokens) :][::-1] for outputs in back]
        layers = [[np.concatenate([t, t]) for t in tokens]]
        layers += [[np.concatenate(pair) for pair in zip(*both, strict=True)] for both in zip(ahead, back, strict=True)]
        results.append(np.array(layers).reshape(config.num_layers + 1, len(tokens), 2 * config.projection_size))
        states.append([after_ahead, after_back])
    return results, states
