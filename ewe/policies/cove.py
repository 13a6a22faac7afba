"""Chain of verification, "factor + revise" (Dhuliawala et al., 2024): draft, questions, answers, revision."""

import re

from ewe.config import PipelineConfig
from ewe.engine.effects import policy
from ewe.engine.policy_answer import Answer
from ewe.engine.side_texts import Ask, Asking, Decide, Generate, Reply, Search

PLAN = """Write questions that check the facts of a text, each about one fact: a name, a date, a number, a place, an \
event. Each must make sense without the text and must not take its facts for granted. Write at most {most} \
questions, one per line, numbered.

Text: Ada Weston built the Long Bridge in Harrow in 1874.
Questions:
1. Who built the Long Bridge in Harrow?
2. In which year was the Long Bridge in Harrow built?

Text: {draft}
Questions:"""

ANSWER = """Answer the question in one or two sentences. If you do not know the answer, say so.

Question: {question}"""

REVISE = """Question: {question}

Draft of an answer: {draft}

Facts that were checked:
{facts}

Write the answer again so that it agrees with the checked facts: correct what they contradict, leave out what they \
show to be unknown, keep everything else in all its details. Write only the answer."""

_QUESTION = re.compile(r"\s*\d{1,2}[.)]\s+(\S.*\?)\s*")


@policy(asks=True)
def cove(answer: Answer, settings: PipelineConfig) -> Asking:
    """Revises a draft by what the model says of its facts, one by one."""
    return (yield from _chain(answer, settings, retrieves=False))


@policy(asks=True)
def cove_with_retrieval(answer: Answer, settings: PipelineConfig) -> Asking:
    """The same, but that the model says it under passages."""
    return (yield from _chain(answer, settings, retrieves=True))


def _chain(answer: Answer, settings: PipelineConfig, retrieves: bool) -> Asking:
    """Four generations; the draft is the answer if nothing in the plan is a question."""
    drafts: list[Reply] = yield Generate("draft", (Ask(),))
    [draft] = drafts
    plan = PLAN.format(draft=draft.text.strip(), most=settings.questions)
    [planned] = yield Generate("plan", (Ask(plan, max_tokens=settings.step_tokens),))
    questions = questions_of(planned.text, settings.questions)
    yield Decide("questions", {"questions": questions})
    if not questions:
        return draft
    passages = [()] * len(questions)
    if retrieves:
        passages = yield Search(tuple(questions), settings.passages)
    asks = zip(questions, passages, strict=True)
    replies = yield Generate(
        "check",
        tuple(Ask(ANSWER.format(question=question), hits, max_tokens=settings.step_tokens) for question, hits in asks),
    )
    pairs = zip(questions, replies, strict=True)
    facts = "\n".join(f"{number}. {question} {reply.text.strip()}" for number, (question, reply) in enumerate(pairs, 1))
    return Ask(REVISE.format(question=answer.question, draft=draft.text.strip(), facts=facts))


def questions_of(plan: str, most: int) -> list[str]:
    """The questions of a plan: its numbered lines that end in a question mark, each once, at most `most`."""
    matches = (_QUESTION.fullmatch(line) for line in plan.splitlines())
    return list(dict.fromkeys(match[1] for match in matches if match))[:most]
