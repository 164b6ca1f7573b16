"""Ways of transfer: the parts that each step trains in every model, exact resume, and contradictory values."""

import importlib
import itertools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ml_collections import ConfigDict

from bert_elmo_jax import optim, train
from bert_elmo_jax.data.tasks.batches import TaskBatches
from bert_elmo_jax.families import all_families, get_family
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.optim.paths import path_name
from bert_elmo_jax.runs import prepared_task
from bert_elmo_jax.runs.finetuning import ADDED, FREE, finetune
from bert_elmo_jax.runs.task_data import Length, read_data
from bert_elmo_jax.runs.transfer import build_transfer, plan_unfreezing
from bert_elmo_jax.runs.with_head import prepare_head, start_head
from bert_elmo_jax.runs.with_network import prepare_network, start_network
from bert_elmo_jax.train.checkpoint import load_params

from ..experiments.task_files import write_model, write_task

pytestmark = pytest.mark.usefixtures("one_device")
LAYERS = {f"layer_{n}": {"kernel": jnp.ones(2)} for n in range(3)}
PARAMS = {
    "encoder": {"embeddings": {"word": jnp.ones(2)}, **LAYERS, "pooler": {"bias": jnp.ones(2)}},
    "classify": {"bias": jnp.ones(2)},
    "words": {"table": jnp.ones(2)},
}
DEPTH_OF = get_family("bert").depth_of
NETWORK = {"lstm_size": 4, "unknown": "unk", "word_size": 6}
# What trains each encoder: the config's file, the model, the task, and other fields.
MODELS = {
    "bert": ("finetune", None, "sst2", {"max_length": 32}),
    "gpt": ("finetune", "gpt2_tiny", "sst2", {"max_length": 32, "lm_weight": 0.5}),
    "elmo": ("tagger", "elmo_tiny", "ud_upos", {**NETWORK, "lstm_layers": 1, "tune_encoder": True}),
    "awd_lstm": ("bcn", "awd_lstm_tiny", "sst2", {**NETWORK, "feed_size": 4, "tune_encoder": True}),
    "cove": ("bcn", "cove_tiny", "sst2", {**NETWORK, "feed_size": 4, "tune_encoder": True, "layers": "-1"}),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    return {task: write_task(folder / task, task, count=8) for task in ("sst2", "ud_upos")}


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("model") / "bert", num_layers=2)


def config_of(name, files, bert, **changes):
    """Return the config of a model, with epochs of two steps and a constant rate, and its start."""
    recipe, model, task, fields = MODELS[name]
    config = importlib.import_module(f"experiments.configs.{recipe}").get_config()
    source = str(bert if model is None else f"tests/goldens/{model}")
    config.update({**files[task], **fields, "batch_size": 4, "epochs": 4.0, "head_epochs": 0.5, **changes})
    config.optimizer.update({"name": "adamw", "schedule": "constant", "learning_rate": 1e-3, "warmup": 0.0})
    if "network" in config:
        config.encoder = source
        return config, start_network(config, None, None)
    return config, start_head(config, source, None)


def prepare(config, start):
    return (prepare_network if "network" in config else prepare_head)(config, read_data(config), start)


def follow(config, ready, workdir, steps):
    """Return the parameters before the first step and after each."""
    step = jax.jit(train.make_step(ready.loss, ready.method, ready.coefficients))
    state = train.new_state(ready.params, ready.method, jax.random.key(0))
    collate, _ = ready.begin(workdir)
    batches = TaskBatches(ready.rows, config.batch_size, config.seed, collate)
    path = [jax.device_get(state.params)]
    for batch in itertools.islice(batches, steps):
        state, metrics = step(state, batch)
        assert metrics["failed"] == 0
        path.append(jax.device_get(state.params))
    batches.close()
    return path


def steps_moved(path, depth_of):
    """Return the steps that change any bit of a part, for each part: the depths, and `head`."""
    moved = {}
    for n, (before, after) in enumerate(itertools.pairwise(path)):
        for (where, a), b in zip(jax.tree_util.tree_leaves_with_path(before), jax.tree.leaves(after)):
            name = path_name(where)
            inside = name.startswith("encoder/")
            part = depth_of(name.removeprefix("encoder/")) if inside else "head"
            # A pretrained norm or pooler above the last layer is trained with it.
            moved.setdefault("top" if part is None else part, set()).update([n] if a.tobytes() != b.tobytes() else [])
    return moved


