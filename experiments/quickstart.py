r"""Everything once, small: a toy BERT and a toy ELMo are pretrained, used, and compared with models without them.

  python -m experiments.quickstart
  python -m experiments.quickstart --workdir=runs/quickstart --open=false

Minutes on two cores, without a download. The text is the toy world's, English and Korean, whose best possible score is
known. The result is one page, `report.html` in the run directory: what both have learned, what that is worth on three
tasks, and the command of each part, whose `log.txt` has its output. The same command resumes a quickstart that was
stopped. Exit status: 0 done, 1 a part failed, 2 refused, 75 stopped on request and saved.
"""

import webbrowser
from pathlib import Path

from absl import flags

from bert_elmo_jax.quickstart.run_quickstart import Ceilings, run_quickstart

from .command_line.start import start
from .studies.ceilings.best_masked import masked_scores
from .studies.ceilings.best_stream import stream_scores

FLAGS = flags.FLAGS


def define() -> None:
    """Define the flags."""
    flags.DEFINE_string("workdir", "runs/quickstart", "The folder of all parts and the report.")
    flags.DEFINE_bool("open", True, "Open the report in a browser, if there is one.")


def main() -> int:
    """Run or resume the quickstart."""
    status = run_quickstart(Path(FLAGS.workdir), Ceilings(masked_scores, stream_scores))
    if not status and FLAGS.open:
        webbrowser.open((Path(FLAGS.workdir) / "report.html").absolute().as_uri())
    return status


if __name__ == "__main__":
    start("quickstart", define, main, hint="use --workdir=…", stopped="stopped; the same command resumes")
