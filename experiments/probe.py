r"""Study the layers of encoders, and compare them with static vectors: tables and figures on one page.

Linear probes of every layer on a treebank; with --what=efficiency, by the size of their training data:
  python -m experiments.probe --what=probe --model=runs/elmo,runs/bert --static=glove.6B.50d.txt --output=analysis \
      --train=en_ewt-ud-train.conllu --dev=en_ewt-ud-dev.conllu --test=en_ewt-ud-test.conllu
The register of a word's text, which is its file, or the speech level of a Korean sentence if there is one file:
  python -m experiments.probe --what=register --model=runs/bert --train=novels.txt,reviews.txt --output=analysis
One sentence side by side, on a page to point at its words; neighbours of a word in context; senses of words:
  python -m experiments.probe --what=sentence --model=runs/bert,runs/elmo --sentence='A red ship .' --output=analysis
  python -m experiments.probe --what=neighbours --model=runs/elmo --train=texts.txt --words='play,배*' --output=analysis
  python -m experiments.probe --what=senses --model=runs/elmo --train=semcor.tsv --output=analysis
Attention heads that follow the arcs of a treebank, layer weights that tasks learned, senses of the toy world:
  python -m experiments.probe --what=attention --model=runs/bert --test=en_ewt-ud-test.conllu --output=analysis
  python -m experiments.probe --what=weights --model=runs/tagger --output=analysis
  python -m experiments.probe --what=toyworld --model=runs/bert_toy,runs/elmo_toy --words=bank,배 --output=analysis
"""

from absl import flags

from bert_elmo_jax.analysis.probes import FRACTIONS, TASKS
from bert_elmo_jax.analysis.run_study import OF_PAGE, OF_SOME, run_study
from bert_elmo_jax.analysis.studies import STUDIES

from .command_line.start import read_values, start

FLAGS = flags.FLAGS


def define() -> None:
    """Define the flags."""
    flags.DEFINE_enum("what", None, list(STUDIES), "The study.", required=True)
    flags.DEFINE_list("model", [], "Encoders, with commas between: anything `load` understands.")
    flags.DEFINE_list("static", [], "Files of static vectors (GloVe, word2vec, fastText) to compare with.")
    flags.DEFINE_string("output", None, "A folder; each study has one in it: report.html, table.csv.", required=True)
    flags.DEFINE_string("train", None, "A treebank in CoNLL-U; SemCor; for neighbours and register texts.")
    flags.DEFINE_string("dev", None, "A treebank, to choose the penalty by.")
    flags.DEFINE_string("test", None, "A treebank; or SemCor, instead of some documents of --train.")
    flags.DEFINE_string("encoding", "utf-8", "Of these files: utf-8, cp949, …")
    flags.DEFINE_integer("limit", None, "Sentences to read from each file; without it all.", lower_bound=1)
    flags.DEFINE_list("tasks", list(TASKS), "pos, relation, head_distance, Case …; control:pos has random labels.")
    flags.DEFINE_list("layers", None, "Numbers (0: token vectors, -1: the last); without it all.")
    flags.DEFINE_list("fractions", [f"{share:g}" for share in FRACTIONS], "Shares of the training sentences.")
    flags.DEFINE_list("seeds", ["0", "1", "2"], "Of the sentences drawn; the first splits documents, and senses.")
    flags.DEFINE_list("words", [], "Words: 배; for neighbours also 배[를가는도], one of these letters, or 배*, any.")
    flags.DEFINE_string("sentence", None, "Your own: to read; neighbours of a word there instead of in --train.")
    flags.DEFINE_integer("batch_size", 32, "Sentences that are encoded together.", lower_bound=1)
    flags.DEFINE_bool("guard_formulas", False, "Put a ' before cells of table.csv that a spreadsheet would compute.")
    flags.DEFINE_bool("png", False, "Write each figure as PNG, too (pip install 'bert_elmo_jax[figures]').")
    flags.DEFINE_bool("stage", False, "For a projector: larger figures with larger type.")
    flags.DEFINE_enum("language", None, ["en", "ko"], "Of the page. Default: the locale's, or the --sentence's.")


def main() -> None:
    """Run the study."""
    settings, options = read_values(("model", *OF_SOME, "batch_size")), [n for n in OF_SOME if FLAGS[n].present]
    run_study(FLAGS.what, FLAGS.output, settings, flags_set=options, **read_values(OF_PAGE))


if __name__ == "__main__":
    start("probe", define, main, {"what": "The study", "train": "Its texts", "tasks": "What to look at, and how"})
