"""LoCoMo's questions asked of a chat model: without memory, with the last turns, and with memories under scorers."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from ewe.config import Config
from ewe.config.memory_mark import MARK, PROMPT_MARK
from ewe.engine.request import Request
from ewe.engine.units.unit_text import fill_template
from ewe.llm import LLM
from ewe.longterm.evaluation.locomo_questions import LoCoMoConversation, LoCoMoQuestion, abstains, is_answered, token_f1
from ewe.longterm.evaluation.locomo_recall import (
    LAST_TURNS,
    NOTHING,
    UNITS,
    ConversationMemories,
    Given,
    last_turns,
    scorer_of,
)
from ewe.longterm.evaluation.locomo_report import LoCoMoAnswer
from ewe.types import Generation, Passage
from ewe.types.sampling_params import SamplingParams

_AT_ONCE = 8  # questions, each with all its systems
_FORM = "{question}\nAnswer in a few words, or with: unknown, if nothing here tells."
_Prompt = tuple[str, tuple[Passage, ...]]
"""What the user says, and the passages that become units."""


@dataclass(frozen=True, slots=True)
class LoCoMoJob:
    """Conversations, what is asked of them, systems, memories per question, and tokens per answer."""

    conversations: Sequence[LoCoMoConversation]
    questions: Sequence[LoCoMoQuestion]
    systems: Sequence[str]
    top_k: int
    max_tokens: int

    def missing(self, done: Collection[tuple[str, str]]) -> list[tuple[LoCoMoQuestion, list[str]]]:
        """Questions with the systems that have not answered them; done: ids of questions and systems."""
        left = [(one, [name for name in self.systems if (one.id, name) not in done]) for one in self.questions]
        return [(one, systems) for one, systems in left if systems]


def locomo_settings(config: Config, top_k: int) -> Config:
    """The same settings with room for `top_k` units that are weighed by their veracity, and nothing else retrieved."""
    memory = {"retrieval_units": max(top_k, config.memory.retrieval_units), "veracity_weighting": "linear"}
    values = {"datastore": None, "verifier": "none", "policy": "plain"}
    return config.model_copy(update={**values, "memory": config.memory.model_copy(update=memory)})


class LoCoMoRun:
    """Asks a model; memories: by the scorers that the systems name."""

    def __init__(self, job: LoCoMoJob, llm: LLM, memories: Mapping[str, ConversationMemories]) -> None:
        self._job, self._llm, self._memories = job, llm, memories
        self._conversations = {one.id: one for one in job.conversations}
        self._params = SamplingParams(max_tokens=job.max_tokens)

    def run(self, done: Collection[tuple[str, str]], on_answer: Callable[[LoCoMoAnswer], None]) -> None:
        """Asks what is not done yet, all systems of a question together; the first question alone, to see the pace."""
        missing = self._job.missing(done)
        for first, last in _lots(len(missing)):
            for answer in self._answers(missing[first:last]):
                on_answer(answer)

    def _answers(self, jobs: Sequence[tuple[LoCoMoQuestion, Sequence[str]]]) -> list[LoCoMoAnswer]:
        begin = time.perf_counter()
        given = {(one.id, name): self._given(one, name) for one, systems in jobs for name in systems}
        prompts = {
            (one.id, name): self._prompt(one, name, given[one.id, name]) for one, systems in jobs for name in systems
        }
        # Scorers often choose the same memories: what would be asked twice is asked once.
        single = list(dict.fromkeys(prompts.values()))
        generations = dict(
            zip(single, self._llm.client.run([self._request(*one) for one in single], None), strict=True)
        )
        seconds = (time.perf_counter() - begin) / len(prompts)
        return [
            self._answer(one, name, given[one.id, name], generations[prompts[one.id, name]], seconds)
            for one, systems in jobs
            for name in systems
        ]

    def _given(self, question: LoCoMoQuestion, system: str) -> Given:
        if system == NOTHING:
            return Given()
        if system == LAST_TURNS:
            return Given(self._last_turns(question))
        return self._memories[scorer_of(system)].given(question, self._job.top_k)

    def _last_turns(self, question: LoCoMoQuestion) -> tuple[Passage, ...]:
        """As many as have at least the tokens of the memories that the search alone brings."""
        memories = next(iter(self._memories.values()), None) if "none" not in self._memories else self._memories["none"]
        least = 0 if memories is None else self._tokens(memories.given(question, self._job.top_k).passages)
        taken: list[Passage] = []
        for passage in last_turns(self._conversations[question.conversation]):
            if taken and self._tokens(taken) >= least:
                break
            taken.insert(0, passage)
        return tuple(taken)

    def _prompt(self, question: LoCoMoQuestion, system: str, given: Given) -> _Prompt:
        words = _FORM.format(question=question.text)
        if system.endswith(UNITS) or not given.passages:
            return words, given.passages
        frame = self._llm.config.memory.frame
        return frame.replace(PROMPT_MARK, words).replace(MARK, self._listed(given.passages)), ()

    def _request(self, words: str, documents: Sequence[Passage]) -> Request:
        if not self._llm.has_chat_template:
            return Request(words, self._params, documents or None)
        [request] = self._llm.chat_requests([{"role": "user", "content": words}], self._params, documents or None)
        return request

    def _answer(
        self, question: LoCoMoQuestion, system: str, given: Given, generation: Generation, seconds: float
    ) -> LoCoMoAnswer:
        text = generation.text.strip()
        units = self._tokens(given.passages) if system.endswith(UNITS) else 0
        return LoCoMoAnswer(
            question=question.id,
            system=system,
            category=question.category,
            text=text,
            contained=bool(question.answer) and is_answered(question, text),
            f1=token_f1(question.answer, text),
            abstained=abstains(text),
            prompt_tokens=generation.stats.prompt_tokens + units,
            confidence=given.confidence,
            cosine=given.cosine,
            wall_s=seconds,
            error=generation.error,
        )

    def _listed(self, passages: Sequence[Passage]) -> str:
        template = self._llm.config.memory.unit_template
        return "\n".join(fill_template(template, asdict(passage)) for passage in passages)

    def _tokens(self, passages: Sequence[Passage]) -> int:
        return len(self._llm.tokenizer.encode(self._listed(passages), add_special_tokens=False))


def _lots(count: int) -> Iterator[tuple[int, int]]:
    first = 0
    while first < count:
        last = min(first + (_AT_ONCE if first else 1), count)
        yield first, last
        first = last
