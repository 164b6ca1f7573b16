"""MPNet as Hugging Face transformers stores it: the fields of its `config.json`, the names of its tensors."""

from bert_elmo_jax.families.huggingface_config import USUAL_FIELDS, ConfigFile, class_names
from bert_elmo_jax.families.huggingface_weights import USUAL_LAYER, USUAL_TABLES, WeightFile

FIRST = 2  # the first row of the table of positions that a text uses, for any pad id

FILE = ConfigFile(
    called="an MPNet",
    model_type="mpnet",
    names={ours: theirs for ours, theirs in USUAL_FIELDS.items() if ours != "type_vocab_size"}
    | {"relative_buckets": "relative_attention_num_buckets"},
    architectures=class_names("MPNet"),
    defaults={"layer_norm_eps": 1e-12},
    to_ours=lambda values: values | {"max_positions": values.get("max_positions", 512) - FIRST},
    to_theirs=lambda fields: fields | {"max_position_embeddings": fields["max_position_embeddings"] + FIRST},
)
WEIGHTS = WeightFile(
    family="mpnet",
    config_file=FILE,
    prefix="mpnet.",
    encoder={"embeddings/norm": "embeddings.LayerNorm", "pooler": "pooler.dense"},
    tables=USUAL_TABLES | {"relative_bias": "encoder.relative_attention_bias"},
    layer=USUAL_LAYER
    | {f"attention/{part}": f"attention.attn.{part[0]}" for part in ("query", "key", "value", "output")}
    | {"attention/norm": "attention.LayerNorm"},
    heads={
        "mlm": {"mlm/dense": "lm_head.dense", "mlm/norm": "lm_head.layer_norm"},
        "span": {"span": "qa_outputs"},
        "classify": {"encoder/pooler": "classifier.dense", "classify": "classifier.out_proj"},
        "choice": {"encoder/pooler": "mpnet.pooler.dense", "choice": "classifier"},
        "tag": {"tag": "classifier"},
    },
    biases={"mlm/bias": "lm_head.bias"},
    decoder="lm_head.decoder",
)
FORMATS = {"huggingface": WEIGHTS.format()}
