"""The peer of `elmo.py`, run by the interpreter given to --peers; it imports nothing from this project.

`python _elmo_peer.py FOLDER` loads the weights and the character ids in FOLDER, prints a description as
one line of JSON (with some vectors, which show that the sides compute the same), and then, for every line that it reads
("forward" or "both"), runs that pass and prints its seconds.
"""

import importlib
import importlib.metadata
import json
import sys
import time
import types
import warnings
from pathlib import Path

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


def import_allennlp() -> types.ModuleType:
    """Return AllenNLP's ELMo module, patched for libraries that are years newer."""
    import huggingface_hub

    warnings.filterwarnings("ignore")
    for name in ABSENT:
        sys.modules.setdefault(name, Absent(name))
    for name in ("HfFolder", "Repository"):  # removed since
        if not hasattr(huggingface_hub, name):
            setattr(huggingface_hub, name, type(name, (), {}))
    return importlib.import_module("allennlp.modules.elmo")


def main(folder: Path) -> None:
    """Serve passes on request."""
    import numpy as np
    import torch

    elmo = import_allennlp()
    options, weights = str(folder / "options.json"), str(folder / "weights.hdf5")
    model = elmo.Elmo(options, weights, 1, dropout=0.0, requires_grad=True).eval()
    model._elmo_lstm._elmo_lstm.stateful = False  # or the first vectors would depend on the number of runs
    ids = torch.from_numpy(np.load(folder / "ids.npy").astype(np.int64))

    def forward() -> np.ndarray:
        with torch.no_grad():
            return model(ids)["elmo_representations"][0].numpy()

    def both() -> None:
        model(ids)["elmo_representations"][0].sum().backward()
        model.zero_grad()

    passes = {"forward": forward, "both": both}
    for run in passes.values():
        run()
    version = importlib.metadata.version("allennlp")
    about = f"allennlp {version}, torch {torch.__version__}, {torch.get_num_threads()} threads"
    print(json.dumps({"about": about, "vectors": forward()[0].tolist()}), flush=True)
    for line in sys.stdin:
        run = passes[line.strip()]
        start = time.perf_counter()
        run()
        print(time.perf_counter() - start, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
