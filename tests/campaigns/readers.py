"""The readers that campaigns give broken files to: the function that reads a file, and a folder with a valid one."""

import contextlib
import importlib
import io
import random
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from tests.campaigns.server import ROOT

GOLDENS = ROOT / "tests" / "goldens"
SKIPPED = ("provenance.json", "inputs.npz", "outputs.npz", "golden.npz", "encodings.json", "config.hub.json",
           "sentences.json", "generation.npz", "generation_eos.npz", "classifier_chunks.npz")  # fmt: skip
PACKAGE = "bert_elmo_jax"


@dataclass(frozen=True)
class Reader:
    """A file of a valid folder, and the function that reads it; it gets the path of the file.

    `modules` are the files of the package whose lines a fuzzing run counts. `around` is the context manager for reading
    in a fuzzing run, such as one that makes all checksums right.
    """

    name: str
    folder: Path
    file: str
    read: Callable[[Path], Any]
    modules: tuple[str, ...] = ()
    around: Callable[[], Any] | None = None
    tokens: tuple[bytes, ...] = ()


def load_folder(path: Path) -> None:
    """Load the model of a file's folder, without encoding."""
    from bert_elmo_jax import load

    load(path.parent)


def load_run(depth: int, path: Path) -> None:
    """Load the run directory that a file is in."""
    from bert_elmo_jax import load

    load(path.parents[depth])


def read_tokenizer(path: Path) -> None:
    """Load the tokenizer of a file's folder, and use it."""
    from bert_elmo_jax.text import load_tokenizer

    load_tokenizer(path.parent).encode("the 강가의 boat")


def read_task(name: str, fields: dict[str, str], path: Path) -> None:
    """Read the examples of a task."""
    from bert_elmo_jax.data.tasks.task import read_examples, task_named, with_labels

    task = task_named(name, file=path, **{key: value for key, value in fields.items() if key in ("text", "label")})
    with_labels(task, read_examples(path, task))


def read_corpus(path: Path) -> None:
    """Prepare a file as a corpus."""
    from bert_elmo_jax.data.corpora.prepare import Request, prepare
    from tests.data.conftest import inline, no_bar

    output = path.with_name("prepared")
    shutil.rmtree(output, ignore_errors=True)
    prepare(Request((str(path),), str(output), tokenizer="words", vocab_size=50, heldout=0.1), inline, no_bar)


def read_store(depth: int, path: Path) -> None:
    """Open a store and read all its documents."""
    from bert_elmo_jax.data.corpora.store import open_store

    store = open_store(path.parents[depth])
    sum(len(sentence) for document in store for sentence in document)


def read_tensors(path: Path) -> None:
    """Read all tensors of a safetensors or PyTorch file, or of a TensorFlow checkpoint by its index."""
    if path.suffix == ".safetensors":
        from bert_elmo_jax.weights.huggingface_files import read_safetensors as reader
    elif path.suffix == ".index":
        from bert_elmo_jax.weights.tensor_bundle import read_tensor_bundle as reader

        path = path.with_suffix("")
    elif path.suffix == ".hdf5":
        from bert_elmo_jax.weights.hdf5 import read_hdf5

        def reader(path: Any) -> Any:
            return read_hdf5(path)[0]
    else:
        from bert_elmo_jax.weights.torch_pickle import read_torch_pickle as reader
    for tensor in reader(path).values():
        if tensor.dtype not in ("string", "resource", "variant"):
            tensor.read()


def read_pickle(path: Path) -> None:
    """Run the pickle machine."""
    from bert_elmo_jax.weights.pickle_machine import run_pickle
    from bert_elmo_jax.weights.torch_pickle import ALLOWED, _storage

    run_pickle(io.BytesIO(path.read_bytes()), ALLOWED, partial(_storage, {}))


def read_plain_pickle(path: Path) -> None:
    """Read a pickle of words."""
    from bert_elmo_jax.weights.pickle_machine import read_plain_pickle as reader

    reader(path)


def read_snappy(path: Path) -> None:
    """Decompress a block."""
    from bert_elmo_jax.weights.sorted_table import decompress

    decompress(path.read_bytes())


def read_vectors(path: Path) -> None:
    """Read vectors of words."""
    from bert_elmo_jax.text.vectors import read_vectors as reader

    reader(path, None)


