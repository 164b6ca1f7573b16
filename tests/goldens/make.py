"""Make the frozen reference outputs in this folder with the reference programs.

    python tests/goldens/make.py                 # all that the installed programs can make
    python tests/goldens/make.py bert_tiny       # one of them

`bert_tiny` and `torch_pickle` need torch and transformers (the `peers` extra), `static_tiny` gensim. `tensor_bundle`
and `bert_tiny_tf` (the numbers of `bert_tiny` as TensorFlow's own saver writes them) cannot be remade without
TensorFlow, which is in no extra of ours: install `tensorflow-cpu` and `safetensors` into an environment of its own;
this file runs without our package.

The weights are random, and large enough that every detail of the mathematics shows. Existing weights and inputs are
kept and only their outputs computed again; delete them to draw new ones.
"""

import json
import sys
from pathlib import Path

import numpy as np

GOLDENS = Path(__file__).parent


def static_tiny(folder: Path) -> None:
    """Write a model of fastText as gensim trains and saves it, and gensim's vectors, also of words it never saw."""
    import random

    from gensim.models import FastText
    from gensim.models.fasttext import save_facebook_model

    words, draw = ["the", "bank", "of", "river", "은행", "강가의", "ship", "sea", "money", "boat"], random.Random(0)
    texts = [[draw.choice(words) for _ in range(6)] for _ in range(200)]
    options = {"vector_size": 16, "window": 2, "min_count": 1, "bucket": 60, "min_n": 3, "max_n": 5, "negative": 3}
    model = FastText(texts, **options, sg=1, epochs=5, seed=1, workers=1)
    save_facebook_model(model, str(folder / "gensim.bin"))
    names = [*words, "rivers", "강가", "unseen", "a"]
    np.savez(folder / "gensim.npz", words=np.array(names), vectors=np.stack([model.wv[word] for word in names]))


