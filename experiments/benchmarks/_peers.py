"""The other sides of the benchmarks, run by the interpreter given to --peers; they import nothing from this project.

`python _peers.py KIND FOLDER` loads the weights and the inputs in FOLDER, runs every pass once (the first is slower
everywhere), and prints a description of itself as one line of JSON, with a loss without dropout or some vectors, which
show that both sides compute the same. Then, for every line that it reads, it runs the pass of that name and prints its
seconds.
"""

import importlib
import importlib.metadata
import json
import sys
import time
import types
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

TORCH = f"torch {torch.__version__}, {torch.get_num_threads()} threads"
DROPOUT = 0.5  # of the tagger
# Imports of AllenNLP 2.10 that its other models need: torchvision, wandb, fairscale.
ABSENT = """
torchvision torchvision.models wandb fairscale fairscale.nn fairscale.nn.checkpoint fairscale.nn.wrap fairscale.nn.misc
fairscale.optim fairscale.optim.grad_scaler
""".split()

Passes = Mapping[str, Callable[[], object]]


def read_arrays(file: Path) -> dict[str, Any]:
    """Return the arrays of an .npz file."""
    with np.load(file) as stored:
        return dict(stored)


def pytorch(folder: Path) -> tuple[Passes, dict[str, Any]]:
    """Return a training step of transformers on PyTorch: eager attention, AdamW and clipping as in its examples."""
    import transformers

    model = transformers.BertForPreTraining.from_pretrained(folder, attn_implementation="eager")
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, weight_decay=0.01)
    arrays = read_arrays(folder / "batch.npz")
    inputs = {name: torch.from_numpy(array.astype(np.int64)) for name, array in arrays.items()}

    def step() -> None:
        loss = model(**inputs).loss
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    with torch.no_grad():
        loss = model.eval()(**inputs).loss.item()
    model.train()
    return {"step": step}, {"loss": loss, "about": f"transformers {transformers.__version__}, {TORCH}"}


def flax(folder: Path) -> tuple[Passes, dict[str, Any]]:
    """Return a step of the last Flax BERT of transformers (up to 4.55), which computes logits for all tokens."""
    import jax
    import jax.numpy as jnp
    import optax
    import transformers

    model = transformers.FlaxBertForPreTraining.from_pretrained(folder, from_pt=True)
    batch = read_arrays(folder / "batch.npz")
    labels, pairs = jnp.asarray(batch["labels"]), jnp.asarray(batch["next_sentence_label"])
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-4, weight_decay=0.01))

    def loss(params: Any, key: Any) -> Any:
        out = model(
            batch["input_ids"], batch["attention_mask"], batch["token_type_ids"],
            params=params, dropout_rng=key, train=key is not None,
        )  # fmt: skip
        cross_entropy = optax.softmax_cross_entropy_with_integer_labels
        words = cross_entropy(out.prediction_logits, jnp.maximum(labels, 0)) * (labels >= 0)
        return words.sum() / (labels >= 0).sum() + cross_entropy(out.seq_relationship_logits, pairs).mean()

    def update(params: Any, state: Any, key: Any) -> Any:
        gradients = jax.grad(loss)(params, key)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state

    compiled = jax.jit(update, donate_argnums=(0, 1))
    state = [model.params, optimizer.init(model.params), jax.random.PRNGKey(0)]

    def step() -> None:
        state[2], key = jax.random.split(state[2])
        state[:2] = jax.block_until_ready(compiled(*state[:2], key))

    first = float(jax.jit(lambda params: loss(params, None))(model.params))
    about = f"transformers {transformers.__version__} (Flax), jax {jax.__version__}"
    return {"step": step}, {"loss": first, "about": about}


def encode(folder: Path) -> tuple[Passes, dict[str, Any]]:
    """Return the encoding of all sentences by transformers on PyTorch: the usual loop over batches."""
    import transformers

    asked = json.loads((folder / "sentences.json").read_text(encoding="utf-8"))
    sentences, batch_size = asked["sentences"], asked["batch_size"]
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.BertModel.from_pretrained(folder).eval()

    def run(texts: list[str]) -> list[np.ndarray]:
        results = []
        with torch.no_grad():
            for start in range(0, len(texts), batch_size):
                batch = tokenizer(texts[start : start + batch_size], padding=True, truncation=True, return_tensors="pt")
                results.append(model(**batch).last_hidden_state.numpy())
        return results

    vectors = run(sentences[:4])[0][:, 0, :4].tolist()
    about = f"transformers {transformers.__version__}, {TORCH}"
    return {"encode": lambda: run(sentences)}, {"vectors": vectors, "about": about}


