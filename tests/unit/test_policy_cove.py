"""Chain of verification and retrieval in the prompt: exactly the steps of their papers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from asking_parts import Log, drive, passages
from hypothesis import given
from hypothesis import strategies as st

from ewe.config import PipelineConfig
from ewe.engine.side_texts import Ask, Decide, Reply
from ewe.policies.cove import ANSWER, PLAN, REVISE, cove, cove_with_retrieval, questions_of
from ewe.policies.ra import ra
from ewe.types import Passage

QUESTION = "Who built the bridge?"
DRAFT = " The bridge was built by A in 1901."
SETTINGS = PipelineConfig(passages=2, questions=3, step_tokens=40)


def model(plan: str) -> Callable[[Ask], Reply]:
    """Writes a draft, this plan, and answers that name their question."""

    def write(ask: Ask) -> Reply:
        if ask.text is None:
            return Reply(DRAFT)
        return Reply(plan) if "Questions:" in ask.text else Reply(f" It is said: {ask.text[-9:]}\n")

    return write


def reference(question: str, plan: list[str], search: Callable[[str], tuple[Passage, ...]] | None) -> list[Ask]:
    """Figure 1 of the paper, factor + revise, as plain calls: all that the model is asked, the revision last."""
    write = model("")
    asked = [Ask()]
    draft = write(asked[0]).text.strip()
    asked.append(Ask(PLAN.format(draft=draft, most=3), max_tokens=40))
    facts = []
    for number, item in enumerate(plan, 1):
        asked.append(Ask(ANSWER.format(question=item), search(item) if search else (), max_tokens=40))
        facts.append(f"{number}. {item} {write(asked[-1]).text.strip()}")
    return [*asked, Ask(REVISE.format(question=question, draft=draft, facts="\n".join(facts)))]


def all_asked(log: Log) -> list[Ask]:
    return [*(ask for _, asks in log.asked for ask in asks), log.end]


@pytest.mark.parametrize("retrieves", [False, True])
def test_cove_asks_what_the_paper_asks(retrieves: bool) -> None:
    plan = "Here are they:\n1. Who is A?\n2) When was it?\nnot one?\n3. No question.\n4. Who is A?\n5. Where?\n6. Why?"
    log = drive(cove_with_retrieval if retrieves else cove, SETTINGS, QUESTION, model(plan))

    wanted = ["Who is A?", "When was it?", "Where?"]  # each once, three at most
    search = (lambda query: passages(query, 2)) if retrieves else None
    assert all_asked(log) == reference(QUESTION, wanted, search)
    assert [name for name, _ in log.asked] == ["draft", "plan", "check"]
    assert log.queries == ([(tuple(wanted), 2)] if retrieves else [])
    assert log.decided == [Decide("questions", {"questions": wanted})]


def test_the_questions_are_answered_without_the_draft_in_view() -> None:
    log = drive(cove, SETTINGS, QUESTION, model("1. Who is A?"))
    [(_, answers)] = [item for item in log.asked if item[0] == "check"]
    assert all(DRAFT.strip() not in str(ask.text) and QUESTION not in str(ask.text) for ask in answers)


@pytest.mark.parametrize("plan", ["", "I cannot.", "Who is A?", "1. Nothing to ask.", "1.Who?"])
def test_without_a_question_the_draft_is_the_answer(plan: str) -> None:
    log = drive(cove_with_retrieval, SETTINGS, QUESTION, model(plan))
    assert log.end == Reply(DRAFT)
    assert log.queries == []


def test_braces_in_texts_stay_as_they_are() -> None:
    log = drive(cove, SETTINGS, "What is {draft}?", lambda ask: Reply("{facts}\n1. {most}?"))
    assert "Text: {facts}" in str(log.prompts[1])
    assert str(log.end.text).startswith("Question: What is {draft}?\n\nDraft of an answer: {facts}")


LINES = st.lists(st.text(st.sampled_from("12. )?ab\t"), max_size=12), max_size=8)


@given(LINES, st.integers(1, 4))
def test_a_plan_is_read_strictly(lines: list[str], most: int) -> None:
    found = questions_of("\n".join(lines), most)
    assert len(found) <= most
    assert len(set(found)) == len(found)
    for question in found:
        assert question.endswith("?")
        assert question == question.strip()
        assert any(line.strip().endswith(question) and line.strip()[0].isdigit() for line in lines)


@given(st.lists(st.from_regex(r"[A-Z][a-z ]{0,8}[a-z]\?", fullmatch=True), unique=True, max_size=6))
def test_a_plan_in_the_form_that_was_asked_for_is_read_whole(questions: list[str]) -> None:
    plan = "\n".join(f"{number}. {question}" for number, question in enumerate(questions, 1))
    assert questions_of(plan, 10) == questions


def test_ra_is_two_steps() -> None:
    log = drive(ra, PipelineConfig(passages=10), QUESTION, model(""))
    assert log.queries == [((QUESTION,), 10)]
    assert log.asked == []
    assert log.end == Ask(passages=passages(QUESTION, 10))
