"""Fixtures that write weight files, shared with the tests of the byte readers, and the other side of comparisons."""

from ..weights.conftest import elmo_folder, elmo_made, hugging_face, theirs, theirs_config, write_bundle, write_torch  # noqa: F401
from .peers import peers  # noqa: F401

collect_ignore = ["bag.py"]  # importing it registers its family, which its own tests do