class Absent(types.ModuleType):
    """A module whose every name is a class that does nothing."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []  # so that it counts as a package

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def allennlp(folder: Path) -> tuple[Passes, dict[str, Any]]:
    """Return AllenNLP's ELMo, forward alone and with gradients; it is patched for libraries that are years newer."""
    import huggingface_hub

    warnings.filterwarnings("ignore")
    for name in ABSENT:
        sys.modules.setdefault(name, Absent(name))
    for name in ("HfFolder", "Repository"):  # removed since
        if not hasattr(huggingface_hub, name):
            setattr(huggingface_hub, name, type(name, (), {}))
    elmo = importlib.import_module("allennlp.modules.elmo")
    options, weights = str(folder / "options.json"), str(folder / "weights.hdf5")
    model = elmo.Elmo(options, weights, 1, dropout=0.0, requires_grad=True).eval()
    model._elmo_lstm._elmo_lstm.stateful = False  # or the first vectors would depend on the number of runs
    ids = torch.from_numpy(np.load(folder / "ids.npy").astype(np.int64))

    def forward() -> np.ndarray:
        with torch.no_grad():
            return model(ids)["elmo_representations"][0].numpy()

    def both() -> None:
        model(ids)["elmo_representations"][0].sum().backward()
        model.zero_grad()

    about = f"allennlp {importlib.metadata.version('allennlp')}, {TORCH}"
    return {"forward": forward, "both": both}, {"vectors": forward()[0].tolist(), "about": about}


def make_lstm(weights: dict, layer: int) -> nn.LSTM:
    """Return a bidirectional LSTM with given weights, whose gates i, j, f, o become PyTorch's i, f, g, o."""
    inputs, gates = weights[f"layer_{layer}/forward/input_kernel"].shape
    size = gates // 4
    order = np.concatenate([np.arange(size) + size * gate for gate in (0, 2, 1, 3)])
    lstm = nn.LSTM(inputs, size, batch_first=True, bidirectional=True)
    with torch.no_grad():
        for direction, ending in (("forward", "_l0"), ("backward", "_l0_reverse")):
            part = {name: weights[f"layer_{layer}/{direction}/{name}"] for name in ("input_kernel", "state_kernel")}
            bias = weights[f"layer_{layer}/{direction}/bias"].copy()
            bias[2 * size : 3 * size] += 1  # the forget gate
            getattr(lstm, f"weight_ih{ending}").copy_(torch.from_numpy(part["input_kernel"].T[order].copy()))
            getattr(lstm, f"weight_hh{ending}").copy_(torch.from_numpy(part["state_kernel"].T[order].copy()))
            getattr(lstm, f"bias_ih{ending}").copy_(torch.from_numpy(bias[order]))
            getattr(lstm, f"bias_hh{ending}").zero_()
    return lstm


