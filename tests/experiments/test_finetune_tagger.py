"""A tagger from files to predictions: with an encoder or without, refused with one message.

tests/campaigns/test_kills.py kills such runs.
"""

import copy
import importlib
import json
import random
import re
from pathlib import Path

import jax
import numpy as np
import pytest

from bert_elmo_jax import load, train
from bert_elmo_jax.data.tasks.task import read_examples
from bert_elmo_jax.inference.predict_file import predict_file
from bert_elmo_jax.inference.task_network import TaskNetwork
from bert_elmo_jax.inference.word_encoder import word_encoder
from bert_elmo_jax.runs.config_files import list_recipes, read_config
from bert_elmo_jax.runs.finetuning import finetune
from bert_elmo_jax.runs.task_data import read_data
from bert_elmo_jax.runs.with_network import fill_cache, prepare_network, read_vectors, start_network
from bert_elmo_jax.train.checkpoint import load_params
from bert_elmo_jax.train.metrics import read_metrics

from .task_files import OTHER, write_model, write_task

pytestmark = pytest.mark.usefixtures("one_device")
ROOT = Path(__file__).parents[2]
ELMO, BERT = (str(ROOT / "tests" / "goldens" / name) for name in ("elmo_tiny", "bert_tiny"))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    task_fields = {task: write_task(folder / task, task, count=32) for task in ("entities", "ud_upos", "sst2")}
    del task_fields["entities"]["context"]
    with open(task_fields["entities"]["train"], "a", encoding="utf-8") as file:
        file.write("\n서울 B-LOC\n")  # a sentence of one word
    plain = folder / "plain.conll"
    plain.write_text("".join(f"{word} O\n\n" for word in OTHER), encoding="utf-8")
    task_fields["plain"] = {"task": "entities", "train": str(plain), "dev": str(plain)}
    vectors = folder / "vectors.txt"
    draw = random.Random(0)
    words = ["역", "서울", "배우", "처음", *OTHER[:9]]
    lines = [f"{word} {' '.join(str(round(draw.gauss(0, 1), 3)) for _ in range(6))}" for word in dict.fromkeys(words)]
    vectors.write_text("\n".join(lines) + "\n", encoding="utf-8")
    task_fields["vectors"] = str(vectors)
    return task_fields


def config_of(fields, **changes):
    config = importlib.import_module("experiments.configs.tagger").get_config()
    small = {"lstm_size": 4, "lstm_layers": 1, "epochs": 1.0, "batch_size": 16, "unknown": "unk", "word_size": 6}
    config.update({**small, **fields})
    config.update_from_flattened_dict(changes)
    return config


@pytest.mark.long
def test_a_bert_that_is_trained_along(files, tmp_path):
    bert = write_model(tmp_path / "bert")
    config = config_of(
        files["ud_upos"], encoder=str(bert), tune_encoder=True, output="softmax", places="output", layer_decay=0.5,
        unknown="random",
    )  # fmt: skip
    assert finetune(config, tmp_path / "run") == 0
    tuned = load(tmp_path / "run")
    assert isinstance(tuned, TaskNetwork)
    before, after = load_params(bert)[1]["encoder"], load_params(tmp_path / "run")[1]["encoder"]
    moved = jax.tree.map(lambda a, b: bool((a != b).any()), {n: before[n] for n in after}, after)
    assert all(jax.tree.leaves(moved["layer_0"]["feed_forward"]))
    [prediction, short] = tuned.predict(["좋다 the 처음보는말", ["영화"]])
    assert set(prediction.tags) <= {"ADJ", "NOUN"}
    assert (len(prediction.tags), len(short.tags)) == (3, 1)
    assert load(tmp_path / "run" / "encoder").encode(["영화"]).last.shape[2] == 16
    report = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "Weights of the encoder" in report
    shares = json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))["layer_shares"]
    assert all(sum(layers) == pytest.approx(1) and min(layers) > 0 for layers in shares.values()) and shares
    with pytest.raises(ValueError, match="is a task network and has no layers"):
        start_network(config_of({}, encoder=str(tmp_path / "run")), None, None)


