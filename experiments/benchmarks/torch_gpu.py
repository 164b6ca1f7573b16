r"""Pretraining steps in PyTorch on a GPU, in the sizes of `gpu_steps`: BERT-base, BERT-large and GPT-2.

  python -m experiments.benchmarks.torch_gpu --compile
  python -m experiments.benchmarks.torch_gpu --compile --cases=base128,base512 --mask

As an expert writes it: autocast to bfloat16, SDPA without dropout on the attention maps, logits at the predictions
only, fused AdamW. It needs torch with CUDA, and transformers. Each line is JSON: the median of the steps that were
waited for one by one, and the mean of steps that were waited for together. Rows are full; with `--mask`, attention gets
a mask all the same, as rows with padding need.
"""

import importlib.util
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

from absl import flags

from ..command_line.start import start

FLAGS = flags.FLAGS
LARGE = {"num_hidden_layers": 24, "hidden_size": 1024, "num_attention_heads": 16, "intermediate_size": 4096}
CASES: dict[str, tuple[int, int, dict[str, Any]]] = {
    "base128": (256, 128, {}),
    "base512": (64, 512, {}),
    "large512": (64, 512, LARGE),
    "gpt512": (32, 512, {}),
}


def define() -> None:
    """Define the flags."""
    flags.DEFINE_list("cases", ["base128", "base512"], f"Of {', '.join(CASES)}.")
    flags.DEFINE_bool("compile", False, "Compile the loss with torch.compile.")
    flags.DEFINE_bool("mask", False, "Give attention a mask of padding, though there is none.")
    flags.DEFINE_integer("steps", 20, "To measure.", lower_bound=1)


def build_bert(rows: int, length: int, mask: bool, device: str, sizes: dict[str, Any]) -> tuple[Any, Callable[[], Any]]:
    """Return a BERT and its loss on a batch."""
    import torch
    import transformers
    from torch.nn.functional import cross_entropy

    config = transformers.BertConfig(attn_implementation="sdpa", attention_probs_dropout_prob=0.0, **sizes)
    model: Any = transformers.BertForPreTraining(config).to(device).train()
    tokens = torch.randint(config.vocab_size // 2, config.vocab_size, (rows, length), device=device)
    places = torch.rand(rows, length, device=device).argsort(1)[:, : max(1, length * 20 // 128)].sort(1).values
    targets = torch.gather(tokens, 1, places).flatten()
    follows = torch.randint(0, 2, (rows,), device=device)
    places = places[:, :, None].expand(-1, -1, config.hidden_size)
    seen = torch.ones(rows, 1, 1, length, dtype=torch.bool, device=device) if mask else None

    def loss() -> Any:
        with torch.autocast(device, dtype=torch.bfloat16):
            # The parts instead of `model.bert`, which makes a mask for full rows when it is compiled.
            hidden = model.bert.encoder(model.bert.embeddings(tokens), attention_mask=seen).last_hidden_state
            logits = model.cls.predictions(torch.gather(hidden, 1, places))
            pairs = model.cls.seq_relationship(model.bert.pooler(hidden))
        return cross_entropy(logits.flatten(0, 1).float(), targets) + cross_entropy(pairs.float(), follows)

    return model, loss


def build_gpt(rows: int, length: int, mask: bool, device: str, sizes: dict[str, Any]) -> tuple[Any, Callable[[], Any]]:
    """Return a GPT-2 and its loss on a batch; the causal rule needs no mask."""
    import torch
    import transformers
    from torch.nn.functional import cross_entropy

    if mask:
        raise ValueError("--mask is for BERT: GPT's rows are full")
    config = transformers.GPT2Config(attn_implementation="sdpa", attn_pdrop=0.0, use_cache=False, **sizes)
    model: Any = transformers.GPT2LMHeadModel(config).to(device).train()
    tokens = torch.randint(0, config.vocab_size, (rows, length), device=device)
    places, targets = torch.arange(length, device=device), tokens.roll(-1, 1).flatten()

    def loss() -> Any:
        with torch.autocast(device, dtype=torch.bfloat16):
            body = model.transformer
            hidden = body.drop(body.wte(tokens) + body.wpe(places))
            for block in body.h:
                outputs = block(hidden)
                hidden = outputs[0] if isinstance(outputs, tuple) else outputs
            logits = model.lm_head(body.ln_f(hidden))
        return cross_entropy(logits.flatten(0, 1).float(), targets)

    return model, loss


def measure(case: str, compiled: bool, mask: bool, device: str, steps: int = 20, shape: Any = None) -> dict[str, Any]:
    """Return the milliseconds of a training step; `shape` replaces the case's rows, length and fields of the model."""
    import torch

    rows, length, sizes = shape or CASES[case]
    build = build_gpt if case.startswith("gpt") else build_bert
    torch.compiler.reset()  # or the second shape would be compiled for any shape, which is slower
    model, loss = build(rows, length, mask, device, sizes)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, weight_decay=0.01, fused=True)
    run = torch.compile(loss, dynamic=False) if compiled else loss
    wait = torch.cuda.synchronize if device == "cuda" else int  # `int()` does nothing

    def take_steps(count: int) -> float:
        wait()
        began = time.perf_counter()
        for _ in range(count):
            optimizer.zero_grad()
            run().backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        wait()
        return 1000 * (time.perf_counter() - began) / count

    first = take_steps(1)
    take_steps(2)
    alone = [take_steps(1) for _ in range(steps)]
    together = statistics.median(take_steps(steps) for _ in range(3))
    return {
        "case": case, "compiled": compiled, "mask": mask, "torch": torch.__version__,
        "card": torch.cuda.get_device_name() if device == "cuda" else device,
        "milliseconds": round(statistics.median(alone), 3), "together": round(together, 3),
        "fastest": round(min(alone), 3), "first_step_seconds": round(first / 1000, 1),
    }  # fmt: skip


def main() -> None:
    """Measure every case."""
    missing = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
    if missing:
        raise ValueError(f"this interpreter lacks {', '.join(missing)}: install them, torch with CUDA")
    import torch

    if not torch.cuda.is_available():
        raise ValueError("torch finds no GPU: this program measures one; `speed --what=step` measures on the CPU")
    for case in FLAGS.cases:
        try:
            line = measure(case, FLAGS.compile, FLAGS.mask, "cuda", FLAGS.steps)
        except Exception as error:  # such as too little memory: the others are still measured
            line = {"case": case, "mask": FLAGS.mask, "error": f"{type(error).__name__}: {error}"[:1500]}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    start("benchmarks.torch_gpu", define, main)
