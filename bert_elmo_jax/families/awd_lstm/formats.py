"""The weight format of AWD-LSTM."""

import re

from bert_elmo_jax.families.family import WeightFormat
from bert_elmo_jax.lazy_imports import lazy_function
from bert_elmo_jax.weights.single_files import SingleFiles

FASTAI = "bert_elmo_jax.families.awd_lstm.fastai"
# The first layer's input matrix, after any prefix: it shows that a file holds an AWD-LSTM.
FIRST = re.compile(r"(.*\.)?rnns\.0\.(module\.weight_ih_l0|layers\.0\.linear\.weight)")
SIGN = "rnns.0.module.weight_ih_l0"
WRITTEN = {"forward": "lm.safetensors", "backward": "lm_bwd.safetensors"}  # the files that `write` makes
FILES = SingleFiles("AWD-LSTM", SIGN, WRITTEN.values(), lambda names: any(FIRST.fullmatch(name) for name in names))
FORMATS = {
    "fastai": WeightFormat(
        owner="fastai",
        looks_like=f"a .pth file with {SIGN}",
        files=FILES.find,
        read_config=lazy_function(FASTAI, "read_config"),
        read_weights=lazy_function(FASTAI, "read_weights"),
        write=lazy_function(FASTAI, "write"),
        is_file=FILES.is_file,
    )
}
