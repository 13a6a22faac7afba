"""Rewriting afterwards, in the manner of RARR (Gao et al., 2023): write, check, edit what was refuted, check again."""

from collections.abc import Generator
from dataclasses import replace
from typing import Any

from ewe.config import PipelineConfig
from ewe.engine.effects import policy
from ewe.engine.policy_answer import Answer
from ewe.engine.side_texts import Add, Ask, Asking, Decide, Generate, Reply, VerifyTexts
from ewe.text.sentences import SentenceSplitter, code_blocks, is_inside
from ewe.types import Passage, Verdict, VerificationRequest, VerificationResult

EDIT = """Question: {question}

A sentence of an answer to it: {sentence}

The context contradicts the sentence. Write the sentence again so that it agrees with the context; change no more than \
that. Write only the sentence."""


Span = tuple[int, int]
Results = list[VerificationResult]
Edits = dict[int, tuple[str, VerificationResult]]


@policy(asks=True, composes=True, verifies=True)
def rewrite_after(answer: Answer, settings: PipelineConfig) -> Asking:
    """Edits the refuted sentences of a finished draft under the evidence against them, once each."""
    drafts: list[Reply] = yield Generate("draft", (Ask(),))
    [draft] = drafts
    spans = SentenceSplitter().split(draft.text)
    requests = _requests(answer.question, draft.text, spans)
    results = yield from _check(draft.text, spans, requests)
    edits = yield from _edit(answer.question, settings, requests, results)
    end = 0
    for place, (start, stop) in enumerate(spans):
        yield from _add(draft.text[end:start], requests[place].sentence, results[place], edits.get(place))
        end = stop
    return draft.finish_reason


def _check(
    text: str, spans: list[Span], requests: tuple[VerificationRequest, ...]
) -> Generator[VerifyTexts, Any, Results]:
    """The result of each sentence; code is not checked."""
    code = code_blocks(text)
    chosen = [place for place, span in enumerate(spans) if not is_inside(span[0], code)]
    checked = (yield VerifyTexts(tuple(requests[place] for place in chosen))) if chosen else []
    results = dict(zip(chosen, checked, strict=True))
    return [results.get(place, VerificationResult()) for place in range(len(spans))]


def _edit(
    question: str, settings: PipelineConfig, requests: tuple[VerificationRequest, ...], results: Results
) -> Generator[Generate | VerifyTexts, Any, Edits]:
    """The new wording of each refuted sentence, by its place, and what its check found."""
    refuted = [place for place, result in enumerate(results) if result.verdict is Verdict.REFUTED]
    if not refuted:
        return {}
    asks = tuple(_ask(question, requests[place].sentence, results[place], settings) for place in refuted)
    texts = [_one_line(reply.text) for reply in (yield Generate("edit", asks))]
    new = {place: text for place, text in zip(refuted, texts, strict=True) if text}
    checked = []
    if new:
        checked = yield VerifyTexts(tuple(replace(requests[place], sentence=text) for place, text in new.items()))
    return {place: (text, result) for (place, text), result in zip(new.items(), checked, strict=True)}


def _add(
    gap: str, sentence: str, result: VerificationResult, edit: tuple[str, VerificationResult] | None
) -> Generator[Add | Decide, Any, None]:
    """Adds the better wording of a sentence, which stands after `gap`."""
    edited, second = edit or (sentence, result)
    is_better = _rank(second) > _rank(result)
    if edit is not None:
        verdicts = {"before": result.verdict.value, "after": second.verdict.value}
        yield Decide("edit", {"sentence": sentence, "edited": edited, "kept": is_better, **verdicts})
    if is_better:
        yield Add(gap + edited, second, ((sentence, result),))
    else:
        yield Add(gap + sentence, result)


def _ask(question: str, sentence: str, result: VerificationResult, settings: PipelineConfig) -> Ask:
    """Asks for the sentence again under the passages that refute it, or else under all that was found of it."""
    against = [item.passage for item in result.evidence if item.stance is Verdict.REFUTED]
    passages: dict[str, Passage] = {}
    for passage in against or [item.passage for item in result.evidence]:
        passages.setdefault(passage.id, passage)
    chosen = tuple(passages.values())[: settings.passages]
    return Ask(EDIT.format(question=question, sentence=sentence), chosen, max_tokens=settings.step_tokens)


def _requests(question: str, text: str, spans: list[Span]) -> tuple[VerificationRequest, ...]:
    sentences = [text[start:end] for start, end in spans]
    return tuple(
        VerificationRequest(question, text[:start], sentence, "".join(sentences[place + 1 : place + 2]))
        for place, ((start, _), sentence) in enumerate(zip(spans, sentences, strict=True))
    )


def _one_line(text: str) -> str:
    """The first line of a reply that says something, without quotation marks around it."""
    lines = (line.strip().strip('"“”') for line in text.splitlines())
    return next((line for line in lines if line), "")


def _rank(result: VerificationResult) -> tuple[int, float]:
    """Higher is better: fewer refuted claims, then a larger supported share."""
    return -sum(claim.verdict is Verdict.REFUTED for claim in result.claims), result.score
