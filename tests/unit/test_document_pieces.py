"""Documents of a request in pieces: nothing is lost or changed, and evidence names the whole document."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("fastapi", reason="the server's packages are not installed")

from ewe import Config
from ewe.components import Components
from ewe.server.document_pieces import MOST_CHARACTERS, pieces_of
from ewe.server.text_verifiers import OwnTextVerifiers
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
