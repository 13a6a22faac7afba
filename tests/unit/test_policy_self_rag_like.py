"""Reflection by yes/no probabilities: the decisions of Self-RAG's inference, for a beam of one."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from asking_parts import drive, passages

from ewe.config import PipelineConfig
from ewe.engine.side_texts import Ask, Decide, Reply
from ewe.policies.self_rag_like import RETRIEVE, TOKENS, self_rag_like, yes_probability
from ewe.types import Passage

QUESTION = "Who built it?"
KINDS = {
    "looked up": "retrieve", "helps to answer": "relevant", "support everything": "supported", "useful": "useful",
}  # fmt: skip
SETTINGS = PipelineConfig(candidates=2, retrieve_prob=0.2, step_tokens=30)


def said(probability: float) -> Reply:
    """A yes with this probability, spread over spellings, beside a word that is neither."""
    yes, no = math.log(probability / 2 + 1e-12), math.log(1 - probability + 1e-12)
    return Reply("Yes", top_logprobs=({" Yes": yes, "yes": yes, "NO": no, "perhaps": -0.1},))


class Model:
    """Fixed sentences, and yes with the probability that a table has for a kind of question and what it is about."""

    def __init__(self, texts: Callable[[Ask], Reply], yes: Callable[[str, Ask], float]) -> None:
        self._texts, self._yes = texts, yes

    def __call__(self, ask: Ask) -> Reply:
        if ask.text is None:
            return self._texts(ask)
        [kind] = [name for words, name in KINDS.items() if words in ask.text]
        assert (ask.max_tokens, ask.begin) == (1, "")
        return said(self._yes(kind, ask))


def reference(model: Model, max_sentences: int) -> tuple[str, list[str]]:
    """Algorithm 1 of the paper with B = 1: the text, and the id of the passage behind each sentence."""

    def probability(words: str, passage: Passage | None = None) -> float:
        ask = Ask(words, () if passage is None else (passage,), max_tokens=1)
        scores = model(ask).top_logprobs[0]
        yes = sum(math.exp(value) for token, value in scores.items() if token.strip().lower() == "yes")
        no = sum(math.exp(value) for token, value in scores.items() if token.strip().lower() == "no")
        return yes / (yes + no)

    text, last, used = "", "", []
    for _ in range(max_sentences):
        found: tuple[Passage, ...] = ()
        if probability(RETRIEVE.format(question=QUESTION, text=text)) > 0.2:
            found = passages(f"{QUESTION} {last}".strip(), 2)
        options = []
        for passage in found or (None,):
            reply = model(Ask(None, () if passage is None else (passage,), text))
            sentence = reply.text[: reply.text.index(".") + 1]
            score = reply.mean_prob
            if passage is not None:
                score += probability("helps to answer", passage)
                score += probability(f"{sentence.strip()} support everything", passage)
                score += 0.5 * probability(f"{text}{sentence} useful")
            options.append((score, passage.id if passage else "", sentence, reply))
        _, source, last, reply = max(options, key=lambda option: option[0])
        used.append(source)
        text += last
        if reply.finish_reason == "stop" and reply.text == last:
            break
    return text, used


def sentences_of(ask: Ask) -> Reply:
    """After n sentences the n-th word of the alphabet, by each passage another one; the third ends the text."""
    place, source = ask.begin.count("."), ask.passages[0].id[-1] if ask.passages else "x"
    word = f" {'ABC'[place]}{source}."
    ends = place == 2
    return Reply(word if ends else f"{word} And more of it", "stop" if ends else "length", 0.5 + 0.1 * (source == "1"))


def table(favoured: str = "", more: float = 0.3, retrieve: float = 0.9) -> Callable[[str, Ask], float]:
    """Yes to everything alike, but more to one kind of question where it is about the first passage's candidate."""

    def yes(kind: str, ask: Ask) -> float:
        if kind == "retrieve":
            return retrieve
        is_first = "0." in str(ask.text) or (kind == "relevant" and ask.passages[0].id[-1] == "0")
        return 0.4 + (more if kind == favoured and is_first else 0.0)

    return yes


