"""A pretraining step in PyTorch: logits at the predictions only, fused AdamW, autocast for bfloat16; BERT by SDPA."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from torch.nn.functional import cross_entropy

NAME = "transformers on PyTorch: SDPA, gathered predictions, fused AdamW"
OWN_NAME = "transformers on PyTorch: DeBERTa's own attention, gathered predictions, fused AdamW"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"  # of encoding and generation


def about(name: str, precision: str) -> dict[str, Any]:
    """Return the description of a side of transformers."""
    version = f"transformers {transformers.__version__}, torch {torch.__version__.partition('+')[0]}"
    device = torch.cuda.get_device_name() if DEVICE == "cuda" else DEVICE
    peer = {"name": name, "version": version, "precision": precision}
    return {"peer": peer, "threads": torch.get_num_threads(), "device": device}


def make_passes(folder: Path, precision: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a training step on the folder's batch."""
    pairs_too = transformers.AutoConfig.from_pretrained(folder).model_type == "bert"
    if pairs_too:
        model: Any = transformers.BertForPreTraining.from_pretrained(folder, attn_implementation="sdpa")
    else:  # transformers has no other attention for it
        model = transformers.DebertaV2ForMaskedLM.from_pretrained(folder)
    with np.load(folder / "batch.npz") as stored:
        batch = {name: torch.from_numpy(array.copy()) for name, array in stored.items()}
    tokens, targets = batch["tokens"].long(), batch["mlm_targets"].long().flatten()
    places = batch["mlm_positions"].long()[:, :, None].expand(-1, -1, model.config.hidden_size)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, weight_decay=0.01, fused=True)

    def loss() -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bfloat16"):
            out = model.base_model(tokens)
            logits = model.cls.predictions(torch.gather(out.last_hidden_state, 1, places))
            pairs: Any = model.cls.seq_relationship(out.pooler_output) if pairs_too else None
        masked = cross_entropy(logits.flatten(0, 1).float(), targets)
        return masked + cross_entropy(pairs.float(), batch["nsp_targets"].long()[:, 0]) if pairs_too else masked

    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    with torch.no_grad():
        check = [loss().item()] if not model.eval().training else []
    model.train()
    return {"step": step}, {**about(NAME if pairs_too else OWN_NAME, precision), "check": check}
