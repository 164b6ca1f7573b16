"""The works that are compared with a peer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

Prepare = Callable[[Path, bool, str | None], None]  # folder, tiny, a file of texts
BOTH = ("float32", "bfloat16")


@dataclass(frozen=True)
class Work:
    """Two sides with the same name, in `ours` and in `peers`, and a folder of inputs for both."""

    name: str
    prepare: Prepare
    side: str
    cases: Mapping[str, str]  # pass -> case, as the results name it
    precisions: Sequence[str] = ("float32",)
    peer: str = "peer_python"  # the flag of the peer's interpreter
    modules: Sequence[str] = ("torch", "transformers")  # that it needs
    on_gpu: Mapping[str, str] = field(default_factory=dict)  # its cases on a GPU; none: it is measured on CPUs only
    tolerance: Mapping[str, float] = field(default_factory=lambda: {"float32": 1e-3, "bfloat16": 0.1, "int8": 0.2})


def _prepare(name: str, folder: Path, tiny: bool, texts: str | None) -> None:
    from . import _inputs

    getattr(_inputs, f"prepare_{name}")(folder, tiny, texts)


def _prepare_tagger(folder: Path, tiny: bool, texts: str | None) -> None:
    from .ours.tagger import write_inputs

    sizes: dict[str, Any] = {"num_tags": 17, "lstm_size": 200, "encoder_layers": 3, "encoder_width": 256}
    if tiny:
        sizes |= {"lstm_size": 4, "encoder_width": 4}
    write_inputs(folder, sizes, *((2, 2, 8) if tiny else (20, 32, 60)))


def _prepare_elmo(preset: str, rows: int, words: int, folder: Path, tiny: bool, texts: str | None) -> None:
    from .ours.elmo import FAMILY, write_inputs

    sizes: dict[str, Any] = {"cell_size": 8, "projection_size": 4, "filters": ((1, 4), (2, 4)), "num_highways": 1}
    write_inputs(folder, FAMILY.config(**sizes) if tiny else FAMILY.config.preset(preset), rows, words)


def _elmo(preset: str, rows: int, words: int) -> Work:
    shape = f"{preset}, {rows} × {words} words" if rows > 1 else f"{preset}, one sentence of {words} words"
    cases = {"forward": f"{shape}: forward", "both": f"{shape}: forward and all gradients"}
    prepare = partial(_prepare_elmo, preset, rows, words)
    return Work("elmo", prepare, "elmo", cases, peer="allennlp_python", modules=("torch", "allennlp"))


def _prepare_awd_lstm(folder: Path, tiny: bool, texts: str | None) -> None:
    from .ours.awd_lstm import write_inputs

    sizes = {"vocab_size": 20_000, "embedding_size": 400, "cell_size": 1_150, "num_layers": 3}
    if tiny:
        sizes = {"vocab_size": 50, "embedding_size": 8, "cell_size": 12, "num_layers": 2}
    write_inputs(folder, sizes, *((3, 5) if tiny else (64, 70)))


WORKS = [
    Work("step", partial(_prepare, "step"), "step", {"step": "8 × 128 tokens, 20 predictions"}, BOTH),
    Work("encode", partial(_prepare, "encode"), "encode", {"encode": "400 sentences"}, BOTH,
         on_gpu={"encode": "20,000 sentences, 256 a batch"}),
    Work("encode_onnx", partial(_prepare, "encode"), "encode_onnx", {"encode": "400 sentences"}, ("float32", "int8"),
         modules=("torch", "transformers", "onnx", "onnxruntime")),
    Work("sentences_onnx", partial(_prepare, "sentences"), "sentences_onnx",
         {"sentences": "400 sentences", "one_text": "one sentence of 11 words, warm"}, ("float32", "int8"),
         modules=("sentence_transformers", "optimum", "onnxruntime")),
    Work("one_text", partial(_prepare, "encode"), "encode", {"one_text": "one sentence of 11 words, warm"}, BOTH),
    Work("deberta_step", partial(_prepare, "deberta"), "step", {"step": "8 × 128 tokens, 20 predictions"}, BOTH),
    Work("deberta_encode", partial(_prepare, "deberta"), "encode", {"encode": "400 sentences"}, BOTH),
    Work("first_call", partial(_prepare, "encode"), "first_call", {
        "first": "first call in a new process", "cached": "first call, compiled by an earlier process",
        "tenth": "tenth call",
    }),
    Work("generate", partial(_prepare, "generate"), "generate", {
        "one": "one prompt, 64 new pieces", "long": "one prompt, 384 new pieces", "many": "32 prompts, 32 new pieces",
        "beams": "4 prompts, 4 beams, 32 new pieces",
    }, BOTH, on_gpu={"one": "one prompt, 64 new pieces", "many": "32 prompts, 32 new pieces"}),
    Work("finetune", partial(_prepare, "finetune"), "finetune", {"epoch": "an epoch of 2,048 sentences"}, BOTH,
         modules=("torch", "transformers", "accelerate")),
    Work("tagger", _prepare_tagger, "tagger", {
        "training": "training", "prediction": "prediction",
        "probabilities": "prediction with the probability of each tag",
    }, modules=("torch",)),
    Work("awd_lstm", _prepare_awd_lstm, "awd_lstm", {"step": "64 × 70 words, a vocabulary of 20,000"},
         peer="fastai_python", modules=("torch", "fastai")),
    *(_elmo(preset, *shape) for preset in ("original", "small") for shape in ((32, 20), (1, 20))),
]  # fmt: skip
NAMES = list(dict.fromkeys(work.name for work in WORKS))
