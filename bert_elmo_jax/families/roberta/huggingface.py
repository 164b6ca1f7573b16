"""RoBERTa as Hugging Face transformers stores it: the names of its tensors."""

from bert_elmo_jax.families.huggingface_weights import WeightFile
from bert_elmo_jax.families.roberta.config import FILE

WEIGHTS = WeightFile(
    family="roberta",
    config_file=FILE,
    prefix="roberta.",
    encoder={"embeddings/norm": "embeddings.LayerNorm", "pooler": "pooler.dense"},
    tables={
        "embeddings/word": "embeddings.word_embeddings",
        "embeddings/position": "embeddings.position_embeddings",
        "embeddings/type": "embeddings.token_type_embeddings",
    },
    layers="encoder.layer",
    layer={
        "attention/query": "attention.self.query",
        "attention/key": "attention.self.key",
        "attention/value": "attention.self.value",
        "attention/output": "attention.output.dense",
        "attention/norm": "attention.output.LayerNorm",
        "feed_forward/up": "intermediate.dense",
        "feed_forward/down": "output.dense",
        "feed_forward/norm": "output.LayerNorm",
    },
    heads={
        "mlm": {"mlm/dense": "lm_head.dense", "mlm/norm": "lm_head.layer_norm"},
        "span": {"span": "qa_outputs"},
        "classify": {"encoder/pooler": "classifier.dense", "classify": "classifier.out_proj"},
        "choice": {"encoder/pooler": "roberta.pooler.dense", "choice": "classifier"},
        "tag": {"tag": "classifier"},
    },
    biases={"mlm/bias": "lm_head.bias"},
    decoder="lm_head.decoder",
)
read_config, read_weights, write = WEIGHTS.read_config, WEIGHTS.read_weights, WEIGHTS.write
