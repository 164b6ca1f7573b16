"""Treebanks in CoNLL-U: valid and broken files."""

import re
import subprocess
from collections import Counter
from itertools import islice

import pytest

from bert_elmo_jax.data.tasks.annotated import ParsedSentence, labels_of, read_treebank
from bert_elmo_jax.data.tasks.files import BadRow

SOUND = """# newdoc
# text = Ahn's 배를
1-2	Ahn's	_	_	_	_	_	_	_	_
1	Ahn	Ahn	PROPN	NNP	Number=Sing	3	nmod:poss	_	SpaceAfter=No
2	's	's	PART	POS	_	1	case	_	_
2.1	gone	go	VERB	VBN	Tense=Past	_	_	0:root	_
3	배를	배	NOUN	NNG	Case=Acc|Number[psor]=Sing	0	root	_	_

1	_	_	_	_	_	_	_	_	_

"""


def write(tmp_path, text):
    file = tmp_path / "a.conllu"
    file.write_text(text, encoding="utf-8")
    return file


def test_words_features_and_heads(tmp_path):
    first, second = read_treebank(write(tmp_path, SOUND))
    assert first.words == ("Ahn", "'s", "배를")
    assert first.tags == ("PROPN", "PART", "NOUN")
    assert first.heads == (3, 1, 0)
    assert first.relations == ("nmod:poss", "case", "root")
    assert first.features[2] == {"Case": "Acc", "Number[psor]": "Sing"}
    assert (first.line, first.lines) == (4, (4, 5, 7))
    assert labels_of(first, "Number") == ("Sing", None, None)
    assert labels_of(first, "head_distance") == (">2", "<1", "root")
    # Unspecified values have no labels.
    assert (second.words, second.tags, second.heads, second.relations) == (("_",), (None,), (None,), (None,))
    assert labels_of(second, "pos") == labels_of(second, "head_distance") == (None,)


BROKEN = [  # a piece of the file, its replacement, and the message
    ("1	Ahn	Ahn", "1	Ahn", ":4: 9 columns between tabs, expected the 10 of CoNLL-U; "),
    ("2	's	's", "3	's	's", ":5: word '3', expected word 2 of the sentence; number the words"),
    ("2	's	's", "2	 	's", ":5: no word in the second column; "),
    ("_	1	case", "_	4	case", ":5: head '4' of word 2, expected the number of another word, 0 to 3; "),
    ("_	1	case", "_	2	case", ":5: head '2' of word 2, expected the number of another word"),
    ("_	1	case", "_	-1	case", ":5: head '-1' of word 2"),
    ("_	1	case", "_	\u00b2	case", ":5: head '\u00b2' of word 2"),
    ("Number=Sing	3", "Sing	3", ":4: 'Sing', expected features such as Number=Sing|Person=3; "),
    ("Number=Sing	3", "Number=|A=B	3", ":4: 'Number=|A=B', expected features"),
    (SOUND, "# nothing\n\n", "only comments"),
]


@pytest.mark.parametrize(("old", "new", "message"), BROKEN, ids=range(len(BROKEN)))
def test_broken_lines_are_refused(tmp_path, old, new, message):
    assert old in SOUND
    with pytest.raises(BadRow, match=re.escape(message)):
        read_treebank(write(tmp_path, SOUND.replace(old, new, 1)))


def test_real_treebanks(shared, tmp_path):
    """The Korean treebank has its documented size; of the English one, only the beginning of a file is read."""
    names = ("ud_english_ewt", "ud_korean_gsd")
    subprocess.run([shared / "data" / "unpack", "-o", tmp_path, *names], check=True, capture_output=True)
    with open(tmp_path / names[0] / "en_ewt-ud-test.conllu", encoding="utf-8") as file:
        english = read_treebank(write(tmp_path, "".join(islice(file, 3000)).rpartition("\n\n")[0]))
    korean = read_treebank(tmp_path / names[1] / "ko_gsd-ud-dev.conllu")
    assert (len(korean), sum(len(s.words) for s in korean)) == (950, 11958)
    for part in (english, korean):
        assert Counter(label for s in part for label in labels_of(s, "head_distance"))["root"] == len(part)
        assert all(None not in sentence.tags for sentence in part)
    assert {label for s in english for label in labels_of(s, "Number")} > {None, "Sing", "Plur"}


def test_far_heads_share_labels():
    sentence = ParsedSentence(("w",) * 12, (None,) * 12, ({},) * 12, (*[12] * 11, 0), (None,) * 12, "a", (1,) * 12)
    labels = labels_of(sentence, "head_distance")
    assert labels == (">10+", ">10+", *[">6-9"] * 4, *[">4-5"] * 2, ">3", ">2", ">1", "root")
