"""The weight format of CoVe."""

from bert_elmo_jax.families.cove.files import FIRST, advice, cove_files, is_cove
from bert_elmo_jax.families.family import WeightFormat
from bert_elmo_jax.lazy_imports import lazy_function

LSTM = "bert_elmo_jax.families.cove.torch_lstm"
FORMATS = {
    "cove": WeightFormat(
        owner="CoVe",
        looks_like=f"a .pth file with {FIRST}",
        files=cove_files,
        read_config=lazy_function(LSTM, "read_config"),
        read_weights=lazy_function(LSTM, "read_weights"),
        write=lazy_function(LSTM, "write"),
        is_file=is_cove,
        advice=advice,
    )
}
