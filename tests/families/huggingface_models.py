"""The classes of transformers that our families read and write: small configurations, heads, parts of a file."""

import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np

from bert_elmo_jax.families import get_family
from bert_elmo_jax.families.albert.family import AlbertConfig
from bert_elmo_jax.families.bart.config import BartConfig
from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.deberta.config import DebertaConfig
from bert_elmo_jax.families.distilbert.family import DistilBertConfig
from bert_elmo_jax.families.electra.config import ElectraConfig
from bert_elmo_jax.families.eurobert.family import EuroBertConfig
from bert_elmo_jax.families.gpt.config import GptConfig
from bert_elmo_jax.families.init_params import param_shapes
from bert_elmo_jax.families.modernbert.config import ModernBertConfig
from bert_elmo_jax.families.mpnet.family import MPNetConfig
from bert_elmo_jax.families.roberta.family import RobertaConfig
from bert_elmo_jax.weights.parameter_tree import flatten, nest

LABELS = {"classify": 3, "tag": 5}  # outputs of those heads


class Model(NamedTuple):
    """A class of transformers: one of our configurations and its heads, and the parts that its file must have."""

    config: Any
    parts: str  # the first words of its tensors' names
    heads: tuple[str, ...] = ()
    pooler: bool = False

    @property
    def family(self):
        return get_family(FAMILIES[type(self.config)])

    @property
    def format(self):
        return self.family.formats["huggingface"]


FAMILIES = {
    BartConfig: "bart",
    BertConfig: "bert",
    DistilBertConfig: "distilbert",
    RobertaConfig: "roberta",
    ElectraConfig: "electra",
    DebertaConfig: "deberta",
    GptConfig: "gpt",
    ModernBertConfig: "modernbert",
    MPNetConfig: "mpnet",
    AlbertConfig: "albert",
    EuroBertConfig: "eurobert",
}
BERT = BertConfig(50, 32, 2, 4, 48, 24, activation="gelu_new")
DISTILBERT = DistilBertConfig(50, 32, 2, 4, 48, 24, activation="gelu_new", classifier_dropout=0.3)
ROBERTA = RobertaConfig(50, 32, 2, 4, 48, 24, activation="relu", norm_eps=1e-6, classifier_dropout=0.3, pad_id=3)
ELECTRA = ElectraConfig(50, 32, 2, 4, 48, 24, embedding_size=24, activation="relu", classifier_dropout=0.3)
DEBERTA = DebertaConfig(
    50, 32, 2, 4, 48, 24, embedding_size=24, type_vocab_size=2, activation="relu", absolute_positions=True,
    position_buckets=4, max_relative_positions=9, share_att_key=False, conv_kernel_size=3, conv_groups=2,
    pooler_activation="tanh", classifier_dropout=0.3,
)  # fmt: skip
DEBERTA_V3 = DebertaConfig(50, 32, 2, 4, 48, 24, position_buckets=8, relative_terms="p2c", legacy=False)
DEBERTA_V1 = DebertaConfig(
    50, 32, 2, 4, 48, 24, model_type="deberta", position_buckets=0, share_att_key=False, norm_relative=False,
    type_vocab_size=2, absolute_positions=True, embedding_size=24,
)  # fmt: skip
GPT2 = GptConfig(50, 32, 2, 4, 48, 24, activation="relu", end_id=7, pad_id=7, classifier_dropout=0.3)
GPT1 = dataclasses.replace(GPT2, norm_first=False, feed_forward_size=128, activation="gelu_new")
MPNET = MPNetConfig(50, 32, 2, 4, 48, 24, activation="relu", norm_eps=1e-6, relative_buckets=40)
ALBERT = AlbertConfig(50, 32, 12, 4, 48, 24, embedding_size=16, activation="relu", groups=2, layers_per_group=3)
EUROBERT = EuroBertConfig(50, 32, 2, 4, 48, 24, key_value_heads=2, rotary_theta=500.0, pad_id=0, initializer_range=0.3)
MODERNBERT = ModernBertConfig(
    vocab_size=50, hidden_size=32, num_layers=5, num_heads=4, feed_forward_size=24, max_positions=24,
    local_attention=6, global_theta=5e4, local_theta=300.0, head_activation="silu", initializer_range=0.3, pad_id=0,
)  # fmt: skip
BIASED = dataclasses.replace(
    MODERNBERT, attention_bias=True, feed_forward_bias=True, norm_bias=True, head_bias=True, decoder_bias=False,
    activation="relu",
)  # fmt: skip
MEAN = dataclasses.replace(MODERNBERT, pooling="mean", attention_pattern="lg")

