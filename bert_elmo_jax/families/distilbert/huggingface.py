"""DistilBERT as Hugging Face transformers stores it: the names of its tensors."""

from bert_elmo_jax.families.distilbert.config import FILE
from bert_elmo_jax.families.huggingface_weights import WeightFile

WEIGHTS = WeightFile(
    family="distilbert",
    config_file=FILE,
    prefix="distilbert.",
    encoder={"embeddings/norm": "embeddings.LayerNorm"},
    tables={"embeddings/word": "embeddings.word_embeddings", "embeddings/position": "embeddings.position_embeddings"},
    layers="transformer.layer",
    layer={
        "attention/query": "attention.q_lin",
        "attention/key": "attention.k_lin",
        "attention/value": "attention.v_lin",
        "attention/output": "attention.out_lin",
        "attention/norm": "sa_layer_norm",
        "feed_forward/up": "ffn.lin1",
        "feed_forward/down": "ffn.lin2",
        "feed_forward/norm": "output_layer_norm",
    },
    heads={
        "mlm": {"mlm/dense": "vocab_transform", "mlm/norm": "vocab_layer_norm"},
        "span": {"span": "qa_outputs"},
        "classify": {"encoder/pooler": "pre_classifier", "classify": "classifier"},
        "choice": {"encoder/pooler": "pre_classifier", "choice": "classifier"},
        "tag": {"tag": "classifier"},
    },
    biases={"mlm/bias": "vocab_projector.bias"},
    decoder="vocab_projector",
)
read_config, read_weights, write = WEIGHTS.read_config, WEIGHTS.read_weights, WEIGHTS.write