def expected(way, rank, layers, steps):
    """Return the steps that train a part, for epochs of two steps and a head alone for one."""
    everything = set(range(steps))
    if way == "head_first":
        return everything if rank == "head" else everything - {0}
    if way == "top_down":
        return everything if rank == "head" else {n for n in everything if n >= 1 + 2 * (layers - 1 - rank)}
    if way == "chain_thaw":
        together = {n for n in everything if n >= layers + 1}
        return together | ({0} if rank == "head" else {rank + 1})
    if way == "frozen":
        return everything if rank == "head" else set()
    assert way == "upper"  # one layer
    return everything if rank in ("head", layers - 1) else set()


CASES = [
    pytest.param(name, way, marks=[pytest.mark.long] * ((name, way) != ("bert", "chain_thaw")))
    for name in MODELS
    for way in ("head_first", "top_down", "chain_thaw", "upper", "frozen")
]


@pytest.mark.parametrize(("name", "way"), CASES)
def test_each_part_moves_in_its_steps_only(name, way, files, bert, tmp_path):
    fields = {"upper_layers": 1} if way == "upper" else {}
    if name == "gpt" and way == "frozen":
        fields = {"lm_weight": None}  # that term would have no trainable parameters
    config, start = config_of(name, files, bert, transfer=way, layer_decay=0.5, **fields)
    ready = prepare(config, start)
    depth_of = get_family(name).depth_of
    moved = steps_moved(follow(config, ready, tmp_path / "run", 7), depth_of)
    depths = sorted(part for part in moved if isinstance(part, int))
    expected_steps = {depth: expected(way, n, len(depths), 7) for n, depth in enumerate(depths)}
    expected_steps["head"] = expected(way, "head", len(depths), 7)
    if "top" in moved:
        expected_steps["top"] = expected_steps[depths[-1]]
    assert moved == expected_steps


def test_frozen_parts_have_no_state_and_no_gradient(files, bert):
    """The gradients of frozen parameters are zeros, and the state holds two numbers for each trained one."""
    config, start = config_of("bert", files, bert, transfer="upper", upper_layers=1)
    ready = prepare(config, start)
    lower = [ready.params["encoder"][name] for name in ("embeddings", "layer_0")]
    trained = sum(x.size for x in jax.tree.leaves(ready.params)) - sum(x.size for x in jax.tree.leaves(lower))
    state = ready.method.init(ready.params)
    assert sum(x.size for x in jax.tree.leaves(state) if x.ndim) == 2 * trained
    tokens = {"tokens": np.full((2, 6), 5), "segments": np.ones((2, 6), int), "types": np.zeros((2, 6), int)}
    batch = {**tokens, "labels": np.zeros(2, int), "weights": np.ones(2, np.float32)}

    def total(params):
        return ready.loss(params, batch, None, None)[0]["cross_entropy"][0]

    gradient = jax.jit(jax.grad(total))(ready.params)["encoder"]
    assert not any(jnp.any(x) for name in ("embeddings", "layer_0") for x in jax.tree.leaves(gradient[name]))
    assert all(jnp.any(x) for x in jax.tree.leaves(gradient["layer_1"]["feed_forward"]))


def plan(**changes):
    config = importlib.import_module("experiments.configs.finetune").get_config()
    config.update(changes)
    return jax.tree.map(lambda spans: spans.steps, plan_unfreezing(config, DEPTH_OF, PARAMS, 10))


def test_the_steps_of_each_part():
    steps = plan(transfer="chain_thaw", head_epochs=0.5)
    parts = [steps["classify"]["bias"], steps["encoder"]["embeddings"]["word"]]
    parts += [steps["encoder"][f"layer_{n}"]["kernel"] for n in range(3)]
    assert parts == [((5 * n, 5 * n + 5), (25, None)) for n in range(5)]
    assert steps["encoder"]["pooler"]["bias"] == parts[-1] and steps["words"]["table"] == parts[0]
    upper = plan(transfer="upper", upper_layers=2)["encoder"]
    assert [upper[f"layer_{n}"]["kernel"] for n in range(3)] == [(), ((0, None),), ((0, None),)]
    assert upper["embeddings"]["word"] == () and upper["pooler"]["bias"] == ((0, None),)
    assert set(jax.tree.leaves(plan(transfer="all"), is_leaf=lambda x: x == ((0, None),))) == {((0, None),)}


