"""Probes, senses, neighbours, attention and layer weights, on encoders with known layers."""

from types import SimpleNamespace
from unicodedata import normalize

import numpy as np
import pytest

from bert_elmo_jax import load
from bert_elmo_jax.analysis import heads_and_arcs as heads
from bert_elmo_jax.analysis import probes, senses, studies
from bert_elmo_jax.analysis.layer_weights import layer_shares, weight_results
from bert_elmo_jax.analysis.registers import find_speech_level, read_registers
from bert_elmo_jax.analysis.word_neighbours import find_neighbours, find_occurrences, find_static_neighbours
from bert_elmo_jax.data.corpora.reading import BadInput
from bert_elmo_jax.data.tasks.annotated import ParsedSentence, Sense, SenseSentence
from bert_elmo_jax.inference.kept_vectors import VectorFolder
from bert_elmo_jax.inference.word_layers import StaticVectors
from bert_elmo_jax.networks import NetworkConfig

NOUNS, VERBS = [f"w{n}" for n in range(1, 21)], [f"w{n}" for n in range(21, 41)]


def sentences(count, seed, verbs=True):
    draw = np.random.default_rng(seed)
    corpus = []
    for _ in range(count):
        tags = draw.choice(["NOUN", "VERB"] if verbs else ["NOUN"], draw.integers(2, 6)).tolist()
        words = tuple(draw.choice(NOUNS if tag == "NOUN" else VERBS) for tag in tags)
        features = tuple({"Number": "Plur"} if tag == "NOUN" and n == 0 else {} for n, tag in enumerate(tags))
        chain = (0, *range(1, len(tags)))
        relations = ("root", *["dep"] * (len(tags) - 1))
        corpus.append(ParsedSentence(words, tuple(tags), features, chain, relations, "a", tuple(range(len(tags)))))
    return corpus


@pytest.fixture(scope="module")
def parts():
    return {"train": sentences(60, 0), "dev": sentences(20, 1), "test": sentences(30, 2)}


@pytest.fixture(scope="module")
def static():
    draw = np.random.default_rng(0)
    table = {word: draw.normal(size=8) + (4 if word in VERBS else 0) for word in NOUNS + VERBS}
    return StaticVectors(table, "static.txt")


@pytest.fixture(scope="module")
def elmo(goldens):
    return load(goldens / "elmo_tiny")


@pytest.fixture(scope="module")
def bert(goldens):
    return load(goldens / "bert_tiny")


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    """Return a folder that keeps vectors between tests, as between runs."""
    return tmp_path_factory.mktemp("vectors")


def test_probes_stand_in_one_table(parts, static, elmo, vectors, tmp_path):
    sources = {"static": static, "elmo": elmo}
    results = probes.probe(sources, parts, VectorFolder(vectors, layers=[0, -1]), tasks=["pos", "head_distance"])
    lines = [(r.task, r.encoder, r.layer) for r in results]
    encoders = [("most frequent of the word", ""), ("static", "0"), ("elmo", "0"), ("elmo", "2")]
    assert lines[:4] == [("pos", encoder, layer) for encoder, layer in encoders]
    assert len(lines) == 8
    scores = {line: r.score for line, r in zip(lines, results)}
    assert scores["pos", "static", "0"] == 1.0
    # What stands first in a sentence is its root: a word's own vector cannot know it, its context can.
    assert scores["head_distance", "elmo", "2"] > scores["head_distance", "static", "0"] + 0.1
    figure = probes.draw_layers("pos", results)
    assert figure.series["static"] == [(0.0, 100.0)]
    assert [x for x, _ in figure.series["most frequent of the word"]] == [0.0, 2.0]
    with pytest.raises(ValueError, match="no word of the train data has Tense: name tasks that this treebank"):
        probes.probe({"static": static}, parts, VectorFolder(tmp_path), tasks=["pos", "Tense"])
    assert not any(tmp_path.iterdir())  # before anything was computed


def test_a_control_task_has_labels_that_only_the_word_tells(parts):
    task, control = (probes.select_parts(parts, name)["train"] for name in ("pos", "control:pos"))
    assert control.words.tolist() == task.words.tolist()
    assert set(control.labels.tolist()) == set(task.labels.tolist())
    by_word = dict(zip(control.words.tolist(), control.labels.tolist()))
    assert [by_word[word] for word in control.words.tolist()] == control.labels.tolist() != task.labels.tolist()
    assert probes.select_parts(parts, "relation")["train"].labels.tolist()[0] == "root"


