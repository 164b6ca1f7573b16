"""ALBERT as Hugging Face transformers stores it: the fields of its `config.json`, the names of its tensors."""

from bert_elmo_jax.families.huggingface_config import USUAL_FIELDS, ConfigFile, class_names
from bert_elmo_jax.families.huggingface_weights import WeightFile

NAMES = {"embedding_size": "embedding_size", "groups": "num_hidden_groups", "layers_per_group": "inner_group_num"}
FILE = ConfigFile(
    called="an ALBERT",
    model_type="albert",
    names=USUAL_FIELDS | NAMES | {"classifier_dropout": "classifier_dropout_prob"},
    architectures=class_names("Albert") | {("mlm", "nsp"): "AlbertForPreTraining"},
    harmless=frozenset({"gap_size", "net_structure_type", "num_memory_blocks", "down_scale_factor"}),  # not read
    # transformers assumes the largest model, and counts the layers of a group as one.
    defaults={"vocab_size": 30000, "hidden_size": 4096, "num_attention_heads": 64, "intermediate_size": 16384},
    to_ours=lambda ours: ours | {"num_layers": ours.get("num_layers", 12) * ours.get("layers_per_group", 1)},
    to_theirs=lambda file: file | {"num_hidden_layers": file["num_hidden_layers"] // file["inner_group_num"]},
)
WEIGHTS = WeightFile(
    family="albert",
    config_file=FILE,
    prefix="albert.",
    encoder={"embeddings/norm": "embeddings.LayerNorm", "project": "encoder.embedding_hidden_mapping_in"}
    | {"pooler": "pooler"},
    layer_names=lambda config: [
        f"encoder.albert_layer_groups.{group}.albert_layers.{n}"
        for group in range(config.groups)
        for n in range(config.layers_per_group)
    ],
    layer={f"attention/{name}": f"attention.{name}" for name in ("query", "key", "value")}
    | {"attention/output": "attention.dense", "attention/norm": "attention.LayerNorm", "feed_forward/up": "ffn"}
    | {"feed_forward/down": "ffn_output", "feed_forward/norm": "full_layer_layer_norm"},
    heads={
        "mlm": {"mlm/dense": "predictions.dense", "mlm/norm": "predictions.LayerNorm"},
        "nsp": {"nsp": "sop_classifier.classifier"},
        "span": {"span": "qa_outputs"},
        **{name: {name: "classifier"} for name in ("classify", "choice", "tag")},
    },
    biases={"mlm/bias": "predictions.bias"},
    decoder="predictions.decoder",
)
FORMATS = {"huggingface": WEIGHTS.format()}
