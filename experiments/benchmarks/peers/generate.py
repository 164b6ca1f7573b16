"""Generation in PyTorch: `generate` of transformers with its cache, SDPA, inference mode."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers

from .step import DEVICE, about

NAME = "transformers on PyTorch: generate with its cache, SDPA, inference mode"
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def make_passes(folder: Path, precision: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the generation of each case; nothing ends a text."""
    cases = json.loads((folder / "settings.json").read_text(encoding="utf-8"))["cases"]
    model: Any = transformers.GPT2LMHeadModel.from_pretrained(
        folder, attn_implementation="sdpa", dtype=DTYPES[precision]
    )
    model.eval().to(DEVICE)
    model.generation_config.eos_token_id = None
    model.generation_config.pad_token_id = 0

    @torch.inference_mode()
    def write(prompts: list[list[int]], new: int, beams: int) -> None:
        tokens = torch.tensor(prompts, device=DEVICE)
        output = model.generate(
            tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=new, num_beams=beams, do_sample=False
        )
        assert output.shape == (len(prompts), tokens.shape[1] + new)

    with torch.inference_mode():
        logits = model(torch.tensor(cases["one"]["prompts"], device=DEVICE)).logits[0, -1, :8]
    record = {**about(NAME, precision), "check": logits.float().tolist()}
    return {name: partial(write, **case) for name, case in cases.items()}, record