class Tagger(nn.Module):
    """Words and a mixture of layers, two BiLSTMs, and a conditional random field."""

    def __init__(self, weights: dict) -> None:
        super().__init__()
        table = np.concatenate([weights["words/specials"], weights["words/table"]])
        self.words = nn.Embedding.from_pretrained(torch.from_numpy(table), freeze=False)
        mixed = "mix/input/weights" in weights
        self.mix = nn.Parameter(torch.from_numpy(weights["mix/input/weights"])) if mixed else None
        self.gamma = nn.Parameter(torch.from_numpy(weights["mix/input/gamma"])) if mixed else None
        self.lstms = nn.ModuleList([make_lstm(weights, 0), make_lstm(weights, 1)])
        self.tags = nn.Linear(*weights["tags/kernel"].shape)
        with torch.no_grad():
            self.tags.weight.copy_(torch.from_numpy(weights["tags/kernel"].T.copy()))
            self.tags.bias.copy_(torch.from_numpy(weights["tags/bias"]))
        self.transitions = nn.Parameter(torch.from_numpy(weights["transitions"]))

    def forward(self, batch: dict) -> torch.Tensor:
        """Return the score of every tag at every word."""
        x = self.words(batch["words"])
        if self.mix is not None:
            shares = self.gamma * torch.softmax(self.mix, 0)
            mixed = torch.einsum("l,bltd->btd", shares, batch["layers"])
            x = torch.cat([x, nn.functional.dropout(mixed, DROPOUT, self.training)], -1)
        for lstm in self.lstms:
            packed = pack_padded_sequence(self.drop(x), batch["lengths"], batch_first=True, enforce_sorted=False)
            x, _ = pad_packed_sequence(lstm(packed)[0], batch_first=True, total_length=batch["words"].shape[1])
        return self.tags(self.drop(x))

    def drop(self, x: torch.Tensor) -> torch.Tensor:
        """Apply dropout with one mask for all words of a sentence."""
        return x * nn.functional.dropout(x.new_ones(x.shape[0], 1, x.shape[2]), DROPOUT, self.training)

    def loss(self, batch: dict) -> torch.Tensor:
        """Return the mean negative log-likelihood of the sentences plus λ·‖w‖²."""
        scores, tags, lengths = self(batch), batch["tags"], batch["lengths"]
        k, rows = scores.shape[2], torch.arange(len(scores))
        begin, end, between = self.transitions[k, :k], self.transitions[:k, k], self.transitions[:k, :k]
        ways = begin + scores[:, 0]
        for t in range(1, scores.shape[1]):
            longer = torch.logsumexp(ways[:, :, None] + between, 1) + scores[:, t]
            ways = torch.where((t < lengths)[:, None], longer, ways)
        real = torch.arange(scores.shape[1])[None] < lengths[:, None]
        emitted = scores.gather(2, tags[:, :, None])[:, :, 0]
        steps = between[tags[:, :-1], tags[:, 1:]] * real[:, 1:]
        path = (emitted * real).sum(1) + steps.sum(1) + begin[tags[:, 0]] + end[tags[rows, lengths - 1]]
        penalty = 0 if self.mix is None else 0.1 * self.mix.square().sum()
        return (torch.logsumexp(ways + end, 1) - path).mean() + penalty

    @torch.no_grad()
    def best(self, batch: dict) -> np.ndarray:
        """Return the best path of each row."""
        scores, lengths = self(batch), batch["lengths"]
        k = scores.shape[2]
        best, pointers = self.transitions[k, :k] + scores[:, 0], []
        same = torch.arange(k).expand(len(scores), k)
        for t in range(1, scores.shape[1]):
            value, before = (best[:, :, None] + self.transitions[:k, :k]).max(1)
            live = (t < lengths)[:, None]
            best = torch.where(live, value + scores[:, t], best)
            pointers.append(torch.where(live, before, same))
        path = [(best + self.transitions[:k, k]).argmax(1)]
        for before in reversed(pointers):
            path.append(before.gather(1, path[-1][:, None])[:, 0])
        return torch.stack(path[::-1], 1).numpy()


def tagger(folder: Path) -> tuple[Passes, dict[str, Any]]:
    """Return training and prediction of `Tagger` on all batches."""
    model = Tagger({name: array.astype(np.float32) for name, array in read_arrays(folder / "weights.npz").items()})
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    stored = [read_arrays(file) for file in sorted(folder.glob("batch_*.npz"))]

    def tensors(batch: dict) -> dict:
        wide = {name: array if name == "layers" else array.astype(np.int64) for name, array in batch.items()}
        return {name: torch.from_numpy(array) for name, array in wide.items()}

    def training() -> None:
        model.train()
        for batch in stored:
            optimizer.zero_grad()
            model.loss(tensors(batch)).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()

    def prediction() -> None:
        model.eval()
        for batch in stored:
            model.best(tensors(batch))

    model.eval()
    with torch.no_grad():
        loss = float(model.loss(tensors(stored[0])))
    return {"training": training, "prediction": prediction}, {"loss": loss, "about": TORCH}


def main(kind: str, folder: Path) -> None:
    """Serve passes on request."""
    sides = {"pytorch": pytorch, "flax": flax, "encode": encode, "allennlp": allennlp, "tagger": tagger}
    passes, shown = sides[kind](folder)
    for run in passes.values():
        run()
    print(json.dumps(shown), flush=True)
    for line in sys.stdin:
        run = passes[line.strip()]
        start = time.perf_counter()
        run()
        print(time.perf_counter() - start, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
