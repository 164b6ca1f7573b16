"""Programs that are killed at random moments and started again end with the bits of an undisturbed run."""

import pytest

from .kills import run_case
from .records import MISSED, SURVIVED
from .works import Workshop

pytestmark = pytest.mark.long
PRETRAININGS = ("bert", "elmo", "transformer", "gpt", "awd_lstm", "cove")
WORKS = [f"pretrain {family}" for family in PRETRAININGS]
# With a head, with networks, with documents, and a grid.
WORKS += [f"finetune {name}" for name in ("bert", "elmo", "taglm", "esim", "bidaf", "ulmfit", "seeds")]
WORKS += [f"prepare {tokenizer}" for tokenizer in ("wordpiece", "words", "pairs")]
WORKS += ["extract bert", "extract elmo", "predict bert", "generate gpt", "sweep bert"]
WORKS += ["finetune lora", "convert int8", "export onnx", "predict parquet", "pretrain static"]


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    shop = Workshop(tmp_path_factory.mktemp("works"))
    yield shop
    shop.server.close()


@pytest.mark.parametrize("name", WORKS)
def test_killed_at_any_moment_it_ends_as_if_left_alone(shop, name):
    record = run_case(shop, name, 0)
    assert record.outcome in (SURVIVED, MISSED), record
