"""The peers of `bert.py`, run by the interpreter given to --peers; they import nothing from this project.

`python _bert_peers.py pytorch|flax FOLDER` loads the weights and the batch in FOLDER, prints a description as one line
of JSON (with its loss without dropout, which shows that the sides compute the same), and then, for every line that it
reads, takes one training step and prints its seconds.
"""

import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

Step = Callable[[], None]


def pytorch(folder: Path, batch: Mapping[str, np.ndarray]) -> tuple[Step, float, str]:
    """Return transformers on PyTorch: eager attention, AdamW and clipping as in its examples."""
    import torch
    import transformers

    model = transformers.BertForPreTraining.from_pretrained(folder, attn_implementation="eager")
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, weight_decay=0.01)
    inputs = {name: torch.from_numpy(array.astype(np.int64)) for name, array in batch.items()}

    def step() -> None:
        loss = model(**inputs).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    with torch.no_grad():
        loss = model.eval()(**inputs).loss.item()
    model.train()
    return (
        step,
        loss,
        f"transformers {transformers.__version__}, torch {torch.__version__}, {torch.get_num_threads()} threads",
    )


def flax(folder: Path, batch: Mapping[str, np.ndarray]) -> tuple[Step, float, str]:
    """Return the last Flax BERT of transformers (up to 4.55), which computes logits for all tokens."""
    import jax
    import jax.numpy as jnp
    import optax
    import transformers

    model = transformers.FlaxBertForPreTraining.from_pretrained(folder, from_pt=True)
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
    return step, first, f"transformers {transformers.__version__} (Flax), jax {jax.__version__}"


def main(kind: str, folder: Path) -> None:
    """Serve steps on request."""
    with np.load(folder / "batch.npz") as stored:
        batch = dict(stored)
    step, loss, about = {"pytorch": pytorch, "flax": flax}[kind](folder, batch)
    step()  # the first is slower everywhere
    print(json.dumps({"loss": loss, "about": about}), flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        step()
        print(time.perf_counter() - start, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
