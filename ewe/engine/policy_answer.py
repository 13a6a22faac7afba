"""What a policy sees of the answer that it writes, and what it may note of it."""

from __future__ import annotations

import math
from collections import abc
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ewe.engine.answer_text.circles import goes_in_circles
from ewe.engine.evidence.sentence_checks import Attempt, Progress, SentenceState
from ewe.engine.field_check import check_fields, check_sentences
from ewe.text.quotation import Place, Quotation, quotations
from ewe.text.search_text import is_small_talk
from ewe.text.sentences import code_blocks
from ewe.text.topic import is_about
from ewe.types import Lane, Passage, ScoredPassage, VerificationResult

if TYPE_CHECKING:
    from ewe.engine.answer_text.output_text import OutputText
    from ewe.engine.answer_text.sentence_spans import Span
    from ewe.engine.sampling.sampler import Token
    from ewe.engine.sequence import Sequence
    from ewe.types.protocols import FeedbackBuilder


@dataclass(frozen=True)
class Answer:
    """The answer that a policy writes.

    is_first: of the request's answers; the others begin with what it has in memory. can_retrieve, can_verify: what the
    engine has. prompt_places: how many passages may stand in the prompt; None: they must become units. remembers:
    whether memories are searched, too, in which "What is my name?" finds something. has_entropies: whether tokens'
    entropies are computed.
    """

    sequence: Sequence
    is_first: bool
    can_retrieve: bool
    can_verify: bool
    prompt_places: int | None
    remembers: bool
    feedback: FeedbackBuilder | None
    has_entropies: bool = True

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
    def code_blocks(self) -> list[tuple[int, int]]:
        """Where it is code in fences, by code points; an answer that was begun for the model may begin within one."""
        prefill = self.sequence.request.original.prefill
        return [(start - len(prefill), end - len(prefill)) for start, end in code_blocks(prefill + self.text.text)]

    @property
    def sentences(self) -> abc.Sequence[Span]:
        """Those that have been completed."""
        return self.sequence.output_text.sentences

    def words(self, sentence: int) -> str:
        """The text of a sentence."""
        return self.text.text_of(self.sentences[sentence])

    def tokens(self, sentence: int) -> abc.Sequence[Token]:
        """The tokens of a sentence; it may share the first and the last one with others."""
        span = self.sentences[sentence]
        return self.text.tokens[span.first_token : span.end_token]

    def min_prob(self, sentence: int) -> float:
        """The least token probability in a sentence."""
        return math.exp(min(token.logprob for token in self.tokens(sentence)))

    def entropies(self, sentence: int) -> list[float]:
        """The entropy of each of a sentence's tokens, in nats, of the model's own distribution at temperature 1.

        Raises ValueError where the policy did not ask for them.
        """
        if not self.has_entropies:
            raise ValueError("entropies are computed only for a policy whose @policy says reads_entropy=True")
        return [token.entropy for token in self.tokens(sentence)]

    def mean_entropy(self, sentence: int) -> float:
        """The mean of a sentence's entropies, in nats."""
        entropies = self.entropies(sentence)
        return sum(entropies) / len(entropies)

    def words_without(self, sentence: int, drop: abc.Callable[[Token], bool]) -> str:
        """The text of a sentence with the words of its dropped tokens left out."""
        first, text = self.sentences[sentence].first_token, self.text
        places = [
            (text.end_of(number), text.end_of(number + 1))
            for number, token in enumerate(self.tokens(sentence), first)
            if not drop(token)
        ]
        return "".join(text.text[begin:end] for begin, end in places).strip()

    @property
    def is_finished(self) -> bool:
        """Whether the text has ended; a rewind reopens it."""
        return self.sequence.finish is not None

    @property
    def has_ended_itself(self) -> bool:
        """Whether the model has ended the text, and no stop string or limit."""
        return self.sequence.finish == "stop" and self.text.text_end is None

    @property
    def goes_in_circles(self) -> bool:
        """Whether the sentence that is being written does not end, but repeats itself."""
        begin = self.sentences[-1].end_token if self.sentences else 0
        return not self.is_finished and not self.is_small_talk and goes_in_circles(self.text.ids[begin:])

    @property
    def has_grammar(self) -> bool:
        """Whether it must be JSON, of which nothing can be left out."""
        return self.sequence.grammar is not None

    @property
    def progress(self) -> Progress:
        """How many sentences the policy has dealt with, which it counts; a rewind takes them back, too."""
        return self.sequence.feedback.progress

    @property
    def is_settled(self) -> bool:
        """Whether everything is known of every sentence."""
        return all(self.sequence.feedback.state_of(index) is not None for index in range(len(self.sentences)))

    def is_quoted(self, sentence: int) -> bool:
        """Whether a sentence is one of a passage, put there word for word."""
        state = self.sequence.feedback.state_of(sentence)
        return state is not None and bool(state.quotes)

    def attempts(self, sentence: int) -> list[Attempt]:
        """The wordings of a sentence that have been rejected."""
        return self.sequence.feedback.attempts.setdefault(self.sentences[sentence].start, [])

    def reject(self, sentence: int, state: SentenceState) -> list[Attempt]:
        """Notes that a sentence's wording is not to stay; gives all that were rejected."""
        check_fields(state, SentenceState)
        rejected = self.attempts(sentence)
        rejected.append(Attempt(self.words(sentence), tuple(self.tokens(sentence)), state))
        return rejected

    def settle(self, sentence: int, state: SentenceState) -> None:
        """Says what is known of a sentence; from then on it is shown."""
        check_fields(state, SentenceState)
        check_sentences((sentence,), len(self.sentences))
        self.sequence.feedback.set_state(sentence, state)

    def vary(self, sentence: int | None) -> None:
        """Has a sentence drawn at `retry_temperature` at least, lest the same words come again; None: no longer."""
        if sentence is not None:
            check_sentences((sentence,), len(self.sentences) + 1)
        self.sequence.feedback.retry_sentence = sentence

    def bears_on(self, passage: Passage) -> bool:
        """Whether a passage is about what was asked or what the text names; of memories any may be."""
        return self.remembers or is_about(passage, self.question, self.text.text)

    @property
    def prompt_passages(self) -> list[Passage]:
        """What retrieval has put into the prompt."""
        return [self.sequence.sources[id_] for id_ in sorted(self.sequence.prompt_passages)]

    def quotations(self, sentence: int, result: VerificationResult) -> list[Quotation]:
        """What may stand in a sentence's place, which a check has found this of, or behind the last; the best first.

        From its evidence and that of earlier checks, the retrieved units in memory, and the passages in the prompt.
        None where the prompt may have begun the sentence.
        """
        sequence = self.sequence
        if sentence == 0 and sequence.request.original.prefill:
            return []
        checked = [item.passage for item in (*result.evidence, *sequence.evidence)]
        units = [unit.passage for unit in sequence.memory.units if unit.lane is Lane.RETRIEVAL]
        answering = [item.passage for item in result.answers]
        passages: dict[str, Passage] = {
            passage.id: passage for passage in (*answering, *checked, *units, *self.prompt_passages)
        }
        earlier = [self.words(index) for index in range(sentence)]
        excerpts = [item.excerpt for item in result.evidence]
        wording = self.words(min(sentence, len(self.sentences) - 1)) if self.sentences else ""
        answers = [item.excerpt for item in result.answers]
        return quotations(list(passages.values()), Place(self.question, wording, earlier, excerpts, answers))

    def evidence_of(self, result: VerificationResult) -> list[ScoredPassage]:
        """What a check found, as passages for the verification lane."""
        assert self.feedback is not None
        return [ScoredPassage(passage, 0.0) for passage in self.feedback.build(result)]
