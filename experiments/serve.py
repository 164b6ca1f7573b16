r"""Serve a model over HTTP: predictions of a fine-tuned or released model, vectors of texts, a page to try it.

  python -m experiments.serve --model=runs/reviews
  curl localhost:8000/predict -d '{"inputs": ["so good", "too long"]}'

The model is anything that `load` understands. What it answers depends on its kind: POST /predict, POST /rank for
rerankers, POST /v1/embeddings as OpenAI's interface, /v2 of KServe's. GET / is a page for the browser, GET /metrics has
figures for Prometheus. Requests that arrive together are computed together. At SIGTERM or
Ctrl-C it answers the requests in progress, refuses others, and ends.

It needs the extra: pip install 'bert_elmo_jax[serve]'.
"""

from absl import flags

from bert_elmo_jax.serve.limits import Limits
from bert_elmo_jax.serve.run_server import serve

from .command_line.start import read_values, start

FLAGS = flags.FLAGS
LIMITS = Limits()


def define() -> None:
    """Define the flags."""
    flags.DEFINE_string("model", None, "A run, or a released model: a folder or a hub name.")
    flags.DEFINE_string("name", None, "Its name for clients; by default the folder's.")
    flags.DEFINE_enum("dtype", "float32", ["float32", "bfloat16", "int8"], "The type that the model computes in.")
    flags.DEFINE_bool("untrusted", False, "First read the model in a process that may open no other file; see load.")
    flags.DEFINE_integer("warm_length", 64, "Pieces of the longest input that is compiled for before the start.", 1)
    flags.DEFINE_integer("warm_rows", 64, "Inputs that arrive together and are compiled for; 0 for none.", 0)
    flags.DEFINE_integer("batch_size", 64, "Most inputs of several requests that are computed together.", 1)
    flags.DEFINE_string("host", "127.0.0.1", "The address to listen at; 0.0.0.0 for all, behind a proxy.")
    flags.DEFINE_integer("port", 8000, "The port; 0 for any that is free.", 0, 65535)
    flags.DEFINE_integer("most_bytes", LIMITS.body, "Of the body of a request.", 1)
    flags.DEFINE_integer("most_inputs", LIMITS.inputs, "Of a request.", 1)
    flags.DEFINE_integer("most_characters", LIMITS.characters, "Of an input.", 1)
    flags.DEFINE_integer("most_pieces", LIMITS.pieces, "Of an input; memory grows with their square.", 1)
    flags.DEFINE_integer("most_waiting", LIMITS.queue, "Inputs that may wait for the model.", 1)
    flags.DEFINE_integer("seconds", int(LIMITS.seconds), "Until a request must be answered.", 1)


def main(words: list[str]) -> None:
    """Serve until a signal."""
    if len(words) + (FLAGS.model is not None) != 1:
        raise ValueError("one model is needed: --model=FOLDER, or the folder alone")
    limits = Limits(
        FLAGS.most_bytes, FLAGS.most_inputs, FLAGS.most_characters, FLAGS.most_pieces, FLAGS.most_waiting,
        float(FLAGS.seconds),
    )  # fmt: skip
    options = read_values(("name", "dtype", "untrusted", "warm_length", "warm_rows", "batch_size", "host", "port"))
    serve(FLAGS.model or words[0], limits=limits, **options)


if __name__ == "__main__":
    headings = {"model": "The model", "host": "The address", "most_bytes": "Limits"}
    start("serve", define, main, headings, words=True, stopped="stopped")