def test_decomposed_words_are_the_same_words(parts, tmp_path):
    def read(form):
        words = tuple(normalize(form, word) for word in ("배", "바다"))
        return ParsedSentence(words, ("NOUN", "VERB"), ({},) * 2, (0, 1), ("root", "obj"), "a", (1, 2))

    mixed = {"train": [read("NFC")], "dev": [read("NFD")], "test": [read("NFD")]}
    words = probes.select_parts(mixed, "pos")
    assert words["test"].words.tolist() == words["train"].words.tolist() == ["배", "바다"]
    (tmp_path / "a.txt").write_text("배 1 2\n", encoding="utf-8")
    options = object.__new__(studies.StudyOptions)  # two fields of which are read
    for name, value in {"static": [str(tmp_path / "a.txt")], "model": []}.items():
        object.__setattr__(options, name, value)
    assert studies.load_sources(options, mixed["test"])["a.txt"].of(mixed["test"][0].words).tolist() == [[1, 2], [0, 0]]


def test_registers_are_files_or_speech_levels(static, tmp_path):
    """Static vectors of the words tell two files apart; the word that shows a speech level is not probed."""
    for name, words in (("nouns", NOUNS), ("verbs", VERBS)):
        lines = [f"{a} {b}" for a in words for b in words if a < b]
        (tmp_path / f"{name}.txt").write_text("\n".join(lines), encoding="utf-8")
    files = [str(tmp_path / f"{name}.txt") for name in ("nouns", "verbs")]
    parts = read_registers(files, "utf-8", 100, 0)
    assert [len(parts[part]) for part in probes.PARTS] == [140, 20, 40]
    results = probes.probe({"static": static}, parts, VectorFolder(tmp_path / "v"), tasks=["register"])
    assert results[-1].score == 1.0
    endings = [f"{name}{n} 집에 {verb} ." for n in range(9) for name, verb in (("나는", "간다"), ("저는", "가요"))]
    (tmp_path / "levels.txt").write_text("\n".join(endings), encoding="utf-8")
    (sentence, *_) = read_registers([str(tmp_path / "levels.txt")], "utf-8", None, 0)["train"]
    level = "plain" if "간다" in sentence.words else "polite"
    assert [features.get("register") for features in sentence.features] == [level, level, None, None]
    rows = [f"{n},{line}" for n, line in enumerate(endings)]
    (tmp_path / "levels.csv").write_text("\n".join(["id,text", *rows]), encoding="utf-8")
    (tmp_path / "others.csv").write_text("id,text\n7,나는 집에 간다\n7,너는 집에 간다\n", encoding="utf-8")
    assert len(read_registers([str(tmp_path / "levels.csv")], "utf-8", None, 0)["train"]) == 13
    tables = [str(tmp_path / name) for name in ("levels.csv", "others.csv")]
    with pytest.raises(ValueError, match="4 texts with a register"):
        read_registers(tables, "utf-8", None, 0)
    (tmp_path / "others.csv").write_text("id,review\n7,나는 집에 간다\n", encoding="utf-8")
    with pytest.raises(BadInput, match="call the column of texts 'text'"):
        read_registers(tables, "utf-8", None, 0)
    with pytest.raises(ValueError, match="0 texts with a register; expected ten texts of two registers"):
        read_registers(files[:1], "utf-8", 100, 0)
    with pytest.raises(ValueError, match="the files' names are the registers, so they must differ"):
        read_registers([files[0], files[0]], "utf-8", 100, 0)


def test_more_data_is_better(parts, static, tmp_path):
    folder = VectorFolder(tmp_path)
    results = probes.sample_efficiency({"static": static}, parts, folder, fractions=[0.02, 0.2, 1.0], seeds=[0, 1])
    usual = [r.score for r in results if r.encoder == "most frequent of the word"]
    static_scores = [r.score for r in results if r.encoder == "static, layer 0"]
    assert usual[0] < usual[1] < usual[2]
    assert static_scores[1] > usual[1]  # words never seen are near those that were
    assert static_scores[2] == 1.0
    assert "over 2 seeds" in results[0].note
    assert results[-1].note == ""  # of all data there is one draw
    assert [x for x, _ in probes.draw_efficiency(results).series["static, layer 0"]] == [2.0, 20.0, 100.0]
    with pytest.raises(ValueError, match="expected shares above 0 to 1"):
        probes.sample_efficiency({"static": static}, parts, VectorFolder(tmp_path), fractions=[0.0])


def test_the_best_layer(parts, elmo, vectors):
    assert probes.find_best_layer(elmo, parts, VectorFolder(vectors, layers=[-1]), "pos") == 2
    both = VectorFolder(vectors, layers=[0, -1])
    best_layer = probes.find_best_layer(elmo, parts, both, "head_distance")
    on_dev = {**parts, "test": parts["dev"]}
    results = probes.probe({"elmo": elmo}, on_dev, both, tasks=["head_distance"])
    assert str(best_layer) == max(results[1:], key=lambda r: r.score).layer


