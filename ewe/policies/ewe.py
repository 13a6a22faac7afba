"""EWE (Chen et al. 2024, section 3.1): pause, retrieve, verify; write again what is refuted."""

from ewe.config import FeedbackConfig, Trigger
from ewe.engine.effects import (
    Paused,
    Remember,
    Restore,
    Retrieve,
    Retrieved,
    Rewind,
    Steps,
    Verified,
    Verify,
    Write,
    policy,
)
from ewe.engine.evidence.sentence_checks import SentenceState
from ewe.engine.policy_answer import Answer
from ewe.policies.rag import remember_question
from ewe.policies.replacements import (
    GoesBack,
    draw,
    drop,
    gives_way,
    leave_circle,
    lengthen,
    may_quote,
    quote,
    settled,
    wants_answers,
)
from ewe.text.check_result import CODE, REPETITIONS
from ewe.text.search_text import subject_of
from ewe.text.sentences import is_inside
from ewe.types import Lane, Verdict

_KEEPS = ("auto", "keep_best")
_MUCH_MORE = 0.2  # Share of the evidence's weight; below it two wordings are supported alike.


@policy(
    retrieves=True,
    verifies=True,
    rewrites=True,
    reads_entropy=lambda settings: "entropy" in (settings.retrieve_when, settings.verify_when),
)
def ewe(answer: Answer, settings: FeedbackConfig) -> Steps:
    """Every T_r tokens retrieves with the new sentences; every T_v tokens verifies them, and rewrites what fails.

    In optimistic mode nothing waits for verdicts; the text is the same.
    """
    settings = settled(settings, answer)
    every_r = settings.retrieve_every if answer.can_retrieve else 0
    every_v = settings.verify_every if answer.can_verify else 0
    dropped: set[int] = set()  # which sentences were left out once, by their numbers
    if every_r:
        yield from remember_question(answer, in_prompt=True)
    while True:
        match (yield Write(every=tuple(filter(None, (every_r, every_v))))):
            case Paused() if every_v and (yield from leave_circle(answer, settings, dropped)):
                pass
            case Paused():
                if every_r and len(answer.text) % every_r == 0 and not answer.is_finished:
                    yield from _retrieve(answer, settings)
                if every_v and (len(answer.text) % every_v == 0 or answer.is_finished):
                    yield from _verify(answer, settings)
            case Retrieved(hits):
                yield Remember(tuple(hit for hit in hits if answer.bears_on(hit.passage)))
            case Verified() as check:
                if not (yield from _goes_back(answer, settings, check, dropped)):
                    answer.settle(check.sentence, check.state)
        yield from lengthen(answer, settings)


def _retrieve(answer: Answer, settings: FeedbackConfig) -> Steps:
    """Retrieves with the question and the new sentences."""
    triggers = settings.retrieve_when, settings.retrieve_entropy, settings.retrieve_min_prob
    unseen = range(answer.progress.retrieved, len(answer.sentences))
    new = [answer.words(index) for index in unseen if _triggers(answer, index, *triggers)]
    answer.progress.retrieved = len(answer.sentences)
    if new and not answer.is_small_talk:
        yield Retrieve(" ".join([subject_of(answer.question), *new]))


def _verify(answer: Answer, settings: FeedbackConfig) -> Steps:
    """Has the new sentences checked; those that no trigger names and those that are code are final."""
    triggers = settings.verify_when, settings.verify_entropy, settings.verify_min_prob
    unseen = range(answer.progress.verified, len(answer.sentences))
    code, chosen = answer.code_blocks if unseen else [], []
    for index in unseen:
        if not _triggers(answer, index, *triggers):
            answer.settle(index, SentenceState(reason="the trigger did not ask for a check"))
        elif is_inside(answer.sentences[index].start, code):
            answer.settle(index, SentenceState(reason=CODE))
        else:
            chosen.append(index)
    answer.progress.verified = len(answer.sentences)
    if chosen:
        yield Verify(tuple(chosen), settings.mode == "blocking", wants_answers(answer, settings))


