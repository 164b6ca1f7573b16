"""Pretraining as people run it: a whole run, given weights, a request to stop, and the recipes of all families.

tests/campaigns/test_kills.py kills such runs.
"""

import dataclasses
import json
import re
import shutil
import signal

import jax
import numpy as np
import pytest

from bert_elmo_jax import load, train
from bert_elmo_jax.data.corpora.prepare import Request, prepare
from bert_elmo_jax.data.corpora.shards import is_heldout
from bert_elmo_jax.data.corpora.toy_corpus import toy_corpus
from bert_elmo_jax.data.pipeline.batches import train_batches
from bert_elmo_jax.heads.sentence_head import Dense, SentenceHead, init_sentence_head
from bert_elmo_jax.plan.plan import build_inputs
from bert_elmo_jax.runs.config_files import list_recipes, read_config
from bert_elmo_jax.runs.pretraining import build_objective, build_pretraining, build_step, pretrain
from bert_elmo_jax.runs.train_run import place_run
from bert_elmo_jax.train.checkpoint import load_params, save_params
from bert_elmo_jax.train.metrics import Metrics, read_metrics
from bert_elmo_jax.weights.parameter_tree import flatten

from .programs import run_program
from .small_recipes import corpus_kind, small_config, small_fields, toy_corpora

FAMILIES = ("albert", "awd_lstm", "bart", "bert", "bert_modern", "cove", "deberta", "distilbert", "electra", "elmo",
            "eurobert", "gpt", "modernbert", "mpnet", "roberta", "static", "transformer")  # fmt: skip
RECIPES = [f"{family}:{recipe}" for family in FAMILIES for recipe in list_recipes(family)[0]]
# The parts that learn in every step; of other families mlm.
HEADS = {"awd_lstm": "encoder", "bart": "encoder", "cove": "decoder", "deberta": "replaced", "elmo": "lm",
         "electra": "replaced", "gpt": "encoder", "static": "context", "transformer": "decoder"}  # fmt: skip
STEPS = 16


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    return toy_corpora(tmp_path_factory.mktemp("corpora"))


@pytest.fixture(scope="module")
def run(corpora):
    """Return a function that pretrains a family in a folder, and returns its exit status and its messages."""

    def start(family, workdir, *more):
        file = f"{family}:toy"
        fields = [f"--config.{field}" for field in (*small_fields(file), f"data={corpora(corpus_kind(file))}")]
        status, _, err = run_program("pretrain", f"--config={file}", f"--workdir={workdir}", *fields, *more)
        return status, err

    return start


@pytest.fixture(scope="module")
def undisturbed(request, run, tmp_path_factory):
    """Return an uninterrupted run: its family and its folder."""
    workdir = tmp_path_factory.mktemp(request.param) / "run"
    status, messages = run(request.param, workdir)
    assert status == 0, messages
    assert re.search(rf"^{workdir}: {STEPS} steps of 8 rows, on 1 × cpu$", messages, re.M)
    return request.param, workdir


# What all families share is tried with one of them in every run of the tests.
LONG = [pytest.param(family, marks=pytest.mark.long) for family in FAMILIES if family not in ("bert", "bert_modern")]
ONE = pytest.mark.parametrize("undisturbed", ["bert", *LONG], indirect=True, scope="module")


@ONE
def test_a_run_is_complete(undisturbed):
    _, workdir = undisturbed
    lines = read_metrics(workdir)
    assert [line["step"] for line in lines] == list(range(1, STEPS + 1))
    assert lines[-1]["loss"] < lines[0]["loss"]
    held_out = [line["step"] for line in lines if any(name.startswith("held_out/") for name in line)]
    assert held_out == [8, STEPS]
    assert (workdir / "report.html").read_text(encoding="utf-8").count("<svg") >= 5
    assert any((workdir / "events").iterdir())
    assert load(workdir).encode([["ship", "배"]]).last.shape[0] == 1
    checkpoints = {folder.name for folder in (workdir / "checkpoints").iterdir()}
    assert {"12", "16", "average"} <= checkpoints <= {"4", "8", "12", "16", "average"}
    assert len(checkpoints) in (3, 4)  # the newest two, the best, and the mean