# The second candidate's own probability is higher by 0.1.
TABLES: dict[str, Callable[[str, Ask], float]] = {
    "the likelier candidate": table(),
    "it never looks up": table(retrieve=0.19),
    "it looks up once": lambda kind, ask: 0.1 if "A1." in str(ask.text) else 0.9,
    "relevance decides": table("relevant"),
    "support decides": table("supported"),
    "use decides": table("useful"),
    "use counts half": table("useful", more=0.15),
}


@pytest.mark.parametrize("case", TABLES)
def test_it_decides_as_the_paper_does(case: str) -> None:
    model = Model(sentences_of, TABLES[case])
    log = drive(self_rag_like, SETTINGS, QUESTION, model)
    text, used = reference(model, 3)
    assert "".join(step.text for step in log.written) == text
    chosen = [decision.data["chosen"] for decision in log.decided if decision.about == "candidate"]
    assert chosen == [source for source in used if source]
    assert log.end == "stop"


def test_candidates_go_on_with_the_text_under_one_passage_each() -> None:
    log = drive(self_rag_like, SETTINGS, QUESTION, Model(sentences_of, table()))
    second = [asks for name, asks in log.asked if name == "sentence"][1]
    assert [(ask.text, ask.begin, ask.max_tokens, len(ask.passages)) for ask in second] == [(None, " A1.", 30, 1)] * 2
    assert {ask.sentence for ask in second} == {""}
    assert log.queries[:2] == [((QUESTION,), 2), ((f"{QUESTION}  A1.",), 2)]


def test_relevance_is_asked_once_for_a_passage_that_is_found_again() -> None:
    found = passages("x", 2)
    log = drive(self_rag_like, SETTINGS, QUESTION, Model(sentences_of, table("relevant")), search=lambda *_: found)
    asked = [ask.passages for ask in log.asks if "helps to answer" in (ask.text or "")]
    assert asked == [(found[0],), (found[1],)]
    # What the prompts of a question share: their passages, or the text so far.
    so_far = ["", " A0.", " A0. B0."]
    assert [ask.shared for ask in log.asks if "useful" in (ask.text or "")] == [text for text in so_far for _ in "ab"]
    assert {ask.shared for ask in log.asks if ask.passages} == {""}
    candidates = [decision.data for decision in log.decided if decision.about == "candidate"]
    assert [data["critique"][::3] for data in candidates] == [pytest.approx([0.7, 0.4])] * 3
    assert [data["chosen"] for data in candidates] == [found[0].id] * 3


def test_use_is_asked_once_for_candidates_of_the_same_words() -> None:
    log = drive(self_rag_like, SETTINGS, QUESTION, Model(lambda ask: Reply(" So."), table("supported")))
    assert [sum(words in (ask.text or "") for ask in log.asks) for words in KINDS] == [1, 2, 2, 1]
    [candidate] = [decision.data for decision in log.decided if decision.about == "candidate"]
    assert candidate["critique"] == pytest.approx([0.4] * 6)


def test_the_threshold_is_exceeded_not_met() -> None:
    even = Reply("yes", top_logprobs=({"yes": -1.0, "no": -1.0},))
    settings = PipelineConfig(retrieve_prob=0.5)
    log = drive(self_rag_like, settings, QUESTION, lambda ask: even if ask.text else Reply(" So."))
    assert log.queries == []
    assert log.decided == [Decide("retrieve", {"probability": 0.5, "threshold": 0.5})]


def test_it_ends_where_nothing_more_is_written() -> None:
    log = drive(self_rag_like, SETTINGS, QUESTION, Model(lambda ask: Reply("  "), table()))
    assert (log.written, log.end) == ([], "stop")


