r"""Generate texts: continuations of prompts, or translations.

  python -m experiments.generate --model=openai-community/gpt2 --prompt='The river was' --max_new=40 --temperature=0.8
  python -m experiments.generate --model=openai-community/gpt2 --input=prompts.txt --beams=4 --output=texts.jsonl
  echo 'The old ship' | python -m experiments.generate --model=openai-community/gpt2 --top_p=0.9 --n_best=3

With one --prompt the text is shown while it is written; Ctrl-C stops it. A file and standard input have one prompt per
line, and each gives a JSON line: the prompt and its texts, best first, each with its score and whether it has ended. A
model without a tokenizer reads and writes ids. By default each piece is the likeliest one; --beams searches for the
likeliest text; --temperature, --top_k and --top_p draw. A model with rules of its own, such as those in a BART's
generation_config.json, writes by them where no flag says otherwise.
"""

from absl import flags

from bert_elmo_jax.inference.generate_file import generate_file

from .command_line.start import read_values, start

FLAGS = flags.FLAGS
OPTIONS = ("max_new", "beams", "length_penalty", "n_best", "temperature", "top_k", "top_p", "repetition_penalty")
HEADINGS = {"model": "Input and output", "max_new": "How texts are written", "batch_size": "How they are computed"}


def define() -> None:
    """Define the flags."""
    flags.DEFINE_string("model", None, "A folder, a hub name or a run directory.", required=True)
    flags.DEFINE_string("prompt", None, "One prompt.")
    flags.DEFINE_string("input", "-", "A file with one prompt per line, or - for stdin.")
    flags.DEFINE_string("output", "-", "The file of JSON lines to write; - for standard output.")
    flags.DEFINE_bool("overwrite", False, "Replace --output if it exists.")
    flags.DEFINE_integer("max_new", None, "The largest number of new pieces; else the model's, or 64.", lower_bound=1)
    flags.DEFINE_multi_string("stop", [], "A text that ends a text, and is left out; may be repeated.")
    flags.DEFINE_integer("beams", None, "Beams of a search; else the model's, or 1.", lower_bound=1)
    flags.DEFINE_float("length_penalty", None, "Beams: the sum of log-probabilities is divided by length^this; else 1.")
    flags.DEFINE_integer("n_best", 1, "Texts for each prompt.", lower_bound=1)
    flags.DEFINE_float("temperature", None, "Draw: below 1 likely pieces become likelier.")
    flags.DEFINE_integer("top_k", None, "Draw from this many pieces.")
    flags.DEFINE_float("top_p", None, "Draw from the likeliest pieces that have this probability together.")
    flags.DEFINE_float("repetition_penalty", 1.0, "Above 1, pieces that were used become less likely.")
    flags.DEFINE_integer("seed", 0, "Of the draws; the same seed and prompt give the same text.", lower_bound=0)
    flags.DEFINE_integer("batch_size", 32, "Prompts per batch.", lower_bound=1)
    flags.DEFINE_enum("dtype", "float32", ["float32", "bfloat16", "int8"], "The type that the model computes in.")
    flags.DEFINE_bool("untrusted", False, "First read the model in a process that may open no other file; see load.")


def main() -> None:
    """Write the texts."""
    values = read_values((*OPTIONS, "stop", "seed", "batch_size", "dtype", "overwrite", "untrusted"))
    generate_file(FLAGS.model, prompt=FLAGS.prompt, source=FLAGS.input, target=FLAGS.output, **values)


if __name__ == "__main__":
    start("generate", define, main, HEADINGS, stopped="stopped; from a file to a file, the same command resumes")