def test_further_frozen_parts_and_new_ones_inside_the_encoder():
    config = importlib.import_module("experiments.configs.finetune").get_config()
    length = Length(100, 10, 10, 10)
    for way in ("all", "chain_thaw"):
        config.transfer = way
        method, frozen = build_transfer(config, DEPTH_OF, PARAMS, length, frozen=["words/table"])[1:]
        assert frozen == ("words(/.*)?",)
        sizes = [x.size for x in jax.tree.leaves(method.init(PARAMS)) if x.ndim]
        assert sum(sizes) == 2 * 2 * 6
    config.transfer = "frozen"
    frozen = build_transfer(config, DEPTH_OF, PARAMS, length, fresh=["encoder/pooler/.*"]).frozen
    assert frozen == tuple(f"encoder/{name}(/.*)?" for name in ("embeddings", "layer_0", "layer_1", "layer_2"))
    with pytest.raises(ValueError, match=r"config.transfer=frozen leaves nothing to train"):
        build_transfer(config, DEPTH_OF, {"encoder": PARAMS["encoder"]}, length)


def test_each_layer_learns_slower_than_the_one_above(files, bert):
    """With plain gradients, the updates of trained layers differ by powers of the decay."""
    config = importlib.import_module("experiments.configs.finetune").get_config()
    config.optimizer.update({"name": "adagrad", "schedule": "constant", "warmup": 0.0, "learning_rate": 1.0})
    for way in ("all", "head_first", "top_down", "chain_thaw", "upper"):
        config.update({"transfer": way, "layer_decay": 1 / 2.6, "upper_layers": 2 if way == "upper" else None})
        method = build_transfer(config, DEPTH_OF, PARAMS, Length(100, 1, 1, 1)).method
        state, gradients = method.init(PARAMS), jax.tree.map(lambda x: x * 0.1, PARAMS)
        for _ in range(6):
            updates, state = method.update(gradients, state, PARAMS)
        # The head has been trained more often in all ways but one, so layers are compared with each other only there.
        if way in ("all", "head_first", "upper"):
            of = [float(updates["encoder"][f"layer_{n}"]["kernel"][0]) for n in range(3)]
            ratios = [above / lower for lower, above in itertools.pairwise(of) if lower]
            assert ratios == pytest.approx([2.6] * (1 if way == "upper" else 2))
            assert float(updates["classify"]["bias"][0]) / of[2] == pytest.approx(2.6, rel=0.1)


def test_gradients_are_clipped_before_they_are_scaled():
    """The scale of the gradients does not change which of them are clipped."""
    config = importlib.import_module("experiments.configs.finetune").get_config()
    config.optimizer.update({"name": "adagrad", "schedule": "constant", "warmup": 0.0, "learning_rate": 1.0})
    config.optimizer.update({"clip": 0.5, "gradient_scale": 4.0})
    updates = []
    for way in ("all", "head_first"):
        config.update(transfer=way, head_epochs=0.1)
        method = build_transfer(config, DEPTH_OF, {"encoder": LAYERS, "tag": jnp.ones(2)}, Length(100, 10, 1, 1)).method
        params = {"encoder": LAYERS, "tag": jnp.ones(2)}
        zeros = jax.tree.map(jnp.zeros_like, params)
        only = {**zeros, "tag": jnp.array([0.3, 0.4])}
        updates.append(method.update(only, method.init(params), params)[0]["tag"])
    np.testing.assert_allclose(updates[0], updates[1], rtol=1e-6)