@ONE
@pytest.mark.long
def test_going_on_from_given_weights(undisturbed, run, tmp_path):
    """They are scored before the first step, and training starts from them, not from random weights."""
    family, before = undisturbed
    weights = before / "checkpoints" / str(STEPS)  # not the mean
    status, messages = run(
        family, tmp_path, f"--init={weights}", "--parallel=pmap", "--config.optimizer.learning_rate=1e-6"
    )
    assert status == 0, messages
    last = {name: value for name, value in read_metrics(before)[-1].items() if name.startswith("held_out/")}
    scores = messages.partition("before the first step: ")[2].splitlines()[0].split(", ")
    scores = {name: float(value) for name, value in (score.split(" ") for score in scores)}
    assert scores == pytest.approx(last, rel=2e-3)
    [figure] = {"held_out/mlm_perplexity", "held_out/perplexity"} & last.keys() or {next(iter(last))}
    assert read_metrics(tmp_path)[-1][figure] == pytest.approx(last[figure], rel=0.01)


@pytest.mark.long
@pytest.mark.parametrize("undisturbed", ["bert", "static"], indirect=True)
def test_asked_to_stop_it_saves_and_the_same_command_resumes(undisturbed, run, tmp_path, monkeypatch):
    family, undisturbed_run = undisturbed
    write = Metrics.write

    def stop(self, step, line, **options):
        if step == 6:
            signal.raise_signal(signal.SIGTERM)
        return write(self, step, line, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Metrics, "write", stop)
        status, messages = run(family, tmp_path)
    assert status == 75
    assert re.search(r"asked to stop: saved at step \d+; run the same command to resume", messages)
    status, messages = run(family, tmp_path)
    assert status == 0 and re.search(r"resuming from step \d+", messages)
    assert (tmp_path / "metrics.jsonl").read_bytes() == (undisturbed_run / "metrics.jsonl").read_bytes()
    (step, ours), (also, theirs) = load_params(tmp_path), load_params(undisturbed_run)
    assert step == also == STEPS
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)


@pytest.mark.parametrize("undisturbed", ["bert"], indirect=True)
def test_a_run_with_other_fields_is_refused(undisturbed, run):
    family, workdir = undisturbed
    status, messages = run(family, workdir, "--config.seed=3", "--config.optimizer.learning_rate=1.0")
    assert status == 2 and "Traceback" not in messages
    assert "optimizer.learning_rate: " in messages and "seed: 0 then, 3 now" in messages


@pytest.mark.parametrize("family", ["bert", "elmo", pytest.param("transformer", marks=pytest.mark.long)])
def test_contradictory_configs_are_refused(family, corpora, tmp_path):
    """test_refusals.py shows that programs end with one message on such errors."""
    kinds = {"bert": ("pieces", "words"), "elmo": ("words", "pieces"), "transformer": ("pairs", "pieces")}
    right, wrong = (str(corpora(kind)) for kind in kinds[family])
    cases = [
        ({"data": wrong}, None, "prepare pairs" if family == "transformer" else "prepare it"),
        ({"data": ""}, None, "--config.data=… is needed"),
        ({"data": str(tmp_path)}, None, str(tmp_path)),
        ({"optimizer.name": "adamx"}, None, "config.optimizer.name='adamx' is not known; it is one of bert_adam"),
        ({"mesh.fsdp": 3}, None, "a mesh of"),
        ({}, "/nowhere/at/all", "nowhere"),
    ]
    for number, (fields, init, message) in enumerate(cases):
        config, _ = read_config(f"{family}:toy")
        config.update_from_flattened_dict({"data": right, **fields})
        with pytest.raises((ValueError, OSError), match=re.escape(message)):
            pretrain(config, tmp_path / str(number), init=init)


