"""A part of the attacks on models, in every run of the tests; all of them: `make campaign KINDS=attacks,commands`."""

import os
import random
from itertools import islice

import pytest

from .attack_ways import WAYS, prepare
from .attacks import Attacks
from .commands import BASES, Commands, change_words, judge
from .records import SURVIVED
from .works import Workshop

PART = ("bert_tiny", "elmo_tiny", "awd_lstm_tiny", "tokenizer_roberta_tiny", "tokenizer_xlmr_tiny", "sentences", "sums")

# A model that an attack can change, where not every model is one.
SUITABLE = {"relisted": "run", "deep_link": "sentences", "unlisted": "sums", "rules": "tokenizer_roberta_tiny"}


@pytest.fixture(scope="module")
def attacks(tmp_path_factory):
    campaign = Attacks(tmp_path_factory.mktemp("attacks"), dict(os.environ))
    yield campaign
    campaign.process.close()


@pytest.mark.long
def test_a_part_of_the_attacks(attacks):
    """No attack runs code, reads outside, is silently wrong, hangs, or is refused without the file's name."""
    cases = [(f"{way} {base}", seed) for way in WAYS for base in PART if attacks.has(way, base) for seed in range(2)]
    ended = {}
    for name, seed in random.Random(0).sample(cases, 20):
        record = attacks.run_case(name, seed)
        assert record.outcome == SURVIVED, record
        ended[record.figures["ended"]] = ended.get(record.figures["ended"], 0) + 1
    assert ended["refused"] > 10 and set(ended) <= {"refused", "read", "no change"}


def test_a_seed_gives_the_same_attack(attacks, tmp_path):
    for way in WAYS:
        base = SUITABLE.get(way, "bert_tiny")
        changes = [prepare(attacks.bases[base], way, tmp_path / "x" / base, random.Random(3)) for _ in range(2)]
        assert changes[0] is not None and changes[0] == changes[1], way


def test_wrong_command_lines_have_seeds_and_are_judged():
    for program in BASES:
        lines = [change_words(program, random.Random(seed)) for seed in range(20)]
        assert lines == [change_words(program, random.Random(seed)) for seed in range(20)]
        assert len({tuple(words) for words, _ in lines}) > 5
    assert judge("predict", None, "x is a pipe: waiting for the program", False)[0] == "waits"
    assert judge("predict", None, "", False)[0] == "hang" and judge("predict", -11, "", False)[0] == "crash"
    assert judge("predict", 2, "some words", False)[0] == "unclear"


@pytest.mark.long
def test_a_part_of_the_wrong_command_lines(tmp_path):
    shop = Workshop(tmp_path)
    commands = Commands(shop)
    for program, seed in islice(commands.list_cases(), 24):
        record = commands.run_case(program, seed)
        assert record.outcome == SURVIVED, record
    shop.server.close()