@pytest.mark.long
def test_it_learns_with_pretrained_vectors_that_stay(files, tmp_path, capsys):
    config = config_of(
        files["entities"], vectors=files["vectors"], word_size=0, tune_words=False, unknown="vectors", epochs=40.0,
        dropout=0.0, eval_every=40,
    )  # fmt: skip
    config.optimizer.learning_rate = 0.05
    assert finetune(config, tmp_path / "run") == 0
    assert re.search(r"vectors\.txt: vectors of \d+ of the \d+ words", capsys.readouterr().err)
    result = json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))
    assert result["dev"]["f1"] > 0.9
    tagger = load(tmp_path / "run")
    assert ("LOC", "서울 역") in tagger.predict(["영화 배우 서울 역"])[0].entities
    _, table = tagger.lexicon.table(read_vectors(files["vectors"], tagger.lexicon.words))
    np.testing.assert_array_equal(tagger.params["words"]["table"], table)
    assert "처음" not in tagger.lexicon.words
    assert tagger.lexicon.ids(["처음", "없는말"]).tolist() == [-1, 0]
    changed = tmp_path / "changed.conll"
    changed.write_text(Path(files["entities"]["train"]).read_text(encoding="utf-8").replace("역 I-LOC", "배 I-LOC"))
    for part in ("train", "dev"):
        other = copy.deepcopy(config)
        other[part] = str(changed)
        with pytest.raises(ValueError, match=rf"the examples of --{part} have changed since .*run began"):
            finetune(other, tmp_path / "run")
    dev = read_examples(files["entities"]["dev"], tagger.task)
    together = tagger.predict_examples(dev, batch_size=7)
    for sentence, prediction in list(zip(dev, together))[:3]:
        [single] = tagger.predict([list(sentence.words)])
        assert single.tags == prediction.tags
        assert single.probabilities == pytest.approx(prediction.probabilities, abs=1e-4)


@pytest.mark.long  # test_finetune.py has a grid
def test_a_grid_of_tags_without_entities(files, tmp_path):
    """Without entities all tags are O and the score is 0. The encoder's vectors are computed once."""
    config = config_of(files["plain"], encoder=ELMO)
    assert finetune(config, tmp_path, seeds=["0", "1"]) == 0
    runs = json.loads((tmp_path / "grid.json").read_text(encoding="utf-8"))
    assert [of["dev"]["f1"] for of in runs["runs"]] == [0.0, 0.0]
    assert [of["dev"]["accuracy"] for of in runs["runs"]] == [1.0, 1.0]
    assert (tmp_path / "vectors" / "vectors.json").is_file()
    assert load(tmp_path).predict(["서울"])[0].tags == ("O",)
    saved_encoders = [folder.name for folder in (tmp_path / "runs").iterdir() if (folder / "encoder").is_dir()]
    assert saved_encoders == [runs["best"]]


def test_a_cache_of_other_sentences(files, tmp_path):
    config = config_of(files["entities"], encoder=ELMO, cache=str(tmp_path / "cache"))
    fill_cache(tmp_path / "cache", word_encoder(ELMO), [("다른", "글")], progress=False)
    with pytest.raises(ValueError, match="belong to other sentences"):
        finetune(config, tmp_path / "run")


GRU = {"cell": "gru", "lstm_layers": 2, "places": "between", "layers": "top", "mix_l2": 0.0, "character_size": 5}
WAYS = {
    "gru": {"character_vectors": "gru", "character_layers": 2, "directions": "forward"},
    "cnn": {"character_vectors": "cnn", "directions": "backward", "unknown": "random"},
    "lstm": {"character_vectors": "lstm", "cell": "lstm", "unknown": "characters"},
}


