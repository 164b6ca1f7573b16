"""Small versions of the inputs that documented commands name: models, corpora, run directories and data."""

import gzip
import json
import random
import shutil
from pathlib import Path

from bert_elmo_jax.data.corpora.prepare import Request, prepare
from bert_elmo_jax.data.corpora.toy_corpus import toy_pairs
from bert_elmo_jax.inference.convert import convert
from bert_elmo_jax.sweeps.new_sweep import EXAMPLE

from .data.conftest import inline, no_bar, random_documents, write_documents
from .experiments.task_files import (
    drop_unanswerable,
    texts,
    write_choices,
    write_model,
    write_pairs,
    write_questions,
    write_texts,
)
from .inference.test_task_model import write as write_head
from .page_files import GOLDENS, WRITER, write_page_files

ROOT = Path(__file__).parents[1]
HUB_NAMES = ("google-bert/bert-base-cased", "google-bert/bert-base-uncased", "klue/bert-base",
             "google-bert/bert-base-multilingual-cased")  # fmt: skip
DEEP = "deep"  # a folder with models of twelve layers, for commands that read their upper layers; others have one
# Corpora by their tokenizer; all have the same text.
CORPORA = {
    "wordpiece": (
        "corpora/novels",
        "corpora/reviews",
        "corpora/my",
        "corpora/korean_both",
        "corpora/korean_pieces",
        "data/wiki",
        "data/books",
        "data/web",
        "shared/corpora/novels",
    ),
    "words": ("corpora/novels_words", "corpora/novel", "corpora/wikitext2", "corpora/wikitext103", "data/1b"),
    "hub": ("corpora/law", "data/law"),  # with the vocabulary of the model that is trained further
}
# docs/how_to_add.md has the same file, with dots in place of the function's body.
ATTENTION = """
from bert_elmo_jax.nn.attention import reference, register_attention
from bert_elmo_jax.experiments.configs.bert import get_config

register_attention("mine", lambda *arrays, **options: reference(*arrays, **options))
"""
SENSES = "# newdoc id = {0}\nriver\triver\tNN\t{1}\t1:0{1}:00::\t_\t_\nboat\t_\tNN\t_\t_\t_\t_\n\n"
TREE = "1\t{0}\t_\tNOUN\t_\tNumber={2}\t2\tnsubj\t_\t_\n2\t{1}\t_\tVERB\t_\tPerson={3}|Tense={4}\t0\troot\t_\t_\n\n"


def write_command_files(root: Path) -> None:
    """Write everything that a documented command reads below a folder, except for pretrained run directories."""
    write_page_files(root, layers=12)
    for name in ("experiments", "bert_elmo_jax"):
        (root / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "docs" / "results", root / "docs" / "results")
    write_hub(root)
    shutil.copytree(GOLDENS / "bert_tiny_tf", root / "uncased_L-12_H-768_A-12")
    shutil.copytree(GOLDENS / "mpnet_tiny", root / "all-mpnet-base-v2")
    for name in ("elmo", "elmo_2x4096_512_2048cnn_2xhighway"):
        shutil.copytree(GOLDENS / "elmo_tiny", root / name)
    for name in ("cove", "runs/cove"):
        shutil.copytree(GOLDENS / "cove_tiny", root / name)
    write_texts_and_corpora(root)
    write_task_files(root)
    write_treebanks(root)
    write_sweeps_data(root)
    write_head(root / "runs" / "sst2", "sst2", labels=("0", "1"))
    write_head(root / "runs" / "squad", "squad", stride=8, unanswerable=True)


def write_hub(root: Path) -> None:
    """Write models with one layer in place of the hub's; those that pages have are moved below DEEP."""
    (root / DEEP).mkdir()
    (root / "hub").rename(root / DEEP / "hub")
    write_model(root / "model")
    for name in HUB_NAMES:
        model = root / "hub" / f"models--{name.replace('/', '--')}"
        convert(str(root / "model"), model / "snapshots" / ("0" * 40))
        (model / "refs").mkdir()
        (model / "refs" / "main").write_text("0" * 40, encoding="utf-8")
    entities = root / "hub" / "models--dslim--bert-base-NER"
    shutil.copytree(GOLDENS / "released_heads" / "bert_ner", entities / "snapshots" / ("0" * 40))
    (entities / "refs").mkdir()
    (entities / "refs" / "main").write_text("0" * 40, encoding="utf-8")
    shutil.copytree(GOLDENS / "released_heads" / "roberta_nli3", root / "my-nli")
    writer = f"models--{WRITER.replace('/', '--')}"
    shutil.copytree(root / DEEP / "hub" / writer, root / "hub" / writer)