CLASSES = {
    "BertModel": Model(BERT, "embeddings encoder pooler", pooler=True),
    "BertForMaskedLM": Model(BERT, "bert cls", ("mlm",)),
    "BertForNextSentencePrediction": Model(BERT, "bert cls", ("nsp",), pooler=True),
    "BertForPreTraining": Model(BERT, "bert cls", ("mlm", "nsp"), pooler=True),
    "BertForSequenceClassification": Model(BERT, "bert classifier", ("classify",), pooler=True),
    "BertForMultipleChoice": Model(BERT, "bert classifier", ("choice",), pooler=True),
    "BertForTokenClassification": Model(BERT, "bert classifier", ("tag",)),
    "BertForQuestionAnswering": Model(BERT, "bert qa_outputs", ("span",)),
    "DistilBertModel": Model(DISTILBERT, "embeddings transformer"),
    "DistilBertForMaskedLM": Model(DISTILBERT, "distilbert vocab_transform vocab_layer_norm vocab_projector", ("mlm",)),
    "DistilBertForSequenceClassification": Model(
        DISTILBERT, "distilbert pre_classifier classifier", ("classify",), pooler=True
    ),
    "DistilBertForMultipleChoice": Model(DISTILBERT, "distilbert pre_classifier classifier", ("choice",), pooler=True),
    "DistilBertForTokenClassification": Model(DISTILBERT, "distilbert classifier", ("tag",)),
    "DistilBertForQuestionAnswering": Model(DISTILBERT, "distilbert qa_outputs", ("span",)),
    "RobertaModel": Model(ROBERTA, "embeddings encoder pooler", pooler=True),
    "RobertaForMaskedLM": Model(ROBERTA, "roberta lm_head", ("mlm",)),
    "RobertaForSequenceClassification": Model(ROBERTA, "roberta classifier", ("classify",), pooler=True),
    "RobertaForMultipleChoice": Model(ROBERTA, "roberta classifier", ("choice",), pooler=True),
    "RobertaForTokenClassification": Model(ROBERTA, "roberta classifier", ("tag",)),
    "RobertaForQuestionAnswering": Model(ROBERTA, "roberta qa_outputs", ("span",)),
    "ElectraModel": Model(ELECTRA, "embeddings embeddings_project encoder"),
    "ElectraForMaskedLM": Model(ELECTRA, "electra generator_predictions generator_lm_head", ("mlm",)),
    "ElectraForPreTraining": Model(ELECTRA, "electra discriminator_predictions", ("replaced",)),
    "ElectraForSequenceClassification": Model(ELECTRA, "electra classifier", ("classify",), pooler=True),
    "ElectraForMultipleChoice": Model(ELECTRA, "electra sequence_summary classifier", ("choice",), pooler=True),
    "ElectraForTokenClassification": Model(ELECTRA, "electra classifier", ("tag",)),
    "ElectraForQuestionAnswering": Model(ELECTRA, "electra qa_outputs", ("span",)),
    "DebertaV2Model": Model(DEBERTA, "embeddings encoder"),
    "DebertaV2ForMaskedLM": Model(DEBERTA, "deberta cls", ("mlm",)),
    "DebertaV2ForMaskedLM later": Model(DEBERTA_V3, "deberta lm_predictions", ("mlm",)),
    "DebertaV2ForSequenceClassification": Model(DEBERTA, "deberta pooler classifier", ("classify",), pooler=True),
    "DebertaV2ForMultipleChoice": Model(DEBERTA, "deberta pooler classifier", ("choice",), pooler=True),
    "DebertaV2ForTokenClassification": Model(DEBERTA, "deberta classifier", ("tag",)),
    "DebertaV2ForQuestionAnswering": Model(DEBERTA, "deberta qa_outputs", ("span",)),
    "DebertaModel": Model(DEBERTA_V1, "embeddings encoder"),
    "DebertaForMaskedLM": Model(DEBERTA_V1, "deberta cls", ("mlm",)),
    "DebertaForSequenceClassification": Model(DEBERTA_V1, "deberta pooler classifier", ("classify",), pooler=True),
    "DebertaForTokenClassification": Model(DEBERTA_V1, "deberta classifier", ("tag",)),
    "DebertaForQuestionAnswering": Model(DEBERTA_V1, "deberta qa_outputs", ("span",)),
    "MPNetModel": Model(MPNET, "embeddings encoder pooler", pooler=True),
    "MPNetForMaskedLM": Model(MPNET, "mpnet lm_head", ("mlm",)),
    "MPNetForSequenceClassification": Model(MPNET, "mpnet classifier", ("classify",), pooler=True),
    "MPNetForMultipleChoice": Model(MPNET, "mpnet classifier", ("choice",), pooler=True),
    "MPNetForTokenClassification": Model(MPNET, "mpnet classifier", ("tag",)),
    "MPNetForQuestionAnswering": Model(MPNET, "mpnet qa_outputs", ("span",)),
    "AlbertModel": Model(ALBERT, "embeddings encoder pooler", pooler=True),
    "AlbertForMaskedLM": Model(ALBERT, "albert predictions", ("mlm",)),
    "AlbertForPreTraining": Model(ALBERT, "albert predictions sop_classifier", ("mlm", "nsp"), pooler=True),
    "AlbertForSequenceClassification": Model(ALBERT, "albert classifier", ("classify",), pooler=True),
    "AlbertForMultipleChoice": Model(ALBERT, "albert classifier", ("choice",), pooler=True),
    "AlbertForTokenClassification": Model(ALBERT, "albert classifier", ("tag",)),
    "AlbertForQuestionAnswering": Model(ALBERT, "albert qa_outputs", ("span",)),
    "GPT2LMHeadModel": Model(GPT2, "transformer"),
    "GPT2ForSequenceClassification": Model(GPT2, "transformer score", ("classify",)),
    "GPT2ForTokenClassification": Model(GPT2, "transformer classifier", ("tag",)),
    "GPT2ForQuestionAnswering": Model(GPT2, "transformer qa_outputs", ("span",)),
    "GPT2DoubleHeadsModel": Model(GPT2, "transformer multiple_choice_head", ("choice",)),
    "OpenAIGPTLMHeadModel": Model(GPT1, "transformer"),
    "OpenAIGPTForSequenceClassification": Model(GPT1, "transformer score", ("classify",)),
    "OpenAIGPTDoubleHeadsModel": Model(GPT1, "transformer multiple_choice_head", ("choice",)),
}
for variant, config in {"": MODERNBERT, " biased": BIASED, " mean": MEAN}.items():
    CLASSES |= {
        f"ModernBertForMaskedLM{variant}": Model(config, f"model head {'decoder' * config.decoder_bias}", ("mlm",)),
        f"ModernBertForSequenceClassification{variant}": Model(
            config, "model head classifier", ("classify",), pooler=True
        ),
        f"ModernBertForMultipleChoice{variant}": Model(config, "model head classifier", ("choice",), pooler=True),
        f"ModernBertForTokenClassification{variant}": Model(config, "model head classifier", ("tag",), pooler=True),
        f"ModernBertForQuestionAnswering{variant}": Model(config, "model head classifier", ("span",), pooler=True),
    }

