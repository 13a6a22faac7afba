"""Has every system answer every prompt, and every answer graded and compared, as far as that is not done yet."""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from itertools import product

from ewe.async_llm import AsyncLLM
from ewe.config import Config, ModelConfig
from ewe.engine.models.loader import LoadedModel, load_model
from ewe.errors import EWEError, InvalidRequestError, JudgeError
from ewe.evaluation.factuality import Answer, Found, Grade, Preference, Record
from ewe.evaluation.graders import Graded, Grader, Part, compare
from ewe.evaluation.prompt_sets import Item
from ewe.evaluation.systems import System
from ewe.types import Generation, GenerationStats
from ewe.types.sampling_params import SamplingParams
from ewe.verification.endpoint.protocol import Completer

_MOST_FAILURES = 3  # of a judge in a row; then it is taken for broken
_COMPARED_AT_ONCE = 16  # answers, each shown in both orders


@dataclass(frozen=True, slots=True)
class Job:
    """What is evaluated. The seed in `params` is that of the first prompt; comparer: judges which answer is better."""

    config: Config
    systems: Sequence[System]
    parts: Sequence[Part]
    params: SamplingParams
    baseline: str
    comparer: Completer | None = None

    def total(self) -> int:
        """How many records a finished run has."""
        items = sum(len(part.items) for part in self.parts)
        compared = 0 if self.comparer is None else len(self.systems) - 1
        return 2 * self.total_answers() + items * compared

    def total_answers(self) -> int:
        """How many of them are answers."""
        return len(self.systems) * sum(len(part.items) for part in self.parts)


def run(job: Job, recorded: Found, on_record: Callable[[Record], None]) -> None:
    """Makes what `recorded` lacks; on_record hears of each record, which is in `recorded` by then.

    An answer that cannot be had is recorded with its error. So is a grade or a comparison, to be tried again by the
    next run; after three of them in a row JudgeError is raised.
    """

    def take(record: Record) -> None:
        recorded.add(record)
        on_record(record)

    write(job, recorded, take)
    judged = _patient(take)
    for part in job.parts:
        for item, system in product(part.items, job.systems):
            if recorded.lacks_grade((system.name, item.id)):
                judged(_grade(part.grader, item, recorded.answers[system.name, item.id]))
    if job.comparer is not None:
        _compare(job, job.comparer, recorded, _patient(take))


def write(job: Job, recorded: Found, take: Callable[[Record], None]) -> None:
    """Has the answers written that are not there yet."""
    loaded: tuple[ModelConfig, LoadedModel] | None = None
    for system, part in product(job.systems, job.parts):
        items = [item for item in part.items if (system.name, item.id) not in recorded.answers]
        if not items:
            continue
        config = job.config.override(system.settings)
        is_first = loaded is None
        if loaded is None or loaded[0] != config.model:
            loaded = config.model, load_model(config.model, pool_gib=config.cache.memory_gib)
        with closing(AsyncLLM(config=config, loaded=loaded[1], datastore=part.datastore)) as llm:
            asyncio.run(_write_all(llm, system, items, job.params, take, first_alone=is_first))


async def _write_all(
    llm: AsyncLLM,
    system: System,
    items: Sequence[Item],
    params: SamplingParams,
    take: Callable[[Record], None],
    first_alone: bool,
) -> None:
    """first_alone: whether the first is written alone, so that its time tells what the others will take.

    What retriever and verifier load is loaded before, and counts for nobody.
    """
    await asyncio.to_thread(llm.llm.client.components.warm)
    places = asyncio.Semaphore(2 * llm.llm.config.scheduler.places)
    last = time.monotonic()

    async def answer(item: Item, alone: bool = False) -> None:
        nonlocal last
        async with places:
            answered = await _write(llm, item, replace(params, seed=(params.seed or 0) + item.number))
        wall_s, last = time.monotonic() - last, time.monotonic()
        stats = asdict(answered.stats)
        text, reason = answered.text.strip(), answered.finish_reason
        take(Answer(system.name, item.id, text, reason, answered.error, wall_s, stats, alone))

    if first_alone:
        await answer(items[0], alone=len(items) > 1)
    await asyncio.gather(*map(answer, items[1:] if first_alone else items))


async def _write(llm: AsyncLLM, item: Item, params: SamplingParams) -> Generation:
    """The answer to one prompt, as a chat where the model takes them; retrieval is told the bare question."""
    chats = llm.llm.has_chat_template
    try:
        prompt = llm.llm.chat_prompt([{"role": "user", "content": item.text}]) if chats else item.text
        events = llm.stream(prompt, params, add_special_tokens=not chats, question=item.question)
        *_, last = [event async for event in events]
    except InvalidRequestError as error:
        return Generation(item.text, "", (), "error", (), {}, GenerationStats(), (), error=str(error))
    generation: Generation = last.generation
    return generation


def _grade(grader: Grader, item: Item, answer: Answer) -> Grade:
    try:
        graded = grader.grade(item, answer.text) if answer.text else Graded()
    except EWEError as error:
        return Grade(answer.system, answer.prompt, error=str(error))
    claims = [[claim.text, claim.verdict.value] for claim in graded.claims]
    return Grade(
        answer.system,
        answer.prompt,
        claims,
        graded.unread,
        off_subject=graded.off_subject,
        sentences=graded.sentences,
        repeated=graded.repeated,
    )


def _compare(job: Job, comparer: Completer, recorded: Found, take: Callable[[Preference], None]) -> None:
    """Compares every answer with the baseline's to the same prompt, both orders."""
    questions = {item.id: item.question for part in job.parts for item in part.items}
    keys = [
        (system.name, prompt)
        for prompt, system in product(questions, job.systems)
        if recorded.lacks_preference((system.name, prompt), job.baseline)
    ]
    for first in range(0, len(keys), _COMPARED_AT_ONCE):
        batch = keys[first : first + _COMPARED_AT_ONCE]
        pairs = [
            (questions[prompt], recorded.answers[system, prompt].text, recorded.answers[job.baseline, prompt].text)
            for system, prompt in batch
        ]
        for (system, prompt), outcome in zip(batch, compare(comparer, pairs), strict=True):
            error = str(outcome) if isinstance(outcome, EWEError) else ""
            take(Preference(system, prompt, job.baseline, outcome if isinstance(outcome, list) else (), error))


def _patient(take: Callable[[Record], None]) -> Callable[[Grade | Preference], None]:
    """Passes records on, and raises JudgeError after too many failures in a row."""
    failures = 0

    def passed(record: Grade | Preference) -> None:
        nonlocal failures
        take(record)
        failures = failures + 1 if record.error else 0
        if failures == _MOST_FAILURES:
            raise JudgeError(
                f"the judge failed {failures} times in a row, the last time with: {record.error}. With --output all "
                "that is there by now is kept: run again to go on"
            )

    return passed
