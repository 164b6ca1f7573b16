"""The pretraining step of BERT-base in PyTorch on a GPU, in the sizes of `speed --what=utilisation`.

  python -m experiments.benchmarks.peers.gpu_step [compile]

As an expert writes it: autocast to bfloat16, SDPA without dropout on the attention maps, logits at the predictions
only, fused AdamW. It needs torch with CUDA, and transformers; `compile` compiles the loss with `torch.compile`.
"""

import statistics
import sys
import time

import torch
import transformers
from torch.nn.functional import cross_entropy

SHAPES = ((256, 128), (64, 512))


def measure(rows: int, length: int, compiled: bool, repeats: int = 15) -> float:
    """Return the milliseconds of a training step."""
    config = transformers.BertConfig(attn_implementation="sdpa", attention_probs_dropout_prob=0.0)
    model = transformers.BertForPreTraining(config).cuda().train()
    tokens = torch.randint(1000, config.vocab_size, (rows, length), device="cuda")
    places = torch.rand(rows, length, device="cuda").argsort(1)[:, : length * 20 // 128].sort(1).values
    targets = torch.gather(tokens, 1, places).flatten()
    follows = torch.randint(0, 2, (rows,), device="cuda")
    places = places[:, :, None].expand(-1, -1, config.hidden_size)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, weight_decay=0.01, fused=True)

    def loss() -> torch.Tensor:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            out = model.bert(tokens)
            logits = model.cls.predictions(torch.gather(out.last_hidden_state, 1, places))
            pairs = model.cls.seq_relationship(out.pooler_output)
        return cross_entropy(logits.flatten(0, 1).float(), targets) + cross_entropy(pairs.float(), follows)

    run = torch.compile(loss) if compiled else loss
    seconds = []
    for turn in range(3 + repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        optimizer.zero_grad()
        run().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        torch.cuda.synchronize()
        if turn >= 3:
            seconds.append(time.perf_counter() - start)
    return 1000 * statistics.median(seconds)


if __name__ == "__main__":
    for rows, length in SHAPES:
        milliseconds = measure(rows, length, "compile" in sys.argv[1:])
        print(f"torch {torch.__version__}, {rows} × {length}: {milliseconds:.1f} ms", flush=True)
