"""The pretrainings of `elmo_to_bert`: each row changes one thing of the row above, at an equal number of operations."""

from ._scales import Settings
from ._three_encoders import SCALES as SIZES

BUDGETS = {"toy": 1e12, "laptop": 1.2e13}  # operations of each pretraining
STEPS = {
    "toy": {"ELMo": 1_350, "words": 1_350, "attention": 1_812, "masks": 958, "next sentences": 958},
    "laptop": {"ELMo": 1_834, "words": 1_834, "attention": 3_406, "masks": 1_690, "next sentences": 1_690},
}
_WORDS: Settings = {"model.input": "words"}
_CHANGES: dict[str, tuple[str, Settings]] = {
    "ELMo": ("ELMo", {"reading": "sentences"}),
    "words": ("ELMo", {"reading": "sentences", **_WORDS}),
    "attention": ("ELMo", {"reading": "sentences", **_WORDS, "model.reader": "attention"}),
    "masks": ("BERT", {"objective": "documents"}),
    "next sentences": ("BERT", {}),
}


def list_pretrainings(scale: str) -> dict[str, tuple[str, Settings]]:
    """Return the pretrainings by row, each a config and its settings."""
    pretrainings: dict[str, tuple[str, Settings]] = {}
    for row, (name, changes) in _CHANGES.items():
        config, settings = SIZES[scale].pretrainings[name]
        steps = {"steps": STEPS[scale][row], "eval_every": STEPS[scale][row]}
        pretrainings[row] = config, {**settings, **changes, **steps}
    return pretrainings
