"""From the engine's generations to what clients read: citations, verdicts, sources, usage."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from operator import add
from typing import Any, Literal
from urllib.parse import quote

from ewe.server.http.error_responses import RefusedError
from ewe.server.schemas import common as schemas
from ewe.server.schemas.ewe_result import EweResult, EweRevision, EweSentence, EweSource
from ewe.text.json_schema import GRAMMAR_FAILED
from ewe.text.prompt_injection import addresses_the_reader
from ewe.types import Claim, Generation, Passage, Sentence, Verdict


def check_finished(generation: Generation, own_deadline: bool) -> None:
    """Raises RefusedError for what is no answer: it failed, was broken off, or its time ran out before it began.

    own_deadline: whether the time was the request's own. Then it gets what there is, be it nothing; but a server that
    has no time for a first token is overloaded.
    """
    reason = generation.finish_reason
    if reason == "error" and generation.error.startswith(GRAMMAR_FAILED):
        raise RefusedError(400, generation.error, code="invalid_json_schema", may_retry=False)
    if reason == "error":
        raise RefusedError(500, generation.error, code="engine_error", may_retry=False)
    if reason == "abort":
        raise RefusedError(503, "the server is shutting down", code="shutting_down")
    if reason == "timeout" and not generation.token_ids and not own_deadline:
        raise RefusedError(503, "the deadline passed before the first token", code="deadline", may_retry=False)


def finish_reason(generation: Generation) -> Literal["stop", "length"]:
    """The reason in OpenAI's words; "length" also where the time ran out."""
    return "stop" if generation.finish_reason == "stop" else "length"


def stop_string(generation: Generation, stops: Sequence[str], tokenizer: Any) -> str | None:
    """Which of the strings ended the answer; it is written in its tokens and left out of its text."""
    if not stops or generation.finish_reason != "stop":
        return None
    written = tokenizer.decode(generation.token_ids, skip_special_tokens=True)
    places = {stop: written.find(stop) for stop in stops if stop in written}
    return min(places, key=places.__getitem__, default=None)


def usage(generations: Sequence[Generation]) -> schemas.Usage:
    """Tokens of one request: each prompt once, units that were read, and all that was written, taken back or not."""
    prompt = sum(item.stats.prompt_tokens for item in generations if item.index == 0)
    prompt += sum(item.stats.unit_tokens for item in generations)
    cached = sum(item.stats.unit_tokens_cached for item in generations)
    discarded = sum(item.stats.tokens_discarded for item in generations)
    reasoning = sum(item.stats.reasoning_tokens for item in generations)
    return counted(
        prompt, sum(item.stats.tokens_kept for item in generations) + discarded, discarded, reasoning, cached
    )


def counted(prompt: int, written: int, discarded: int, reasoning: int = 0, cached: int = 0) -> schemas.Usage:
    """The counts for prompts and answers of so many tokens.

    Of what was written so much was taken back, or came before answers; of the prompts so much had been encoded before.
    """
    return schemas.Usage(
        prompt_tokens=prompt,
        completion_tokens=written,
        total_tokens=prompt + written,
        prompt_tokens_details=schemas.PromptTokensDetails(cached_tokens=cached),
        completion_tokens_details=schemas.CompletionTokensDetails(
            reasoning_tokens=reasoning, rejected_prediction_tokens=discarded
        ),
    )


def supporting(sentence: Sentence) -> list[str]:
    """The ids of the sources that support a claim of a sentence."""
    supported = [claim for claim in sentence.claims if claim.verdict is Verdict.SUPPORTED]
    return list(dict.fromkeys(id_ for claim in supported for id_ in claim.evidence_ids))


def citations(generation: Generation) -> list[schemas.Annotation]:
    """One citation per sentence and source that supports a claim of it."""
    annotations = []
    for sentence in generation.sentences:
        for name in supporting(sentence):
            passage = generation.sources.get(name)
            citation = schemas.UrlCitation(
                url=(passage.url if passage else "") or f"ewe:{quote(name, safe='')}",
                title=(passage.title if passage else "") or name,
                start_index=sentence.start,
                end_index=sentence.end,
            )
            annotations.append(schemas.Annotation(url_citation=citation))
    return annotations


def ewe_result(generations: Sequence[Generation], offsets: Sequence[int] = ()) -> EweResult:
    """What the engine knows of all answers of a request.

    offsets: where each answer begins in the text of its choice, in code points (empty: at 0).
    """
    sentences: list[EweSentence] = []
    revisions: list[EweRevision] = []
    for choice, generation in enumerate(generations):
        revisions += _revisions(choice, generation, len(sentences))
        offset = offsets[choice] if offsets else 0
        for sentence in map(EweSentence.model_validate, generation.sentences):
            place = {"start_index": offset + sentence.start_index, "end_index": offset + sentence.end_index}
            sentences.append(sentence.model_copy(update={"choice": choice, **place}))
    passages = {name: passage for item in generations for name, passage in item.sources.items()}
    scores = _retrieval_scores(generations)
    return EweResult(
        support_score=support_score([claim for item in generations for s in item.sentences for claim in s.claims]),
        sentences=sentences,
        sources=[wire_source(passage, scores.get(name)) for name, passage in passages.items()],
        revisions=revisions,
        finish_reasons=[generation.finish_reason for generation in generations],
        stats=_stats(generations),
    )


def support_score(claims: Sequence[Claim]) -> float | None:
    """The share of supported claims; None without claims."""
    return sum(claim.verdict is Verdict.SUPPORTED for claim in claims) / len(claims) if claims else None


def wire_source(passage: Passage, score: float | None = None) -> EweSource:
    """A passage as clients read it."""
    return EweSource(**asdict(passage), score=score, gives_orders=addresses_the_reader(passage.text))


def _revisions(choice: int, generation: Generation, first: int) -> list[EweRevision]:
    """The wordings that were taken back, in order; first: the place of the answer's first sentence."""
    left = [list(sentence.removed) for sentence in generation.sentences]
    revisions = []
    for event in generation.trace:
        if event.kind == "rewind":
            text = event.data["text"]
            place = next((index for index, removed in enumerate(left) if text in removed), None)
            if place is not None:
                left[place].remove(text)
            sentence = None if place is None else first + place
            revisions.append(EweRevision(choice=choice, sentence=sentence, removed=text, reason=event.data["reason"]))
    return revisions


def _retrieval_scores(generations: Sequence[Generation]) -> Mapping[str, float]:
    best: dict[str, float] = {}
    for event in (event for item in generations for event in item.trace if event.kind == "retrieval"):
        for hit in event.data["passages"]:
            best[hit["id"]] = max(float(hit["score"]), best.get(hit["id"], float("-inf")))
    return best


def _stats(generations: Sequence[Generation]) -> dict[str, float]:
    total: dict[str, float] = {}
    for generation in generations:
        for name, value in asdict(generation.stats).items():
            together = max if name.endswith("_s") else add
            total[name] = together(total.get(name, 0), value)
    total["prompt_tokens"] = sum(item.stats.prompt_tokens for item in generations if item.index == 0)
    return total
