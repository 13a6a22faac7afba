"""Rewriting afterwards: what is refuted is edited under the evidence, and the better wording stays."""

from __future__ import annotations

import pytest
from asking_parts import Log, drive, judged

from ewe.config import PipelineConfig
from ewe.engine.side_texts import Add, Ask, Reply
from ewe.policies.rewrite_after import EDIT, rewrite_after
from ewe.types import Evidence, Passage, Verdict, VerificationRequest, VerificationResult

QUESTION = "Tell me of it."
DRAFT = "It stands here. It was built in 1900.\n\nIt is red."
AGAINST = Passage("against", "It was built in 1950.")
FOR = Passage("for", "It was built.")
NOTHING = VerificationResult()
REFUTED = judged(
    Verdict.REFUTED,
    evidence=[Evidence(FOR, Verdict.SUPPORTED, 0.5), *[Evidence(AGAINST, Verdict.REFUTED, 0.9)] * 2],
)
SUPPORTED = judged(Verdict.SUPPORTED)
BAD, GOOD = "It was built in 1900.", "It was built in 1950."


def run(edited: str, verdicts: dict[str, VerificationResult], finish: str = "stop") -> Log:
    def model(ask: Ask) -> Reply:
        return Reply(DRAFT, finish) if ask.text is None else Reply(edited)  # type: ignore[arg-type]

    def verify(request: VerificationRequest) -> VerificationResult:
        return verdicts.get(request.sentence, SUPPORTED)

    return drive(rewrite_after, PipelineConfig(step_tokens=20), QUESTION, model, verify)


def reference(edited: str, verdicts: dict[str, VerificationResult]) -> str:
    """The text by the rule alone: a refuted sentence is replaced by its edit if that has fewer refuted claims, or as
    many and a larger share of supported ones."""
    text = DRAFT
    for sentence in ("It stands here.", BAD, "It is red."):
        old, new = verdicts.get(sentence, SUPPORTED), verdicts.get(edited, SUPPORTED)
        if old.verdict != "refuted" or not edited:
            continue
        wrong = [[claim.verdict for claim in item.claims].count(Verdict.REFUTED) for item in (old, new)]
        if wrong[1] < wrong[0] or (wrong[1] == wrong[0] and new.score > old.score):
            text = text.replace(sentence, edited)
    return text


CASES = {
    "the edit is supported": (GOOD, {BAD: REFUTED}),
    "the edit says nothing that can be checked": (GOOD, {BAD: REFUTED, GOOD: NOTHING}),
    "the edit is refuted, too": (GOOD, {BAD: REFUTED, GOOD: REFUTED}),
    "fewer claims of it are": (GOOD, {BAD: judged(*[Verdict.REFUTED] * 2), GOOD: REFUTED}),
    "more of it is supported": (GOOD, {BAD: REFUTED, GOOD: judged(Verdict.REFUTED, Verdict.SUPPORTED)}),
    "nothing is refuted": (GOOD, {}),
    "inconclusive is left alone": (GOOD, {BAD: judged(Verdict.INCONCLUSIVE)}),
    "the edit is empty": ("", {BAD: REFUTED}),
    "it is the sentence again": (BAD, {BAD: REFUTED}),
}


@pytest.mark.parametrize("case", CASES)
def test_the_better_wording_stays(case: str) -> None:
    edited, verdicts = CASES[case]
    log = run(edited, verdicts)
    assert "".join(step.text for step in log.written) == reference(edited, verdicts)
    assert log.end == "stop"
    final = {step.text.strip(): step.result for step in log.written}
    assert all(result == verdicts.get(sentence, SUPPORTED) for sentence, result in final.items())


def test_a_sentence_is_edited_under_the_evidence_against_it_and_checked_in_its_place() -> None:
    log = run(f'\n "{GOOD}"\nIt follows from the context.', {BAD: REFUTED})
    assert log.asked[0] == ("draft", (Ask(),))
    assert log.asked[1:] == [("edit", (Ask(EDIT.format(question=QUESTION, sentence=BAD), (AGAINST,), max_tokens=20),))]
    first, second = log.checked
    assert first[1] == VerificationRequest(QUESTION, "It stands here. ", BAD, "It is red.")
    assert second == (VerificationRequest(QUESTION, "It stands here. ", GOOD, "It is red."),)
    assert log.written[1] == Add(f" {GOOD}", SUPPORTED, ((BAD, REFUTED),))
    assert log.decided[0].data == {
        "sentence": BAD, "edited": GOOD, "kept": True, "before": "refuted", "after": "supported",
    }  # fmt: skip


def test_without_evidence_against_it_all_that_was_found_is_shown() -> None:
    log = run(GOOD, {BAD: judged(Verdict.REFUTED, evidence=[Evidence(FOR, Verdict.SUPPORTED, 0.5)])})
    assert log.asked[1][1][0].passages == (FOR,)


def test_a_text_that_was_cut_stays_cut() -> None:
    assert run(GOOD, {}, "length").end == "length"


def test_nothing_written_is_nothing_to_check() -> None:
    log = drive(rewrite_after, PipelineConfig(), QUESTION, lambda ask: Reply(" "))
    assert (log.checked, log.written, log.end) == ([], [], "stop")


def test_code_is_neither_checked_nor_edited() -> None:
    draft = "It stands.\n~~~\n# It fell.\n~~~\nIt is red."
    log = drive(rewrite_after, PipelineConfig(), QUESTION, lambda ask: Reply(draft), lambda request: SUPPORTED)
    assert [request.sentence for request in log.checked[0]] == ["It stands.", "It is red."]
    assert "".join(step.text for step in log.written) == draft