def bert_tiny(folder: Path) -> None:
    """Write a Hugging Face folder, inputs, and transformers' results: all outputs, the loss, all gradients."""
    import torch
    from transformers import BertConfig, BertForPreTraining

    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    if not (folder / "model.safetensors").is_file():
        sizes = {"vocab_size": 200, "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4}
        config = BertConfig(**sizes, intermediate_size=160, max_position_embeddings=48)
        model = BertForPreTraining(config)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                noise = torch.randn(parameter.shape, generator=generator)
                if "embeddings.weight" in name:
                    parameter.copy_(0.5 * noise)
                elif parameter.ndim == 2:
                    parameter.copy_(0.6 * noise / parameter.shape[1] ** 0.5)
                else:
                    parameter.copy_(0.2 * noise + name.endswith("LayerNorm.weight"))
        model.save_pretrained(folder)
    model = BertForPreTraining.from_pretrained(folder, attn_implementation="eager").eval()
    config = model.config
    if not (folder / "inputs.npz").is_file():
        rng = np.random.default_rng(0)
        rows, length = 4, 40
        lengths = rng.integers(length // 2, length + 1, rows)
        mask = (np.arange(length) < lengths[:, None]).astype(np.int64)
        ids = rng.integers(14, config.vocab_size, (rows, length)) * mask
        types = (np.arange(length) >= lengths[:, None] // 2).astype(np.int64) * mask
        labels = np.where((rng.random((rows, length)) < 0.15) & (mask == 1), ids, -100)
        np.savez_compressed(
            folder / "inputs.npz",
            input_ids=ids,
            attention_mask=mask,
            token_type_ids=types,
            mlm_labels=labels,
            nsp_labels=rng.integers(0, 2, rows),
        )
    inputs = {name: torch.from_numpy(value) for name, value in np.load(folder / "inputs.npz").items()}
    labels = {"labels": inputs.pop("mlm_labels"), "next_sentence_label": inputs.pop("nsp_labels")}
    output = model(**inputs, **labels, output_hidden_states=True, output_attentions=True)
    output.loss.backward()
    np.savez_compressed(
        folder / "outputs.npz",
        hidden_states=torch.stack(output.hidden_states).detach().numpy(),
        attentions=torch.stack(output.attentions).detach().numpy(),
        pooled=model.bert(**inputs).pooler_output.detach().numpy(),
        mlm_logits=output.prediction_logits.detach().numpy(),
        nsp_logits=output.seq_relationship_logits.detach().numpy(),
        loss=output.loss.detach().numpy(),
        **{f"grad/{name}": parameter.grad.numpy() for name, parameter in model.named_parameters()},
    )


def bert_tiny_tf(folder: Path) -> None:
    """Write the weights of `bert_tiny` as a Google-style checkpoint, with a step counter and two Adam slots to skip."""
    import re

    import tensorflow as tf
    from safetensors.numpy import load_file

    weights = {}
    for name, value in load_file(GOLDENS / "bert_tiny" / "model.safetensors").items():
        name = name.replace(".", "/").replace("layer/", "layer_")
        small_head = name.startswith("cls/seq_relationship")
        if name.endswith("/weight") and not small_head and "embeddings/weight" not in name and "LayerNorm" not in name:
            value = value.T
        name = re.sub(r"LayerNorm/weight$", "LayerNorm/gamma", re.sub(r"LayerNorm/bias$", "LayerNorm/beta", name))
        name = re.sub(r"(predictions|seq_relationship)/bias$", r"\1/output_bias", name)
        name = re.sub(
            r"embeddings/weight$", "embeddings", name.replace("relationship/weight", "relationship/output_weights")
        )
        weights[re.sub(r"/weight$", "/kernel", name)] = value
    for name in ("beta", "gamma"):
        weights[f"bert/embeddings/LayerNorm/{name}/adam_m"] = np.zeros(64, np.float32)
    weights["global_step"] = np.int64(1)
    _save_v2(tf, str(folder / "bert_model.ckpt"), [(name, "", value) for name, value in weights.items()])


def torch_pickle(folder: Path) -> None:
    """Write files of torch.save in both its layouts: every type, and tensors that are views of others."""
    import collections

    import torch

    torch.manual_seed(0)
    a = torch.randn(5, 7)
    tensors: dict[str, torch.Tensor] = collections.OrderedDict()
    tensors |= {"plain": a, "transposed": a.t(), "row": a[2], "column": a[:, 3], "tied": a, "scalar": torch.tensor(3.5)}
    for dtype in (torch.float64, torch.float16, torch.bfloat16):
        tensors[str(dtype)] = a.to(dtype)
    for dtype in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8):
        tensors[str(dtype)] = torch.arange(6, dtype=dtype).reshape(2, 3)
    tensors |= {"bool": torch.tensor([True, False]), "empty": torch.zeros(0, 4), "complex": torch.tensor([1 + 2j])}
    tensors |= {"positions": torch.arange(9).expand(1, -1), "parameter": torch.nn.Parameter(a.clone())}
    tensors._metadata = {"": {"version": 1}}  # type: ignore[attr-defined] - as a module's state_dict() has
    torch.save(tensors, folder / "zip.bin")
    torch.save(tensors, folder / "legacy.bin", _use_new_zipfile_serialization=False)
    torch.save({"epoch": 3, "state_dict": tensors}, folder / "nested.bin")
    torch.save({"small": torch.arange(4).to(torch.uint16)}, folder / "untyped.bin")
    torch.save(torch.nn.Linear(2, 3), folder / "module.bin")
    readable = {name: (value.float() if value.dtype == torch.bfloat16 else value) for name, value in tensors.items()}
    np.savez_compressed(folder / "truth.npz", **{name: value.detach().numpy() for name, value in readable.items()})


def tensor_bundle(folder: Path) -> None:
    """Write TensorFlow checkpoints with partitioned variables in one and in two data files, and one of version 1."""
    import tensorflow as tf

    rng = np.random.default_rng(0)
    matrix, cube = rng.normal(size=(300, 5)).astype(np.float32), rng.normal(size=(4, 5, 6))
    plain = {
        "half": np.arange(5, dtype=np.float16),
        "brain": tf.cast(np.arange(5), tf.bfloat16),
        "int": np.array([1, -2], np.int32),
        "long": np.array([1 << 40]),
        "byte": np.arange(3, dtype=np.uint8),
        "bool": np.array([True, False]),
        "scalar": np.float32(3.5),
        "empty": np.zeros((0, 4), np.float32),
        "text": np.array([b"hi", "안녕".encode()]),
        "unicode/변수": np.ones(2, np.float32),
    }
    _save_v2(
        tf,
        str(folder / "one.ckpt"),
        [
            ("matrix", "300 5 0,100:0,5", matrix[:100]),
            ("matrix", "300 5 100,100:-", matrix[100:200]),
            ("matrix", "300 5 200,100:0,5", matrix[200:]),
            ("cube", "4 5 6 -:0,2:-", cube[:, :2]),
            ("cube", "4 5 6 -:2,3:-", cube[:, 2:]),
            *((name, "", value) for name, value in plain.items()),
        ],
    )
    halves = [str(folder / f"half{number}") for number in (0, 1)]
    _save_v2(tf, halves[0], [("matrix", "300 5 0,150:0,5", matrix[:150]), ("first", "", np.float32([1, 2]))])
    _save_v2(tf, halves[1], [("matrix", "300 5 150,150:0,5", matrix[150:]), ("second", "", np.float32([3, 4]))])
    tf.raw_ops.MergeV2Checkpoints(
        checkpoint_prefixes=halves, destination_prefix=str(folder / "merged.ckpt"), delete_old_dirs=False
    )
    tf.raw_ops.SaveSlices(
        filename=str(folder / "version1.ckpt"), tensor_names=["a"], shapes_and_slices=[""], data=[np.float32([1, 2])]
    )
    numbers = {name.replace("/", ":"): value for name, value in plain.items() if name not in ("text", "brain")}
    np.savez_compressed(folder / "truth.npz", matrix=matrix, cube=cube, brain=np.arange(5, dtype=np.float32), **numbers)


def _save_v2(tf, prefix: str, entries: list[tuple[str, str, np.ndarray]]) -> None:
    names, slices, tensors = zip(*entries)
    tf.raw_ops.SaveV2(
        prefix=prefix,
        tensor_names=list(names),
        shape_and_slices=list(slices),
        tensors=[tf.constant(t) for t in tensors],
    )


MAKERS = {maker.__name__: maker for maker in (bert_tiny, bert_tiny_tf, torch_pickle, tensor_bundle, static_tiny)}


def main(names: list[str]) -> int:
    """Make the named references, or all that can be made here."""
    unknown = sorted(set(names) - set(MAKERS))
    if unknown:
        print(f"there is no golden {', '.join(unknown)}; there are {', '.join(MAKERS)}", file=sys.stderr)
        return 2
    for name in names or MAKERS:
        folder = GOLDENS / name
        folder.mkdir(exist_ok=True)
        try:
            MAKERS[name](folder)
        except ModuleNotFoundError as missing:
            print(f"{name}: not made, because {missing.name} is not installed (see {Path(__file__).name})")
            if names:
                return 1
        else:
            programs = [program for program in ("torch", "transformers", "tensorflow") if program in sys.modules]
            versions = {program: sys.modules[program].__version__ for program in programs}
            (folder / "provenance.json").write_text(json.dumps({"made with": versions}, indent=1) + "\n")
            print(f"{name}: made with {versions}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
