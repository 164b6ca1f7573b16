"""A CoVe in place of an ELMo: task networks, extraction, and a run from pairs of sentences to vectors."""

import importlib
import json
import random
import shutil

import jax
import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.data.corpora.toy_corpus import toy_pairs
from bert_elmo_jax.inference.extract import extract
from bert_elmo_jax.inference.word_encoder import layer_shape, word_encoder
from bert_elmo_jax.inference.word_layers import choose_layers, word_layers
from bert_elmo_jax.runs.config_files import read_config
from bert_elmo_jax.runs.pretraining import build_objective, pretrain
from bert_elmo_jax.train.checkpoint import load_params
from bert_elmo_jax.train.metrics import read_metrics

WORDS = ("the", "The", "bank", "of", "river", "ship", "배", "unheard")
NETWORK = {"lstm_size": 4, "epochs": 1.0, "batch_size": 8, "unknown": "unk", "word_size": 6, "dropout": 0.0}


def test_extraction_and_layers_of_words(goldens, tmp_path):
    cove = word_encoder(str(goldens / "cove_tiny"))
    assert layer_shape(cove) == (3, 48) and choose_layers(cove) == (0, 1, 2)
    layers = list(word_layers(cove, [["the", "bank"], ["강가의", "은행", "."]]))
    (tmp_path / "texts.txt").write_text("the bank\n강가의 은행 .\n", encoding="utf-8")
    assert extract(str(goldens / "cove_tiny"), tmp_path / "texts.txt", tmp_path / "out.npz") == 2
    vectors = np.load(tmp_path / "out.npz")
    for n, expected in enumerate(layers):
        np.testing.assert_allclose(vectors[str(n)], expected, rtol=0, atol=1e-6)


def train_network(name, encoder, folder, **changes):
    """Train a task network for a few steps on made-up sentences, and load it."""
    coins, tags = random.Random(1), name == "tagger"
    for part, count in (("train", 16), ("dev", 8)):
        lines = []
        for _ in range(count):
            words = coins.choices(WORDS, k=coins.randrange(2, 6))
            if tags:
                lines += [f"{word} {'B-LOC' if word == 'river' else 'O'}" for word in words] + [""]
            else:
                lines.append(f"{' '.join(words)}\t{int('river' in words)}")
        head = [] if tags else ["sentence\tlabel"]
        (folder / f"{part}.tsv").write_text("\n".join(head + lines) + "\n", encoding="utf-8")
    config = importlib.import_module(f"experiments.configs.{name}").get_config()
    files = {part: str(folder / f"{part}.tsv") for part in ("train", "dev")}
    sizes = {"feed_size": 4} if name == "bcn" else {}
    config.update({**NETWORK, **sizes, **files, "task": "entities" if tags else "sst2", "encoder": str(encoder)})
    config.update(changes)
    from bert_elmo_jax.runs.finetuning import finetune

    assert finetune(config, folder / "run") == 0
    return load(folder / "run")


@pytest.mark.long
@pytest.mark.usefixtures("one_device")
def test_a_task_network_on_frozen_layers(goldens, tmp_path):
    """The run has the encoder with its word vectors, and predicts without the files that it was made from."""
    shutil.copytree(goldens / "cove_tiny", tmp_path / "cove")
    model = train_network("bcn", tmp_path / "cove", tmp_path, layers="-1")
    shutil.rmtree(tmp_path / "cove")
    assert model.config.encoder_layers == 3 and model.config.encoder_width == 48
    again = load(tmp_path / "run")
    [one], [other] = (m.predict(["the river"]) for m in (model, again))
    assert one.probabilities == other.probabilities
    inside = load(tmp_path / "run" / "encoder")
    expected = load(goldens / "cove_tiny").encode(["the bank of unheard"])
    assert (inside.encode(["the bank of unheard"]).last == expected.last).all()


