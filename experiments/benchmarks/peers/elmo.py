"""ELMo by AllenNLP 2.10, patched to run with newer libraries."""

import importlib
import importlib.metadata
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

# Imports of AllenNLP 2.10 that its other models need: torchvision, wandb, fairscale.
ABSENT = """
torchvision torchvision.models wandb fairscale fairscale.nn fairscale.nn.checkpoint fairscale.nn.wrap fairscale.nn.misc
fairscale.optim fairscale.optim.grad_scaler
""".split()


class Absent(types.ModuleType):
    """A module whose every name is a class that does nothing."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []  # so that it counts as a package

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def make_passes(folder: Path, precision: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return AllenNLP's ELMo, forward alone and with gradients; it is patched for libraries that are years newer."""
    import huggingface_hub

    warnings.filterwarnings("ignore")
    for name in ABSENT:
        sys.modules.setdefault(name, Absent(name))
    for name in ("HfFolder", "Repository"):  # removed since
        if not hasattr(huggingface_hub, name):
            setattr(huggingface_hub, name, type(name, (), {}))
    elmo = importlib.import_module("allennlp.modules.elmo")
    options, weights = str(folder / "options.json"), str(folder / "weights.hdf5")
    model = elmo.Elmo(options, weights, 1, dropout=0.0, requires_grad=True).eval()
    model._elmo_lstm._elmo_lstm.stateful = False  # or the first vectors would depend on the number of runs
    ids = torch.from_numpy(np.load(folder / "ids.npy").astype(np.int64))

    def vectors() -> np.ndarray:
        with torch.no_grad():
            return model(ids)["elmo_representations"][0].numpy()

    def forward() -> None:
        vectors()

    def both() -> None:
        model(ids)["elmo_representations"][0].sum().backward()
        model.zero_grad()

    version = f"{importlib.metadata.version('allennlp')}, torch {torch.__version__.partition('+')[0]}"
    check = [float(x) for x in vectors()[0, :, :4].ravel()]
    peer = {"name": "AllenNLP on PyTorch", "version": version, "precision": precision}
    return {"forward": forward, "both": both}, {"peer": peer, "check": check}