for pooling in ("late", "mean", "bos"):
    CLASSES[f"EuroBertForSequenceClassification {pooling}"] = Model(
        dataclasses.replace(EUROBERT, pooling=pooling), "model dense classifier", ("classify",), pooler=True
    )
biased = dataclasses.replace(EUROBERT, attention_bias=True, feed_forward_bias=True)
CLASSES |= {
    "EuroBertModel": Model(EUROBERT, "embed_tokens layers norm"),
    "EuroBertForMaskedLM": Model(EUROBERT, "model lm_head", ("mlm",)),
    "EuroBertForMaskedLM biased": Model(biased, "model lm_head", ("mlm",)),
    "EuroBertForTokenClassification": Model(EUROBERT, "model classifier", ("tag",)),
}


def random_params(model, scale=1.0):
    """Return random parameters of a model, or of the class of transformers with this name."""
    model = CLASSES.get(model, model)
    rng, shapes = np.random.default_rng(0), _shapes_of(model)
    return nest({path: rng.normal(scale=scale, size=shape).astype(np.float32) for path, shape in shapes.items()})


@functools.cache
def _shapes_of(model):
    return param_shapes(model.family, model.config, model.heads, pooler=model.pooler, outputs=LABELS)


def assert_same(ours, theirs):
    """Check that two trees of parameters are equal bit for bit."""
    ours, theirs = flatten(ours), flatten(theirs)
    assert ours.keys() == theirs.keys()
    for path in ours:
        np.testing.assert_array_equal(ours[path], theirs[path], err_msg=path)