def _goes_back(answer: Answer, settings: FeedbackConfig, check: Verified, dropped: set[int]) -> GoesBack:
    """Drops what repeats, rewrites what is refuted, and compares what stands with what was refuted before."""
    repeats = check.sentence and check.result.reason in REPETITIONS
    if repeats and settings.on_repeat == "drop" and not answer.has_grammar:
        return (yield from _replace(answer, settings, check, dropped))
    if gives_way(answer, settings, check) and (yield from _answer(answer, check)):
        return True
    states_nothing_instead = bool(check.result.reason and answer.attempts(check.sentence))
    is_open = check.result.verdict is Verdict.INCONCLUSIVE or states_nothing_instead
    if check.result.verdict is Verdict.REFUTED or (is_open and settings.rewrite_when == "unsupported"):
        return (yield from _rewrite(answer, settings, check, dropped))
    return (yield from _compare(answer, settings, check))


def _answer(answer: Answer, check: Verified) -> GoesBack:
    """Puts what answers the question in the place of a first sentence that says otherwise."""
    rejected = answer.reject(check.sentence, check.state)
    if (yield from quote(answer, check.sentence, check.result)):
        return True
    rejected.pop()
    return False


def _replace(answer: Answer, settings: FeedbackConfig, check: Verified, dropped: set[int]) -> GoesBack:
    """Drops what repeats; what repeats again ends the text, or gives way to a quotation that follows none."""
    is_second = check.sentence in dropped and not answer.is_quoted(check.sentence - 1)
    if is_second and may_quote(answer, settings) and (yield from quote(answer, check.sentence, check.result)):
        return True
    return (yield from drop(answer, check, dropped))


def _rewrite(answer: Answer, settings: FeedbackConfig, check: Verified, dropped: set[int]) -> GoesBack:
    """Writes a sentence again under the evidence; after the last attempt keeps the best, the last, or a quotation."""
    attempts = answer.reject(check.sentence, check.state)
    if len(attempts) < settings.max_attempts:
        yield Rewind(check.sentence, "refuted" if check.result.verdict is Verdict.REFUTED else "unsupported")
        news = yield Remember(answer.evidence_of(check.result), Lane.VERIFICATION)
        answer.vary(None if news else check.sentence)
        if (yield from draw(answer, settings, check.sentence)) and answer.is_finished:
            yield from _verify(answer, settings)  # what follows the sentence
        return True
    if may_quote(answer, settings) and (yield from quote(answer, check.sentence, check.result)):
        return True
    if settings.on_exhausted in ("drop", "quote") and not answer.has_grammar:
        return (yield from drop(answer, check, dropped))
    best = max(reversed(attempts), key=lambda attempt: attempt.rank)
    if settings.on_exhausted == "flag" or best is attempts[-1]:
        return False
    yield Restore(check.sentence, best, "keep_best")
    return True


def _compare(answer: Answer, settings: FeedbackConfig, check: Verified) -> GoesBack:
    """Puts back an earlier wording that much more evidence supports than the one that stands.

    What was refuted on disputed evidence may be true, and what nothing speaks of may be made up.
    """
    best = max(reversed(answer.attempts(check.sentence)), key=lambda attempt: attempt.state.support, default=None)
    if best is None or settings.on_exhausted not in _KEEPS or best.state.support < check.state.support + _MUCH_MORE:
        return False
    answer.reject(check.sentence, check.state)
    yield Restore(check.sentence, best, "less supported")
    return True


def _triggers(answer: Answer, index: int, when: Trigger, entropy: float, min_prob: float) -> bool:
    """Whether a sentence is to be dealt with (appendix B); entropy, min_prob: from where on, if that is what counts."""
    if when == "interval":
        return True
    return answer.mean_entropy(index) > entropy if when == "entropy" else answer.min_prob(index) < min_prob
