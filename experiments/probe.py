r"""What the layers of encoders hold: tables and figures, in one page. Encoders and static vectors stand side by side.

Linear probes of every layer on a treebank in CoNLL-U; with --what=efficiency, how they grow with their training data:
  python -m experiments.probe --what=probe --model=runs/elmo,runs/bert --static=glove.6B.50d.txt --output=analysis \
      --train=en_ewt-ud-train.conllu --dev=en_ewt-ud-dev.conllu --test=en_ewt-ud-test.conllu

Word senses by the nearest mean vector (the first of --seeds splits the documents); neighbours of a word in context (a
line is split into words as prepare_data split the text of the ELMo that is asked, otherwise at spaces and punctuation):
  python -m experiments.probe --what=senses --model=runs/elmo --train=semcor.tsv --output=analysis
  python -m experiments.probe --what=neighbours --model=runs/elmo --train=texts.txt --output=analysis \
      --words='play,배[를가는도]'

Attention heads that follow the arcs of a treebank, layer weights that tasks learned, senses of the toy world:
  python -m experiments.probe --what=attention --model=runs/bert --test=en_ewt-ud-test.conllu --output=analysis
  python -m experiments.probe --what=weights --model=runs/tagger --output=analysis
  python -m experiments.probe --what=toyworld --model=runs/bert_toy,runs/elmo_toy --words=bank,배 --output=analysis

A study writes report.html and table.csv into a folder of its name, with --png each figure too. Vectors are computed
once for an encoder and a text, and kept in `vectors` beside it: the same command goes on where it was stopped.
"""

import sys
from pathlib import Path
from typing import Any

from absl import flags
from tqdm import tqdm

from bert_elmo_jax.analysis import probes
from bert_elmo_jax.analysis.studies import STUDIES
from bert_elmo_jax.analysis.study_inputs import Asked
from bert_elmo_jax.report.page import draw_figures, draw_json, draw_table, write_page
from bert_elmo_jax.report.png import check_matplotlib, write_png
from bert_elmo_jax.report.results import add_published, format_table, make_cells, write_results, write_rows
from bert_elmo_jax.runs.starting_weights import devices, say
from experiments.command_line.endings import endings
from experiments.command_line.start import start

flags.DEFINE_enum("what", None, list(STUDIES), "What to look at.", required=True)
flags.DEFINE_list("model", [], "Encoders, with commas between: anything `load` understands.")
flags.DEFINE_list("static", [], "Files of static vectors (GloVe, word2vec, fastText) to stand beside them.")
flags.DEFINE_string("output", None, "The folder for pages, tables and vectors.", required=True)
flags.DEFINE_string("train", None, "A treebank in CoNLL-U; SemCor; a text a line or CoNLL columns (neighbours).")
flags.DEFINE_string("dev", None, "A treebank, to choose the penalty by.")
flags.DEFINE_string("test", None, "A treebank; or SemCor, instead of some documents of --train.")
flags.DEFINE_string("encoding", "utf-8", "Of these files: utf-8, cp949, …")
flags.DEFINE_integer("limit", None, "Sentences of each file, from its beginning; without it all.", lower_bound=1)
flags.DEFINE_list("tasks", list(probes.TASKS), "pos, head_distance, and features of the treebank such as Case.")
flags.DEFINE_list("layers", None, "Numbers (0: token vectors, -1: the last); without it all.")
flags.DEFINE_list("fractions", [f"{share:g}" for share in probes.FRACTIONS], "Shares of the training sentences.")
flags.DEFINE_list("seeds", ["0", "1", "2"], "Of the sentences drawn; the first splits documents, and senses.")
flags.DEFINE_list(
    "words", [], "Words to look at: 배; for neighbours also 배[를가는도], one of these letters, or 배*, any."
)
flags.DEFINE_string("sentence", None, "One of your own: neighbours of the word there, instead of places in --train.")
flags.DEFINE_integer("batch_size", 32, "Sentences that are encoded together.", lower_bound=1)
flags.DEFINE_bool("png", False, "Write each figure as PNG too (pip install 'bert_elmo_jax[figures]').")
FLAGS = flags.FLAGS
STYLE = "td:nth-child(4),th:nth-child(4){font-weight:600}q{quotes:none}b{background:#fe9;color:#222}"
HEADINGS = {"what": "The study", "train": "Its texts", "tasks": "What is looked at", "batch_size": "How"}
TEXTS = ("static", "train", "dev", "test", "encoding", "limit")
OF_SOME = (*TEXTS, "tasks", "layers", "fractions", "seeds", "words", "sentence")


