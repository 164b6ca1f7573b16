"""`generate` and `stream`: greedy and drawn texts, stops, seeds, batches, texts in and out."""

import jax
import numpy as np
import pytest

from bert_elmo_jax.families import REGISTRY
from bert_elmo_jax.generation import calls
from bert_elmo_jax.generation.loop import Numbers, Rules
from bert_elmo_jax.text import train_byte_bpe

from .toy_writer import FAMILY, make_writer, slow_logits, slow_logs

PROMPTS = [[5, 7, 2], [9], [4, 4, 11, 6, 1, 8, 2, 13]]


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(REGISTRY, "toy_writer", FAMILY)


@pytest.fixture(scope="module")
def tokenizer():
    return train_byte_bpe(["배를 타고 강을 건넜다", "the river was muddy"] * 9, vocab_size=320)


def ids_of(all_texts):
    return [[text.ids for text in texts] for texts in all_texts]


def slow_greedy(config, params, prompt, size, change=lambda logits, new: logits):
    new = []
    while len(new) < size and not set(new) & set(config.ends):
        new.append(int(np.argmax(change(slow_logits(config, params, prompt, new), new))))
    return new


@pytest.mark.parametrize("first", [None, 1], ids=["continues", "translates"])
def test_greedy_texts_and_their_scores(first):
    writer, config, params = make_writer(seed=3, first=first)
    name = "tokens" if first is None else "source"
    all_texts = writer.generate(**{name: PROMPTS}, max_new=20, length_penalty=0.5)
    for prompt, [text] in zip(PROMPTS, all_texts, strict=True):
        assert text.ids == slow_greedy(config, params, prompt, 20)
        assert text.finished == (text.ids[-1] == 3) and text.text is None
        logs = [slow_logs(config, params, prompt, text.ids[:n])[piece] for n, piece in enumerate(text.ids)]
        np.testing.assert_allclose(text.score, sum(logs) / len(logs) ** 0.5, rtol=1e-4)


def test_repeats_forbidden_pieces_and_early_ends():
    writer, config, params = make_writer(seed=1, forbidden=(2, 9), ends=(0,))

    def change(logits, new):
        used = [*{*prompt, *new}]
        logits[used] = np.where(logits[used] > 0, logits[used] / 1.5, logits[used] * 1.5)
        logits[[2, 9, *([0] if len(new) < 5 else [])]] = -np.inf
        return logits

    all_texts = writer.generate(tokens=PROMPTS, max_new=14, repetition_penalty=1.5, min_new=5)
    for prompt, [text] in zip(PROMPTS, all_texts, strict=True):
        assert text.ids == slow_greedy(config, params, prompt, 14, change)
    [[one]] = writer.generate(tokens=[PROMPTS[0]], max_new=14)
    assert one.ids != all_texts[0][0].ids  # the penalty matters


def test_draws_have_the_chances_of_the_model():
    """600 equal prompts get different draws with the model's frequencies, also with top k and top p."""
    writer, config, params = make_writer(seed=2, sharpness=1.5)
    for options in ({"temperature": 1.0}, {"temperature": 2.0}, {"top_k": 4}, {"top_p": 0.7}):
        exponent = 1 / options.get("temperature", 1.0)
        all_texts = writer.generate(tokens=[[5, 7, 2]] * 600, max_new=1, batch_size=600, **options)
        counts = np.bincount([texts[0].ids[0] for texts in all_texts], minlength=19)
        chances = np.exp(slow_logits(config, params, [5, 7, 2], []) * exponent)
        chances /= chances.sum()
        order = np.argsort(-chances)
        if "top_k" in options:
            chances[order[4:]] = 0
        if "top_p" in options:
            chances[order[np.cumsum(chances[order]).searchsorted(0.7) + 1 :]] = 0
        chances /= chances.sum()
        assert not counts[chances == 0].any()
        assert np.abs(counts - 600 * chances).max() < 4.5 * np.sqrt(600 * 0.25)
        assert np.abs(counts - 600 * chances).sum() / 600 < 0.2


def test_the_coldest_draw_is_greedy_and_so_is_the_first_of_one():
    writer, _, _ = make_writer(seed=4)
    greedy = ids_of(writer.generate(tokens=PROMPTS, max_new=8))
    for options in ({"temperature": 1e-4}, {"top_k": 1}, {"top_p": 1e-6}):
        assert ids_of(writer.generate(tokens=PROMPTS, max_new=8, **options)) == greedy


def test_a_draw_depends_on_its_seed_and_prompt_alone():
    writer, _, _ = make_writer(seed=2, sharpness=1.0, ends=())
    options = {"max_new": 12, "temperature": 1.0}
    all_ids = ids_of(writer.generate(tokens=PROMPTS, **options))
    assert all_ids == ids_of(writer.generate(tokens=PROMPTS, **options))
    assert all_ids == [ids_of(writer.generate(tokens=[prompt], **options))[0] for prompt in PROMPTS]
    assert all_ids == ids_of(writer.generate(tokens=PROMPTS[::-1], batch_size=2, **options))[::-1]
    assert all_ids != ids_of(writer.generate(tokens=PROMPTS, seed=1, **options))
    longer = ids_of(writer.generate(tokens=PROMPTS, max_new=30, temperature=1.0))
    assert [[ids[:12] for ids in texts] for texts in longer] == all_ids
    # Equal prompts get different texts, and so do the texts of one prompt, which come best first.
    first, second = ids_of(writer.generate(tokens=[[5, 7, 2]] * 2, **options))
    assert first == all_ids[0] and second != first
    [best] = writer.generate(tokens=[[5, 7, 2]], n_best=4, **options)
    assert len({str(text.ids) for text in best}) == 4 and all_ids[0][0] in [text.ids for text in best]
    assert [text.score for text in best] == sorted((text.score for text in best), reverse=True)


