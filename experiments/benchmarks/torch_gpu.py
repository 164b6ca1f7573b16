r"""The pretraining step of BERT-base in PyTorch on a GPU, in the sizes of `speed --what=utilisation`.

  python -m experiments.benchmarks.torch_gpu
  python -m experiments.benchmarks.torch_gpu --compile

As an expert writes it: autocast to bfloat16, SDPA without dropout on the attention maps, logits at the predictions
only, fused AdamW. It needs torch with CUDA, and transformers.
"""

import importlib.util
import statistics
import time
from typing import Any

from absl import flags

from experiments.command_line.start import start

FLAGS = flags.FLAGS
SHAPES = ((256, 128), (64, 512))


def define() -> None:
    """Define the flags."""
    flags.DEFINE_bool("compile", False, "Compile the loss with torch.compile.")


def measure(rows: int, length: int, compiled: bool, device: str, repeats: int = 15, **sizes: Any) -> float:
    """Return the milliseconds of a training step; `sizes` are fields of the model."""
    import torch
    import transformers
    from torch.nn.functional import cross_entropy

    config = transformers.BertConfig(attn_implementation="sdpa", attention_probs_dropout_prob=0.0, **sizes)
    model: Any = transformers.BertForPreTraining(config).to(device).train()
    tokens = torch.randint(config.vocab_size // 2, config.vocab_size, (rows, length), device=device)
    places = torch.rand(rows, length, device=device).argsort(1)[:, : length * 20 // 128].sort(1).values
    targets = torch.gather(tokens, 1, places).flatten()
    follows = torch.randint(0, 2, (rows,), device=device)
    places = places[:, :, None].expand(-1, -1, config.hidden_size)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, weight_decay=0.01, fused=True)

    def loss() -> Any:
        with torch.autocast(device, dtype=torch.bfloat16):
            # The parts instead of `model.bert`, which makes a mask for full rows when it is compiled.
            hidden = model.bert.encoder(model.bert.embeddings(tokens)).last_hidden_state
            logits = model.cls.predictions(torch.gather(hidden, 1, places))
            pairs = model.cls.seq_relationship(model.bert.pooler(hidden))
        return cross_entropy(logits.flatten(0, 1).float(), targets) + cross_entropy(pairs.float(), follows)

    torch.compiler.reset()  # or the second shape would be compiled for any shape, which is slower
    run = torch.compile(loss, dynamic=False) if compiled else loss
    wait = torch.cuda.synchronize if device == "cuda" else int  # `int()` does nothing
    seconds = []
    for turn in range(3 + repeats):
        wait()
        begin = time.perf_counter()
        optimizer.zero_grad()
        run().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        wait()
        if turn >= 3:
            seconds.append(time.perf_counter() - begin)
    return 1000 * statistics.median(seconds)


def main() -> None:
    """Measure every shape."""
    missing = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
    if missing:
        raise ValueError(f"this interpreter lacks {', '.join(missing)}: install them, torch with CUDA")
    import torch

    if not torch.cuda.is_available():
        raise ValueError("torch finds no GPU: this program measures one; `speed --what=step` measures on the CPU")
    for rows, length in SHAPES:
        milliseconds = measure(rows, length, FLAGS.compile, "cuda")
        print(
            f"torch {torch.__version__}, {torch.cuda.get_device_name()}, {rows} × {length}: {milliseconds:.1f} ms",
            flush=True,
        )


if __name__ == "__main__":
    start("benchmarks.torch_gpu", define, main)
