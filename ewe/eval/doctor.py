"""Does a model read its memory? Twenty questions about invented things, asked in every way that memory can be given."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import get_args

from ewe.config import Config, MemoryConfig
from ewe.engine.loader import LoadedModel
from ewe.eval.qa_questions import Question, read_questions
from ewe.eval.qa_report import Answer, Timing
from ewe.eval.qa_run import NOTHING, PROMPT, UNITS, Job, System, run
from ewe.vocabulary import AUTO

SEVERAL = 4  # passages at once, of which one is right
_MAX_TOKENS = 24
# Shares of the right answers that the prompt gives: from the first on memory is read, from the second on in part.
_READS, _IN_PART = 0.8, 0.4
_READS_PROMPTS = 0.5  # share of questions that a model answers which makes use of a passage in its prompt


@dataclass(frozen=True, slots=True)
class Reading:
    """How many of `total` questions were answered with one passage, and with several; placement: empty for prompts."""

    placement: str
    one: int
    several: int
    total: int


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was measured: with nothing, in the prompt, and as units under every placement."""

    nothing: int
    prompt: Reading
    units: tuple[Reading, ...]

    @property
    def best(self) -> Reading:
        """The placement under which most is read."""
        return max(self.units, key=lambda reading: (reading.one + reading.several, reading.one))

    @property
    def reads(self) -> bool:
        """Whether one unit is read, at least in part."""
        return self.prompt.one > 0 and self.best.one >= _IN_PART * self.prompt.one


def builtin_questions() -> list[Question]:
    """The twenty questions; no text says what they ask for but their own passages."""
    return read_questions(Path(str(files("ewe"))) / "eval" / "doctor.jsonl")


def placements() -> tuple[str, ...]:
    """The values of `memory.placement` that say where units stand."""
    return tuple(name for name in get_args(MemoryConfig.model_fields["placement"].annotation) if name != AUTO)


def diagnose(config: Config, loaded: LoadedModel, on_answer: Callable[[], object] = lambda: None) -> Diagnosis:
    """Asks the model; on_answer is called after each of `num_answers()` answers."""
    questions = builtin_questions()
    pool = [question.passage for question in questions]

    def ask(settings: Config, systems: Sequence[System]) -> Mapping[str, int]:
        right = {system.name: 0 for system in systems}

        def take(found: Answer | Timing) -> None:
            right[found.system] += isinstance(found, Answer) and found.contained
            on_answer()

        run(Job(questions, pool, systems, _MAX_TOKENS, num_timed=0), settings, loaded, None, (), take)
        return right

    def reading(placement: str, right: Mapping[str, int], place: str) -> Reading:
        one, several = (right[System(place, k).name] for k in (1, SEVERAL))
        return Reading(placement, one, several, len(questions))

    first = ask(config, [System(NOTHING), System(PROMPT, 1), System(PROMPT, SEVERAL)])
    units = []
    for placement in placements():
        settings = config.override([f"memory.placement={placement}"])
        units.append(reading(placement, ask(settings, [System(UNITS, 1), System(UNITS, SEVERAL)]), UNITS))
    return Diagnosis(first[NOTHING], reading("", first, PROMPT), tuple(units))


def num_answers() -> int:
    """How many answers `diagnose` takes."""
    return len(builtin_questions()) * (3 + 2 * len(placements()))


def verdict(found: Diagnosis) -> list[str]:
    """What was found in words, and what to set, a sentence each."""
    prompt, best = found.prompt, found.best
    if prompt.one < _READS_PROMPTS * prompt.total:
        said = [
            "This model makes little use of a passage even in its prompt: memory cannot do better. Take another model."
        ]
    elif best.one < _IN_PART * prompt.one:
        said = ["This model does not read its memory: what it answers from its prompt it does not answer from a unit."]
    else:
        how = "reads" if best.one >= _READS * prompt.one else "reads in part"
        said = [f"This model {how} one unit: {best.one} right answers, {prompt.one} from its prompt."]
        if best.several < _READS * prompt.several:
            said.append(
                f"Of {SEVERAL} units at once it reads less ({best.several}, {prompt.several} from its prompt): "
                "keep few, with memory.retrieval_units and feedback.retrieval_top_k, or take an adapter trained for it."
            )
    if best.placement and found.reads:
        said.append(f"Set memory.placement to {best.placement}.")
    if found.nothing > prompt.total // 4:
        said.append(f"It answers {found.nothing} of {prompt.total} without any passage, so the figures say little.")
    return said