def read_flat(path: Path) -> None:
    """Read OpenAI's model in parts."""
    from bert_elmo_jax.families.gpt.openai import _open, _read_shapes

    _read_shapes(path.parent)
    _open(path.parent / "params_0.npy")


def read_options(path: Path) -> None:
    """Read the options of an ELMo."""
    from bert_elmo_jax.families.elmo.hdf5_weights import read_config

    read_config(path.parent)


def read_named(module: str, name: str) -> Callable[[Path], None]:
    """Return a function that reads all tensors of a file with a reader of `weights`."""

    def read(path: Path) -> None:
        reader = getattr(importlib.import_module(f"bert_elmo_jax.weights.{module}"), name)
        for tensor in reader(path).values():
            tensor.read()

    return read


def read_sentences(path: Path) -> None:
    """Read the pooling and the dense layers of a folder of sentence-transformers."""
    from bert_elmo_jax.families.sentence_files import read_sentence_folder

    folder = path.parent if path.name == "modules.json" else path.parents[1]
    read_sentence_folder(folder)


def read_adapter(path: Path) -> None:
    """Read an adapter of peft for the frozen BERT."""
    from bert_elmo_jax.families import get_family
    from bert_elmo_jax.families.bert.config import BertConfig
    from bert_elmo_jax.families.peft_files import read_adapter as reader

    reader(path.parent, get_family("bert"), BertConfig.from_json(GOLDENS / "bert_tiny" / "config.json"))


def read_static(path: Path) -> None:
    """Read a file of static vectors."""
    from bert_elmo_jax.families.static.files import read_config, read_weights

    read_weights(path, config=read_config(path))


def read_table(path: Path) -> None:
    """Read the texts and labels of a Parquet or Arrow file, or of the saved data set that a file belongs to."""
    read_task("classification", {"text": "text", "label": "label"}, path.parent if path.suffix == ".json" else path)


def right_checksums() -> Any:
    """Let every checksum of a checkpoint's index be right, so that damage reaches the code behind it."""
    from bert_elmo_jax.weights import sorted_table, tensor_bundle

    stack = contextlib.ExitStack()
    for module in (sorted_table, tensor_bundle):
        stack.enter_context(mock.patch.object(module, "crc32c", lambda data: 0))
        stack.enter_context(mock.patch.object(module, "unmask", lambda stored: 0))
    return stack


def list_readers(folder: Path) -> list[Reader]:
    """Return a reader for every kind of file; `folder` gets files that are no goldens."""
    made_folder = folder / "made"
    if not (made_folder / "written").is_file():
        shutil.rmtree(made_folder, ignore_errors=True)
        write_files(made_folder)
        (made_folder / "written").touch()
    return [*_golden_readers(), *_made_readers(made_folder)]


def _golden_readers() -> Iterable[Reader]:
    models = ["bert_tiny", "bert_tiny_tf", "elmo_tiny", "gpt2_tiny", "gpt_tiny", "roberta_tiny", "modernbert_tiny",
              "modernbert_packed", "distilbert_tiny", "electra_tiny/discriminator", "transformer_tiny", "cove_tiny",
              "awd_lstm_tiny", "flax_msgpack", "tf_h5"]  # fmt: skip
    for model in models:
        for file in sorted((GOLDENS / model).iterdir()):
            if file.is_file() and file.name not in SKIPPED:
                yield Reader(f"model {model}/{file.name}", GOLDENS / model, file.name, load_folder)
    for folder in sorted((GOLDENS / "tokenizers").iterdir()):
        for file in sorted(folder.iterdir()) if folder.is_dir() else ():
            if file.name not in SKIPPED:
                yield Reader(f"tokenizer {folder.name}/{file.name}", folder, file.name, read_tokenizer)
    for file in sorted((GOLDENS / "torch_pickle").glob("*.bin")):
        yield Reader(f"weights torch_pickle/{file.name}", GOLDENS / "torch_pickle", file.name, read_tensors)
    yield Reader("weights tensor_bundle/one.ckpt.index", GOLDENS / "tensor_bundle", "one.ckpt.index", read_tensors)
    data = "one.ckpt.data-00000-of-00001"
    yield Reader(f"weights tensor_bundle/{data}", GOLDENS / "tensor_bundle", data,
                 lambda path: read_tensors(path.with_name("one.ckpt.index")))  # fmt: skip
    yield Reader("text cove_tiny/vectors.txt", GOLDENS / "cove_tiny", "vectors.txt", read_vectors)


