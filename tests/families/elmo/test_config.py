import dataclasses
import json

import pytest

from bert_elmo_jax.families.elmo.config import ElmoConfig

pytestmark = pytest.mark.usefixtures("as_users_run")
# As published.
RELEASED = {
    "lstm": {
        "use_skip_connections": True, "projection_dim": 512, "cell_clip": 3, "proj_clip": 3, "dim": 4096, "n_layers": 2,
    },
    "char_cnn": {
        "activation": "relu", "filters": [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]],
        "n_highway": 2, "embedding": {"dim": 16}, "n_characters": 262, "max_characters_per_token": 50,
    },
}  # fmt: skip
# As a training run leaves them.
TRAINED = {
    "bidirectional": True, "char_cnn": RELEASED["char_cnn"] | {"n_characters": 261}, "dropout": 0.1,
    "lstm": RELEASED["lstm"], "all_clip_norm_val": 10.0, "n_epochs": 10, "n_train_tokens": 768648884, "batch_size": 128,
    "n_tokens_vocab": 793471, "unroll_steps": 20, "n_negative_samples_batch": 8192,
}  # fmt: skip
WORDS = {
    "bidirectional": True, "dropout": 0.2, "n_tokens_vocab": 30000, "share_embedding_softmax": True,
    "lstm": {"dim": 128, "projection_dim": 128, "n_layers": 1}, "sample_softmax": False, "unroll_steps": 20,
}  # fmt: skip


def changed(options, path, value):
    """Return a copy with the option at a dotted path set, or removed if the value is None."""
    first, _, subpath = path.partition(".")
    inner = changed(options.get(first, {}), subpath, value) if subpath else value
    return {k: v for k, v in (options | {first: inner}).items() if v is not None}


def test_released_options_are_the_preset():
    assert ElmoConfig.from_options(RELEASED) == ElmoConfig.preset("original") == ElmoConfig()
    assert ElmoConfig.from_options(TRAINED) == ElmoConfig.preset("original", vocab_size=793471)
    assert [ElmoConfig.preset(name).cell_size for name in ("medium", "small")] == [2048, 1024]
    assert [ElmoConfig.preset(name).num_highways for name in ("original", "medium", "small")] == [2, 1, 1]
    with pytest.raises(ValueError, match="There is no preset 'large'; there are original, medium, small, toy"):
        ElmoConfig.preset("large")


def test_word_input_with_a_shared_softmax_and_no_projection():
    config = ElmoConfig.from_options(WORDS)
    assert (config.input, config.vocab_size, config.tie_softmax, config.projection) == ("words", 30000, True, False)
    assert (config.skip_connections, config.cell_clip, config.proj_clip, config.num_layers) == (False, None, None, 1)
    assert config.dropout == 0.2


def test_absent_options_have_the_original_defaults():
    options = {
        "lstm": {"dim": 8, "projection_dim": 4},
        "char_cnn": {
            "filters": [[1, 4]], "activation": "tanh", "embedding": {"dim": 3}, "max_characters_per_token": 20,
        },
    }  # fmt: skip
    config = ElmoConfig.from_options(options)
    assert (config.num_highways, config.token_projection, config.max_characters) == (0, False, 20)
    assert ElmoConfig.from_options(options, token_projection=True, dtype="bfloat16").token_projection


