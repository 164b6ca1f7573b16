"""Multiple choice: SWAG's csv."""

from pathlib import Path

from bert_elmo_jax.data.tasks.examples import ChoiceExample
from bert_elmo_jax.data.tasks.files import BadRow
from bert_elmo_jax.data.tasks.tables import read_records

_ENDINGS = ("ending0", "ending1", "ending2", "ending3")


def read_swag(path: str | Path, *, labelled: bool = True, encoding: str = "utf-8") -> list[ChoiceExample]:
    r"""Read SWAG (`train.csv`, `val.csv`, `test.csv`): situations with four possible endings each.

    As for BERT, a choice is the beginning of the second sentence (`sent2`) followed by one of the endings.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "train.csv"
    >>> names = "sent1,sent2,ending0,ending1,ending2,ending3,label"
    >>> _ = file.write_text(f"{names}\n문이 열린다.,그녀는,들어온다.,먹는다.,난다.,운다.,0\n", encoding="utf-8")
    >>> read_swag(file)[0].choices[:2]
    ('그녀는 들어온다.', '그녀는 먹는다.')
    """
    wanted = ("sent1", "sent2", *_ENDINGS, *(("label",) if labelled else ()))
    examples = []
    for record in read_records(path, wanted, layout="csv", encoding=encoding):
        cells = record.cells
        for name in ("sent1", *_ENDINGS):
            if not cells[name].strip():
                raise BadRow(path, record.line, f"the text in {name} is empty", "fill it in, or remove the row")
        if labelled and cells["label"].strip() not in ("0", "1", "2", "3"):
            what = f"the label {cells['label']!r}, expected 0, 1, 2 or 3"
            raise BadRow(path, record.line, what, "give the number of the right ending, or read with labelled=False")
        label = int(cells["label"]) if labelled else None
        choices = tuple(f"{cells['sent2']} {cells[ending]}".strip() for ending in _ENDINGS)
        examples.append(ChoiceExample(cells["sent1"], choices, label, None, str(path), record.line))
    return examples
