"""A parser from CoNLL-U to CoNLL-U: words alone, with tags, with an encoder's layers, refused."""

import importlib
import json
import random
from pathlib import Path

import pytest

from bert_elmo_jax import load
from bert_elmo_jax.data.tasks.trees import read_trees
from bert_elmo_jax.inference.predict_file import predict_file
from bert_elmo_jax.runs.finetuning import finetune

pytestmark = pytest.mark.usefixtures("one_device")
ELMO = str(Path(__file__).parents[1] / "goldens" / "elmo_tiny")
ADAGRAD = {"name": "adagrad", "learning_rate": 0.01, "gradient_scale": 1000.0, "clip": 1e9}  # the paper's
ADAGRAD = {f"optimizer.{name}": value for name, value in ADAGRAD.items()}
NOUNS, VERBS = ("cat", "dog", "배", "Seoul"), ("sees", "likes", "온다")


def write_treebank(path, count, seed=0):
    """Write sentences such as `the cat sees Seoul .`, one with a multiword token and an empty node."""
    draw, blocks = random.Random(seed), []
    for n in range(count):
        nouns = [draw.choice(NOUNS) for _ in range(2)]
        words = ["the", nouns[0], draw.choice(VERBS), nouns[1], "."]
        rows = zip(words, ("DET", "NOUN", "VERB", "NOUN", "PUNCT"), (2, 3, 0, 3, 3))
        names = ("det", "nsubj:pass" if n % 2 else "nsubj", "root", "obj", "punct")
        lines = [f"# sent_id = {n}"] + [
            f"{k}\t{word}\t{word}\t{tag}\t_\t_\t{head}\t{name}\t_\tM={k}"
            for k, ((word, tag, head), name) in enumerate(zip(rows, names), start=1)
        ]
        lines[1:1] = ["1-2\t_\t_\t_\t_\t_\t_\t_\t_\t_"]
        lines.append("5.1\tx\t_\t_\t_\t_\t_\t_\t3:dep\t_")
        blocks.append("\n".join(lines) + "\n")
    path.write_text("\n".join(blocks), encoding="utf-8")
    return str(path)


def config_of(folder, **changes):
    config = importlib.import_module("experiments.configs.parser").get_config()
    config.train, config.dev = (
        write_treebank(folder / f"{part}.conllu", 24, n) for n, part in enumerate(("train", "dev"))
    )
    config.update(
        {"hidden_size": 8, "word_size": 6, "tag_size": 4, "relation_size": 4, "batch_size": 8, "epochs": 40.0}
    )
    config.update({"unknown": "unk", "eval_every": 60, "dropout": 0.0, "min_count": 1})
    config.optimizer.learning_rate = 0.02
    config.update_from_flattened_dict(changes)
    return config


@pytest.mark.long
def test_a_parser_learns_and_writes_the_file_that_it_read(tmp_path):
    config = config_of(tmp_path)
    assert finetune(config, tmp_path / "run") == 0
    result = json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))
    assert (result["score"], result["dev"]["las"], result["dev"]["uas"]) == ("las", 1.0, 1.0)
    assert result["dev"]["las_subtypes"] < 1.0  # drawn at random
    parser = load(tmp_path / "run")
    [tree, other] = parser.predict([["the", "dog", "likes", "Seoul", "."], "온다"])
    assert (tree.heads, other.heads, other.relations) == ((2, 3, 0, 3, 3), (0,), ("root",))
    assert (tree.relations[0], tree.relations[2:]) == ("det", ("root", "obj", "punct"))
    with pytest.raises(
        ValueError, match=r"input 0 is \[\]; expected a text \(split at white space\) or a list of words"
    ):
        parser.predict([[]])
    unparsed = tmp_path / "unparsed.conllu"
    text = Path(config.dev).read_text(encoding="utf-8").replace("\t3\tobj", "\t_\t_")
    unparsed.write_text(text, encoding="utf-8")
    predict_file(str(tmp_path / "run"), str(unparsed), str(tmp_path / "out.conllu"))
    gold = read_trees(config.dev)
    assert [one.heads for one in read_trees(tmp_path / "out.conllu")] == [one.heads for one in gold]
    written = (tmp_path / "out.conllu").read_text(encoding="utf-8").splitlines()

    def other_columns(lines):  # all but heads and relations
        return [cells[:6] + cells[8:] for cells in (line.split("\t") for line in lines)]

    assert other_columns(written) == other_columns([*text.splitlines(), ""])
    (tmp_path / "words.txt").write_text("the cat sees Seoul .\n", encoding="utf-8")
    predict_file(str(tmp_path / "run"), str(tmp_path / "words.txt"), str(tmp_path / "words.conllu"))
    [sentence] = read_trees(tmp_path / "words.conllu")
    assert (sentence.words[0], sentence.heads) == ("the", (2, 3, 0, 3, 3))
    predict_file(str(tmp_path / "run"), str(tmp_path / "words.txt"), str(tmp_path / "words.jsonl"))
    assert json.loads((tmp_path / "words.jsonl").read_text(encoding="utf-8"))["heads"] == [2, 3, 0, 3, 3]
    assert "right heads" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")


