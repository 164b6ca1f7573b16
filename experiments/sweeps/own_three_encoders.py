r"""ELMo, GPT and BERT at equal budgets: frozen in the same task network, and fine-tuned.

Each is pretrained once, on the same text, with the same number of operations in matrix products (BUDGETS in
_three_encoders.py); so they read different amounts of text. Frozen, the layers of each are mixed and read by the same
networks together with word vectors that begin at random. GPT and BERT are also fine-tuned with a layer on top, and
BERT's network without pretraining. ELMo is not fine-tuned, as in its paper. No run chooses a model on dev.

Paper and expected score: Devlin et al. 2018, https://arxiv.org/abs/1810.04805, table 1 (SST-2, GLUE's test data: a
BiLSTM with attention on ELMo, GPT, BERT-base) and table 7 (CoNLL-2003, dev: ELMo, BERT-base fine-tuned, and its last
four layers as features). Their budgets differ: GPT read BooksCorpus, BERT four times as much text and more often.
Scales: toy (minutes on two cores), laptop (novels, a tenth of SST-2, a quarter of UNER), one_gpu, paper.
Cost: toy, 550 seconds of processor time in 31 runs; laptop, 42 minutes in 45 runs; the others are not measured yet.
Command: python -m experiments.sweep --sweep=own_three_encoders --jobs=2 --workdir=runs/sweeps
"""

from typing import Any

from bert_elmo_jax.sweeps.definition import Add, Paper

from ._three_encoders import SCALES as SIZES

SCALES = ("toy", "laptop", "one_gpu", "paper")
PAPER = Paper(
    source="Devlin et al. 2018, tables 1 (test) and 7 (dev), budgets not equal",
    columns=("SST-2", "NER"),
    rows={
        "network alone": (None, None),
        "ELMo, frozen": (90.4, 95.7),
        "GPT, frozen": (None, None),
        "BERT, frozen": (None, 96.1),
        "not pretrained": (None, None),
        "GPT, fine-tuned": (91.3, None),
        "BERT, fine-tuned": (93.5, 96.4),
    },
    reference="network alone",
)


def sweep(add: Add) -> None:
    """Add three pretrainings, and each task with a network on their frozen layers and with fine-tuning."""
    s = SIZES[add.scale]
    models = {name: add.pretrain(name, config, **how) for name, (config, how) in s.pretrainings.items()}
    frozen: dict[str, dict[str, Any]] = {f"{name}, frozen": {"encoder": model} for name, model in models.items()}
    frozen = {"network alone": {}, **frozen}
    tuned: dict[str, dict[str, Any]] = {f"{name}, fine-tuned": {"init": models[name]} for name in ("GPT", "BERT")}
    tuned["not pretrained"] = {"tokenizer": models["BERT"], "preset": models["BERT"]}
    for column, (task, network, head) in s.tasks.items():
        for rows, (config, how) in ((frozen, network), (tuned, head)):
            for row, fields in rows.items():
                settings = {**task.settings, **how, **fields}
                add.transfer(row, column, config, of=task.of, seeds=s.seeds, **settings)
