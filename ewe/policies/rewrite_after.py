"""Rewriting afterwards, in the manner of RARR (Gao et al., 2023): write, check, edit what was refuted, check again."""

from dataclasses import replace

from ewe.config import PipelineConfig
from ewe.policies.steps import Ask, Decide, Generate, Reply, Steps, Verify, Write
from ewe.text.sentences import SentenceSplitter, code_blocks, is_inside
from ewe.types import Passage, Verdict, VerificationRequest, VerificationResult

EDIT = """Question: {question}

A sentence of an answer to it: {sentence}

The context contradicts the sentence. Write the sentence again so that it agrees with the context; change no more than \
that. Write only the sentence."""


class RewriteAfter:
    """Edits the refuted sentences of a finished draft under the evidence against them, once each."""

    composes = verifies = True

    def __init__(self, settings: PipelineConfig) -> None:
        self._settings = settings
        self._splitter = SentenceSplitter()

    def run(self, question: str) -> Steps:
        """A draft and its check; then edits and their check, if anything was refuted."""
        drafts: list[Reply] = yield Generate("draft", (Ask(),))
        [draft] = drafts
        spans = self._splitter.split(draft.text)
        requests = _requests(question, draft.text, spans)
        code = code_blocks(draft.text)
        asked = [place for place, span in enumerate(spans) if not is_inside(span[0], code)]
        told = (yield Verify(tuple(requests[place] for place in asked))) if asked else []
        found = dict(zip(asked, told, strict=True))
        results = [found.get(place, VerificationResult()) for place in range(len(spans))]
        refuted = [place for place, result in enumerate(results) if result.verdict is Verdict.REFUTED]
        edits: dict[int, tuple[str, VerificationResult]] = {}
        if refuted:
            asks = tuple(self._edit(question, requests[place].sentence, results[place]) for place in refuted)
            replies = yield Generate("edit", asks)
            texts = [_one_line(reply.text) for reply in replies]
            new = {place: text for place, text in zip(refuted, texts, strict=True) if text}
            checked = []
            if new:
                checked = yield Verify(tuple(replace(requests[place], sentence=text) for place, text in new.items()))
            edits = {place: (text, result) for (place, text), result in zip(new.items(), checked, strict=True)}
        end = 0
        for place, (span, result) in enumerate(zip(spans, results, strict=True)):
            gap, sentence = draft.text[end : span[0]], requests[place].sentence
            end = span[1]
            edited, second = edits.get(place, (sentence, result))
            is_better = _rank(second) > _rank(result)
            if place in edits:
                verdicts = {"before": result.verdict.value, "after": second.verdict.value}
                yield Decide("edit", {"sentence": sentence, "edited": edited, "kept": is_better, **verdicts})
            if is_better:
                yield Write(gap + edited, second, ((sentence, result),))
            else:
                yield Write(gap + sentence, result)
        return draft.finish_reason

    def _edit(self, question: str, sentence: str, result: VerificationResult) -> Ask:
        """Asks for the sentence again under the passages that refute it, or else under all that was found of it."""
        against = [item.passage for item in result.evidence if item.stance is Verdict.REFUTED]
        passages: dict[str, Passage] = {}
        for passage in against or [item.passage for item in result.evidence]:
            passages.setdefault(passage.id, passage)
        chosen = tuple(passages.values())[: self._settings.passages]
        return Ask(EDIT.format(question=question, sentence=sentence), chosen, max_tokens=self._settings.step_tokens)


def _requests(question: str, text: str, spans: list[tuple[int, int]]) -> tuple[VerificationRequest, ...]:
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
