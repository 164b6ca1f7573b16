"""What can be done with a pretrained model, as commands with the path of its run."""

import html
import shlex
from pathlib import Path

LOAD = """from bert_elmo_jax import load
encoding = load({run!r}).encode(["강가의 은행", "the bank of the river"])"""
NEIGHBOURS = """python -m experiments.probe --what=neighbours --model={run} --train=texts.txt --words=bank,은행 \\
    --output=analysis"""
OWN = "--train=my.csv --dev=0.1 --text=review --label=stars"
FINETUNE = {
    "pieces": f"""python -m experiments.finetune --task=classification {OWN} \\
    --init={{run}} --workdir={{run}}_reviews""",
    "words": f"""python -m experiments.finetune --config=experiments/configs/bcn.py --config.encoder={{run}} \\
    --task=classification {OWN} --workdir={{run}}_reviews""",
}


def what_next(run: Path, inputs: str) -> tuple[str, str]:
    """A section of a report: its title, and HTML.

    >>> "--init=runs/bert " in what_next(Path("runs/bert"), "pieces")[1]
    True
    >>> "--config.encoder=runs/elmo " in what_next(Path("runs/elmo"), "words")[1]
    True
    """
    quoted = shlex.quote(str(run))
    steps = [
        ("Its vectors, in Python", LOAD.format(run=str(run))),
        ("Where else a word of your text is used as it is here", NEIGHBOURS.format(run=quoted)),
        ("A task of your own: a table with a column of texts and one of labels", FINETUNE[inputs].format(run=quoted)),
    ]
    return "What next", "".join(f"<p>{title}:</p><pre>{html.escape(code)}</pre>" for title, code in steps)
