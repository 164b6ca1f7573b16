"""Export to AllenNLP: it loads our files, and computes the same vectors, with its state carried between batches."""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert_elmo_jax.families.elmo import hdf5_weights as elmo_hdf5
from bert_elmo_jax.families.elmo.config import ElmoConfig
from bert_elmo_jax.families.elmo.model import Elmo, init_elmo_params, zero_state
from bert_elmo_jax.text import boundary_characters

pytestmark = pytest.mark.peers
SENTENCES = [
    [["The", "bank", "of", "the", "river"], ["배를", "타고", "강을", "건넜다"], ["."]],
    [["은행", "앞에서", "만났다", "."], ["It", "'s"], ["supercalifragilisticexpialidocious" * 2, "—", "naïve", "강"]],
    [["a"], ["the", "boat", "sailed", "down", "the", "river", "배"], ["먹었다", "pear"]],
]
BASE = ElmoConfig(cell_size=24, projection_size=8, filters=((1, 4), (2, 6), (3, 10)), num_highways=1)
CONFIGS = {
    "plain": BASE,
    "one layer": ElmoConfig(cell_size=16, projection_size=8, num_layers=1, filters=((1, 4), (5, 6)), num_highways=0),
    "three layers": ElmoConfig(cell_size=24, projection_size=12, num_layers=3, filters=BASE.filters, dropout=0.0),
    "four, tanh": ElmoConfig(
        cell_size=16, projection_size=6, num_layers=4, filters=((2, 5), (7, 9)), char_activation="tanh", num_highways=3
    ),
    "clips": ElmoConfig(cell_size=24, projection_size=8, filters=BASE.filters, cell_clip=0.4, proj_clip=0.2),
    "as wide": ElmoConfig(cell_size=10, projection_size=10, filters=((1, 4), (2, 6)), char_embedding_size=5),
    "with a head": ElmoConfig(cell_size=24, projection_size=8, filters=BASE.filters, vocab_size=30),
}


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """A stub of modules that AllenNLP imports for other models and that are not installed."""

    def __init__(self, packages):
        self.packages = packages

    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in self.packages:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return types.ModuleType(spec.name)

    def exec_module(self, module):
        def make(name):
            if name.startswith("__"):  # what Python itself asks of a module
                raise AttributeError(name)
            return type(name, (), {})

        module.__getattr__ = make


@pytest.fixture(scope="module")
def their_elmo():
    """Return AllenNLP's module. It is archived, so names that PyTorch and others have moved are restored for it."""
    for package in ("torch", "allennlp"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs {package}: the peers extra, and allennlp 2.10.1, which goes beside it with --no-deps")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import huggingface_hub
        import torch

        absent = Absent({name for name in ("torchvision", "fairscale", "wandb") if not importlib.util.find_spec(name)})
        sys.meta_path.append(absent)
        for name in ("HfFolder", "Repository"):
            if not hasattr(huggingface_hub, name):
                setattr(huggingface_hub, name, type(name, (), {}))
        schedulers = torch.optim.lr_scheduler
        schedulers._LRScheduler = schedulers.LRScheduler
        from allennlp.modules import elmo

        torch.set_num_threads(1)
        yield elmo
        sys.meta_path.remove(absent)


def large_params(config, lm):
    """Return weights so large that every detail shows, but so small that rounding does not grow from word to word."""
    params = init_elmo_params(config, jax.random.key(1), lm=lm)
    keys = iter(jax.random.split(jax.random.key(2), len(jax.tree.leaves(params))))
    return jax.tree.map(lambda leaf: leaf * 1.5 + 0.1 * jax.random.normal(next(keys), leaf.shape), params)


def with_marks(ids):
    """Return AllenNLP's ids with the marks of begin and end, [B, T + 2, C], and the lengths."""
    lengths = (ids[:, :, 0] > 0).sum(1) + 2
    rows = np.zeros((len(ids), ids.shape[1] + 2, ids.shape[2]), np.int32)
    rows[:, 1:-1] = ids
    begin, end = boundary_characters(ids.shape[2])
    rows[:, 0] = begin
    rows[np.arange(len(ids)), lengths - 1] = end
    return rows, lengths.astype(np.int32)


@pytest.mark.parametrize("name", CONFIGS)
def test_they_compute_the_same_from_what_we_write(their_elmo, tmp_path, name):
    import torch

    config = CONFIGS[name]
    params = large_params(config, lm=config.vocab_size is not None)
    elmo_hdf5.write(tmp_path / "elmo", params, config)
    files = [str(tmp_path / "elmo" / file) for file in ("options.json", "weights.hdf5")]
    theirs = their_elmo._ElmoBiLm(*files).eval()
    apply = jax.jit(lambda *inputs, state, characters: Elmo(config).apply(
        {"params": params["encoder"]}, *inputs, characters=characters, state=state
    ))  # fmt: skip
    state, largest = zero_state(config, 3), 0.0
    for sentences in SENTENCES:
        ids = their_elmo.batch_to_ids(sentences)
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            output = theirs(ids)
        rows, lengths = with_marks(ids.numpy())
        distinct, places = np.unique(rows.reshape(-1, rows.shape[2]), axis=0, return_inverse=True)
        places = jnp.asarray(places.reshape(rows.shape[:2]), jnp.int32)
        ours = apply(places, lengths, state=state, characters=distinct[None])
        state = ours.state
        mask = output["mask"].numpy().astype(bool)
        assert mask.sum() == lengths.sum()
        assert len(output["activations"]) == len(ours.layers) == config.num_layers + 1
        for their_layer, our_layer in zip(output["activations"], ours.layers, strict=True):
            their_layer, our_layer = their_layer.numpy()[mask], np.asarray(our_layer)[mask]
            largest = max(largest, np.abs(their_layer - our_layer).max() / np.abs(their_layer).max())
    print(f"{name}: largest difference, as a share of the largest value: {largest:.1e}")
    assert largest <= 1e-5


def test_our_words_are_theirs(their_elmo):
    from bert_elmo_jax.text import character_table

    words = [word for sentences in SENTENCES for sentence in sentences for word in sentence]
    np.testing.assert_array_equal(character_table(words), their_elmo.batch_to_ids([words]).numpy()[0])
