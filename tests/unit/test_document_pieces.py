"""Documents of a request in pieces: nothing is lost or changed, and evidence names the whole document."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("fastapi", reason="the server's packages are not installed")

from ewe import Config
from ewe.components import Components
from ewe.retrieval import bm25
from ewe.server.engine_client.document_pieces import MOST_CHARACTERS, pieces_of
from ewe.server.engine_client.text_verifiers import OwnTextVerifiers
from ewe.server.own_process.child_parts import ChildVerifiers
from ewe.server.own_process.remote_parts import RemoteVerifiers
from ewe.text.words import words
from ewe.types import Passage, Verdict, VerificationRequest

FILLER = "The bridge over the river is made of stone, and many boats pass under it every day. "
FACT = "Nurim Nurner studied at Kement College."


@given(st.text(st.sampled_from("ab .\n。é"), max_size=50), st.integers(0, 400))
def test_pieces_are_bounded_and_make_up_the_document(text: str, times: int) -> None:
    document = Passage("a", text * times, "Title", "source", veracity=0.5)
    pieces = list(pieces_of(document))
    assert "".join(piece.text for piece in pieces) == document.text
    assert all(len(piece.text) <= MOST_CHARACTERS for piece in pieces)
    assert {(one.id, one.title, one.source, one.veracity) for one in pieces} == {("a", "Title", "source", 0.5)}


def test_pieces_end_where_sentences_do() -> None:
    first, *_ = pieces_of(Passage("a", FILLER * 100))
    assert first.text.endswith("every day. ")
    lines, *_ = pieces_of(Passage("a", (FILLER * 20 + "\n") * 20))
    assert lines.text.endswith("\n")


@pytest.mark.parametrize("place", [0, 300, 600])
def test_a_fact_anywhere_in_a_long_document_is_found_and_the_whole_document_named(place: int) -> None:
    document = Passage("a", FILLER * place + FACT + " " + FILLER * (600 - place))
    verifier = OwnTextVerifiers(Config(), Components(None, None)).against([document, Passage("b", "It rains.")])
    [result] = verifier.verify([VerificationRequest("", "", FACT)])
    verifier.close()
    assert result.verdict is Verdict.SUPPORTED
    assert [(one.passage, one.excerpt) for one in result.evidence] == [(document, FACT)]
    assert result.claims[0].evidence_ids == ("a",)


def remote(verifiers: OwnTextVerifiers) -> RemoteVerifiers:
    """The same verifiers as if they were in the engine's own process."""
    child = ChildVerifiers(verifiers)
    return RemoteVerifiers(
        lambda name, **told: child.calls[name](**told), lambda told: child.close(told["number"]), True
    )


@pytest.mark.parametrize("place", [lambda verifiers: verifiers, remote])
def test_long_documents_are_indexed_in_parts(monkeypatch: pytest.MonkeyPatch, place: Any) -> None:
    """Between two parts the thread can rest: so much is looked through in one of them, and no more."""
    read: list[int] = []
    monkeypatch.setattr(bm25, "words", lambda text: read.append(len(text)) or words(text))
    parts: list[int] = []

    def in_parts(items: Iterable[Any]) -> Iterator[Any]:
        remaining = iter(items)
        while True:
            before = sum(read)
            try:
                item = next(remaining)
            except StopIteration:
                return
            finally:
                parts.append(sum(read) - before)
            yield item
            parts[-1] = sum(read) - before

    document = Passage("a", FILLER * 600)
    verifier = place(OwnTextVerifiers(Config(), Components(None, None))).against([document], in_parts)
    verifier.close()
    assert len(list(pieces_of(document))) <= len(parts) <= len(list(pieces_of(document))) + 1
    assert sum(read) == len(document.text)
    assert max(parts) <= 4 * MOST_CHARACTERS


def test_documents_that_are_closed_while_they_are_indexed_leave_no_thread() -> None:
    def fail(items: Iterable[Any]) -> Iterator[Any]:
        yield next(iter(items))
        raise RuntimeError("it fails")

    far = remote(OwnTextVerifiers(Config(), Components(None, None)))
    with pytest.raises(RuntimeError, match="it fails"):
        far.against([Passage("a", FILLER * 600)], fail)
    for thread in threading.enumerate():
        if thread.name == "ewe-documents":
            thread.join(10)
            assert not thread.is_alive()


@given(st.lists(st.text("ab c.", max_size=12), min_size=1, max_size=12), st.integers(1, 5), st.text("ab c", max_size=5))
def test_an_index_made_in_parts_finds_what_one_made_at_once_does(texts: list[str], batch: int, query: str) -> None:
    passages = [Passage(str(number), text) for number, text in enumerate(texts)]
    whole, parts = bm25.BM25Retriever(passages), bm25.BM25Retriever(passages, batch=batch)
    assert parts.retrieve([query, *texts], 5) == whole.retrieve([query, *texts], 5)
