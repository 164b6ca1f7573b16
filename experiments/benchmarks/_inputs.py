"""The inputs of both sides of a paired benchmark: a folder with weights, settings, texts and batches."""

import json
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import jax
import numpy as np

from bert_elmo_jax.data.corpora.text_files import read_lines
from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.text import WordPiece, train_wordpiece
from bert_elmo_jax.toyworld import ToyWorld

FAMILY = get_family("bert")
make_config = FAMILY.config.preset
MINILM = {"num_layers": 6, "hidden_size": 384, "num_heads": 12, "feed_forward_size": 1536}
SETTINGS = "settings.json"
Batch = dict[str, np.ndarray]


def make_batch(config: Any, rows: int, length: int, kind: str = "token", sequences: int = 1) -> Batch:
    """Return random full rows of so many sequences of equal length.

    They have the paper's number of predictions, 20 of 128; with the kind `next`, one for every piece.
    """
    random = np.random.default_rng(0)
    tokens = random.integers(min(1000, config.vocab_size // 2), config.vocab_size, (rows, length), dtype=np.int32)
    every = np.broadcast_to(np.arange(length, dtype=np.int32), tokens.shape)
    each = -(-length // sequences)
    batch = {"tokens": tokens, "types": np.zeros_like(tokens), "positions": every % each, "segments": 1 + every // each}
    if kind == "next":
        batch |= {"mlm_positions": every, "mlm_targets": np.roll(tokens, -1, 1), "causal": np.ones((rows, 1), np.int32)}
    else:
        places = np.sort(np.argsort(random.random((rows, length)))[:, : max(1, length * 20 // 128)]).astype(np.int32)
        batch |= {
            "mlm_positions": places,
            "mlm_targets": np.take_along_axis(tokens, places, 1),
            "nsp_positions": np.zeros((rows, 1), np.int32),
            "nsp_targets": random.integers(0, 2, (rows, 1), dtype=np.int32),
            "nsp_weights": np.ones((rows, 1), np.float32),
        }
    return {**batch, "mlm_weights": np.ones(batch["mlm_targets"].shape, np.float32)}


def mixed_sentences(count: int, mean: float = 2.8, spread: float = 0.6, longest: int = 100) -> list[str]:
    """Return sentences of 3 to `longest` words: the toy world's, joined to log-normal lengths.

    >>> [len(text.split()) for text in mixed_sentences(4)]
    [17, 15, 24, 17]
    """
    random, world = np.random.default_rng(0), ToyWorld("en")
    words = (word for number in range(10**9) for word in world.document(number).text.split())
    return [" ".join(islice(words, int(n))) for n in np.clip(random.lognormal(mean, spread, count), 3, longest)]


def read_texts(file: str, count: int) -> list[str]:
    """Return the first lines of a file; raise if there are too few, because results name their number."""
    lines = [line for line in read_lines(file) if line.strip()]
    if len(lines) < count:
        raise ValueError(f"--texts={file} has {len(lines):,} lines; {count:,} are needed")
    return lines[:count]


def write_settings(folder: Path, **settings: Any) -> None:
    """Write the settings that both sides read."""
    (folder / SETTINGS).write_text(json.dumps(settings), encoding="utf-8")


def read_settings(folder: Path) -> dict[str, Any]:
    """Return the settings of a folder."""
    return json.loads((folder / SETTINGS).read_text(encoding="utf-8"))


def write_bert(folder: Path, sizes: Mapping[str, int], texts: list[str], name: str = "bert") -> None:
    """Write a BERT, or a DeBERTa, with random weights as a Hugging Face model, with a tokenizer of the texts."""
    family = get_family(name)
    config, heads = family.config(**sizes), tuple(head for head in family.heads if head in ("mlm", "nsp"))
    write: Any = family.formats["huggingface"].write
    params = init_params(family, config, jax.random.key(0), heads, pooler="nsp" in heads)
    write(folder, params, config)
    if texts:
        learned = train_wordpiece(texts, min(8192, config.vocab_size))
        unused = (f"[unused{number}]" for number in range(config.vocab_size - learned.vocab_size))
        WordPiece([*learned.tokens, *unused], learned.options).save(folder)  # a piece for each row of the embeddings


def bert_sizes(preset: str, tiny: bool, name: str = "bert") -> dict[str, int]:
    """Return the sizes of a preset of a family or of MiniLM; a toy's if `tiny`."""
    if tiny:
        return {"num_layers": 2, "hidden_size": 32, "num_heads": 2, "feed_forward_size": 64, "vocab_size": 400}
    return MINILM if preset == "minilm" else dict(get_family(name).presets[preset])


def prepare_step(folder: Path, tiny: bool, texts: str | None) -> None:
    """Write BERT-base and a batch of 8 × 128 with 20 predictions per row."""
    sizes = bert_sizes("base", tiny)
    write_bert(folder, sizes, [])
    batch = make_batch(FAMILY.config(**sizes), *((2, 16) if tiny else (8, 128)))
    arrays: dict[str, Any] = dict(batch)
    np.savez(folder / "batch.npz", **arrays)
    write_settings(folder, recipe="bert:base", sizes=sizes)


def prepare_encode(folder: Path, tiny: bool, texts: str | None, name: str = "bert") -> None:
    """Write the base size of a family and sentences of mixed length: the lines of a file, or 400 of the toy world."""
    count = 9 if tiny else 400
    sentences = read_texts(texts, count) if texts else mixed_sentences(count)
    write_bert(folder, bert_sizes("base", tiny, name), sentences, name)
    write_settings(folder, texts=sentences, batch_size=32, one="The old ship came home to the harbour at night .")


def prepare_sentences(folder: Path, tiny: bool, texts: str | None) -> None:
    """Write a sentence model of MiniLM's size that takes means, its export in float32 and int8, and sentences."""
    from bert_elmo_jax.exports.export_model import export_model

    count = 9 if tiny else 400
    sentences = read_texts(texts, count) if texts else mixed_sentences(count)
    write_bert(folder, sizes := bert_sizes("minilm", tiny), sentences)
    (folder / "1_Pooling").mkdir(exist_ok=True)
    parts = {"": "Transformer", "1_Pooling": "Pooling"}
    modules = [
        {"idx": n, "name": str(n), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for n, (path, kind) in enumerate(parts.items())
    ]
    (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    pooling = {"word_embedding_dimension": sizes["hidden_size"], "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling), encoding="utf-8")
    export_model(folder, folder / "exported", int8=True)
    write_settings(folder, texts=sentences, batch_size=32, one="The old ship came home to the harbour at night .")


def enlarge(folder: Path, texts: str | None, count: int = 20_000) -> None:
    """Give a GPU more sentences than `prepare_encode`, and larger batches; leave other folders unchanged."""
    settings = read_settings(folder)
    if "texts" in settings:
        sentences = read_texts(texts, count) if texts else mixed_sentences(count)
        write_settings(folder, **{**settings, "texts": sentences, "batch_size": 256})


def prepare_deberta(folder: Path, tiny: bool, texts: str | None) -> None:
    """Write DeBERTa-v3-base with a batch of masked words as `prepare_step`, and sentences as `prepare_encode`."""
    prepare_encode(folder, tiny, texts, "deberta")
    sizes = bert_sizes("base", tiny, "deberta")
    batch = make_batch(get_family("deberta").config(**sizes), *((2, 16) if tiny else (8, 128)))
    arrays: dict[str, Any] = {name: array for name, array in batch.items() if not name.startswith("nsp")}
    np.savez(folder / "batch.npz", **arrays)
    fields = {"objective": "documents", "accumulate": 1}
    sizes = {**sizes, "embedding_difference": False}
    write_settings(folder, **read_settings(folder), recipe="deberta:base", sizes=sizes, fields=fields)


def prepare_finetune(folder: Path, tiny: bool, texts: str | None) -> None:
    """Write a MiniLM-size BERT and sentences like SST-2's (9 words on average), with random labels."""
    count = 40 if tiny else 2048
    lines = read_texts(texts, count) if texts else mixed_sentences(count, mean=2.0, spread=0.7, longest=50)
    labels = np.random.default_rng(0).integers(0, 2, len(lines)).tolist()
    write_bert(folder, bert_sizes("minilm", tiny), lines)
    for name, size in (("train", len(lines)), ("dev", 8)):
        rows = [f"{line}\t{label}\n" for line, label in zip(lines[:size], labels)]
        (folder / f"{name}.tsv").write_text("sentence\tlabel\n" + "".join(rows), encoding="utf-8")
    write_settings(folder, texts=lines, labels=labels, batch_size=32, learning_rate=2e-5, max_length=128)


def prepare_generate(folder: Path, tiny: bool, texts: str | None) -> None:
    """Write a GPT-2 of the small size with random weights, and prompts of 32 pieces."""
    family = get_family("gpt")
    sizes = {"vocab_size": 300, "end_id": 0, "pad_id": 0, "hidden_size": 32, "num_layers": 2, "num_heads": 2}
    sizes["feed_forward_size"] = 64
    config = family.config(**{**family.presets["gpt2"], **(sizes if tiny else {})})
    write: Any = family.formats["huggingface"].write
    write(folder, init_params(family, config, jax.random.key(0), tuple(family.heads)), config)
    length = 8 if tiny else 32
    prompts = np.random.default_rng(0).integers(0, config.vocab_size, (32, length)).tolist()
    cases = {"one": (1, 64, 1), "long": (1, 384, 1), "many": (32, 32, 1), "beams": (4, 32, 4)}
    write_settings(folder, cases={
        name: {"prompts": prompts[:rows], "new": 4 if tiny else new, "beams": beams}
        for name, (rows, new, beams) in cases.items()
    })  # fmt: skip
