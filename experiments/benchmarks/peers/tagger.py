"""A BiLSTM-CRF tagger in PyTorch, with packed sequences and a vectorised CRF."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

NAME = "the same network in PyTorch: packed sequences, vectorised CRF"
DROPOUT = 0.5


def read_arrays(file: Path) -> dict[str, Any]:
    """Return the arrays of an .npz file."""
    with np.load(file) as stored:
        return dict(stored)


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


def make_passes(folder: Path, precision: str) -> tuple[dict[str, Any], dict[str, Any]]:
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
    version = f"torch {torch.__version__.partition('+')[0]}"
    passes = {"training": training, "prediction": prediction, "probabilities": prediction}
    return passes, {"peer": {"name": NAME, "version": version, "precision": precision}, "check": [loss]}
