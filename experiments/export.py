r"""Export a model to ONNX or StableHLO: a folder with the model, its tokenizer, labels and a runner.

  python -m experiments.export --model=runs/reviews --to=onnx --int8 --output=reviews_onnx
  python -m experiments.export --model=runs/reviews --to=stablehlo --output=reviews_stablehlo
  python -m experiments.export --model=runs/reviews --int8 --texts=new.txt --output=reviews_onnx  # what int8 changes
  echo 'so good' | python reviews_onnx/run.py
  python -m experiments.export --model=runs/gpt --generate --output=gpt_onnx

The model is a run, or a released one: an encoder or a sentence model of pieces, a classifier, a regression, a reranker,
a tagger (of pieces, or a network with its CRF and encoder), a reader, an ELMo that reads characters, or with --generate
one step of a model that writes. The ONNX folder has onnx/model.onnx and, with --int8, onnx/model_quantized.onnx, as
optimum, sentence-transformers (backend="onnx") and transformers.js expect them. run.py needs numpy, tokenizers, and
onnxruntime or, for StableHLO, jax; it does not need this package. The extra `export` has the libraries that this
program needs.
"""

from absl import flags

from bert_elmo_jax.exports.export_model import NEEDED, export_model
from bert_elmo_jax.exports.plain_forward import plain_forward
from bert_elmo_jax.exports.quantised_changes import compare_quantised, read_lines
from bert_elmo_jax.inference.load_model import load

from .command_line.start import start

FLAGS = flags.FLAGS


def define() -> None:
    """Define the flags."""
    flags.DEFINE_string("model", None, "A run, or a released model: a folder or a hub name.", required=True)
    flags.DEFINE_string("output", None, "The folder to write; it must be new or empty.", required=True)
    flags.DEFINE_enum("to", "onnx", [*NEEDED], "The form of the model.")
    flags.DEFINE_bool("int8", False, "For ONNX: also write a copy whose layers multiply in int8.")
    flags.DEFINE_string("texts", "", "With --int8: a file of texts (a tab before a pair); lists changed rows.")
    flags.DEFINE_bool("generate", False, "The step of a model that writes, instead of its vectors.")
    flags.DEFINE_integer("opset", 17, "The version of ONNX's operators.")


def main() -> None:
    """Export, and print the files with their sizes."""
    if FLAGS.texts and not FLAGS.int8:
        raise ValueError("--texts lists the rows that int8 changes: give --int8, too, or leave it out")
    if FLAGS["opset"].present and FLAGS.to != "onnx":
        raise ValueError(f"--opset={FLAGS.opset} is for ONNX, not for --to={FLAGS.to}: leave it out")
    model, texts = FLAGS.model, []
    if FLAGS.texts:  # checked before the export, which takes long
        model = load(FLAGS.model)
        texts = read_lines(FLAGS.texts, "write" if FLAGS.generate else plain_forward(model).kind)
    sizes = export_model(model, FLAGS.output, to=FLAGS.to, int8=FLAGS.int8, generate=FLAGS.generate, opset=FLAGS.opset)
    for name, size in sizes.items():
        print(f"{FLAGS.output}/{name}: {size / 1e6:,.1f} MB")
    if texts:
        print("\n".join(compare_quantised(FLAGS.output, texts)))


if __name__ == "__main__":
    headings = {"model": "From what to what", "to": "The form"}
    start("export", define, main, headings, stopped="stopped")
