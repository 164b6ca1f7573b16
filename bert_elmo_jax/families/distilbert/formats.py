"""DistilBERT as Hugging Face transformers stores it: the fields of its `config.json`, the names of its tensors."""

from bert_elmo_jax.families.huggingface_config import ConfigFile, class_names
from bert_elmo_jax.families.huggingface_weights import WeightFile

FILE = ConfigFile(
    called="a DistilBERT",
    model_type="distilbert",
    names={
        "vocab_size": "vocab_size",
        "hidden_size": "dim",
        "num_layers": "n_layers",
        "num_heads": "n_heads",
        "feed_forward_size": "hidden_dim",
        "max_positions": "max_position_embeddings",
        "sinusoidal": "sinusoidal_pos_embds",
        "activation": "activation",
        "dropout": "dropout",
        "attention_dropout": "attention_dropout",
        "classifier_dropout": "seq_classif_dropout",
        "initializer_range": "initializer_range",
        "pad_id": "pad_token_id",
    },
    architectures=class_names("DistilBert"),
    only={"tie_weights_": True},
    harmless=frozenset({"qa_dropout"}),  # our head of answer spans has no dropout
)
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
FORMATS = {"huggingface": WEIGHTS.format()}