def test_a_decoder_that_a_classifier_reads_is_unfrozen_before_the_encoder():
    """A tagger reads the encoder, so the decoder behind it has no layers there."""
    family = get_family("bart")
    sizes = {"hidden_size": 4, "num_layers": 2, "decoder_layers": 3, "num_heads": 2, "feed_forward_size": 4}
    config = family.config(vocab_size=20, max_positions=8, **sizes)

    def make_ones(head, pooler):
        shapes = jax.eval_shape(lambda: init_params(family, config, jax.random.key(0), pooler=pooler))
        return {**jax.tree.map(lambda leaf: np.ones(leaf.shape, np.float32), shapes), head: {"bias": np.ones(2)}}

    classifier, tagger = make_ones("classify", True), make_ones("tag", False)
    plan_of = ConfigDict({"transfer": "gradual", "upper_layers": None, "head_epochs": 1.0})
    parts = ("embeddings", "layer_0", "layer_1", *(f"decoder/{name}" for name in ("embeddings", "layer_0", "layer_2")))
    for params, starts, scales in (
        (classifier, [60, 50, 40, 60, 30, 10], [-6, -5, -4, -6, -3, -1]),
        (tagger, [30, 20, 10, 10, 10, 10], [-3, -2, -1, 0, 0, 0]),
    ):
        spans = plan_unfreezing(plan_of, family.depth_of, params, 10)["encoder"]
        updates, _ = optim.scale_by_depth(0.5, family.depth_of).update(params, None)
        for part, start, scale in zip(parts, starts, scales, strict=True):
            leaves = [tree_part(tree, part) for tree in (spans, updates["encoder"])]
            assert {span.steps for span in leaves[0]} == {((start, None),)}, part
            assert {float(update.flat[0]) for update in leaves[1]} == {2.0**scale}, part
        assert spans["decoder"]["output_bias"].steps == ((10, None),)
    plan_of.update(transfer="upper", upper_layers=3)
    upper = plan_unfreezing(plan_of, family.depth_of, classifier, 10)["encoder"]
    assert all(span.never for span in tree_part(upper, "layer_1"))
    assert all(span.always for span in tree_part(upper, "decoder/layer_0"))


def tree_part(tree, path):
    """Return the leaves of a part of a tree of parameters."""
    for name in path.split("/"):
        tree = tree[name]
    return jax.tree.leaves(tree)


@pytest.mark.parametrize("family", [family for family in all_families() if family.presets], ids=lambda f: f.name)
def test_every_part_of_every_encoder_has_a_layer(family):
    """Only a norm, a pooler or a bias after the last layer has no layer, and layers are numbered without gaps."""
    sizes = {name: value for name, value in next(iter(family.presets.values())).items() if name != "vocab_size"}
    config = family.config(vocab_size=family.inputs.vocab_size, **sizes)
    params = jax.eval_shape(lambda: init_params(family, config, jax.random.key(0), ()))["encoder"]
    names = [path_name(path) for path, _ in jax.tree_util.tree_leaves_with_path(params)]
    without = {re.sub(r"^(norm|pooler)/.*", r"\1", name) for name in names if family.depth_of(name) is None}
    assert without <= {"norm", "pooler", "decoder/output_bias"}
    depths = jax.tree.leaves(optim.depths({"encoder": params}, family.depth_of))
    numbered = {depth for name, depth in zip(names, depths) if family.depth_of(name) is not None} - {0}
    layers = len(set(config.layer_owners)) if hasattr(config, "layer_owners") else config.num_layers
    layers += config.target.num_layers if "decoder" in params else 0
    assert numbered == set(range(1, layers + 1))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"transfer": "upper"}, r"config.transfer=upper needs config.upper_layers=…, from 1 to 3"),
        ({"transfer": "upper", "upper_layers": 4}, r"upper_layers=4: expected 1 to 3, the layers of this encoder"),
        ({"transfer": "upper", "upper_layers": 0}, r"upper_layers=0: expected 1 to 3"),
        ({"upper_layers": 1}, r"config.upper_layers=1 with transfer=all is for transfer=upper: give both"),
        ({"transfer": "gradual", "upper_layers": 1}, r"with transfer=gradual is for transfer=upper"),
        ({"transfer": "chain-thaw"}, r"config.transfer='chain-thaw' is not known; .*did you mean chain_thaw\?"),
        ({"transfer": "chain_thaw", "head_epochs": 0.01}, r"head_epochs=0.01 is less than a step; use more"),
    ],
)
def test_values_that_cannot_be_meant(changes, message):
    with pytest.raises(ValueError, match=message):
        plan(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"transfer": "head_first"}, r"config.transfer=head_first is for the layers of a fine-tuned encoder: add"),
        ({"transfer": "upper", "upper_layers": 1}, r"config.transfer=upper is for the layers of a fine-tuned encoder"),
        ({"upper_layers": 1}, r"config.upper_layers=1 is for the layers of a fine-tuned encoder"),
        ({"layer_decay": 0.5}, r"config.layer_decay=0.5 is for the layers of a fine-tuned encoder"),
    ],
)
def test_a_network_with_a_frozen_encoder(changes, message, files, bert):
    config, start = config_of("elmo", files, bert, tune_encoder=False, **changes)
    with pytest.raises(ValueError, match=message):
        prepare(config, start)


