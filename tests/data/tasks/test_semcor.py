"""SemCor: valid and broken files."""

import re
import subprocess
from itertools import islice

import pytest

from bert_elmo_jax.data.tasks.annotated import read_semcor
from bert_elmo_jax.data.tasks.files import BadRow

SOUND = """# newdoc id = brown1/br-a01
# newpar
# sent_id = 1
The	_	DT	_	_	_	_
Fulton_County	group	NNP	1	1:03:00::	group	_
took_place	take_place	VB	1	2:30:00::	_	_

# newdoc id = brown1/br-a02
years	year	NN	2;1	1:28:02::;1:28:01::	_	m_en
fresh	fresh	JJ	0	5:00:00:new:00	_	_
_	_	PUNC	_	_	_	_
"""


def write(tmp_path, text):
    file = tmp_path / "semcor.tsv"
    file.write_text(text, encoding="utf-8")
    return file


def test_senses_names_and_documents(tmp_path):
    first, second = read_semcor(write(tmp_path, SOUND))
    assert first.words == ("The", "Fulton", "County", "took", "place")
    [sense] = first.senses  # a name has none
    assert (sense.first, sense.end, sense.item, sense.numbers) == (3, 5, "take_place%2", (1,))
    assert (first.document, second.document, second.line) == ("brown1/br-a01", "brown1/br-a02", 9)
    years, fresh = second.senses
    assert (years.keys, years.numbers) == (("year%1:28:02::", "year%1:28:01::"), (2, 1))
    assert fresh.item == "fresh%3"  # a satellite adjective is an adjective
    assert second.words == ("years", "fresh", "_")


BROKEN = [  # a piece of the file, its replacement, and the message
    (
        "The	_	DT	_	_	_	_",
        "The	_	DT",
        ":4: 3 columns between tabs, expected 6 or more (word, lemma, ",
    ),
    ("fresh	fresh	JJ", "fresh	JJ", ":10: 6 columns between tabs, expected 7; "),
    ("2:30:00::", "2:30", ":6: '2:30', expected a sense key such as 1:04:01::; "),
    ("take_place	VB", "_	VB", ":6: the sense '2:30:00::' without a lemma; "),
    ("2;1	", "2	", ":9: '2' for '1:28:02::;1:28:01::', expected one whole number per sense key"),
    ("2;1	", "2;x	", ":9: '2;x' for "),
    ("The	_", " 	_", ":4: no word in the first column; "),
    (SOUND, "The\t_\tDT\t_\t_\t_\t_\n", "no word with a sense"),
]


@pytest.mark.parametrize(("old", "new", "message"), BROKEN, ids=range(len(BROKEN)))
def test_broken_lines_are_refused(tmp_path, old, new, message):
    assert old in SOUND
    with pytest.raises(BadRow, match=re.escape(message)):
        read_semcor(write(tmp_path, SOUND.replace(old, new, 1)))


def test_the_real_file(shared, tmp_path):
    subprocess.run([shared / "data" / "unpack", "-o", tmp_path, "semcor3"], check=True, capture_output=True)
    with open(tmp_path / "semcor3" / "semcor.tsv", encoding="utf-8") as file:
        lines = list(islice(file, 10_000))
    sentences = read_semcor(write(tmp_path, "".join(lines)))
    rows = [line.split("\t") for line in lines if "\t" in line]
    assert len({s.document for s in sentences}) == sum(line.startswith("# newdoc") for line in lines)
    assert sum(len(s.senses) for s in sentences) == sum(row[4] != "_" and row[5] == "_" for row in rows) > 3000