def _made_readers(folder: Path) -> Iterable[Reader]:
    from tests.experiments.task_files import WRITERS

    for task, (_, ending, fields) in WRITERS.items():
        read = partial(read_task, task, {key: str(value) for key, value in fields.items()})
        yield Reader(f"table {task}.{ending}", folder / "tasks" / task, f"train.{ending}", read)
    for name in ("corpus.txt", "corpus.jsonl", "corpus.txt.gz"):
        yield Reader(f"text {name}", folder / "texts", name, read_corpus)
    for file in sorted((folder / "run").rglob("*")):
        inside = file.relative_to(folder / "run")
        if file.is_file() and file.name != "run.json":
            read = partial(load_run, len(inside.parts) - 1)
            kind = "checkpoint" if inside.parts[0] == "checkpoints" else "config"
            yield Reader(f"{kind} run/{inside}", folder / "run", str(inside), read)
    for file in sorted((folder / "store").rglob("*")):
        inside = file.relative_to(folder / "store")
        if file.is_file() and file.suffix in (".json", ".npy") and "tokenizer" not in inside.parts:
            yield Reader(f"store {inside}", folder / "store", str(inside), partial(read_store, len(inside.parts) - 1))


def write_files(folder: Path) -> None:
    """Write a run directory, a store, texts and the tables of all tasks."""
    import gzip
    import json

    from bert_elmo_jax.data.corpora.toy_corpus import toy_corpus
    from tests.experiments.task_files import WRITERS, write_model

    (folder / "tasks").mkdir(parents=True)
    for task, (write, ending, _) in WRITERS.items():
        (folder / "tasks" / task).mkdir()
        write(folder / "tasks" / task / f"train.{ending}", random.Random(1), 12)
    (folder / "texts").mkdir()
    text = "the boat is old.\n강가에 배가 있다.\n\nthe river was wide.\n"
    (folder / "texts" / "corpus.txt").write_text(text * 3, encoding="utf-8")
    lines = [json.dumps({"text": line}, ensure_ascii=False) for line in text.split("\n") if line]
    (folder / "texts" / "corpus.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "texts" / "corpus.txt.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    write_model(folder / "run")
    toy_corpus(folder / "store", documents=30, heldout=0.2, vocab_size=200)


def list_targets(folder: Path) -> list[Reader]:
    """Return the readers of bytes for fuzzing: one for each format."""
    weights, text = f"{PACKAGE}/weights", f"{PACKAGE}/text"
    seeds = folder / "seeds"
    if not (seeds / "written").is_file():
        shutil.rmtree(seeds, ignore_errors=True)
        write_seeds(seeds)
        (seeds / "written").touch()
    tokenizers = (f"{text}/tokenizer_file.py", f"{text}/tokenizer_specs.py", f"{text}/tokenizer.py")
    gpt2 = GOLDENS / "tokenizers" / "gpt2_tiny"
    bare = seeds / "merges"
    bundle = (f"{weights}/tensor_bundle.py", f"{weights}/sorted_table.py", f"{weights}/protobuf.py")
    json_tokens = (b"null", b"[]", b"{}", b"-1", b"1e400", b'""', b"true", b"9" * 30, b'"type":', b"\\ud800")
    sentences = (f"{PACKAGE}/families/sentence_files.py", f"{PACKAGE}/json_values.py")
    arrow = f"{PACKAGE}/data/arrow_files.py"
    pickles = tuple(bytes([code]) for code in b"]}(.)tau0QRcbhjqrKMJX\x80\x85\x86\x87\x88\x89\x8a\x8c\x93\x94")
    return [
        Reader("safetensors", GOLDENS / "bert_tiny", "model.safetensors", read_tensors,
               (f"{weights}/huggingface_files.py",), tokens=json_tokens),
        Reader("pickle machine", seeds, "data.pkl", read_pickle, (f"{weights}/pickle_machine.py",), tokens=pickles),
        Reader("pickle of words", seeds, "itos.pkl", read_plain_pickle, (f"{weights}/pickle_machine.py",),
               tokens=pickles),
        Reader("torch.save, zip", GOLDENS / "torch_pickle", "zip.bin", read_tensors, (f"{weights}/torch_pickle.py",)),
        Reader("torch.save, legacy", GOLDENS / "torch_pickle", "legacy.bin", read_tensors,
               (f"{weights}/torch_pickle.py",)),
        Reader("TF bundle index", GOLDENS / "tensor_bundle", "one.ckpt.index", read_tensors, bundle, right_checksums),
        Reader("snappy", seeds, "block.snappy", read_snappy, (f"{weights}/sorted_table.py",)),
        Reader("HDF5", GOLDENS / "elmo_tiny", "weights.hdf5", read_tensors, (f"{weights}/hdf5.py",)),
        Reader("ELMo options", GOLDENS / "elmo_tiny", "options.json", read_options,
               (f"{PACKAGE}/families/elmo/files.py",), tokens=json_tokens),
        Reader("BPE merges", bare, "merges.txt", read_tokenizer, (f"{text}/bpe.py", *tokenizers)),
        Reader("tokenizer.json", gpt2, "tokenizer.json", read_tokenizer, tokenizers, tokens=json_tokens),
        Reader("GPT-1 npy", seeds, "params_0.npy", read_flat, (f"{PACKAGE}/families/gpt/openai.py",)),
        Reader("GPT-1 shapes", seeds, "params_shapes.json", read_flat, (f"{PACKAGE}/families/gpt/openai.py",),
               tokens=json_tokens),
        Reader("Marian SentencePiece", GOLDENS / "tokenizers" / "marian", "source.spm", read_tokenizer,
               (f"{text}/marian.py",)),
        Reader("fastai words", seeds / "fastai", "itos.json", load_folder, (f"{text}/fastai_words.py",),
               tokens=json_tokens),
        Reader("flax msgpack", GOLDENS / "flax_msgpack", "flax_model.msgpack", read_named("flax_msgpack", "read_flax"),
               (f"{weights}/flax_msgpack.py",)),
        Reader("Keras HDF5", GOLDENS / "tf_h5", "tf_model.h5", read_named("keras_hdf5", "read_keras"),
               (f"{weights}/keras_hdf5.py", f"{weights}/hdf5.py")),
        Reader("config.json", GOLDENS / "bert_tiny", "config.json", load_folder,
               (f"{PACKAGE}/families/huggingface_config.py", f"{PACKAGE}/json_values.py"), tokens=json_tokens),
        Reader("tokenizer_config.json", gpt2, "tokenizer_config.json", read_tokenizer,
               (f"{text}/tokenizer_checks.py", *tokenizers), tokens=json_tokens),
        Reader("modules.json", seeds / "sentences", "modules.json", read_sentences, sentences, tokens=json_tokens),
        Reader("pooling", seeds / "sentences", "1_Pooling/config.json", read_sentences, sentences, tokens=json_tokens),
        Reader("adapter_config.json", GOLDENS / "peft_bert", "adapter_config.json", read_adapter,
               (f"{PACKAGE}/families/peft_files.py",), tokens=json_tokens),
        Reader("adapter weights", GOLDENS / "peft_bert", "adapter_model.safetensors", read_adapter,
               (f"{PACKAGE}/families/peft_files.py",), tokens=json_tokens),
        Reader("fastText binary", GOLDENS / "static_tiny", "gensim.bin", read_static,
               (f"{PACKAGE}/families/static/files.py",)),
        Reader("word2vec binary", seeds, "vectors.bin", read_static,
               (f"{text}/vector_files.py", f"{PACKAGE}/families/static/files.py")),
        Reader("Parquet", seeds, "train.parquet", read_table, (arrow,)),
        Reader("Arrow stream", seeds, "stream.arrow", read_table, (arrow,)),
        Reader("Arrow file", seeds, "file.arrow", read_table, (arrow,)),
        Reader("saved data set", seeds / "saved", "state.json", read_table, (arrow,), tokens=json_tokens),
        Reader("features of a data set", seeds / "saved", "dataset_info.json", read_table, (arrow,),
               tokens=json_tokens),
        Reader("int8 model.json", seeds / "int8", "model.json", load_folder,
               (f"{PACKAGE}/inference/run_directory.py", f"{PACKAGE}/inference/model_kinds.py",
                f"{PACKAGE}/nn/int8_kernels.py"), tokens=json_tokens),
        Reader("GloVe text", GOLDENS / "cove_tiny", "vectors.txt", read_vectors, (f"{text}/vectors.py",)),
    ]  # fmt: skip


def write_seeds(folder: Path) -> None:
    """Write valid small files of the formats that have no golden file."""
    import json
    import pickle
    import zipfile

    import numpy as np

    folder.mkdir(parents=True)
    with zipfile.ZipFile(GOLDENS / "torch_pickle" / "zip.bin") as archive:
        [name] = [name for name in archive.namelist() if name.endswith("data.pkl")]
        (folder / "data.pkl").write_bytes(archive.read(name))
    (folder / "itos.pkl").write_bytes(pickle.dumps(["xxunk", "xxpad", "the", "강"], protocol=4))
    literal = b"abcdabcd"
    (folder / "block.snappy").write_bytes(bytes([len(literal) + 8, (len(literal) - 1) << 2]) + literal + b"\x11\x04")
    np.save(folder / "params_0.npy", np.zeros(6, np.float32))
    (folder / "params_shapes.json").write_text("[[2, 3]]", encoding="utf-8")
    shutil.copytree(GOLDENS / "awd_lstm_tiny", folder / "fastai")
    files = {
        "modules.json": [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
                         {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}],
        "1_Pooling/config.json": {"word_embedding_dimension": 64, "pooling_mode_mean_tokens": True},
        "sentence_bert_config.json": {"max_seq_length": 20, "do_lower_case": False},
        "config_sentence_transformers.json": {"prompts": {"query": "q: "}, "similarity_fn_name": "cosine"},
    }  # fmt: skip
    (folder / "sentences" / "1_Pooling").mkdir(parents=True)
    for name, content in files.items():
        (folder / "sentences" / name).write_text(json.dumps(content), encoding="utf-8")
    (folder / "merges").mkdir()
    for name in ("vocab.json", "merges.txt", "tokenizer_config.json"):
        if (GOLDENS / "tokenizers" / "gpt2_tiny" / name).is_file():
            shutil.copy(GOLDENS / "tokenizers" / "gpt2_tiny" / name, folder / "merges" / name)
        elif (GOLDENS / "gpt2_tiny" / name).is_file():
            shutil.copy(GOLDENS / "gpt2_tiny" / name, folder / "merges" / name)
    write_tables(folder)


def write_tables(folder: Path) -> None:
    """Write vectors as word2vec does, a table in each format of Arrow, a saved data set, and a model in int8."""
    import json

    import numpy as np
    import pyarrow
    from pyarrow import parquet

    from bert_elmo_jax.inference.convert import convert
    from bert_elmo_jax.text.vector_files import write_vectors

    write_vectors(folder / "vectors.bin", ["the", "강"], np.array([[0.5, 1], [2, 3]], np.float32), "binary")
    table = pyarrow.table({"text": ["the boat", "강가에 배", "old"] * 4, "label": [0, 1, 0] * 4})
    features = {"label": {"names": ["bad", "good"], "_type": "ClassLabel"}, "text": {"_type": "Value"}}
    described = {b"huggingface": json.dumps({"info": {"features": features}}).encode()}
    parquet.write_table(table.replace_schema_metadata(described), folder / "train.parquet")
    (folder / "saved").mkdir()
    for name, new in (
        ("stream", pyarrow.ipc.new_stream),
        ("file", pyarrow.ipc.new_file),
        ("saved/data", pyarrow.ipc.new_stream),
    ):
        with new(str(folder / f"{name}.arrow"), table.schema) as writer:
            writer.write_table(table)
    state = {"_data_files": [{"filename": "data.arrow"}], "_fingerprint": "a", "_split": "train"}
    (folder / "saved" / "state.json").write_text(json.dumps(state), encoding="utf-8")
    (folder / "saved" / "dataset_info.json").write_text(json.dumps({"features": features}), encoding="utf-8")
    convert(str(GOLDENS / "bert_tiny"), folder / "int8", dtype="int8")
