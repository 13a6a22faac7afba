"""Questions asked without passages, with passages in the prompt, as memory units, and with what retrieval finds."""

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace

from ewe.async_llm import AsyncLLM
from ewe.config import Config
from ewe.engine.models.loader import LoadedModel
from ewe.engine.units.unit_text import fill_template
from ewe.errors import ConfigError, InvalidRequestError
from ewe.evaluation.qa_questions import Question, beside
from ewe.evaluation.qa_report import Answer, Timing
from ewe.retrieval.source import PassageSource
from ewe.types import Generation, Passage
from ewe.types.sampling_params import SamplingParams

NOTHING, PROMPT, UNITS, RETRIEVED = "nothing", "in the prompt", "as units", "retrieved"
Key = tuple[type[Answer | Timing], str, str]
"""Of a result: what it is, question, system."""
_IN_PROMPT = "Context: {passages}\n{question}"
_AT_ONCE = 32
_CHANGE = "As revised: "  # in front, where it is in the unit however long the passage is


@dataclass(frozen=True, slots=True)
class System:
    """A way to give passages, and how many: the right one and k - 1 others."""

    place: str
    k: int = 0

    @property
    def name(self) -> str:
        """As results call it."""
        return f"{self.place}, k = {self.k}" if self.k else self.place


@dataclass(frozen=True, slots=True)
class Job:
    """Questions, passages to draw distractors from, systems, tokens per answer; num_timed: asked one at a time.

    first_alone: whether one answer is waited for before the others, which shows how long they may take.
    """

    questions: Sequence[Question]
    pool: Sequence[Passage]
    systems: Sequence[System]
    max_tokens: int
    num_timed: int
    first_alone: bool = False

    def __post_init__(self) -> None:
        most = max(system.k for system in self.systems)
        if most > len(self.pool):
            raise ConfigError(f"{most} passages are asked for, and there are {len(self.pool)}: name fewer with --top-k")

    def missing(self, done: Collection[Key]) -> int:
        """How many answers and timings are still to be made."""
        jobs = [(Answer, question) for question in self.questions]
        timed = [(Timing, question) for question in self.questions[: self.num_timed]]
        keys = [(kind, question.id, system.name) for kind, question in jobs + timed for system in self.systems]
        return sum(key not in done for key in keys)


def systems_of(ks: Sequence[int], has_datastore: bool) -> list[System]:
    """Nothing, then every k in the prompt and as units, then retrieval where there is a datastore."""
    given = [System(place, k) for place in (PROMPT, UNITS) for k in ks]
    return [System(NOTHING), *given, *([System(RETRIEVED)] if has_datastore else [])]


def run(
    job: Job,
    config: Config,
    loaded: LoadedModel,
    datastore: PassageSource | None,
    done: Collection[Key],
    on_result: Callable[[Answer | Timing], None],
) -> None:
    """Asks whatever is not done yet; on_result hears of each result as it is there.

    config: the settings of the engine; what stands in the way of a comparison (verification, other policies) is set.
    """
    for retrieves in (False, True):
        systems = [system for system in job.systems if (system.place == RETRIEVED) == retrieves]
        if not systems or not replace(job, systems=systems).missing(done):
            continue
        settings = _settings(config, max(system.k for system in systems))
        with closing(AsyncLLM(config=settings, loaded=loaded, datastore=datastore if retrieves else None)) as llm:
            asyncio.run(_run(llm, replace(job, systems=systems), done, on_result))


def _settings(config: Config, k: int) -> Config:
    """The same settings with room for k documents; one retrieval by the question, and nothing checked."""
    memory = config.memory.model_copy(update={"retrieval_units": max(k, config.memory.retrieval_units)})
    return config.model_copy(update={"datastore": None, "verifier": "none", "policy": "rag", "memory": memory})


async def _run(llm: AsyncLLM, job: Job, done: Collection[Key], on_result: Callable[[Answer | Timing], None]) -> None:
    places = asyncio.Semaphore(_AT_ONCE)

    async def answer(question: Question, system: System) -> None:
        async with places:
            on_result(await _answer(llm, job, question, system))

    # All systems in one queue, so that a batch is never half empty.
    pairs = [(question, system) for system in job.systems for question in job.questions]
    missing = [pair for pair in pairs if (Answer, pair[0].id, pair[1].name) not in done]
    if missing and job.first_alone:
        await answer(*missing.pop(0))
    await asyncio.gather(*(answer(*pair) for pair in missing))
    for question in job.questions[: job.num_timed]:
        for system in job.systems:
            if (Timing, question.id, system.name) not in done:
                timing = await _time(llm, job, question, system)
                if timing is not None:
                    on_result(timing)


async def _answer(llm: AsyncLLM, job: Job, question: Question, system: System) -> Answer:
    passages = beside(question, job.pool, system.k) if system.k else []
    try:
        generation = await _ask(llm, question, system, passages, job.max_tokens)
    except InvalidRequestError as error:
        return Answer(question.id, system.name, "", exact=False, contained=False, error=str(error))
    text = generation.text.strip()
    return Answer(
        question.id, system.name, text, question.is_exact(text), question.is_contained(text), generation.error
    )


async def _time(llm: AsyncLLM, job: Job, question: Question, system: System) -> Timing | None:
    """What the question costs from nothing, and with one of its passages changed; None if it cannot be asked."""
    passages = beside(question, job.pool, system.k) if system.k else []
    changed = list(passages)
    if changed:
        middle = len(changed) // 2
        changed[middle] = replace(changed[middle], text=_CHANGE + changed[middle].text)
    llm.llm.client.forget_unused_units()
    try:
        first, seconds = await _clocked(llm, question, system, passages)
        then, later = await _clocked(llm, question, system, changed)
    except InvalidRequestError:
        return None
    costs = [(item.stats.prompt_tokens, item.stats.unit_tokens_encoded) for item in (first, then)]
    return Timing(question.id, system.name, *costs[0], seconds, *costs[1], later)


async def _clocked(
    llm: AsyncLLM, question: Question, system: System, passages: Sequence[Passage]
) -> tuple[Generation, float]:
    begin = time.perf_counter()
    generation = await _ask(llm, question, system, passages, max_tokens=1)
    return generation, time.perf_counter() - begin


async def _ask(
    llm: AsyncLLM, question: Question, system: System, passages: Sequence[Passage], max_tokens: int
) -> Generation:
    """The answer to a question as a chat, or as plain text for a model without a chat template."""
    text, params = question.text, SamplingParams(max_tokens=max_tokens)
    documents = list(passages) if system.place == UNITS else None
    if system.place == PROMPT:
        template = llm.llm.config.memory.unit_template
        shown = [fill_template(template, asdict(passage)) for passage in passages]
        text = _IN_PROMPT.format(passages="\n".join(shown), question=text)
    if llm.llm.has_chat_template:
        [generation] = await llm.chat([{"role": "user", "content": text}], params, documents)
    else:
        [generation] = await llm.generate(text, params, documents)
    return generation