@pytest.mark.long
@pytest.mark.parametrize(
    "fields", [{"tag_column": "upos"} | ADAGRAD, {"encoder": ELMO}, {"encoder": ELMO, "tune_encoder": True}]
)
def test_a_parser_reads_tags_or_layers(tmp_path, fields):
    assert finetune(config_of(tmp_path, epochs=6.0, eval_every=18, **fields), tmp_path / "run") == 0
    result = json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))
    if "encoder" in fields:
        assert result["dev"]["las"] > 0.8
    parser = load(tmp_path / "run")
    words = ["the", "cat", "온다"]
    if "tag_column" not in fields:
        assert len(parser.predict([words])[0].heads) == 3
        return
    assert parser.task.tags == ("DET", "NOUN", "PUNCT", "VERB")
    assert len(parser.predict([(words, ["DET", "X", "VERB"])])[0].heads) == 3  # an unknown tag
    with pytest.raises(ValueError, match=r"a upos tag for each word.*: this parser reads tags"):
        parser.predict([words])
    with pytest.raises(ValueError, match="input 0 has 3 words and 1 tags; expected a tag for each word"):
        parser.predict([(words, ["DET"])])


@pytest.mark.long
def test_a_vocabulary_of_one_word(tmp_path):
    config = config_of(tmp_path, epochs=1.0, eval_every=0)
    for file in (config.train, config.dev):
        Path(file).write_text("1\tgo\t_\t_\t_\t_\t0\troot\t_\t_\n\n" * 9, encoding="utf-8")
    assert finetune(config, tmp_path / "run") == 0
    assert load(tmp_path / "run").predict(["go go go"])[0].heads.count(0) == 1


@pytest.mark.usefixtures("as_users_run")
def test_wrong_inputs_are_refused(tmp_path):
    config = config_of(tmp_path)
    (tmp_path / "wide.txt").write_text("cat 1.0 2.0\ndog 1.0 2.0 3.0\n", encoding="utf-8")
    (tmp_path / "none.txt").write_text("zebra 1.0 2.0\n", encoding="utf-8")
    for changes, message in (
        ({"vectors": str(tmp_path / "wide.txt"), "word_size": 0}, r"wide.txt:2: .* of one width"),
        ({"vectors": str(tmp_path / "none.txt"), "word_size": 0}, "has no vector for any word of"),
        ({"tag_column": "pos"}, "tag_column='pos' is not known; use upos, xpos"),
        ({"task": "ud_upos"}, "config.network=parser is for trees, and --task=ud_upos is tags"),
        ({"activation": "tanh"}, "activation='tanh' is not known"),
    ):
        changed = config.copy_and_resolve_references()
        changed.update(changes)
        with pytest.raises(ValueError, match=message):
            finetune(changed, tmp_path / "run")
    head = importlib.import_module("experiments.configs.finetune").get_config()
    head.update({"train": config.train, "dev": config.dev, "task": "dependencies", "preset": "tiny"})
    with pytest.raises(ValueError, match="--task=dependencies has trees, which no head predicts: use --config=parser"):
        finetune(head, tmp_path / "run", tokenizer=str(Path(ELMO).parent / "bert_tiny"))
    cycle = Path(config.dev).read_text(encoding="utf-8").replace("\t2\tdet", "\t1\tdet")
    (tmp_path / "cycle.conllu").write_text(cycle, encoding="utf-8")
    config.dev = str(tmp_path / "cycle.conllu")
    with pytest.raises(ValueError, match=r"cycle.conllu:3: word 1 is its own head"):
        finetune(config, tmp_path / "run")
