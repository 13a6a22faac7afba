"""What a policy asks of the engine and what it is told: the words that its generator yields and receives.

A policy is a generator function `(answer, settings)`. The engine runs one for every answer and resumes it when
something has happened; many answers are written in one batch, and none waits for another's policy.
"""

from __future__ import annotations

from collections import abc
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from ewe.config import FeedbackConfig, PipelineConfig
from ewe.engine.sentence_checks import Attempt, Progress, SentenceState
from ewe.engine.side_texts import Asking, SideEffect
from ewe.text.check_result import why_no_claim
from ewe.text.quotation import Place, Quotation, quotations
from ewe.text.search_text import is_small_talk
from ewe.types import Lane, Passage, ScoredPassage, VerificationResult

if TYPE_CHECKING:
    from ewe.engine.output_text import OutputText, Span
    from ewe.engine.sequence import Sequence
    from ewe.engine.wordings import Wording
    from ewe.engine.workers import Job
    from ewe.types.protocols import FeedbackBuilder

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
    under.
    """

    sentences: tuple[int, ...]
    wait: bool = True


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

    Otherwise nothing has changed: its tokens would not give its words, or the answer has no room for it.
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
    """Has wordings checked in one batch (`Judged`), of which none is in the text."""

    wordings: tuple[Wording, ...]


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


# --- What it sees.


@dataclass(frozen=True)
class Answer:
    """The answer that a policy writes.

    is_first: of the request's answers; the others begin with what it has in memory. can_retrieve, can_verify: what the
    engine has. prompt_places: how many passages may stand in the prompt; None: they must become units. remembers:
    whether memories are searched, too, in which "What is my name?" finds something.
    """

    sequence: Sequence
    is_first: bool
    can_retrieve: bool
    can_verify: bool
    prompt_places: int | None
    remembers: bool
    feedback: FeedbackBuilder | None

    @cached_property
    def question(self) -> str:
        """What retrieval is told of the prompt."""
        return self.sequence.request.question

    @cached_property
    def is_small_talk(self) -> bool:
        """Whether the question names nothing that could be looked up."""
        return not self.remembers and is_small_talk(self.question)

    @property
    def text(self) -> OutputText:
        """What has been written: tokens, probabilities, characters."""
        return self.sequence.output_text

    @property
    def sentences(self) -> abc.Sequence[Span]:
        """Those that have been completed."""
        return self.sequence.output_text.sentences

    def words(self, sentence: int) -> str:
        """The text of a sentence."""
        return self.text.text_of(self.sentences[sentence])

    @property
    def is_finished(self) -> bool:
        """Whether the text has ended; a rewind reopens it."""
        return self.sequence.finish is not None

    @property
    def has_grammar(self) -> bool:
        """Whether it must be JSON, of which nothing can be left out."""
        return self.sequence.grammar is not None

    @property
    def progress(self) -> Progress:
        """How many sentences the policy has dealt with, which it counts; a rewind takes them back, too."""
        return self.sequence.feedback.progress

    def attempts(self, sentence: int) -> list[Attempt]:
        """The wordings of a sentence that have been rejected."""
        return self.sequence.feedback.attempts.setdefault(self.sentences[sentence].start, [])

    def reject(self, sentence: int, state: SentenceState) -> list[Attempt]:
        """Notes that a sentence's wording is not to stay; gives all that were rejected."""
        span, rejected = self.sentences[sentence], self.attempts(sentence)
        tokens = tuple(self.text.tokens[span.first_token : span.end_token])
        rejected.append(Attempt(self.text.text_of(span), tokens, state))
        return rejected

    def settle(self, sentence: int, state: SentenceState) -> None:
        """Says what is known of a sentence; from then on it is shown."""
        self.sequence.feedback.set_state(sentence, state)

    def vary(self, sentence: int | None) -> None:
        """Has a sentence drawn at `retry_temperature` at least, lest the same words come again; None: no longer."""
        self.sequence.feedback.hot_sentence = sentence

    def quotations(self, sentence: int, result: VerificationResult) -> list[Quotation]:
        """What may stand in a sentence's place, which a check has found this of; the best first.

        From its evidence and that of earlier checks, the retrieved units in memory, and the passages in the prompt.
        """
        sequence = self.sequence
        checked = [item.passage for item in (*result.evidence, *sequence.evidence)]
        units = [unit.passage for unit in sequence.memory.units if unit.lane is Lane.RETRIEVAL]
        in_prompt = [sequence.sources[id_] for id_ in sorted(sequence.prompt_passages)]
        passages: dict[str, Passage] = {passage.id: passage for passage in (*checked, *units, *in_prompt)}
        said = [self.words(index) for index in range(sentence)]
        excerpts = [item.excerpt for item in result.evidence]
        return quotations(list(passages.values()), Place(self.question, self.words(sentence), said, excerpts))

    def evidence_of(self, result: VerificationResult) -> list[ScoredPassage]:
        """What a check found, as passages for the verification lane."""
        assert self.feedback is not None
        return [ScoredPassage(passage, 0.0) for passage in self.feedback.build(result)]


def _never(settings: FeedbackConfig) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy and what the engine must know before it runs.

    retrieves, verifies: which components it makes use of; needs_retriever: whether it is plain decoding without one.
    rewrites: whether text is held back until `Answer.settle`, as it may be rewound (if it verifies: by what checks
    find). reads_entropy: whether it asks for tokens' entropies. captures: what the pool keeps of every token beside its
    keys and values: "hidden" states to copy passages by, or "queries" to tell what was attended to. asks: whether it
    has further texts written (`ewe.engine.side_texts`), each answer its own; it then gets the settings `pipeline`, not
    `feedback`. composes: whether the answer is put together with Add, and so has no log-probabilities.
    """

    write: Callable[[Answer, Any], Steps | Asking]
    retrieves: bool = False
    verifies: bool = False
    needs_retriever: bool = False
    rewrites: bool = False
    reads_entropy: Callable[[FeedbackConfig], bool] = _never
    captures: Literal["hidden", "queries"] | None = None
    asks: bool = False
    composes: bool = False

    def __call__(self, answer: Answer, settings: FeedbackConfig | PipelineConfig) -> Steps | Asking:
        """Begins it for one answer."""
        return self.write(answer, settings)


def policy(**traits: Any) -> Callable[[Callable[[Answer, Any], Steps | Asking]], Policy]:
    """A decorator that makes a `Policy` of a generator function; traits: its fields."""
    return lambda write: Policy(write, **traits)
