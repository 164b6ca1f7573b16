"""A training step of fastai's AWD-LSTM, with both penalties of its RNNRegularizer, and PyTorch's fused AdamW."""

import json
from pathlib import Path
from typing import Any

import fastai
import numpy as np
import torch
from fastai.text.models.awdlstm import AWD_LSTM, awd_lstm_lm_config
from fastai.text.models.core import get_language_model
from safetensors.torch import load_file
from torch.nn.functional import cross_entropy

NAME = "fastai's AWD-LSTM on PyTorch, fused AdamW"
RATES = {"output_p": 0.4, "hidden_p": 0.3, "input_p": 0.4, "embed_p": 0.05, "weight_p": 0.5}  # ULMFiT's
PENALTIES = (2.0, 1.0)  # of the last layer's outputs, and of their changes


def make_model(folder: Path) -> torch.nn.Module:
    """Return fastai's language model with the folder's weights."""
    sizes = json.loads((folder / "settings.json").read_text(encoding="utf-8"))["sizes"]
    widths = {"emb_sz": sizes["embedding_size"], "n_hid": sizes["cell_size"], "n_layers": sizes["num_layers"]}
    config = {**awd_lstm_lm_config, **widths, **RATES, "pad_token": None}
    model: Any = get_language_model(AWD_LSTM, sizes["vocab_size"], config=config)
    weights = load_file(str(folder / "lm.safetensors"))
    for n in range(sizes["num_layers"]):  # what weight drop made of the raw matrix
        weights[f"0.rnns.{n}.module.weight_hh_l0"] = weights[f"0.rnns.{n}.weight_hh_l0_raw"].clone()
    keys = model.load_state_dict(weights, strict=False)
    lacking = [name for name in keys.missing_keys if not name.endswith("module.weight_hh_l0")]
    extra = [name for name in keys.unexpected_keys if not name.endswith("module.weight_hh_l0")]
    if lacking or extra:
        raise ValueError(f"fastai's model lacks {lacking} and has no {extra}")
    return model


def make_passes(folder: Path, precision: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a training step on the folder's batch; the state is carried from step to step."""
    model = make_model(folder)
    with np.load(folder / "batch.npz") as stored:
        words, targets = (torch.from_numpy(stored[name]).long() for name in ("words_forward", "forward_targets"))
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3, (0.7, 0.99), 1e-8, weight_decay=1.2e-6, fused=True)

    def terms() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        logits, raw, dropped = model(words)
        changes = (raw[:, 1:] - raw[:, :-1]).pow(2).mean()
        return cross_entropy(logits.flatten(0, 1), targets.flatten()), dropped.pow(2).mean(), changes

    def step() -> None:
        optimizer.zero_grad()
        lm, activation, change = terms()
        (lm + PENALTIES[0] * activation + PENALTIES[1] * change).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()

    model.eval()
    model.reset()
    with torch.no_grad():
        check = [float(sum(terms()))]
    model.train()
    model.reset()
    version = f"fastai {fastai.__version__}, torch {torch.__version__.partition('+')[0]}"
    peer = {"name": NAME, "version": version, "precision": precision}
    return {"step": step}, {"peer": peer, "threads": torch.get_num_threads(), "check": check}
