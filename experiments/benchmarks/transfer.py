r"""Compare ways of transfer: how far the layers of an encoder drift in the first steps, and how long gradients are.

The encoders are pretrained on the same toy world (three minutes of processor time), then each is fine-tuned in every
way with three seeds:
  python -m experiments.pretrain --config=bert:quickstart --config.objective=documents \
      --config.toyworld.language=en --workdir=runs/transfer/bert
  python -m experiments.pretrain --config=elmo:quickstart --config.toyworld.language=en \
      --config.steps=600 --config.eval_every=300 --config.checkpoint_every=300 --workdir=runs/transfer/elmo
  python -m experiments.pretrain --config=awd_lstm:toy --config.toyworld.language=en \
      --config.toyworld.words=3 --config.toyworld.documents=6000 --config.steps=600 --config.eval_every=300 \
      --config.checkpoint_every=300 --workdir=runs/transfer/awd_lstm
  python -m experiments.benchmarks.transfer --output=transfer \
      --models=runs/transfer/bert,runs/transfer/elmo,runs/transfer/awd_lstm
"""

from absl import flags

from bert_elmo_jax.analysis.studies import shorten_names
from bert_elmo_jax.inference.toy_worlds import find_common_world

from ..command_line.start import start
from ..configs import finetune, tagger
from ..studies.transfer.compare_ways import WAYS, study_transfer, write_study

FLAGS = flags.FLAGS


def define() -> None:
    """Define the flags."""
    flags.DEFINE_list("models", None, "Run directories of encoders of one toy world.", required=True)
    flags.DEFINE_string("output", None, "The folder for the figure.", required=True)
    flags.DEFINE_list("ways", list(WAYS), "The ways of transfer.")
    flags.DEFINE_list("seeds", ["0", "1", "2"], "Of the heads and the order of the data.")
    flags.DEFINE_enum("optimizer", "adamw", ["adamw", "adagrad", "bert_adam"], "The optimizer.")
    flags.DEFINE_float("rate", 2e-3, "The learning rate.", lower_bound=0.0)
    flags.DEFINE_enum("language", "en", ["en", "ko"], "Of the task.")
    flags.DEFINE_integer("steps", None, "Of each training; without it twenty epochs of eight.", lower_bound=1)


def main() -> None:
    """Print the tables and write the figure."""
    head, network = finetune.entities(), tagger.get_config()
    head.update(context=False, dropout=0.0)
    network.update(unknown="unk", word_size=32, lstm_layers=1, lstm_size=32, dropout=0.0, mix_dropout=0.0)
    network.output = "softmax"
    findings = study_transfer(
        shorten_names(FLAGS.models),
        find_common_world(FLAGS.models, FLAGS.language), head, network, ways=FLAGS.ways,
        seeds=[int(seed) for seed in FLAGS.seeds], steps=FLAGS.steps, rate=FLAGS.rate, optimizer=FLAGS.optimizer,
    )  # fmt: skip
    print(write_study(findings, FLAGS.output))


if __name__ == "__main__":
    start("benchmarks.transfer", define, main, {"models": "The encoders"}, stopped="stopped")
