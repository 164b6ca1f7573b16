"""ModernBERT as Hugging Face transformers stores it: the names of its tensors."""

from bert_elmo_jax.families.huggingface_weights import WeightFile
from bert_elmo_jax.families.modernbert.json_fields import FILE

CLASSIFIERS = ("classify", "choice", "tag", "span")  # all four are called `classifier` in the file
# The prediction head stands below the decoder of words, or below one of the classifiers. In a model of masked words,
# it is read as the pooler too, so that fine-tuning starts from it, as in transformers.
POOLER = {"encoder/pooler/dense": "head.dense", "encoder/pooler/norm": "head.norm"}

WEIGHTS = WeightFile(
    family="modernbert",
    config_file=FILE,
    prefix="model.",
    encoder={"embeddings/norm": "embeddings.norm", "norm": "final_norm"},
    tables={"embeddings/word": "embeddings.tok_embeddings"},
    layers="layers",
    layer={
        "attention/norm": "attn_norm",
        "attention/query": "attn.Wqkv.query",
        "attention/key": "attn.Wqkv.key",
        "attention/value": "attn.Wqkv.value",
        "attention/output": "attn.Wo",
        "feed_forward/norm": "mlp_norm",
        "feed_forward/gate": "mlp.Wi.gate",
        "feed_forward/up": "mlp.Wi.up",
        "feed_forward/down": "mlp.Wo",
    },
    heads={
        "mlm": {"mlm/dense": "head.dense", "mlm/norm": "head.norm", **POOLER},
        **{head: {**POOLER, head: "classifier"} for head in CLASSIFIERS},
    },
    biases={"mlm/bias": "decoder.bias"},
    decoder="decoder",
    classifiers=CLASSIFIERS,
    joined={"attn.Wqkv": ("query", "key", "value"), "mlp.Wi": ("gate", "up")},
)
FORMATS = {"huggingface": WEIGHTS.format()}