@pytest.mark.usefixtures("as_users_run")
def test_it_cannot_be_adapted_as_a_language_model(goldens, tmp_path):
    from bert_elmo_jax.runs.adaptation import adapt_encoder

    config = importlib.import_module("experiments.configs.bcn").get_config()
    config.encoder, config.adapt.epochs = str(goldens / "cove_tiny"), 1.0
    with pytest.raises(ValueError, match=r"trains an encoder as a language model, and .*cove_tiny is a CoVe, which is"):
        adapt_encoder(config, tmp_path, None, None)


@pytest.mark.long
@pytest.mark.usefixtures("one_device")
def test_a_task_network_that_fine_tunes_it(goldens, tmp_path):
    model = train_network("tagger", goldens / "cove_tiny", tmp_path, tune_encoder=True)
    before = load(goldens / "cove_tiny").params["encoder"]
    moved = jax.tree.map(lambda a, b: float(np.abs(a - b).max()), model.params["encoder"], before)
    assert min(jax.tree.leaves(moved)) > 0
    assert len(model.predict([["the", "river"]])[0].tags) == 2


def small_run(data, **changes):
    """Return the toy recipe with small sizes and dropout."""
    config, _ = read_config("experiments/configs/cove.py:toy")
    config.update(data=str(data), steps=4, batch_size=8, checkpoint_every=2, eval_every=4, eval_batches=1)
    config.update(length=12, target_length=12, translations=5)
    config.model.update(vector_size=8, lstm_size=8, target_size=8, dropout=0.1)
    config.update_from_flattened_dict(changes)
    return config


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    return toy_pairs(
        tmp_path_factory.mktemp("pairs") / "data", documents=120, topics=2, words=2, tokenizer="words", vocab_size=400,
        heldout=0.1,
    )  # fmt: skip


@pytest.mark.long
@pytest.mark.usefixtures("one_device", "as_users_run")
def test_a_run_gives_an_encoder(pairs, tmp_path):
    config = small_run(pairs)
    config.optimizer.decay = 0.1  # frozen vectors do not decay
    assert pretrain(config, tmp_path / "run") == 0
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    figures = {name for line in lines for name in line}
    assert {"held_out/perplexity", "held_out/accuracy", "held_out/exact"} <= figures
    cove = load(tmp_path / "run")
    assert set(cove.params) == {"encoder", "decoder"}
    # The run ends with translations of held-out sentences; `translate` gives such texts.
    final = json.loads((tmp_path / "run" / "final.json").read_text())
    assert {"held_out/bleu", "held_out/chrf", "held_out/same"} <= set(final)
    sources = [" ".join(cove.reads.words[n : n + 3]) for n in (5, 9)]
    written = cove.generate(sources, max_new=6)
    assert cove.translate(sources, max_new=6) == [best.text for best, *_ in written]
    assert written == cove.generate(source=[cove.reads.ids(text.split()).tolist() for text in sources], max_new=6)
    beams = cove.generate(sources, max_new=6, beams=3, n_best=3)
    assert [len(texts) for texts in beams] == [3, 3]
    assert all(best.score >= worst.score for best, _, worst in beams)
    assert "".join(cove.stream(sources[0], max_new=6)) == written[0][0].text
    words = list(cove.reads.words)
    known_word = words[5]
    encoding = cove.encode([[known_word, "never-seen", known_word]])
    assert encoding.vectors[0, 0].any() and not encoding.vectors[0, 1].any()
    assert (encoding.vectors[0, 0] == encoding.vectors[0, 2]).all() and cove.word_rule == cove.reads.rule
    # The vectors are frozen, so they are still as the seed drew them.
    _, objective = build_objective(small_run(pairs), None)
    fresh = jax.jit(objective.init)(jax.random.key(0))
    table = cove.params["encoder"]["embeddings"]["word"]
    assert (table == fresh["encoder"]["embeddings"]["word"]).all()
    assert (cove.params["decoder"]["embedding"] != fresh["decoder"]["embedding"]).any()
    # As the encoder of a task it has no decoder, and the same vectors.
    encoder = word_encoder(str(tmp_path / "run"))
    with pytest.raises(ValueError, match="has only the encoder of a CoVe, as all released weights: nothing can be tr"):
        encoder.translate([known_word])
    [layers] = encoder.word_layers([[known_word, "never-seen", known_word]], [0, 1, 2])
    np.testing.assert_allclose(layers[2], encoding.last[0], rtol=0, atol=1e-6)
    # Another run may begin with vectors of a file.
    (tmp_path / "glove.txt").write_text(f"{known_word} 1 2 3 4 5 6 7 8\nother 0 0 0 0 0 0 0 1\n", encoding="utf-8")
    _, objective = build_objective(small_run(pairs, vectors=str(tmp_path / "glove.txt")), None)
    table = np.asarray(jax.jit(objective.init)(jax.random.key(0))["encoder"]["embeddings"]["word"])
    assert table[5].tolist() == [1, 2, 3, 4, 5, 6, 7, 8] and not np.delete(table, 5, axis=0).any()