def test_frozen_is_true_of_an_encoder_that_is_not_tuned(files, bert):
    config, start = config_of("elmo", files, bert, tune_encoder=False, transfer="frozen")
    assert "encoder" not in prepare(config, start).params
    config.encoder = ""
    with pytest.raises(ValueError, match=r"config.transfer=frozen is for the layers of a fine-tuned encoder"):
        prepare(config, start_network(config, None, None))


def test_a_run_too_short_for_its_last_stage_says_so(files, bert, capsys):
    config, start = config_of("bert", files, bert, transfer="top_down", epochs=2.0)
    prepare(config, start)
    hint = "transfer=top_down: this run of 4 steps ends before its last stage, which begins after 5; config.epochs of "
    assert f"{hint}more than 2.5 reach it" in capsys.readouterr().err
    config, start = config_of("bert", files, bert, transfer="top_down", epochs=3.0)
    prepare(config, start)
    assert "last stage" not in capsys.readouterr().err


def run(config, source, workdir):
    return finetune(config, workdir, init=None if "network" in config else source)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "way", "died"),
    [("bert", "chain_thaw", 2), ("bert", "chain_thaw", 6), ("bert", "upper", 3), ("bert", "top_down", 4),
     ("elmo", "chain_thaw", 3), ("awd_lstm", "top_down", 4)],
)  # fmt: skip
def test_a_run_that_dies_in_a_stage_ends_as_if_left_alone(name, way, died, files, bert, tmp_path, monkeypatch):
    fields = {"upper_layers": 1} if way == "upper" else {}
    config, _ = config_of(name, files, bert, transfer=way, eval_every=8, checkpoint_every=1, log_every=1, **fields)
    source = str(bert if MODELS[name][1] is None else f"tests/goldens/{MODELS[name][1]}")
    assert run(config, source, tmp_path / "alone") == 0

    class Dies(TaskBatches):
        batch_count = 0

        def __next__(self):
            self.batch_count += 1
            if self.batch_count > died:
                raise RuntimeError("killed")
            return super().__next__()

    with monkeypatch.context() as patch:
        patch.setattr(prepared_task, "TaskBatches", Dies)
        with pytest.raises(RuntimeError, match="killed"):
            run(config, source, tmp_path / "killed")
    assert not (tmp_path / "killed" / "result.json").exists()
    assert run(config, source, tmp_path / "killed") == 0
    assert (tmp_path / "alone" / "metrics.jsonl").read_bytes() == (tmp_path / "killed" / "metrics.jsonl").read_bytes()
    (_, ours), (_, theirs) = load_params(tmp_path / "alone"), load_params(tmp_path / "killed")
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)


def test_a_network_of_an_earlier_version_goes_on_as_it_was(files, bert, tmp_path):
    """The run.json of an earlier version has none of these fields."""
    settings = config_of("elmo", files, bert)[0].to_dict() | {"head_epochs": 1.0}
    train.same_run(tmp_path, {name: x for name, x in settings.items() if name not in (*ADDED, "upper_layers")})
    train.same_run(tmp_path, settings, FREE, ADDED)
    with pytest.raises(ValueError, match=r'transfer: "all" then, "gradual" now'):
        train.same_run(tmp_path, settings | {"transfer": "gradual"}, FREE, ADDED)