def gru_config(files, way, folder):
    fields = {**files["entities"], "epochs": 20.0, "dropout": 0.0, "mix_dropout": 0.0, "eval_every": 40}
    config = config_of(fields, **{**GRU, **WAYS[way]}, encoder=ELMO, cache=str(folder / "vectors"))
    config.optimizer.learning_rate = 0.02
    config.checkpoint_every = 40
    return config


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_cells_characters_and_directions_learn_and_are_loaded(files, way, tmp_path):
    config, run = gru_config(files, way, tmp_path), tmp_path / "run"
    assert finetune(config, run) == 0
    tagger = load(run)
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    assert result["dev"]["f1"] > 0.8
    assert {"crf", "learning_rate"} <= set(read_metrics(run)[-1])
    assert ("state_bias" in tagger.params["layer_0"]["forward"]) == (config.cell == "gru")
    assert tagger.config.character_encoder == config.character_vectors
    columns = {"forward": (0, 12), "backward": (12, 24), "both": ()}[config.directions]
    assert tagger.config.encoder_columns == columns
    width = 10 if config.character_vectors != "cnn" else 5
    kernels = [tagger.params[f"layer_{n}"]["forward"]["input_kernel"] for n in range(2)]
    assert [len(kernel) for kernel in kernels] == [6 + width, 8 + (12 if columns else 24)]
    # One sentence is tagged as among others, long ones as short ones, and a file's as a list's.
    dev = read_examples(files["entities"]["dev"], tagger.task)
    together = tagger.predict_examples(dev, batch_size=7)
    for sentence, prediction in list(zip(dev, together))[:3]:
        [single] = tagger.predict([list(sentence.words)])
        assert single.tags == prediction.tags
        assert single.probabilities == pytest.approx(prediction.probabilities, abs=1e-4)
    [long, one] = tagger.predict(["서울 역 the film " * 9, "서울"])
    assert (len(long.tags), len(one.tags)) == (36, 1)
    with pytest.raises(ValueError, match="input 0 is ''"):
        tagger.predict([""])
    predict_file(str(run), files["entities"]["dev"], str(tmp_path / "out.jsonl"))
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [tuple(line["words"]) for line in lines] == [sentence.words for sentence in dev]
    assert [tuple(line["tags"]) for line in lines] == [prediction.tags for prediction in together]
    # The cache has whole layers, which other settings share.
    other = gru_config(files, way, tmp_path)
    other.update(epochs=1.0, directions="both", layers="0,1")
    before = (tmp_path / "vectors" / "vectors.json").stat().st_mtime_ns
    prepare_network(other, read_data(other), start_network(other, None, None)).begin(tmp_path / "other")
    assert (tmp_path / "vectors" / "vectors.json").stat().st_mtime_ns == before
    changed = gru_config(files, way, tmp_path)
    changed.directions = {"forward": "backward", "backward": "forward", "both": "forward"}[config.directions]
    with pytest.raises(ValueError, match="directions: "):
        finetune(changed, run)
    model_file = run / "encoder" / "model.json"
    model_file.write_text(model_file.read_text(encoding="utf-8").replace("3.0", "2.0"), encoding="utf-8")
    with pytest.raises(ValueError, match="is another encoder"):
        load(run)


@pytest.mark.parametrize("name", list_recipes("experiments/configs/taglm.py")[0])
def test_recipes_of_taglm_make_a_step(name, files, tmp_path):
    """The recipe with other data is traced, but not computed."""
    config, description = read_config(f"experiments/configs/taglm.py:{name}")
    for part in ("xpected score:", "Cost:", "Command:", "taglm" if name == "entities" else f"taglm:{name}"):
        assert part in description
    config.update({**files["entities"], "encoder": ELMO, "batch_size": 8, "directions": "forward"})
    start = start_network(config, None, None)
    data = read_data(config)
    ready = prepare_network(config, data, start)
    collate, _ = ready.begin(tmp_path)
    kind, first, second = {"entities": ("gru", 100 + 160, 600 + 12), "chunks": ("lstm", 100 + 30, 400 + 12)}[name]
    kernels = [ready.params[f"layer_{n}"]["forward"]["input_kernel"] for n in range(2)]
    assert [kernel.shape[0] for kernel in kernels] == [first, second]
    assert ("state_bias" in ready.params["layer_0"]["forward"]) == (kind == "gru")
    step = train.make_step(ready.loss, ready.method, ready.coefficients)
    state = train.new_state(ready.params, ready.method, jax.random.key(0))
    after, metrics = jax.eval_shape(step, state, collate(ready.rows[:8], 8))
    assert jax.tree.structure(after.params) == jax.tree.structure(ready.params)
    assert metrics["loss"].shape == ()


