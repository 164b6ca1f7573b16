"""AWD-LSTM's entry in the registry."""

from jax.sharding import PartitionSpec as P

from bert_elmo_jax.families.awd_lstm.config import PRESETS, RATES, AwdLstmConfig
from bert_elmo_jax.families.awd_lstm.formats import FORMATS
from bert_elmo_jax.families.awd_lstm.model import AwdLstm, init_awd_lstm_params
from bert_elmo_jax.families.documents import DocumentReader
from bert_elmo_jax.families.family import Family, Head
from bert_elmo_jax.families.words import Words
from bert_elmo_jax.lazy_imports import lazy_function

MODULE = "bert_elmo_jax.families.awd_lstm.documents"
DOCUMENTS = DocumentReader(
    read=lazy_function(MODULE, "read_document"),
    pool=lazy_function(MODULE, "pool_documents"),
    classify=lazy_function(MODULE, "classify_documents"),
    width=lambda config: config.embedding_size,
    direction=lambda config: config.direction,
    for_corpus=lazy_function("bert_elmo_jax.families.awd_lstm.vocabulary", "as_word_vocabulary"),
    add_words=lazy_function("bert_elmo_jax.families.awd_lstm.vocabulary", "add_words"),
    rates=RATES,
)
FAMILY = Family(
    name="awd_lstm",
    called="an AWD-LSTM",
    config=AwdLstmConfig,
    module=AwdLstm,
    inputs=Words(
        vocab_size=60_000,
        reads_pieces=True,
        find_vocabulary=lazy_function("bert_elmo_jax.families.awd_lstm.vocabulary", "find_vocabulary"),
        encoder=lazy_function("bert_elmo_jax.families.awd_lstm.encoder", "AwdLstmEncoder"),
        directions=lambda config: {config.direction: (0, config.hidden_size)},
        documents=DOCUMENTS,
    ),
    objectives={"lm": lazy_function("bert_elmo_jax.families.awd_lstm.objective", "lm_objective")},
    heads={"lm": Head(), "classifier": Head()},  # made by init
    formats=FORMATS,
    sharding=(
        (r"encoder/layer_\d+/input_kernel$", P("fsdp", "tensor")),
        # Not over fsdp: XLA (of JAX 0.10 and 0.12) would compute wrong gradients in the loop.
        (r"encoder/layer_\d+/state_kernel$", P(None, "tensor")),
        (r"encoder/layer_\d+/bias$", P("tensor")),
        (r"(embeddings/word|lm/embedding)$", P("tensor", "fsdp")),
        (r"lm/bias$", P("tensor")),
        (r"carry/(cell|hidden)/\d+$", P(None, None, ("data", "fsdp"))),
    ),
    presets=PRESETS,
    init=lambda config, key, heads: init_awd_lstm_params(config, key, "lm" in heads, "classifier" in heads),
)