def sense_sentence(words, place, key, number, document, item="bank%1"):
    return SenseSentence(words, (Sense(place, place + 1, item, (key,), (number,)),), document, "semcor.tsv", 1)


def test_senses_by_context(tmp_path):
    """Static vectors cannot tell senses apart, but two words of the same lemma can."""
    river, money = ("bank", "s%river", 2), ("banks", "s%money", 1)
    train = [sense_sentence((w,), 0, key, n, "d1") for w, key, n in [river, money, money]]
    test = [sense_sentence((w,), 0, key, n, "d2") for w, key, n in [river, money]]
    unseen = [("eye", "eye%1", 1, "eye%1"), ("ear", "e%2", 2, "ear%1")]
    test += [sense_sentence((word,), 0, key, n, "d2", item) for word, key, n, item in unseen]
    table = {"bank": np.array([1.0, 0.0]), "banks": np.array([0.0, 1.0])}
    first, nearest, *several = senses.find_senses({"static": StaticVectors(table)}, train, test, VectorFolder(tmp_path))
    # Of four: the unseen `eye` has its first sense, `ear` has not.
    assert (first.score, nearest.score) == (0.5, 0.75)
    assert "2 words not in it have WordNet's first sense" in first.note
    assert [(r.task, r.score, r.count) for r in several] == [(senses.SEVERAL, 0.5, 2), (senses.SEVERAL, 1.0, 2)]


def test_several_keys_are_all_right(tmp_path):
    train = [sense_sentence(("bank",), 0, "a", 1, "d1")]
    test = [SenseSentence(("bank",), (Sense(0, 1, "bank%1", ("b", "a"), (2, 1)),), "d2", "semcor.tsv", 1)]
    results = senses.find_senses({"s": StaticVectors({"bank": np.ones(2)})}, train, test, VectorFolder(tmp_path))
    assert [r.score for r in results] == [1.0, 1.0]


def test_documents_are_split_whole():
    corpus = [sense_sentence(("bank",), 0, "a", 1, f"d{n % 7}") for n in range(50)]
    train, test = senses.split_documents(corpus, seed=3)
    assert {s.document for s in train}.isdisjoint({s.document for s in test})
    assert senses.split_documents(corpus, seed=3) == (train, test)
    assert any(senses.split_documents(corpus, seed=s) != (train, test) for s in range(9))
    with pytest.raises(ValueError, match="1 document: two or more are needed"):
        senses.split_documents(corpus[:1])


def test_neighbours_in_context(bert, tmp_path):
    text = [["w1", "배를", "w2"], ["w3", "배를", "w4"], ["w1", "배를", "w2"], ["배우가", "Play"], ["the", "play"]]
    assert find_occurrences(text, "배[를는가]") == [(0, 1), (1, 1), (2, 1)]
    assert find_occurrences(text, "배*") == [(0, 1), (1, 1), (2, 1), (3, 0)]
    assert find_occurrences(text, "PLAY") == [(3, 1), (4, 1)]
    neighbours = find_neighbours({"bert": bert}, text, "배를", VectorFolder(tmp_path, layers=[-1]), asked=2)
    assert [around.query.place for around in neighbours] == [(0, 1), (2, 1)]
    assert [near.place for near in neighbours[0].occurrences[1:]] == [(2, 1), (1, 1)]  # the same sentence is nearest
    assert neighbours[0].occurrences[1].cosine == 1.0
    with pytest.raises(ValueError, match="'없다' occurs 0 times in the text"):
        find_neighbours({"bert": bert}, text, "없다", VectorFolder(tmp_path))


def test_neighbours_of_a_word_in_a_sentence_of_ones_own(elmo, static, tmp_path):
    text = [["w1", "배를", "w2"], ["w3", "배를", "w4"]]
    neighbours = find_neighbours({"elmo": elmo}, text, "배를", VectorFolder(tmp_path), sentence=["w3", "배를", "w4"])
    assert [(around.layer, around.query.place) for around in neighbours] == [(1, (-1, 1)), (2, (-1, 1))]
    for around in neighbours:
        assert [near.place for near in around.occurrences[1:]] == [(1, 1), (0, 1)]
        assert around.occurrences[1].cosine == pytest.approx(1.0)
    with pytest.raises(ValueError, match="'w1' is not in the sentence 'w3 배를'"):
        find_neighbours({"elmo": elmo}, text, "w1", VectorFolder(tmp_path), sentence=["w3", "배를"])
    table = load("tests/goldens/static_tiny/gensim.bin")  # its only layer is not left out
    (around,) = find_neighbours({"static": table}, text, "배를", VectorFolder(tmp_path), asked=1)
    assert (around.layer, len(around.occurrences)) == (0, 2)
    (tmp_path / "v.txt").write_text("다른 1 2\n", encoding="utf-8")  # a word without a vector is near to nothing
    unknown = find_neighbours({"v": load(tmp_path / "v.txt")}, text, "배를", VectorFolder(tmp_path), asked=1)
    assert [len(around.occurrences) for around in unknown] == [1]
    assert find_static_neighbours(static, "없다") == []
    assert {word for word, _ in find_static_neighbours(static, "w21", 3)} < set(VERBS)