REFUSED = [
    ({}, {"network": "Taggr"}, "did you mean tagger?"),
    ({}, {"network": "poet"}, "config.network='poet' is not known; it is one of tagger"),
    ({}, {"tune_encoder": True}, "config.tune_encoder needs an encoder: give --config.encoder"),
    ({}, {"unknown": "guess"}, "unknown='guess' is not known; expected one of unk, classes"),
    ({}, {"unknown": "vectors"}, "config.unknown=vectors needs a file: give --config.vectors"),
    ({}, {"unknown": "vectors_or_random"}, "config.unknown=vectors_or_random needs a file: give --config.vectors"),
    ({}, {"vectors": BERT}, "config.vectors=.*bert_tiny holds no vectors of words: give a file of vectors, or a run"),
    ({}, {"places": "top"}, "places='top': use input, between, output"),
    ({}, {"layer_decay": 0.9}, "config.layer_decay=0.9 is for the layers of a fine-tuned encoder"),
    ({}, {"cell": "gur"}, r"cell='gur' is not known; use one of lstm, gru, window, linear; did you mean gru\?"),
    ({}, {"cell": "window", "window": 10}, "window=10: expected an odd number of words"),
    ({}, {"cell": "linear"}, "config.cell=linear has a weight for each word and tag instead of vectors: leave out"),
    ({"word_size": 0}, {"cell": "linear", "unknown": "random"}, "config.unknown=random: .* use unk or classes"),
    ({"word_size": 0}, {"cell": "linear", "unknown": "characters"}, "cell=linear reads neither an encoder's layers"),
    ({}, {"suffix": -1}, "config.suffix=-1: expected a whole number from 0 to 20 letters; 0: no such feature"),
    ({}, {"character_vectors": "rnn"}, "config.character_vectors='rnn' is not known; use none, cnn, gru, lstm"),
    ({}, {"character_vectors": "none", "unknown": "characters"}, "config.character_vectors=none, and config.unknown"),
    ({}, {"character_vectors": "cnn", "character_layers": 2}, "character_layers=2: the cnn has one layer"),
    ({}, {"directions": "forward"}, "config.directions=forward needs an encoder"),
    ({"encoder": BERT}, {"directions": "forward"}, "no direction of their own"),
    ({}, {"vectors": "/nowhere.txt"}, "/nowhere.txt: there is no such file of vectors"),
    ({"word_size": 50}, {"vectors": "…"}, r"config.word_size=50, and .*vectors.txt has vectors of 6 numbers"),
    ({"encoder": "/nowhere/at/all"}, {}, "nowhere"),
    ({"label": "0"}, {"task": "entities", "text": "0"}, "1 column|2 columns|expected"),
]


@pytest.mark.parametrize(("fields", "changes", "message"), REFUSED)
@pytest.mark.usefixtures("as_users_run")
def test_wrong_settings_are_refused(fields, changes, message, files, tmp_path):
    changes = {name: files["vectors"] if value == "…" else value for name, value in changes.items()}
    with pytest.raises((ValueError, OSError), match=message):
        finetune(config_of({**files["entities"], **fields}, **changes), tmp_path / "run")
    assert not (tmp_path / "run" / "run.json").exists()


def test_a_task_that_a_tagger_is_not_for(files, tmp_path):
    with pytest.raises(ValueError, match=r"is for tags, and --task=sst2 is classification: choose another config"):
        finetune(config_of(files["sst2"]), tmp_path / "run")
    with pytest.raises(ValueError, match="--init=runs/bert has no use for a tagger, which is trained from scratch"):
        start_network(config_of({}), "runs/bert", None)


def test_a_gazetteer_needs_entities(files, tmp_path):
    message = r"config.gazetteer=true lists the entities of the training part, and --task=ud_upos has none: leave it"
    with pytest.raises(ValueError, match=message):
        finetune(config_of(files["ud_upos"], gazetteer=True), tmp_path / "run")


@pytest.mark.long
@pytest.mark.parametrize("cell", ["window", "linear"])
def test_a_window_with_features_learns_resumes_and_is_loaded(files, cell, tmp_path):
    config = config_of(
        files["entities"], cell=cell, window=5, suffix=2, capitals=True, gazetteer=True, min_count=1, epochs=40.0,
        dropout=0.0, eval_every=40, word_size=0, lstm_size=8,
    )  # fmt: skip
    config.optimizer.learning_rate = 0.05
    assert finetune(config, tmp_path / "run") == 0
    assert json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))["dev"]["f1"] > 0.9
    tagger = load(tmp_path / "run")
    assert tagger.lexicon.features.gazetteer["LOC"]["서울 역"] > 1
    assert ("LOC", "서울 역") in tagger.predict(["영화 배우 서울 역"])[0].entities
    assert finetune(config, tmp_path / "run") == 0  # a finished run is only reported
    config.suffix = 3
    with pytest.raises(ValueError, match="suffix"):
        finetune(config, tmp_path / "run")


def test_a_label_never_seen_in_training(files, tmp_path):
    dev = tmp_path / "dev.conll"
    dev.write_text("서울 B-LOC\n은행 B-ORG\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"dev\.conll:2: the tag 'B-ORG' is not in the training data"):
        finetune(config_of({**files["entities"], "dev": str(dev)}), tmp_path / "run")
