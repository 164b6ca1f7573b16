"""Small English and Korean corpora, tokenizers trained on them, and released vocabularies if available."""

import tarfile
from pathlib import Path

import pytest

from bert_elmo_jax.text import (
    SentencePiece,
    TokenizerFile,
    WordPiece,
    train_byte_bpe,
    train_sentencepiece,
    train_wordpiece,
)

ENGLISH = """It was the best of times, it was the worst of times; it was the age of wisdom.
The ship sailed on the river, and the keys to the old cabinet were in the captain's hand.
"Why," said the naïve captain, "the café by the river is open — and the pears are $3.50!"
She sells sea shells by the sea shore; the shells she sells are surely sea shells.
Playing, played, player: the bank of the river, and the bank in the town."""
KOREAN = """배를 타고 강을 건너서 은행에 갔다. 배가 고파서 배를 먹었는데 정말 맛있었다 ㅋㅋㅋ
눈이 많이 와서 눈을 뜰 수가 없었다... 말이 많은 말은 믿을 수 없다 ㅠㅠ
이 영화 정말 재밌어요! 배우들의 연기가 아주 좋았습니다. 다시 보고 싶은 영화였다.
저녁에 친구와 함께 밥을 먹고 강가를 걸었다. 밤하늘의 별이 참 예뻤다, 그렇지?"""
TEXTS = [*ENGLISH.split("\n"), *KOREAN.split("\n")] * 3


@pytest.fixture(scope="session")
def texts() -> list[str]:
    return TEXTS


@pytest.fixture(scope="session")
def wordpiece() -> WordPiece:
    return train_wordpiece(TEXTS, 600)


@pytest.fixture(scope="session")
def sentencepiece() -> SentencePiece:
    return train_sentencepiece(TEXTS, 400)


@pytest.fixture(scope="session")
def byte_bpe() -> TokenizerFile:
    return train_byte_bpe(TEXTS, 600)


@pytest.fixture(scope="session", params=["wordpiece", "unigram", "bpe", "byte_bpe"])
def tokenizer(request, wordpiece, sentencepiece, byte_bpe) -> WordPiece | SentencePiece | TokenizerFile:
    if request.param == "byte_bpe":
        return byte_bpe
    if request.param == "bpe":
        return train_sentencepiece(TEXTS, 400, model="bpe")
    return wordpiece if request.param == "wordpiece" else sentencepiece


@pytest.fixture(scope="session")
def released(shared: Path, tmp_path_factory) -> Path:
    """Return a folder of released vocabulary files without configurations."""
    archive = shared / "data" / "vocab.tar.xz"
    if not archive.is_file():
        pytest.skip("needs the released vocabularies, shared/data/vocab.tar.xz")
    folder = tmp_path_factory.mktemp("released")
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
    return folder / "vocab"