def test_a_head_that_looks_at_the_word_before(bert, monkeypatch):
    """A head with planted attention is found, and scored on the other half; too long sentences are left out."""
    real, size = heads.compile_run(bert.family, bert.config), bert.config.max_positions

    def planted(*args, **options):
        output = real(*args, **options)
        before = np.eye(output.attentions.shape[-1], k=-1)[None] * 5
        return output.replace(attentions=output.attentions.at[1, :, 0].add(before))

    monkeypatch.setattr(heads, "compile_run", lambda family, config: planted)
    corpus = sentences(40, 5)
    chain, relations = (0, *range(1, size)), ("root", *["dep"] * (size - 1))
    long = ParsedSentence(("w1",) * size, ("NOUN",) * size, ({},) * size, chain, relations, "a", tuple(range(size)))
    results, figures = heads.heads_and_arcs(bert, [*corpus, long], "tiny")
    [offset, relation] = results
    assert (offset.encoder, offset.score) == ("offset -1", 1.0)
    assert (relation.layer, relation.score) == ("2", 1.0)
    assert relation.note.startswith("head 1, from the dependant to its head")
    assert relation.note.endswith("1 sentences left out")
    assert relation.count == sum(len(s.words) - 1 for s in corpus[1::2])
    assert figures[0].values[1, 0] == 1.0


def test_heads_are_chosen_in_one_half_and_scored_in_the_other(bert):
    """Heads precede their dependants in the first half and follow them in the second: the choice scores zero."""
    words, none = ("w1", "w2"), ({}, {})
    left = ParsedSentence(words, ("NOUN", "NOUN"), none, (0, 1), ("root", "nmod"), "a", (1, 2))
    right = ParsedSentence(words, ("NOUN", "NOUN"), none, (2, 0), ("nmod", "root"), "a", (1, 2))
    results, _ = heads.heads_and_arcs(bert, [left, right] * 12, "tiny")
    assert (results[0].encoder, results[0].score) == ("offset -1", 0.0)


def test_models_without_attention_and_few_sentences_are_refused(goldens, bert, elmo):
    corpus = sentences(30, 0)
    for model, count, message in (
        (bert, 2, "10 are needed; give more"),
        (load(goldens / "bert_tiny", attention="fused"), 30, "fused attention, which keeps no maps"),
        (elmo, 30, "elmo has no attention heads: leave it out"),
    ):
        with pytest.raises(ValueError, match=message):
            heads.heads_and_arcs(model, corpus[:count], "elmo")


def test_layer_weights_of_any_model():
    mix = {"weights": np.array([0.0, np.log(3.0)], np.float32), "gamma": np.ones((), np.float32)}
    params = {"reader": {"mix": mix}, "output": {"mix_1": mix}, "encoder": {"dense": {"weights": np.ones(2)}}}
    shares = layer_shares(params)
    assert set(shares) == {"reader/mix", "output/mix_1"}
    assert np.allclose(shares["reader/mix"], [0.25, 0.75])
    results, figures = weight_results(params, "run", layers=[3, 4])
    assert [r.layer for r in results] == ["3", "4"] * 2
    assert len(figures) == 2
    with pytest.raises(ValueError, match="run has no mix of layers"):
        weight_results({"encoder": {}}, "run")


def test_weights_of_a_network_that_reads_some_layers_have_their_numbers(monkeypatch):
    mix = {"weights": np.zeros(2), "gamma": np.ones(())}
    config = NetworkConfig(num_words=8, encoder_layers=3, encoder_width=4, layers="1,2")
    network = SimpleNamespace(params={"mix": {"input": mix}}, config=config)
    monkeypatch.setattr(studies, "load_models", lambda options: {"tagger": network})
    options = object.__new__(studies.StudyOptions)  # which only loading reads
    assert [result.layer for result in studies.study_weights(options).results] == ["1", "2"]


@pytest.mark.parametrize(
    ("word", "level"),
    [("갑니다", "formal"), ("합니까", "formal"), ("먹습니다", "formal"), ("오십시오", "formal"), ("아니다", "plain"),
     ("지니다", "plain"), ("가니까", None), ("먹으니까", None), ("가요", "polite"), ("가요ㅋㅋ", "polite")],
)  # fmt: skip
def test_the_formal_level_needs_a_final_bieup(word, level):
    assert find_speech_level(["집에", word]) == (level, 1)
