"""An epoch of fine-tuning with transformers' Trainer: batches grouped by length, SDPA, fused AdamW."""

import json
import tempfile
from pathlib import Path
from typing import Any

import torch
import transformers

from .step import about

NAME = "transformers' Trainer: grouped by length, SDPA, fused AdamW"


class Examples(torch.utils.data.Dataset):
    """Tokenised texts with labels."""

    def __init__(self, rows: list[dict[str, Any]]):
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, number: int) -> dict[str, Any]:
        return self.rows[number]


def make_passes(folder: Path, precision: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return an epoch over all examples."""
    settings = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    kind = transformers.AutoModelForSequenceClassification
    model: Any = kind.from_pretrained(folder, attn_implementation="sdpa", num_labels=2)
    encoded = tokenizer(settings["texts"], truncation=True, max_length=settings["max_length"])["input_ids"]
    rows = [{"input_ids": ids, "labels": label} for ids, label in zip(encoded, settings["labels"])]
    workdir = tempfile.mkdtemp(dir=folder)
    arguments = transformers.TrainingArguments(
        workdir, num_train_epochs=1, per_device_train_batch_size=settings["batch_size"],
        learning_rate=settings["learning_rate"], weight_decay=0.01, warmup_steps=0.1, optim="adamw_torch_fused",
        bf16=precision == "bfloat16", use_cpu=True, train_sampling_strategy="group_by_length", save_strategy="no",
        logging_strategy="no", report_to=[], disable_tqdm=True, dataloader_pin_memory=False,
    )  # fmt: skip
    trainer = transformers.Trainer(
        model, arguments, train_dataset=Examples(rows), data_collator=transformers.DataCollatorWithPadding(tokenizer)
    )
    # Vectors of the first text would differ by the new heads; the pieces show that both sides read the same.
    return {"epoch": lambda: trainer.train() and None}, {
        **about(NAME, precision), "check": [], "pieces": sum(map(len, encoded))
    }  # fmt: skip
