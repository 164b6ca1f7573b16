"""The families of models that can be stored: whatever differs between them, in one place."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.bert.tree import HEADS, bert_shapes
from bert_elmo_jax.families.elmo.config import ElmoConfig
from bert_elmo_jax.families.elmo.tree import elmo_shapes
from bert_elmo_jax.heads.features import Features
from bert_elmo_jax.inference.task_networks import NETWORKS, Network
from bert_elmo_jax.networks import NetworkConfig
from bert_elmo_jax.text import Lexicon, Tokenizer, WordVocabulary, load_tokenizer
from bert_elmo_jax.weights.parameter_tree import flatten, part

Config = BertConfig | ElmoConfig | NetworkConfig
Shapes = dict[str, tuple[int, ...]]
Reads = Tokenizer | WordVocabulary | Lexicon  # what makes numbers of a text
CLASSES = ("classify", "tag")  # heads whose width is that of the task


@dataclass(frozen=True)
class Family:
    """What tells one family from another, beside the model itself."""

    called: str
    config: type[BertConfig] | type[ElmoConfig] | type[NetworkConfig]
    folds_case: bool  # whether some of its tokenizers fold case and others do not
    fields: Mapping[str, str]  # of `model.json`, beside those that all have, and what kind of value each has
    optional: Mapping[str, str]  # those of a model that was fine-tuned
    describe: Callable[[Shapes], dict[str, Any]]  # those of these fields that its parameters tell
    shapes: Callable[[Any, Mapping[str, Any], str], Shapes]  # of all parameters, by configuration, facts, and source
    has_pieces: Callable[[Any, Sequence[str]], bool]  # whether ids mean something, by configuration and heads
    find_tokenizer: Callable[[Path, Any, bool | None], Reads | None]  # lowercase comes last


def family_of(config: Config) -> str:
    """The name of the family that a configuration is of.

    >>> family_of(ElmoConfig())
    'elmo'
    """
    return next(name for name, family in FAMILIES.items() if isinstance(config, family.config))


def _describe_bert(shapes: Shapes) -> dict[str, Any]:
    return {
        "pooler": any(part(name) == "pooler" for name in shapes),
        "classes": {head: shapes[f"{head}/bias"][0] for head in CLASSES if shapes.get(f"{head}/bias")},
    }


def _bert_shapes(config: BertConfig, facts: Mapping[str, Any], source: str) -> Shapes:
    features = features_from_json(facts.get("features"), source)
    _check_heads(facts["heads"], HEADS if features is None else (*HEADS, "reader"), source)
    for head in facts["heads"]:
        if head in CLASSES and head not in facts["classes"]:
            raise ValueError(f"{source}: nothing says how many classes the head {head!r} has (classes)")
    present = {"encoder", *facts["heads"], *(["pooler"] if facts["pooler"] else [])}
    shapes = {name: shape for name, shape in bert_shapes(config, facts["classes"]).items() if part(name) in present}
    if features is not None:
        width = features.width(config.hidden_size, config.num_layers)
        shapes |= {f"reader/{name}": shape for name, shape in features.shapes(config.hidden_size).items()}
        shapes |= {
            name: (width, shapes[name][1])
            for name in shapes
            if re.fullmatch(r"(classify|choice|tag|span)/kernel", name)
        }
    return shapes


def features_from_json(fields: Mapping[str, Any] | None, source: str) -> Features | None:
    """What `model.json` says of the features that a task's head reads; None where it reads the last layer.

    >>> features_from_json({"layers": [1, 2], "combine": "mix"}, "model.json")
    Features(layers=(1, 2), combine='mix', lstm_layers=0, lstm_size=768, dropout=0.1)
    """
    if fields is None:
        return None
    try:
        return Features(**{**fields, "layers": tuple(fields.get("layers", ()))})
    except (TypeError, ValueError) as error:
        raise ValueError(f"{source}: features: {error}; copy it again from the run") from error


def _elmo_shapes(config: ElmoConfig, facts: Mapping[str, Any], source: str) -> Shapes:
    _check_heads(facts["heads"], ("lm",), source)
    return elmo_shapes(config, lm="lm" in facts["heads"])


def _network_shapes(network: Network, config: NetworkConfig, facts: Mapping[str, Any], source: str) -> Shapes:
    own = {name: tuple(shape.shape) for name, shape in flatten(network.shapes(config)).items()}
    if not config.tuned:
        return own
    # An encoder that is trained along is among the parameters; what it is stands beside the network's configuration.
    described = facts.get("encoder")
    if described is None or described.get("family") not in ("bert", "elmo"):
        raise ValueError(f"{source}: nothing says what the encoder is that was trained along; copy it again")
    encoder = config_from_json(described["config"], FAMILIES[described["family"]].config, source)
    if isinstance(encoder, ElmoConfig):
        return own | elmo_shapes(encoder, lm=False)
    return own | {name: shape for name, shape in bert_shapes(encoder).items() if part(name) == "encoder"}


def config_from_json(fields: Any, kind: Any, source: str) -> Any:
    """The configuration of a network's encoder.

    >>> config_from_json({"vocab_size": 9, "input": "words"}, ElmoConfig, "model.json").vocab_size
    9
    """
    try:
        return kind(**fields)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{source}: encoder: {error}; copy it again from the run") from error


def _find_lexicon(folder: Path, config: NetworkConfig, lowercase: bool | None) -> Lexicon:
    return Lexicon.load(folder)


def _check_heads(heads: Sequence[str], known: Sequence[str], source: str) -> None:
    for head in heads:
        if head not in known:
            raise ValueError(f"{source}: no head {head!r} is known; there are {', '.join(known)}")


def _find_pieces(folder: Path, config: BertConfig, lowercase: bool | None) -> Tokenizer | None:
    names = ("vocab.txt", "tokenizer.json", "*.model")
    return load_tokenizer(folder, lowercase=lowercase) if any(any(folder.glob(name)) for name in names) else None


def _find_words(folder: Path, config: ElmoConfig, lowercase: bool | None) -> WordVocabulary | None:
    files = [folder / "words.txt"] if (folder / "words.txt").is_file() else sorted(folder.glob("vocab*.txt"))
    if not files:
        return None
    if len(files) > 1:
        raise ValueError(
            f"{folder} holds {len(files)} word vocabularies, and nothing says which is meant: "
            f"{', '.join(file.name for file in files)}. Call that of this model words.txt."
        )
    vocabulary = WordVocabulary.load(files[0])
    if config.vocab_size not in (None, len(vocabulary)):
        raise ValueError(
            f"{files[0]} has {len(vocabulary)} words, the model {config.vocab_size}: they do not belong together"
        )
    return vocabulary


def _network_family(network: Network) -> Family:
    return Family(
        called=network.config.CALLED,
        config=network.config,
        folds_case=False,
        fields={"labels": "a list of strings or null", "encoder": "an object or null", "task": "an object"},
        optional={},
        describe=lambda shapes: {},
        shapes=partial(_network_shapes, network),
        has_pieces=lambda config, heads: True,
        find_tokenizer=_find_lexicon,
    )


FAMILIES = {
    "bert": Family(
        called="a BERT",
        config=BertConfig,
        folds_case=True,
        fields={
            "pooler": "true or false",
            "classes": "an object of whole numbers",  # how many classes a head has, where that depends on the task
            "labels": "a list of strings or null",
            "problem_type": "a string or null",
        },
        optional={"task": "an object", "features": "an object or null"},
        describe=_describe_bert,
        shapes=_bert_shapes,
        has_pieces=lambda config, heads: True,
        find_tokenizer=_find_pieces,
    ),
    "elmo": Family(
        called="an ELMo",
        config=ElmoConfig,
        folds_case=False,
        fields={},
        optional={},
        describe=lambda shapes: {},
        shapes=_elmo_shapes,
        # Characters are read as they are: only a head that predicts words gives these a number.
        has_pieces=lambda config, heads: config.input == "words" or "lm" in heads,
        find_tokenizer=_find_words,
    ),
    **{name: _network_family(network) for name, network in NETWORKS.items()},
}
