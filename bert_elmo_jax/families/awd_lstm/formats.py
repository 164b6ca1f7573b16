"""The weight format of AWD-LSTM."""

from bert_elmo_jax.families.awd_lstm.files import awd_lstm_files, is_awd_lstm
from bert_elmo_jax.families.family import WeightFormat
from bert_elmo_jax.lazy_imports import lazy_function

FASTAI = "bert_elmo_jax.families.awd_lstm.fastai"
FORMATS = {
    "fastai": WeightFormat(
        owner="fastai",
        looks_like="a .pth file with rnns.0.module.weight_ih_l0",
        files=awd_lstm_files,
        read_config=lazy_function(FASTAI, "read_config"),
        read_weights=lazy_function(FASTAI, "read_weights"),
        write=lazy_function(FASTAI, "write"),
        is_file=is_awd_lstm,
    )
}