def check_flags() -> None:
    """Refuse what the study lacks, and what says nothing to it."""
    _, needed, read = STUDIES[FLAGS.what]
    if missing := [f"--{name}=…" for name in needed if not FLAGS[name].value]:
        raise ValueError(f"--what={FLAGS.what} needs {', '.join(missing)}")
    if idle := [f"--{name}" for name in OF_SOME if FLAGS[name].present and name not in (*needed, *read)]:
        raise ValueError(f"{', '.join(idle)} says nothing to --what={FLAGS.what}: leave it out")
    if not FLAGS.model and not ("static" in read and FLAGS.static):
        raise ValueError(f"nothing to look at: give --model=…{' or --static=…' if 'static' in read else ''}")
    for name in ("tasks", "fractions", "seeds"):
        if not FLAGS[name].value:
            raise ValueError(f"--{name}= is empty: name one or more, or leave it out")


def numbers(name: str, kind: Any = int) -> Any:
    """The numbers of a flag."""
    given: Any = FLAGS[name].value
    try:
        return given and [kind(value) for value in given]
    except ValueError:
        raise ValueError(
            f"--{name}={','.join(given)}: use {'whole ' * (kind is int)}numbers with commas between"
        ) from None


def study() -> None:
    """Look, and write what came out."""
    check_flags()
    if FLAGS.png:
        check_matplotlib()
    folder = Path(FLAGS.output, FLAGS.what)
    say(f"{FLAGS.what} of {', '.join([*FLAGS.model, *FLAGS.static])} -> {folder}, on {devices()}")
    with tqdm(desc=FLAGS.what, unit="steps", delay=1) as bar:

        def report(text: str) -> None:
            bar.set_description(text)
            bar.update()

        same: dict[str, Any] = {
            name: FLAGS[name].value
            for name in ("model", "static", "train", "dev", "test", "encoding", "limit", "tasks")
        }
        same |= {name: FLAGS[name].value for name in ("words", "sentence", "batch_size")}
        counts = {"layers": numbers("layers"), "fractions": numbers("fractions", float), "seeds": numbers("seeds")}
        asked = Asked(**same, **counts, vectors=Path(FLAGS.output, "vectors"), report=report)
        found = STUDIES[FLAGS.what][0](asked)
    folder.mkdir(parents=True, exist_ok=True)
    results = add_published(found.results)
    print(found.text or format_table(make_cells(results)))
    write_rows(folder / "table.csv", found.rows) if found.rows else write_results(folder / "table.csv", results)
    settings = {name: FLAGS[name].value for name in ("what", "output")} | same | counts
    names, *rows = make_cells(results)
    top = (draw_table(names, rows) if rows else "") + draw_figures(found.figures)
    sections = [("", top), *found.sections, ("Settings", draw_json(settings))]
    page = write_page(folder / "report.html", f"{FLAGS.what}: {', '.join(FLAGS.model)}", sections, STYLE)
    for n, figure in enumerate(found.figures if FLAGS.png else ()):
        write_png(figure, folder / f"figure_{n:02}.png")
    print(page, file=sys.stderr)


def main(argv: list[str]) -> None:
    """Look, and end every expected trouble in one message and status 2."""
    with endings("probe", argv, "--model=…", "stopped; vectors are kept, and the same command goes on from there"):
        study()


if __name__ == "__main__":
    start(main, "probe", HEADINGS)
