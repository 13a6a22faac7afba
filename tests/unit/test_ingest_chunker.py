"""Cutting documents: the guarantees of the chunker for any text."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ewe.errors import DatastoreError
from ewe.retrieval.ingest.chunker import Chunker, ChunkRules, counter
from ewe.retrieval.ingest.documents import Document, Mark

COUNT = counter(None)
WORDS = ["Rain", "falls", "on", "1,904", "extraordinarily", "roofs", "日本語の文", "x" * 90]
SENTENCES = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=14).map(lambda words: " ".join(words).capitalize() + "."),
    max_size=12,
)
TEXTS = st.one_of(SENTENCES.map(" ".join), SENTENCES.map("\n\n".join), st.text(max_size=200))
RULES = st.builds(lambda tokens, share: ChunkRules(tokens, int(tokens * share)), st.integers(8, 40), st.floats(0, 0.5))


@given(text=TEXTS, rules=RULES)
@settings(max_examples=80, deadline=None)
def test_chunks_keep_the_budget_lose_nothing_and_move_on(text: str, rules: ChunkRules) -> None:
    chunks = Chunker(rules).chunks(Document("d", text))
    covered = [False] * len(text)
    for chunk in chunks:
        piece = text[chunk.start : chunk.end]
        assert piece
        assert piece == piece.strip()
        assert COUNT(piece) <= rules.tokens
        covered[chunk.start : chunk.end] = [True] * len(piece)
    assert all(is_covered or character.isspace() for is_covered, character in zip(covered, text, strict=True))
    for one, following in pairwise(chunks):
        assert one.start < following.start
        assert one.end < following.end
        assert COUNT(text[following.start : one.end]) <= rules.overlap or following.start >= one.end


@given(text=SENTENCES.map(" ".join), cut=st.integers(0, 300))
@settings(max_examples=40, deadline=None)
def test_no_chunk_crosses_a_section(text: str, cut: int) -> None:
    cut = min(cut, len(text))
    marks = (Mark(0, "one"), Mark(cut, "two"))
    for chunk in Chunker(ChunkRules(20, 5)).chunks(Document("d", text, marks=marks)):
        assert chunk.end <= cut or chunk.start >= cut
        assert chunk.mark.title == ("two" if chunk.start >= cut else "one")


def test_chunks_end_with_sentences_and_overlap_by_whole_ones() -> None:
    text = "One is here. Two is there. Three is far. Four is near. Five is gone."
    chunks = Chunker(ChunkRules(12, 4)).chunks(Document("d", text))
    assert [text[chunk.start : chunk.end] for chunk in chunks] == [
        "One is here. Two is there. Three is far.",
        "Three is far. Four is near. Five is gone.",
    ]


def test_a_document_that_fits_stays_whole() -> None:
    text = "  One sentence. Another one.\n"
    [chunk] = Chunker(ChunkRules(50, 10)).chunks(Document("d", text))
    assert text[chunk.start : chunk.end] == text.strip()
    assert Chunker(ChunkRules()).chunks(Document("d", " \n ")) == []


def test_marks_that_change_only_the_address_do_not_cut() -> None:
    marks = (Mark(0, url="#page=1"), Mark(14, url="#page=2"))
    [chunk] = Chunker(ChunkRules(50, 10)).chunks(Document("d", "A sentence on two pages.", marks=marks))
    assert chunk.mark.url == "#page=1"


def test_a_tokenizer_counts_instead_of_the_estimate(tmp_path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.enable_truncation(2)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    text = "extraordinarily " * 24
    rules = ChunkRules(8, 0, str(tmp_path))
    assert len(Chunker(rules).chunks(Document("d", text))) == 3
    assert len(Chunker(ChunkRules(8, 0)).chunks(Document("d", text))) == 12


def test_a_text_without_spaces_takes_time_in_proportion(monkeypatch: pytest.MonkeyPatch) -> None:
    chunker, counted = Chunker(ChunkRules(tokens=20, overlap=0)), []
    count = chunker._count
    monkeypatch.setattr(chunker, "_count", lambda text: counted.append(len(text)) or count(text))
    text = "x" * 20_000
    spans = chunker.chunks(Document("a", text))
    assert "".join(text[chunk.start : chunk.end] for chunk in spans) == text
    assert sum(counted) < 20 * len(text)


@pytest.mark.parametrize(("tokens", "overlap"), [(7, 0), (20, 11), (20, -1)])
def test_rules_that_cannot_work_are_refused(tokens: int, overlap: int) -> None:
    with pytest.raises(DatastoreError, match=str(overlap) if tokens > 7 else "at least 8"):
        ChunkRules(tokens, overlap)


def test_a_tokenizer_that_is_missing_is_named(tmp_path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(DatastoreError, match="cannot be loaded"):
        counter(str(tmp_path))