@pytest.mark.long
@pytest.mark.usefixtures("one_device")
def test_a_second_run_may_begin_with_the_weights_of_the_first(pairs, tmp_path):
    assert pretrain(small_run(pairs, steps=2), tmp_path / "run") == 0
    assert pretrain(small_run(pairs, steps=2), tmp_path / "second", init=str(tmp_path / "run")) == 0


@pytest.mark.long
@pytest.mark.devices
def test_exact_resume_and_pmap(pairs, tmp_path):
    """The run has four steps with dropout on eight devices, and a checkpoint every two."""
    unbroken_run, again = tmp_path / "alone", tmp_path / "again"
    assert pretrain(small_run(pairs), unbroken_run) == 0
    shutil.copytree(unbroken_run, again)
    shutil.rmtree(again / "checkpoints" / "4")
    assert pretrain(small_run(pairs), again) == 0
    (step, ours), (also, theirs) = load_params(again), load_params(unbroken_run)
    assert step == also == 4
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)
    assert (again / "metrics.jsonl").read_bytes() == (unbroken_run / "metrics.jsonl").read_bytes()
    plain = small_run(pairs, **{"model.dropout": 0.0})
    assert pretrain(plain, tmp_path / "mesh") == pretrain(plain, tmp_path / "pmap", parallel="pmap") == 0
    (_, ours), (_, theirs) = load_params(tmp_path / "mesh"), load_params(tmp_path / "pmap")
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=0, atol=1e-4), ours, theirs)


@pytest.mark.long
@pytest.mark.devices
def test_a_mesh_that_shards_parameters(pairs, tmp_path):
    plain = small_run(pairs, **{"model.dropout": 0.0})
    split = small_run(pairs, **{"model.dropout": 0.0})
    split.mesh.update(data=2, fsdp=2, tensor=2)
    assert pretrain(plain, tmp_path / "plain") == pretrain(split, tmp_path / "split") == 0
    norms = [[line["gradient_norm"] for line in read_metrics(tmp_path / name)] for name in ("plain", "split")]
    assert norms[1] == pytest.approx(norms[0], rel=1e-4)
    (_, ours), (_, theirs) = load_params(tmp_path / "plain"), load_params(tmp_path / "split")
    # Four steps of Adam at rates up to 5e-3; where a gradient is nearly zero, its rounding decides the direction.
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=0, atol=1e-3), ours, theirs)


@pytest.mark.long
@pytest.mark.devices
def test_a_plan(capsys):
    from bert_elmo_jax.plan.chips import find_topology
    from bert_elmo_jax.plan.plan import plan

    config = small_run("", steps=100)
    assert plan(config, find_topology("cpu:8"), 100, None, 0)
    assert "on 8 devices (data=8 × fsdp=1 × tensor=1)" in capsys.readouterr().out