@pytest.mark.parametrize(
    "config",
    [
        *(ElmoConfig.preset(name) for name in ("original", "medium", "small", "toy")),
        ElmoConfig(num_layers=4, skip_connections=False, cell_clip=None, proj_clip=5.5, char_activation="tanh"),
        ElmoConfig(num_highways=0, filters=((3, 512),), token_projection=False, vocab_size=10, dropout=0.0),
        ElmoConfig(input="words", vocab_size=10, cell_size=8, projection_size=8, projection=False, tie_softmax=True),
    ],
    ids=str,
)
def test_options_come_back_as_they_went(config, tmp_path):
    config.to_json(tmp_path / "options.json")
    assert ElmoConfig.from_json(tmp_path / "options.json") == config
    assert ElmoConfig(**json.loads(json.dumps(dataclasses.asdict(config)))) == config
    assert isinstance(hash(config), int)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("lstm", None, "lstm is None; it must be an object with dim, projection_dim"),
        ("lstm.dim", None, "lstm.dim is missing; it must be a whole number"),
        ("lstm.dim", "4096", "lstm.dim is '4096'; it must be a whole number"),
        ("lstm.dim", 4096.5, "lstm.dim is 4096.5; it must be a whole number"),
        ("lstm.n_layers", True, "lstm.n_layers is True; it must be a whole number"),
        ("lstm.n_layers", 0, r"num_layers is 0; it must be from 1 to .* \(num_layers is their lstm.n_layers\)"),
        ("lstm.cell_clip", "three", "lstm.cell_clip is 'three'; it must be a number"),
        ("lstm.cell_clip", -3, "cell_clip is -3.0; it must be above 0, or None"),
        ("lstm.use_skip_connections", "yes", "lstm.use_skip_connections is 'yes'; it must be true or false"),
        ("lstm.peepholes", True, "lstm.peepholes is True, an option of unknown meaning"),
        ("lstm.projection_dims", 3, "projection_dims is 3, .*; did you mean lstm.projection_dim\\?"),
        ("lstm.cell_clip", 10**400, "it must be a number that can be computed with"),
        ("char_cnn.activation", 3, "char_cnn.activation is 3; it must be a name"),
        ("char_cnn.activation", "gelu", r"'gelu'; .* \(char_activation is their char_cnn.activation\)"),
        ("char_cnn.filters", [], "filters is empty"),
        ("char_cnn.filters", [1, 32], "char_cnn.filters is .*; it must be a list of pairs"),
        ("char_cnn.filters", [[51, 3]], r"filters has \(51, 3\); a width is 1 to max_characters, 50 here"),
        ("char_cnn.filters", [[1, 0]], r"filters has \(1, 0\)"),
        ("char_cnn.n_characters", 263, "n_characters is 263; it is 261 in the options of a training run and 262"),
        ("char_cnn.embedding.dim", None, "char_cnn.embedding.dim is missing"),
        ("char_cnn.embedding.size", 16, "char_cnn.embedding.size is 16, an option of unknown meaning"),
        ("char_cnn.max_characters_per_token", 2, "max_characters is 2; two are marks, so it must be at least 3"),
        ("char_cnn", 3, "char_cnn is 3; it must be an object"),
        ("bidirectional", False, "bidirectional is False; only true is supported"),
        ("share_embedding_softmax", True, "tie_softmax needs input='words'"),
        ("dropout", 1.0, "dropout is 1.0; a dropout rate is at least 0 and below 1"),
        ("n_token_vocab", 100, r"did you mean n_tokens_vocab\?"),
    ],
)  # fmt: skip
def test_unsupported_settings_are_named_in_the_error(path, value, message):
    with pytest.raises(ValueError, match=message):
        ElmoConfig.from_options(changed(TRAINED, path, value))


def test_every_problem_is_named_at_once_with_the_file(tmp_path):
    path = tmp_path / "elmo_2x4096_options.json"
    path.write_text(json.dumps(changed(changed(RELEASED, "lstm.dim", "big"), "bidirectional", False)), encoding="utf-8")
    with pytest.raises(ValueError) as error:
        ElmoConfig.from_json(path)
    assert all(part in str(error.value) for part in (path.name, "lstm.dim is 'big'", "bidirectional is False"))


@pytest.mark.parametrize(
    ("text", "message"), [("{", "is not JSON"), ("[1]", "it holds a list"), ("\xff\xfe", "is not UTF-8")]
)
def test_files_that_are_no_options(tmp_path, text, message):
    path = tmp_path / "options.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=message):
        ElmoConfig.from_json(path)
    with pytest.raises(FileNotFoundError):
        ElmoConfig.from_json(tmp_path / "absent.json")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"projection": False}, "projection is False, but projection_size is 512 and cell_size 4096"),
        ({"token_projection": False}, "token_projection is False, but there are 2048 filters and projection_size is"),
        ({"input": "words"}, "input is 'words' but vocab_size is None"),
        ({"input": "bytes"}, "input is 'bytes'; it is one of "),
        ({"dtype": "float64"}, "dtype is 'float64'; it is one of "),
        ({"char_activation": "gelu"}, "char_activation is 'gelu'; it is one of "),
        ({"vocab_size": 0}, "vocab_size is 0; it must be from 1 to 100,000,000"),
        ({"num_highways": -1}, "num_highways is -1; it must be at least 0"),
        ({"tie_softmax": True}, "tie_softmax needs input='words'"),
        ({"cell_size": 6.5}, "cell_size is 6.5; it must be a whole number"),
        ({"cell_size": "6"}, "cell_size is '6'; it must be a whole number"),
        ({"num_layers": True}, "num_layers is True; it must be a whole number"),
        ({"cell_clip": "3"}, "cell_clip is '3'; it must be a number"),
        ({"cell_clip": True}, "cell_clip is True; it must be a number"),
        ({"skip_connections": "no"}, "skip_connections is 'no'; it must be true or false"),
        ({"dropout": "x"}, "dropout is 'x'; it must be a number"),
        ({"filters": "ab"}, "filters is 'ab'; it holds pairs"),
        ({"filters": ((1, 2, 3),)}, r"filters is \(\(1, 2, 3\),\); it holds pairs"),
        ({"filters": ((1.5, 2),)}, r"filters is \(\(1.5, 2\),\); it holds pairs"),
    ],
)
def test_impossible_fields(fields, message):
    with pytest.raises(ValueError, match=message):
        ElmoConfig(**fields)