def test_yes_in_any_spelling_against_no() -> None:
    assert yes_probability(said(0.75)) == pytest.approx(0.75)
    assert yes_probability(Reply("x", top_logprobs=({"x": -0.1},))) == 0.5
    assert yes_probability(Reply("")) == 0.5
    assert yes_probability(Reply("no", top_logprobs=({" no": -0.1},))) == 0


# Probabilities of reflection tokens in two candidates: at the first place, after the sentence, and at the end.
CRITIQUES: dict[str, tuple[dict[str, float], ...]] = {
    "relevance": ({"[Relevant]": 0.9, "[Irrelevant]": 0.1}, {"[Relevant]": 0.2, "[Irrelevant]": 0.7}),
    "support": ({"[Partially supported]": 0.8, "[Fully supported]": 0.1}, {"[No support / Contradictory]": 0.9}),
    "use": ({"[Utility:5]": 0.5, "[Utility:2]": 0.3}, {"[Utility:1]": 0.6, "[Utility:4]": 0.2}),
}
# By hand: share of [Relevant]; (0.5 x 0.8 + 0.1) / 0.9; (0.5 - 0.5 x 0.3) / 0.8 and (0.5 x 0.2 - 0.6) / 0.8.
COUNTED = {"relevance": (0.9, 2 / 9), "support": (5 / 9, 0.0), "use": (0.4375, -0.625)}
WEIGHTS = {"relevance": 1.0, "support": 1.0, "use": 0.5}


def reflected(kind: str, number: int) -> Reply:
    """A candidate whose critique of one kind is that of the table; of the others it says nothing."""
    said = CRITIQUES[kind][number]
    word = {"A": -0.1, **dict.fromkeys(said, -9.0)}
    told = {name: math.log(probability) for name, probability in said.items()}
    places = (told, word) if kind == "relevance" else ({"A": -0.1}, word, told)
    tokens = tuple(next(iter(place)) for place in places)
    text = f"[Relevant]A{number}.[Fully supported][Utility:5]"
    return Reply(text, "stop", 0.5, places, tokens)


@pytest.mark.parametrize("kind", CRITIQUES)
def test_a_model_trained_to_reflect_is_read_by_its_tokens(kind: str) -> None:
    def model(ask: Ask) -> Reply:
        assert ask.text is None
        if ask.max_tokens == 1:
            return Reply("", top_logprobs=({"[Retrieval]": math.log(0.3), "[No Retrieval]": math.log(0.5), "A": -2.0},))
        return reflected(kind, int(ask.passages[0].id[-1]))

    log = drive(self_rag_like, SETTINGS, QUESTION, model, tokens=TOKENS)
    need, candidate = log.decided
    assert need.data["probability"] == pytest.approx(0.3 / 0.8)
    expected = [0.5 + WEIGHTS[kind] * value for value in COUNTED[kind]]
    assert candidate.data["scores"] == pytest.approx(expected)
    assert candidate.data["chosen"].endswith("#0")
    assert [write.text for write in log.written] == ["A0."]
    assert [name for name, _ in log.asked] == ["retrieve?", "sentence"]
    assert {ask.frame for ask in log.asked[1][1]} == {"[Retrieval]<paragraph>{passages}</paragraph>"}


def test_without_need_one_candidate_says_so_and_texts_are_joined_without_tokens() -> None:
    def model(ask: Ask) -> Reply:
        if ask.max_tokens == 1:
            return Reply("", top_logprobs=({"[No Retrieval]": -0.1},))
        assert (ask.frame, ask.passages) == ("[No Retrieval]", ())
        text = "It fell.[Utility:5]" if ask.begin else "They built it.[No Retrieval]It fell."
        return Reply(text, "stop")

    log = drive(self_rag_like, SETTINGS, QUESTION, model, tokens=TOKENS)
    assert [write.text for write in log.written] == ["They built it.", " It fell."]
    assert log.queries == []
