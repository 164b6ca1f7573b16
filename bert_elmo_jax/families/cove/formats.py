"""The weight format of CoVe."""

from collections.abc import Collection

from bert_elmo_jax.families.family import WeightFormat
from bert_elmo_jax.lazy_imports import lazy_function
from bert_elmo_jax.weights.single_files import SingleFiles

LSTM = "bert_elmo_jax.families.cove.torch_lstm"
FIRST = "weight_ih_l0"  # every LSTM of torch has this tensor
WRITTEN = "wmtlstm.safetensors"  # the file that `write` makes


def find_prefix(names: Collection[str]) -> str | None:
    """Return what the names of an LSTM's tensors begin with; None if there is no such LSTM."""
    return next((prefix for prefix in ("", "rnn.") if prefix + FIRST in names), None)


FILES = SingleFiles("CoVe", FIRST, (WRITTEN,), lambda names: find_prefix(names) is not None)
FORMATS = {
    "cove": WeightFormat(
        owner="CoVe",
        looks_like=f"a .pth file with {FIRST}",
        files=FILES.find,
        read_config=lazy_function(LSTM, "read_config"),
        read_weights=lazy_function(LSTM, "read_weights"),
        write=lazy_function(LSTM, "write"),
        is_file=FILES.is_file,
        advice=FILES.explain,
    )
}
