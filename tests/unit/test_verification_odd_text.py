"""Whatever the text, checking it neither raises nor takes long."""

from hypothesis import given, settings
from hypothesis import strategies as st

from ewe.retrieval.bm25 import BM25Retriever
from ewe.types import Passage, VerificationRequest
from ewe.verification.feedback import PassageFeedback
from ewe.verification.value_comparison.verifier import ValueVerifier

PIECES = st.lists(
    st.sampled_from(
        ["She", "was", "born", "in", "1901", "Paris", ",", "and", "who", "the", "prize", "of", "University", "(", ")",
         "–", "3 May", "by", "not", "“", "”", '"', "*", "_", "'s", "its", "Ada Lovelace", "won", "wrote", "?", ".", ";",
         "a", "as", "weaver", "🙂", "次", "№", "$", "%", "1,5", "ǅ", "ß", "İ", "\u0301", "\n", "has",
         "is", "²", "٣", "-"]
    ),
    max_size=25,
).map(" ".join)  # fmt: skip
TEXTS = st.one_of(PIECES, PIECES.map(lambda text: text.replace(" ", "")), st.text(max_size=60))


@settings(max_examples=300, deadline=None)
@given(TEXTS, TEXTS, TEXTS, TEXTS, st.booleans())
def test_odd_texts_never_raise(prompt, preceding, sentence, evidence, complete):
    passages = [Passage("a", evidence, title=prompt), Passage("b", sentence, title=preceding, veracity=0.4)]
    verifier = ValueVerifier(BM25Retriever(passages), veracity_weighting=complete, assume_complete=complete)
    [result] = verifier.verify([VerificationRequest(prompt, preceding, sentence)])
    for claim in result.claims:
        assert 0 <= claim.start <= claim.end <= len(sentence)
        assert 0 <= claim.score <= 1
        assert claim.text.strip()
    for piece in result.evidence:
        assert 0 <= piece.score <= 1
    PassageFeedback(("refuting", "supporting", "instruction")).build(result)


def test_long_texts_are_read_in_linear_work():
    texts = [
        "word " * 2000,
        "Paris " * 2000,
        "a" * 10_000,
        "1" * 10_000,
        "in 1901, " * 1200,
        "(" * 10_000,
        "🙂" * 10_000,
        "“A " * 3000,
    ]
    verifier = ValueVerifier(BM25Retriever([Passage(str(i), text) for i, text in enumerate(texts)]))
    assert len(verifier.verify([VerificationRequest(text, text, text) for text in texts])) == len(texts)