def test_shapes_are_few():
    """Prompts of different lengths and numbers share compiled programs."""
    writer, _, _ = make_writer(seed=2, hidden_size=4)  # a configuration of its own, so nothing is compiled yet
    writer.generate(tokens=[[1, 2, 3]] * 5, max_new=9)
    begin, advance = writer._writer.loop(Rules())
    assert (begin._cache_size(), advance._cache_size()) == (1, 1)
    writer.generate(tokens=[[1] * 16, [2] * 9, *[[3, 3]] * 6], max_new=16)
    assert (begin._cache_size(), advance._cache_size()) == (1, 1)
    writer.generate(tokens=[[1] * 18], max_new=16)
    assert (begin._cache_size(), advance._cache_size()) == (2, 2)


def test_long_texts_are_written_in_several_calls(monkeypatch):
    writer, _, _ = make_writer(seed=5)
    expected = writer.generate(tokens=PROMPTS, max_new=30, temperature=0.8)
    monkeypatch.setattr(calls, "CHUNK", 4)
    assert writer.generate(tokens=PROMPTS, max_new=30, temperature=0.8) == expected


def test_texts_in_and_out(tokenizer):
    writer, _, _ = make_writer(tokenizer, seed=5, sharpness=2.0, vocab_size=330, ends=(3,), max_positions=80)
    prompts = ["배를 타고", "the river"]
    all_texts = writer.generate(prompts, max_new=12)
    ids = [[*tokenizer.frame.before, *tokenizer.encode(prompt, specials=False).ids.tolist()] for prompt in prompts]
    assert all_texts == writer.generate(tokens=ids, max_new=12) == writer.generate(ids, max_new=12)
    assert ids_of(all_texts)[:1] == ids_of(writer.generate("배를 타고", max_new=12))
    for prompt, [text] in zip(ids, all_texts, strict=True):
        pieces = [piece for piece in text.ids[: len(text.ids) - text.finished] if piece < tokenizer.vocab_size]
        assert tokenizer.decode(prompt) + text.text == tokenizer.decode([*prompt, *pieces])


@pytest.fixture(scope="module")
def endless(tokenizer):
    """Return a writer whose texts have no end of their own, and one of its texts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(REGISTRY, "toy_writer", FAMILY)
        fields = {"vocab_size": 320, "ends": (), "max_positions": 80}
        writer, _, _ = make_writer(tokenizer, seed=6, sharpness=1.0, **fields)
        [[text]] = writer.generate(["배를"], max_new=48)
    return writer, text


def test_a_text_ends_before_a_stop_text_or_at_an_end_by_name(tokenizer, endless):
    writer, full = endless
    prompt = tokenizer.encode("배를", specials=False).ids.tolist()
    for stop in (full.text[7:9], full.text[3]):
        [[text]] = writer.generate(["배를"], max_new=48, stop=["never comes", stop])
        assert text.text == full.text[: full.text.index(stop)] and text.finished
        assert text.ids == full.ids[: len(text.ids)]
        written, before = (tokenizer.decode([*prompt, *ids])[len("배를") :] for ids in (text.ids, text.ids[:-1]))
        assert stop in written and stop not in before
    [[text]] = writer.generate(["배를"], max_new=48, stop="never comes")
    assert text == full and not text.finished and len(text.ids) == 48
    end = full.ids[6]
    for ends in (end, [end], tokenizer.tokens[end], [tokenizer.tokens[end]]):
        [[text]] = writer.generate(["배를"], max_new=48, ends=ends)
        assert text.ids == full.ids[: full.ids.index(end) + 1] and text.finished


@pytest.mark.parametrize("options", [{}, {"temperature": 1.5, "seed": 3}, {"stop": "!"}, {"ends": [7]}], ids=str)
def test_the_parts_of_a_stream_are_the_text(endless, options):
    writer, full = endless
    options = {"max_new": 48, **options}
    if "stop" in options:
        options["stop"] = full.text[9:11]
    [[text]] = writer.generate(["배를"], **options)
    for every in (1, 3):
        parts = list(writer.stream("배를", **options, every=every))
        assert "".join(parts) == text.text and len(parts) > 2
    stream = writer.stream("배를", **options)
    assert next(stream)
    stream.close()  # it may be left early


def test_a_stream_is_greedy_if_the_model_has_beams_of_its_own(endless, monkeypatch):
    writer, full = endless
    monkeypatch.setattr(writer._writer, "decoder", writer._writer.decoder._replace(defaults={"beams": 3}))
    [[greedy]] = writer.generate(["배를"], max_new=48, beams=1)
    assert "".join(writer.stream("배를", max_new=48)) == greedy.text == full.text


def test_rows_of_a_model_without_positions():
    writer, config, params = make_writer(seed=3, max_positions=None, ends=())
    [[text]] = writer.generate(tokens=[[5, 7]], max_new=70)
    assert text.ids == slow_greedy(config, params, [5, 7], 70)


def test_the_memory_is_updated_in_place():
    """The compiled loop takes over the memory of the state before it."""
    writer, _, _ = make_writer(seed=3, hidden_size=5)  # its loops are no other test's
    writer.generate(tokens=[[1, 2]], max_new=4)
    begin, advance = writer._writer.loop(Rules())
    one = np.array([[1]], np.int32)
    state = begin(writer._writer.params, one, one, new_slots=16)
    numbers = Numbers(np.zeros(19, bool), np.zeros(19, bool))
    advance(writer._writer.params, state, numbers, jax.random.split(jax.random.key(0), 1), 4)
    assert all(array.is_deleted() for array in jax.tree.leaves(state.memory))