def write_texts_and_corpora(root: Path) -> None:
    """Write raw texts, and the corpora that prepare_data makes of them."""
    documents = random_documents(0, 200)
    write_documents(root / "text.txt", documents)
    for name in ("reviews.txt", "my.txt", "novels.txt", "wiki.train.tokens"):
        write_documents(root / name, documents[:30])
    for name in ("texts.txt", "sentences.txt", "news.txt", "new.txt"):
        lines = [line for document in documents[:10] for line in document]
        (root / name).write_text("\n".join(["they play", "we play", *lines]) + "\n", encoding="utf-8")
    levels = [f"나는 {n}번 집에 {verb} ." for n in range(9) for verb in ("간다", "가요")]
    (root / "levels.txt").write_text("\n".join(levels) + "\n", encoding="utf-8")
    (root / "prompts.txt").write_text("they play\nwe play\n", encoding="utf-8")
    (root / "novel.txt").write_bytes((root / "my.txt").read_text(encoding="utf-8").encode("cp949"))
    lines = [json.dumps({"review": " ".join(document)}, ensure_ascii=False) for document in documents]
    (root / "reviews.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    shutil.rmtree(root / "corpora")
    for tokenizer, (first, *copies) in CORPORA.items():
        options = {"tokenizer": tokenizer, "vocab_size": 300, "heldout": 0.1}
        if tokenizer == "hub":
            options["tokenizer"] = str(next(root.glob("hub/*bert-base-cased/snapshots/*")))
        prepare(Request((str(root / "text.txt"),), str(root / first), **options), inline, no_bar)
        for copy in copies:
            shutil.copytree(root / first, root / copy)
    english, korean = (
        "".join(f"{line}\n" for line in lines) for lines in (["the pear", "the sea"] * 9, ["배", "바다"] * 9)
    )
    for name, text in (("news.en", english), ("news.ko", korean), ("wmt.en", english), ("wmt.de", korean)):
        (root / name).write_text(text, encoding="utf-8")
    (root / "wikitext-2").mkdir()
    (root / "wikitext-2" / "wiki.valid.tokens").write_text(english, encoding="utf-8")
    (root / "korean").mkdir()
    for name in ("general", "reviews"):
        (root / "korean" / f"{name}.txt").write_text(korean * 20, encoding="utf-8")
    table = "".join(f"{en}\t{ko}\n" for en, ko in zip(english.splitlines(), korean.splitlines()))
    (root / "sts.tsv").write_text(table, encoding="utf-8")
    (root / "news.tsv").write_text(f"english\tkorean\n{table}", encoding="utf-8")
    for place in ("corpora/news", "corpora/sts", "data/wmt"):
        toy_pairs(root / place, topics=2, words=2, documents=60, heldout=0.3)
    toy_pairs(root / "data/wmt_words", topics=2, words=2, documents=60, heldout=0.3, tokenizer="words")


def write_task_files(root: Path) -> None:
    """Write the files of tasks, in the layout of each."""
    coins = random.Random(0)
    rows = texts(coins, 24)
    entails = ("not_entailment", "entailment")
    pairs = [(f"{text} .", f"{other} .", good) for (text, good), (other, _) in zip(rows, rows[::-1])]
    lines = {
        "my.csv": ["review,sentence,stars", *(f"{text},{text},{5 if good else 1}" for text, good in rows)],
        "nsmc": ["id\tdocument\tlabel", *(f"{n}\t{text}\t{int(good)}" for n, (text, good) in enumerate(rows))],
        "rte": ["index\tsentence1\tsentence2\tlabel",
                *(f"{n}\t{a}\t{b}\t{entails[good]}" for n, (a, b, good) in enumerate(pairs))],
        "mrpc": ["Quality\t#1 ID\t#2 ID\t#1 String\t#2 String",
                 *(f"{int(good)}\t{n}\t{n}\t{a}\t{b}" for n, (a, b, good) in enumerate(pairs))],
        "stsb": [f"forum\tdeft\t2014\t{n}\t{3.2 if good else 1.0}\t{a}\t{b}" for n, (a, b, good) in enumerate(pairs)],
        "snli": ["gold_label\tsentence1\tsentence2",
                 *(f"{'entailment' if good else 'neutral'}\t{a}\t{b}" for a, b, good in pairs)],
        "sst5": [f"{3 if good else 1} {text}" for text, good in rows],
        "topics": ["text\tlabel", *(f"{text}\t{int(good)}" for text, good in rows)],
        "tags": [line for text, good in rows
                 for line in (*(f"{word}\t{'B-LOC' if good else 'O'}" for word in text.split()), "")],
    }  # fmt: skip
    lines["klue_ner"] = [
        line
        for n, (text, good) in enumerate(rows)
        for line in (
            f"## klue-ner-v1_{n:05}\t{text}",
            *(f"{sign}\t{'B-LC' if good and sign != ' ' else 'O'}" for sign in text),
            "",
        )
    ]
    ranked = [f"{a},{b},{int(good)}" for a, b, good in pairs]
    lines["rank"] = ["query,passage,label", *ranked, *ranked, *ranked]
    lines["nli"] = ["premise,hypothesis", *(f"{a},{b}" for a, b, _ in pairs)]
    lines["cola"] = [f"gj04\t{int(good)}\t{'' if good else '*'}\t{text}" for text, good in rows]
    lines["trec"] = [f"{'DESC:def' if good else 'HUM:ind'} {text}" for text, good in rows]
    lines["korsts"] = ["genre\tfilename\tyear\tid\tscore\tsentence1\tsentence2", *lines["stsb"]]
    lines["chunks"] = [line.replace("\t", "\tNN\t") for line in lines["tags"]]
    lines["iob2"] = [f"{n}\t{line}\t-\t-" if line else "" for n, line in enumerate(lines["tags"], 1)]
    files = {
        "my.csv": ("my.csv", "dev.csv", "new.csv"), "nli": ("pairs.csv",), "rank": ("rank.csv", "easy.csv"),
        "nsmc": ("nsmc/train.tsv", "nsmc/dev.tsv"),
        "cola": ("cola/in_domain_train.tsv", "cola/in_domain_dev.tsv"),
        "rte": ("rte/train.tsv", "rte/dev.tsv"), "mrpc": ("mrpc/train.tsv", "mrpc/dev.tsv"),
        "stsb": ("stsb/sts-train.csv", "stsb/sts-dev.csv"), "snli": ("snli_1.0_train.txt", "snli_1.0_dev.txt"),
        "sst5": ("stsa.fine.train", "stsa.fine.dev", "stsa.fine.test", "sst5/train.txt", "sst5/dev.txt",
                 "sst5/test.txt"),
        "korsts": ("korsts/sts-train.tsv", "korsts/sts-dev.tsv"),
        "trec": ("trec/train.txt", "trec/dev.txt"),
        "topics": ("runs/quickstart/tasks/topics/train.tsv", "runs/quickstart/tasks/topics/dev.tsv"),
        "klue_ner": ("klue_ner/train.tsv", "klue_ner/dev.tsv"),
        "tags": ("train.conll", "senses/train.conll", "senses/dev.conll", "eng.train", "eng.testa", "eng.testb"),
        "chunks": ("train.txt", "test.txt"),
        "iob2": tuple(f"en_ewt-ud-{part}.iob2" for part in ("train", "dev", "test")),
    }  # fmt: skip
    for name, places in files.items():
        for place in places:
            (root / place).parent.mkdir(parents=True, exist_ok=True)
            (root / place).write_text("\n".join(lines[name]) + "\n", encoding="utf-8")
    for folder in ("sst2", "sst2_glue", "swag", "squad"):
        (root / folder).mkdir(exist_ok=True)
    for part in ("train", "dev", "test"):
        for folder in ("sst2", "sst2_glue"):
            write_texts(root / folder / f"{part}.tsv", coins, 24)
    for part in ("train", "val"):
        write_choices(root / "swag" / f"{part}.csv", coins, 8)
    for place in ("dev-v1.1.json", "squad/train-v1.1.json", "squad/dev-v1.1.json", "squad/train-v2.0.json",
                  "squad/dev-v2.0.json"):  # fmt: skip
        write_questions(root / place, coins, 8)
        if "v1.1" in place:
            drop_unanswerable(root / place)
    reviews = (root / "docs" / "tutorials" / "reviews.csv").read_text(encoding="utf-8")
    (root / "reviews_cp949.csv").write_text(reviews, encoding="cp949")
    (root / "reviews.csv").write_text(reviews, encoding="utf-8")
    for folder, source in (("new", "new.csv"), ("texts", "sentences.txt")):
        (root / folder).mkdir()
        shutil.copy(root / source, root / folder)
    (root / "my_sweep.py").write_bytes(EXAMPLE.read_bytes())
    (root / "mine.py").write_text(ATTENTION, encoding="utf-8")


def write_sweeps_data(root: Path) -> None:
    """Write the folders that sweeps read, as experiments/sweeps/_scales.py lists them."""
    data = root / "data"
    for name in ("sst2", "mrpc", "squad", "nsmc", "trec"):
        shutil.copytree(root / name, data / name)
    shutil.copy(root / "nsmc" / "train.tsv", data / "nsmc" / "train_10000.tsv")
    shutil.copy(root / "reviews.txt", data / "nsmc" / "unlabelled.txt")
    for name, files in (("uner", "en_ewt-ud-*.iob2"), ("glove", "glove.txt"), ("ud", "en_ewt-ud-*.conllu")):
        (data / name).mkdir()
        for file in root.glob(files):
            shutil.copy(file, data / name)
    for place, source in (
        ("conll2003/train.txt", "train.conll"), ("conll2003/dev.txt", "train.conll"),
        ("mnli/train.tsv", "snli_1.0_train.txt"), ("mnli/dev_matched.tsv", "snli_1.0_dev.txt"),
        ("snli/train.tsv", "snli_1.0_train.txt"), ("snli/dev.tsv", "snli_1.0_dev.txt"),
    ):  # fmt: skip
        (data / place).parent.mkdir(exist_ok=True)
        shutil.copy(root / source, data / place)
    for name, bank in (("ud_english", "en_ewt"), ("ud_korean", "ko_gsd")):
        (data / name).mkdir()
        for part in ("train", "dev"):
            shutil.copy(root / f"en_ewt-ud-{part}.conllu", data / name / f"{bank}-ud-{part}.conllu")
    (data / "qnli").mkdir()
    for part in ("train", "dev"):
        write_pairs(data / "qnli" / f"{part}.tsv", random.Random(0), 24)
    for place, source in (("wiki", "data/wiki"), ("1b", "data/1b"), ("novels", "corpora/novels"),
                          ("novels_words", "corpora/novels_words"), ("reviews", "corpora/reviews"),
                          ("reviews_words", "corpora/novels_words"), ("sts_words", "data/wmt_words"),
                          ("korean_pieces", "corpora/korean_pieces"), ("wmt", "data/wmt")):  # fmt: skip
        shutil.copytree(root / source, data / "corpora" / place)
    shutil.copytree(data, root / "shared" / "data")


def write_treebanks(root: Path) -> None:
    """Write treebanks, words with senses, and word vectors."""
    for part in ("train", "dev", "test"):
        words = [("river", "boat", "Sing", 1, "Past"), ("배를", "open", "Plur", 3, "Pres")] * 12
        file = root / f"en_ewt-ud-{part}.conllu"
        file.write_text("".join(TREE.format(*each) for each in words), encoding="utf-8")
    senses = "".join(SENSES.format(f"d{n}", 1 + n % 2) for n in range(10))
    (root / "semcor.tsv").write_text(senses, encoding="utf-8")
    vectors = (
        "river 1 0\nboat 0 1\nship 0 1.5\nopen 2 0\n배를 1 1\nthe 1 2\ngood 2 1\n서울 0 2\n서울에 1 2\nwhere 2 2\n"
    )
    for name in ("6B.50d", "6B.300d", "840B.300d", "6B.50d.5050"):
        (root / f"glove.{name}.txt").write_text(vectors, encoding="utf-8")
    (root / "glove.txt").write_text(vectors, encoding="utf-8")