def test_a_corpus_without_held_out_text_is_refused_before_the_training(tmp_path):
    config, _ = read_config("bert:toy")
    config.data = str(toy_corpus(tmp_path / "all", documents=5, heldout=0.0))
    with pytest.raises(ValueError, match="has no document in its part 'heldout'; prepare it with a higher --heldout"):
        pretrain(config, tmp_path / "run")
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_a_wrong_optimizer_is_refused_before_the_world_is_generated(tmp_path):
    config, _ = read_config("bert:toy")
    config.optimizer.name = "adam"
    with pytest.raises(ValueError, match=r"config\.optimizer\.name='adam' is not known"):
        pretrain(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def prepare_with_heldout(folder, train, heldout, tokenizer, share=0.02):
    """Prepare 120 equal documents, and other ones where documents are held out."""
    text = ""
    while text.count("\n\n") < 120:
        text += (heldout if is_heldout(0, 0, len(text.encode()), share) else train) + "\n\n"
    (folder / "a.txt").write_text(text, encoding="utf-8")
    prepare(Request((str(folder / "a.txt"),), str(folder / "c"), tokenizer, vocab_size=60, heldout=share))
    return str(folder / "c")


@pytest.mark.parametrize(
    ("recipe", "train", "heldout", "message"),
    [
        ("static:skipgram", "the great ship", "great", "has a sentence with two words that are read"),
        ("static:glove", "the great ship", "great", "has a sentence with two words that are read"),
        ("transformer:toy", "a ship\n배", f"a ship\n{'배 ' * 300}", "is a pair that fits into"),
    ],
)
def test_held_out_documents_without_a_row_are_refused_before_the_training(tmp_path, recipe, train, heldout, message):
    tokenizer = "words" if recipe.startswith("static") else "wordpiece"
    config, _ = read_config(recipe)
    config.data = prepare_with_heldout(tmp_path, train, heldout, tokenizer)
    with pytest.raises(ValueError, match=rf"none of \d documents in its part 'heldout' {message}"):
        build_pretraining(config, tmp_path / "run", None, place_run(config, "jit"))


def test_pmap_with_a_mesh_is_refused():
    config, _ = read_config("bert:toy")
    config.mesh.fsdp = 4
    with pytest.raises(
        ValueError, match="a mesh of data=-1 × fsdp=4 × tensor=1 with --parallel=pmap, which only splits"
    ):
        place_run(config, "pmap")


@pytest.mark.long
def test_data_of_a_run_may_move_and_no_others_take_their_place(tmp_path, corpora):
    run = tmp_path / "run"

    def start(folder):
        config, _ = read_config("static:toy")
        config.update(data=str(folder), steps=1, eval_every=0)
        assert pretrain(config, run) == 0

    start(corpora("words"))
    shutil.copytree(corpora("words"), tmp_path / "moved")
    start(tmp_path / "moved")
    assert json.loads((run / "run.json").read_text())["data"] == str(tmp_path / "moved")
    shutil.rmtree(run / "checkpoints")  # as if it had been killed before the first one
    other = toy_corpus(tmp_path / "other", documents=60, tokenizer="words", heldout=0.2)
    with pytest.raises(ValueError, match=r"was started with other data, .*moved then, .*other now: use the same data"):
        start(other)
    assert json.loads((run / "run.json").read_text())["data"] == str(tmp_path / "moved")


def test_given_weights_without_a_vocabulary_are_compared_in_size(goldens, tmp_path, corpora):
    shutil.copytree(goldens / "bert_tiny", tmp_path / "model")
    (tmp_path / "model" / "vocab.txt").unlink()
    config, _ = read_config("bert:toy")
    config.data = str(corpora("pieces"))
    with pytest.raises(ValueError, match=r"model has no vocabulary, and embeddings for 200 pieces, but the data was"):
        build_pretraining(config, tmp_path / "run", str(tmp_path / "model"), place_run(config, "jit"))


def test_a_sentence_model_keeps_its_pooling_and_prompts_unless_it_has_dense_layers(tmp_path, corpora, capsys):
    config = small_config("bert:toy", data=str(corpora("pieces")))

    def build(name, init):
        training = build_pretraining(config, tmp_path / name, init, place_run(config, "jit"))
        training.describe(tmp_path / name)
        save_params(tmp_path / name, 0, training.params)
        return load(tmp_path / name)

    model = build("first", None)
    head = SentenceHead(("cls",), ("normalize",), 20, prompts=(("query", "query: "),), default_prompt="query")
    for name, layers in (("plain", ("normalize",)), ("dense", (Dense(16, 8),))):
        model.sentence_head = dataclasses.replace(head, layers=layers)
        model.params["sentence"] = init_sentence_head(model.sentence_head, jax.random.key(0))
        model.save_sentences(tmp_path / name)
    assert build("second", str(tmp_path / "plain")).sentence_head == head
    assert "sentence vectors" not in capsys.readouterr().err
    assert build("third", str(tmp_path / "dense")).sentence_head == SentenceHead()
    assert re.search("left out: the dense layers of .*dense, .* of its sentence vectors", capsys.readouterr().err)


def test_parts_of_a_batch_have_whole_rows_of_each_device(tmp_path, corpora, monkeypatch):
    """Each device has a table of the words of its rows, so its rows are split, not those of the batch."""
    monkeypatch.setattr(train.Placement, "parts", property(lambda self: 2))
    config, _ = read_config("static:fasttext")
    config.update(data=str(corpora("words")), batch_size=12, accumulate=4)
    with pytest.raises(ValueError, match=r"of 12 rows, which 2 devices cannot share .*=4 .* multiples of 8"):
        build_pretraining(config, tmp_path, None, place_run(config, "jit"))


def test_only_an_optimiser_that_leaves_rows_alone_is_given_the_touched_ones(monkeypatch):
    """Adam also moves rows that it has seen before: the update must be the same as on the whole table."""
    touched = []
    monkeypatch.setattr(train, "make_step", lambda *_, **options: touched.append(options.get("touched")) or print)
    for name in ("adagrad", "adamw", "bert_adam", "lamb"):
        config, _ = read_config("elmo:small")
        config.optimizer.update(name=name, clip=1.0)
        _, objective = build_objective(config, 100)
        build_step(config, objective)
    assert [rows is not None for rows in touched] == [True, False, False, False]


@pytest.mark.parametrize("file", RECIPES)
def test_every_recipe_says_what_it_is(file):
    _, docstring = read_config(file)
    for part in ("xpected score:", "Cost:", "Command:", f"--config={file} "):
        assert part in docstring
    assert build_objective(small_config(file, data="", accumulate=1), 10_000)[1].phases


FIRST = {file.partition(":")[0]: file for file in reversed(RECIPES)}.values()  # one recipe of each file


@pytest.mark.parametrize("file", [pytest.param(f, marks=() if f in FIRST else pytest.mark.long) for f in RECIPES])
def test_every_recipe_is_traced(file):
    config = small_config(file, data="", accumulate=1)
    _, objective = build_objective(config, 10_000)
    step, state, batch = build_inputs(config, objective, objective.phases[0], config.batch_size, train.make_mesh())
    after, metrics = jax.eval_shape(step, state, batch)
    assert jax.tree.structure(after) == jax.tree.structure(state) and metrics["loss"].shape == ()


@pytest.mark.long
@pytest.mark.parametrize("file", RECIPES)
def test_every_recipe_takes_a_step(file, corpora):
    config = small_config(file, data=str(corpora(corpus_kind(file))), accumulate=1)
    config.optimizer.warmup = min(config.optimizer.warmup, 100.0)  # of thousands, the second step moves no 1.0
    _, objective = build_objective(config, None)
    params = objective.init(jax.random.key(config.seed))
    _, method, step = build_step(config, objective)
    state, step = train.new_state(params, method, jax.random.key(0), objective.carry(4)), jax.jit(step)
    batches = train_batches(config.data, objective.phases[0].examples, 4)
    for _ in range(2):  # the first step of BERT's schedule has the rate 0
        state, metrics = step(state, next(batches))
    batches.close()
    assert np.isfinite(float(metrics["loss"])) and int(state.failed) == 0
    moved = jax.tree.map(lambda a, b: bool((np.asarray(a) != np.asarray(b)).any()), state.params, params)
    trained = flatten(moved[HEADS.get(file.partition(":")[0], "mlm")])
    assert all(changed for name, changed in trained.items() if not name.endswith("output_bias"))  # a constant of a BART
