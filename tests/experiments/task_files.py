"""Small files for every kind of task, English and Korean, and a model of one layer to fine-tune."""

import json
import random
from pathlib import Path

import jax

from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.bert.family import FAMILY
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.inference import write_run_directory
from bert_elmo_jax.text import train_wordpiece

GOOD, BAD = ("good", "great", "좋다", "최고"), ("bad", "poor", "싫다", "최악")
OTHER = "the a film movie was 영화 배우 연기 강가에 배가 있다 서울 역 where ? who".split()


def texts(coins, count, words=6):
    """(text, whether it is good)."""
    examples = []
    for _ in range(count):
        good = coins.random() < 0.5
        line = [coins.choice(GOOD if good else BAD), *coins.choices(OTHER, k=coins.randrange(1, words))]
        coins.shuffle(line)
        examples.append((" ".join(line), good))
    return examples


def write_texts(path, coins, count):
    rows = [f"{text}\t{int(good)}" for text, good in texts(coins, count)]
    path.write_text("\n".join(["sentence\tlabel", *rows]) + "\n", encoding="utf-8")


def write_reviews(path, coins, count):
    rows = [f'"{text}, really",{"재미" if good else "노잼"}' for text, good in texts(coins, count)]
    path.write_text("\n".join(["review,verdict", *rows]) + "\n", encoding="utf-8")


def write_pairs(path, coins, count):
    pairs = zip(texts(coins, count), texts(coins, count))
    rows = [f"{n}\t{a}\t{b}\t{'same' if x == y else 'other'}" for n, ((a, x), (b, y)) in enumerate(pairs)]
    path.write_text("\n".join(["index\tquestion\tsentence\tlabel", *rows]) + "\n", encoding="utf-8")


def write_numbers(path, coins, count):
    rows = [json.dumps({"text": text, "label": 4.5 if good else 1.0}) for text, good in texts(coins, count)]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


def write_scores(path, coins, count):
    pairs = zip(texts(coins, count), texts(coins, count))
    rows = [f"{a}\t{b}\t{5.0 if x == y else coins.random():.2f}" for (a, x), (b, y) in pairs]
    path.write_text("\n".join(["sentence1\tsentence2\tscore", *rows]) + "\n", encoding="utf-8")


def write_entities(path, coins, count):
    lines = ["-DOCSTART- O", ""]
    for text, _ in texts(coins, count):
        lines += [f"{word} {'B-LOC' if word == '서울' else 'O'}" for word in [*text.split(), "서울"]]
        lines += ["역 I-LOC", ""]
    path.write_text("\n".join(lines), encoding="utf-8")


def write_parts(path, coins, count):
    lines = []
    for text, _ in texts(coins, count):
        for n, word in enumerate(text.split(), start=1):
            tag = "ADJ" if word in GOOD + BAD else "NOUN"
            lines.append("\t".join([str(n), word, word, tag, *"______"]))
        lines.append("")
    path.write_text("\n".join(lines), encoding="utf-8")


def write_choices(path, coins, count):
    rows = []
    for n, (text, _) in enumerate(texts(coins, count)):
        endings = [coins.choice(BAD) for _ in range(4)]
        endings[n % 4] = coins.choice(GOOD)
        rows.append(",".join([text, "it was", *endings, str(n % 4)]))
    head = "sent1,sent2,ending0,ending1,ending2,ending3,label"
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")


def write_questions(path, coins, count):
    paragraphs = []
    for n, (text, good) in enumerate(texts(coins, count)):
        context = f"{text} 서울에 있다"
        answers = [{"text": "서울", "answer_start": len(text) + 1}] if good else []
        qa = {"id": f"q{n}", "question": "where ?" if good else "who ?", "answers": answers, "is_impossible": not good}
        paragraphs.append({"context": context, "qas": [qa]})
    content = {"version": "v2.0", "data": [{"title": "t", "paragraphs": paragraphs}]}
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def drop_unanswerable(file: Path) -> None:
    """Leave out the questions of a file that have no answer."""
    content = json.loads(file.read_text(encoding="utf-8"))
    for article in content["data"]:
        article["paragraphs"] = [each for each in article["paragraphs"] if each["qas"][0]["answers"]]
    file.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


# task: (how its files are written, their ending, other fields of the config)
WRITERS = {
    "sst2": (write_texts, "tsv", {}),
    "classification": (write_reviews, "csv", {"text": "review", "label": "verdict"}),
    "qnli": (write_pairs, "tsv", {}),
    "regression": (write_numbers, "jsonl", {}),
    "sentences": (write_scores, "tsv", {}),
    "entities": (write_entities, "conll", {"context": True}),
    "ud_upos": (write_parts, "conllu", {}),
    "swag": (write_choices, "csv", {}),
    "squad": (write_questions, "json", {}),
}


def write_task(folder, task, count=64):
    """Write files into a folder; return the config's fields for them."""
    write, ending, fields = WRITERS[task]
    folder.mkdir(exist_ok=True)
    files = {}
    for part, seed in (("train", 1), ("dev", 2)):
        files[part] = str(folder / f"{part}.{ending}")
        write(folder / f"{part}.{ending}", random.Random(seed), count if part == "train" else count // 2)
    return {"task": task, **files, **fields}


def write_model(folder, num_layers=1):
    """Write a run directory with a small model."""
    tokenizer = train_wordpiece([" ".join((*GOOD, *BAD, *OTHER, "서울에", "really", ","))] * 9, vocab_size=120)
    sizes = {"hidden_size": 16, "num_layers": num_layers, "num_heads": 2, "feed_forward_size": 32, "max_positions": 48}
    config = BertConfig(vocab_size=tokenizer.vocab_size, dropout=0.1, attention_dropout=0.1, **sizes)
    write_run_directory(
        folder, config, init_params(FAMILY, config, jax.random.key(0), ("mlm", "nsp")), tokenizer, run={}
    )
    return folder
