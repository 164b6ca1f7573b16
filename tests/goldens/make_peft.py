"""Make the adapters in `peft_*` with peft, and what the adapted models compute, on the tiny models of this folder.

    python tests/goldens/make_peft.py

It needs torch, transformers and peft, in an environment of its own; it runs without our package. The matrices are
random and large enough that each detail shows.
"""

import json
from pathlib import Path

import numpy as np

GOLDENS = Path(__file__).parent
ADAPTERS = {
    # name: (class, model, options of peft.LoraConfig)
    "peft_bert": (
        "AutoModelForSequenceClassification",
        "bert_tiny",
        {
            "task_type": "SEQ_CLS",
            "r": 4,
            "lora_alpha": 6,
            "use_rslora": True,
            "target_modules": ["query", "value", "attention.output.dense", "pooler.dense"],
            "rank_pattern": {"layer.1.attention.self.value": 2},
            "alpha_pattern": {"layer.2.attention.self.query": 3},
        },
    ),
    "peft_bert_words": (
        "AutoModel",
        "bert_tiny",
        {"r": 3, "lora_alpha": 6, "target_modules": ["word_embeddings", "token_type_embeddings", "query"]},
    ),
    "peft_gpt2": ("AutoModel", "gpt2_tiny", {"r": 3, "lora_alpha": 12, "target_modules": ["c_attn", "mlp.c_proj"]}),
    "peft_modernbert": (
        "AutoModel",
        "modernbert_tiny",
        {"r": 2, "lora_alpha": 2, "target_modules": ["Wqkv", "Wi", "mlp.Wo"]},
    ),
}


def tidy(folder: Path, model_name: str) -> None:
    """Name the model below without the folders of this machine, and make the file readable."""
    path = folder / "adapter_config.json"
    fields = json.loads(path.read_text(encoding="utf-8")) | {"base_model_name_or_path": model_name}
    path.write_text(json.dumps(fields, indent=2) + "\n", encoding="utf-8")
    (folder / "adapter_model.safetensors").chmod(0o644)
    (folder / "README.md").unlink(missing_ok=True)


def make(name: str) -> None:
    """Write one adapter, inputs and outputs."""
    import peft
    import torch
    import transformers

    kind, model_name, options = ADAPTERS[name]
    torch.manual_seed(0)
    torch.set_num_threads(1)
    base = getattr(transformers, kind).from_pretrained(GOLDENS / model_name, attn_implementation="eager")
    if model_name == "gpt2_tiny":
        options = {**options, "fan_in_fan_out": True}
    model = peft.get_peft_model(base, peft.LoraConfig(**options)).eval()
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            if "lora_" in parameter_name or "modules_to_save" in parameter_name:
                parameter.copy_(0.3 * torch.randn(parameter.shape))
    model.save_pretrained(GOLDENS / name)
    tidy(GOLDENS / name, model_name)
    config = base.config
    rng = np.random.default_rng(1)
    ids = rng.integers(13, config.vocab_size, (2, 12))
    lengths = np.array([12, 9])
    mask = (np.arange(12) < lengths[:, None]).astype(np.int64)
    with torch.no_grad():
        output = model(
            input_ids=torch.tensor(ids), attention_mask=torch.tensor(mask), output_hidden_states=True, return_dict=True
        )
    last = output.last_hidden_state if kind == "AutoModel" else output.hidden_states[-1]
    arrays = {"input_ids": ids, "attention_mask": mask, "last": last.numpy()}
    if kind != "AutoModel":
        arrays["logits"] = output.logits.numpy()
    np.savez_compressed(GOLDENS / name / "outputs.npz", **arrays)
    print(name, [file.name for file in sorted((GOLDENS / name).iterdir())])


if __name__ == "__main__":
    for adapter in ADAPTERS:
        make(adapter)
