"""Fixtures that write weight files, shared with the tests of the byte readers."""

from ..weights.conftest import (  # noqa: F401
    elmo_folder,
    elmo_made,
    hugging_face,
    tensor,
    theirs,
    theirs_config,
    write_bundle,
    write_torch,
)

collect_ignore = ["bag.py"]  # importing it registers its family, which its own tests do
