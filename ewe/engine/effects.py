"""What a policy asks of the engine and what it is told: the words that its generator yields and receives.

A policy is a generator function `(answer, settings)`; what it sees of its answer is in `policy_answer`. The engine runs
one for every answer and resumes it when something has happened; many answers are written in one batch, and none waits
for another's policy.
"""

from __future__ import annotations

from collections import abc
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ewe.config import FeedbackConfig, PipelineConfig
from ewe.engine.evidence.sentence_checks import Attempt, SentenceState
from ewe.engine.policy_answer import Answer
from ewe.engine.side_texts import Add, Ask, Asking, Generate, SideEffect, VerifyTexts
from ewe.text.check_result import why_no_claim
from ewe.text.quotation import Quotation
from ewe.types import Lane, ScoredPassage, VerificationResult

if TYPE_CHECKING:
    from ewe.engine.evidence.workers import Job
    from ewe.engine.policy_runtime.wordings import Wording

# --- What a policy yields. Sentences are named by their index.


@dataclass(frozen=True, slots=True)
class Write:
    """Writes on until something happens, which is the result: Paused, Retrieved or Verified; Drawn or Judged.

    every: numbers of tokens; the text pauses at every multiple of one of them, and when it has ended.
    """

    every: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Retrieve:
    """Asks the retriever; nothing is written until it has answered (`Retrieved`). top_k: None for that of the settings.

    What is asked for between two writes is one pause.
    """

    query: str
    top_k: int | None = None


@dataclass(frozen=True, slots=True)
class Verify:
    """Has sentences checked (`Verified`). wait: whether nothing is written until then.

    Otherwise the text goes on, and a rewind to one of the sentences also returns to the memory that they were written
    under. wants_answers: whether to look for sentences that answer the question, for what is not supported.
    """

    sentences: tuple[int, ...]
    wait: bool = True
    wants_answers: bool = False


@dataclass(frozen=True, slots=True)
class Remember:
    """Brings passages into a lane of the memory; the result: whether they are news. Retrieved ones come best first.

    in_prompt: puts them into the prompt instead, of which nothing has been computed (see `Answer.prompt_places`).
    """

    hits: abc.Sequence[ScoredPassage]
    lane: Lane = Lane.RETRIEVAL
    in_prompt: bool = False


@dataclass(frozen=True, slots=True)
class Forget:
    """Empties the memory."""


@dataclass(frozen=True, slots=True)
class Rewind:
    """Takes the text back to the start of a sentence, and all that was under way; reason: for the trace."""

    sentence: int
    reason: str


@dataclass(frozen=True, slots=True)
class Restore:
    """Replaces a sentence, and all after it, by an earlier wording."""

    sentence: int
    attempt: Attempt
    reason: str


@dataclass(frozen=True, slots=True)
class Quote:
    """Replaces a sentence, and all after it, by one of a passage, which is supported by it; the result: whether it can.

    Otherwise nothing has changed: its tokens would not give its words, or the answer has no room for it. The number
    after the last sentence stands for what is being written, or for the end of the text.
    """

    sentence: int
    quotation: Quotation


@dataclass(frozen=True, slots=True)
class Draw:
    """Draws several wordings of a sentence in one batch (`Drawn`), where the text ends before it; it stands still."""

    sentence: int
    count: int


@dataclass(frozen=True, slots=True)
class Judge:
    """Has wordings checked in one batch (`Judged`), of which none is in the text. wants_answers: as of `Verify`."""

    wordings: tuple[Wording, ...]
    wants_answers: bool = False


@dataclass(frozen=True, slots=True)
class Take:
    """Lets the text go on with one of the wordings; what was found of it is told as of any check (`Verified`)."""

    sentence: int
    judged: Judged
    chosen: int


@dataclass(frozen=True, slots=True)
class End:
    """Ends the text here."""


Effect = (
    Write | Retrieve | Verify | Remember | Forget | Rewind | Restore | Quote | Draw | Judge | Take | End | SideEffect
)
Steps = Generator[Effect, Any, None]

# --- What `yield Write(...)` gives.


@dataclass(frozen=True, slots=True)
class Paused:
    """The text is at a multiple that was asked for, or has ended."""


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What was found over the threshold, best first; error: why nothing could be."""

    hits: tuple[ScoredPassage, ...]
    error: str = ""


@dataclass(frozen=True, slots=True)
class Drawn:
    """The wordings that a Draw asked for."""

    wordings: tuple[Wording, ...]


@dataclass(frozen=True, slots=True)
class Judged:
    """What a Judge found of each wording, in order; job: the check."""

    wordings: tuple[Wording, ...]
    results: tuple[VerificationResult, ...]
    job: Job


@dataclass(frozen=True, slots=True)
class Verified:
    """What a Verify found of one sentence, in order; the rest is not told of once the text has gone back."""

    sentence: int
    result: VerificationResult
    error: str = ""

    @property
    def state(self) -> SentenceState:
        """What is known of the sentence by it."""
        reason = self.error or why_no_claim(self.result)
        return SentenceState(self.result.verdict, self.result.score, self.result.claims, reason)


# --- What the engine knows of a policy.


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy and what the engine must know before it runs.

    retrieves, verifies: which components it makes use of; needs_retriever: whether it is plain decoding without one.
    rewrites: whether text is held back until `Answer.settle`, as it may be rewound (if it verifies: by what checks
    find). reads_entropy: whether it asks for tokens' entropies, or what says so by the settings. captures: what the
    pool keeps of every token beside its keys and values: "hidden" states to copy passages by, or "queries" to tell what
    was attended to. asks: whether it has further texts written (`ewe.engine.side_texts`), each answer its own; it then
    gets the settings `pipeline`, not `feedback`. composes: whether the answer is put together with Add, and so has no
    log-probabilities.
    """

    write: Callable[[Answer, Any], Steps | Asking]
    retrieves: bool = False
    verifies: bool = False
    needs_retriever: bool = False
    rewrites: bool = False
    reads_entropy: bool | Callable[[FeedbackConfig], bool] = False
    captures: Literal["hidden", "queries"] | None = None
    asks: bool = False
    composes: bool = False

    def __call__(self, answer: Answer, settings: FeedbackConfig | PipelineConfig) -> Steps | Asking:
        """Begins it for one answer."""
        return self.write(answer, settings)

    def wants_entropy(self, settings: FeedbackConfig) -> bool:
        """Whether it asks for entropies under these settings."""
        return self.reads_entropy if isinstance(self.reads_entropy, bool) else self.reads_entropy(settings)

    def lacks(self, effect: object) -> str:
        """The trait that an effect, or an Ask that it returns, needs and it has not; "" if there is none.

        The engine is made by the traits: without them it would check nothing, or show text that is then taken back.
        """
        match effect:
            case Retrieve():
                needed = "retrieves"
            case Verify() | Judge() | VerifyTexts():
                needed = "verifies"
            case Rewind() | Restore() | Quote():
                needed = "rewrites"
            case Generate() | Ask():
                needed = "asks"
            case Add():
                needed = "composes"
            case _:
                return ""
        return "" if getattr(self, needed) else needed


def policy(**traits: Any) -> Callable[[Callable[[Answer, Any], Steps | Asking]], Policy]:
    """A decorator that makes a `Policy` of a generator function; traits: its fields."""
    return lambda write: Policy(write, **traits)
