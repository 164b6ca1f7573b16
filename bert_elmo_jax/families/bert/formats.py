"""The weight formats of BERT: the names of Hugging Face transformers, and how Google's files are found."""

from pathlib import Path

from bert_elmo_jax.families.family import WeightFormat
from bert_elmo_jax.families.huggingface_config import USUAL_FIELDS, ConfigFile, class_names
from bert_elmo_jax.families.huggingface_format import CLASSIFIERS
from bert_elmo_jax.families.huggingface_weights import WeightFile
from bert_elmo_jax.lazy_imports import lazy_function

GOOGLE = "bert_elmo_jax.families.bert.google"
OTHER_MODELS = "hparams.json"  # is in the folder of checkpoints of models other than BERT

FILE = ConfigFile(
    called="a BERT",
    model_type="bert",
    names=USUAL_FIELDS,  # also in Google's file
    architectures=class_names("Bert", nsp="ForNextSentencePrediction") | {("mlm", "nsp"): "BertForPreTraining"},
    only={"directionality": "bidi", "pooler_type": "first_token_transform"},
    harmless=frozenset({
        "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers", "pooler_size_per_head",
    }),
    written={"position_embedding_type": "absolute"},
)  # fmt: skip
WEIGHTS = WeightFile(
    family="bert",
    config_file=FILE,
    prefix="bert.",
    encoder={"embeddings/norm": "embeddings.LayerNorm", "pooler": "pooler.dense"},
    heads={
        "mlm": {"mlm/dense": "cls.predictions.transform.dense", "mlm/norm": "cls.predictions.transform.LayerNorm"},
        "nsp": {"nsp": "cls.seq_relationship"},
        "span": {"span": "qa_outputs"},
        **{name: {name: "classifier"} for name in ("classify", "choice", "tag")},
    },
    biases={"mlm/bias": "cls.predictions.bias"},
    decoder="cls.predictions.decoder",
)


def is_prefix(path: Path) -> bool:
    """Return True for the prefix of a checkpoint, unless an `hparams.json` in its folder shows another family."""
    from bert_elmo_jax.weights.sorted_table import is_table

    if (path.parent / OTHER_MODELS).is_file():
        return False
    return path.with_name(path.name.removesuffix(".index") + ".index").is_file() or is_table(path)


def find_files(folder: Path) -> list[str]:
    """Return the names of a folder's checkpoints; [] if they are another family's."""
    return [] if (folder / OTHER_MODELS).is_file() else sorted(index.name for index in folder.glob("*.index"))


FORMATS = {
    "huggingface": WEIGHTS.format()._replace(model_types=("bert", "")),
    "google": WeightFormat(
        owner="Google",
        looks_like="a TensorFlow checkpoint, *.index",
        files=find_files,
        read_config=lazy_function(GOOGLE, "read_config"),
        read_weights=lazy_function(GOOGLE, "read_weights"),
        classifiers=CLASSIFIERS,
        is_file=is_prefix,
    ),
}
