r"""Sizes of all presets over the years: print their parameters, and draw them as SVG.

  python -m experiments.benchmarks.sizes --output=sizes

Computed in seconds from the registry's presets, without weights.
"""

from absl import flags

from bert_elmo_jax.report.figure_files import write_figures
from bert_elmo_jax.report.results import format_table

from ..command_line.start import start
from ..studies.preset_sizes import draw_sizes, list_preset_sizes

FLAGS = flags.FLAGS


def define() -> None:
    """Define the flags."""
    flags.DEFINE_string("output", None, "The folder for the figure.", required=True)
    flags.DEFINE_bool("png", False, "Write the figure as PNG, too (pip install 'bert_elmo_jax[figures]').")
    flags.DEFINE_bool("stage", False, "For a projector: a larger figure with larger type.")


def main() -> None:
    """Print the table and write the figure."""
    sizes = list_preset_sizes()
    rows = [[str(size.year), size.family, size.preset, f"{size.parameters:,}"] for size in sizes]
    print(format_table([["year", "family", "preset", "parameters"], *rows]))
    for path in write_figures(FLAGS.output, {"sizes": draw_sizes(sizes)}, png=FLAGS.png, stage=FLAGS.stage):
        print(path)


if __name__ == "__main__":
    start("benchmarks.sizes", define, main, {"output": "The figure"})
