"""Does a model read its memory? Questions about invented things, asked in every way that memory can be given."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import get_args

from ewe.config import Config, MemoryConfig
from ewe.config.setting_names import AUTO
from ewe.engine.models.loader import LoadedModel
from ewe.evaluation.qa_questions import Question, read_questions
from ewe.evaluation.qa_report import Answer, Timing
from ewe.evaluation.qa_run import NOTHING, PROMPT, UNITS, Job, System, run

SEVERAL = 4  # passages at once, of which one is right
_NOTHING, _ONE, _ONE_UNIT = System(NOTHING), System(PROMPT, 1), System(UNITS, 1)
_SEVERAL, _SEVERAL_UNITS = System(PROMPT, SEVERAL), System(UNITS, SEVERAL)
# Questions that are asked, with a passage alone and else: enough to tell reading from not reading within a minute.
_ASKED_WITH_ONE, _ASKED_ELSE = 12, 8
_MAX_TOKENS = 24
# Shares of the right answers that the prompt gives: from the first on memory is read, from the second on in part.
_READS, _IN_PART = 0.8, 0.4
_KNOWS = 0.25  # share of questions answered without a passage from which on the rest says little
_READS_PROMPTS = 0.5  # share of questions that a model answers which makes use of a passage in its prompt


@dataclass(frozen=True, slots=True)
class Score:
    """How many questions were answered rightly, of how many that were asked."""

    right: int = 0
    total: int = 0

    @property
    def share(self) -> float:
        """In [0, 1]; 0 where nothing was asked."""
        return self.right / self.total if self.total else 0.0

    def __str__(self) -> str:
        return f"{self.right} of {self.total}" if self.total else "-"


@dataclass(frozen=True, slots=True)
class Reading:
    """What was answered with one passage, and with several; placement: empty for prompts."""

    placement: str
    one: Score
    several: Score


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was measured: with nothing, in the prompt, and as units under every placement."""

    nothing: Score
    prompt: Reading
    units: tuple[Reading, ...]

    @property
    def best(self) -> Reading:
        """The placement under which most is read."""
        return max(self.units, key=lambda reading: (reading.one.share + reading.several.share, reading.one.share))

    @property
    def reads(self) -> bool:
        """Whether one unit is read, at least in part."""
        return self.prompt.one.right > 0 and self.best.one.share >= _IN_PART * self.prompt.one.share

    @property
    def reads_well(self) -> bool:
        """Whether one unit is read about as well as the same passage in the prompt."""
        return self.reads and self.best.one.share >= _READS * self.prompt.one.share


@dataclass(slots=True)
class Tally:
    """The answers so far, by placement (empty without units) and system; their diagnosis can be read at any time."""

    right: Counter[tuple[str, System]] = field(default_factory=Counter)
    answered: Counter[tuple[str, System]] = field(default_factory=Counter)

    @property
    def diagnosis(self) -> Diagnosis:
        """What the answers say so far."""
        units = tuple(self._reading(name, _ONE_UNIT, _SEVERAL_UNITS) for name in placements())
        return Diagnosis(self._score("", _NOTHING), self._reading("", _ONE, _SEVERAL), units)

    def _reading(self, placement: str, one: System, several: System) -> Reading:
        return Reading(placement, self._score(placement, one), self._score(placement, several))

    def _score(self, placement: str, system: System) -> Score:
        return Score(self.right[placement, system], self.answered[placement, system])


def builtin_questions() -> list[Question]:
    """The twenty questions; no text says what they ask for but their own passages."""
    return read_questions(Path(str(files("ewe.evaluation"))) / "doctor.jsonl")


def placements() -> tuple[str, ...]:
    """The values of `memory.placement` that say where units stand."""
    return tuple(name for name in get_args(MemoryConfig.model_fields["placement"].annotation) if name != AUTO)


def diagnose(
    config: Config, loaded: LoadedModel, tally: Tally, on_answer: Callable[[], object] = lambda: None
) -> Diagnosis:
    """Asks the model, and tells `tally` of each of at most `most_answers()` answers, then `on_answer`.

    Once a unit is read as well as the prompt is, no further placement is tried.
    """
    _ask("", config, loaded, (_NOTHING, _ONE, _SEVERAL), tally, on_answer)
    for placement in placements():
        settings = config.override([f"memory.placement={placement}"])
        _ask(placement, settings, loaded, (_ONE_UNIT, _SEVERAL_UNITS), tally, on_answer)
        if tally.diagnosis.reads_well:
            break
    return tally.diagnosis


def _ask(
    placement: str,
    config: Config,
    loaded: LoadedModel,
    systems: tuple[System, ...],
    tally: Tally,
    on_answer: Callable[[], object],
) -> None:
    questions, by_name = builtin_questions(), {system.name: system for system in systems}

    def take(result: Answer | Timing) -> None:
        key = placement, by_name[result.system]
        tally.answered[key] += 1
        tally.right[key] += isinstance(result, Answer) and result.contained
        on_answer()

    pool = [question.passage for question in questions]
    job = Job(questions, pool, systems, _MAX_TOKENS, num_timed=0)
    run(job, config, loaded, None, set(_left_out(questions, systems)), take)


def _left_out(questions: list[Question], systems: Iterable[System]) -> list[tuple[type[Answer], str, str]]:
    """What is not asked."""
    limits = {system: _ASKED_WITH_ONE if system.k == 1 else _ASKED_ELSE for system in systems}
    return [(Answer, question.id, system.name) for system in systems for question in questions[limits[system] :]]


def most_answers() -> int:
    """How many answers `diagnose` takes where it tries every placement."""
    questions, units = builtin_questions(), (_ONE_UNIT, _SEVERAL_UNITS)
    systems = [_NOTHING, _ONE, _SEVERAL, *(system for _ in placements() for system in units)]
    left_out = sum(len(_left_out(questions, [system])) for system in systems)
    return len(questions) * len(systems) - left_out


def verdict(diagnosis: Diagnosis) -> list[str]:
    """What was found in words, and what to set, a sentence each."""
    prompt, best = diagnosis.prompt, diagnosis.best
    if prompt.one.share < _READS_PROMPTS:
        sentences = [
            "This model makes little use of a passage even in its prompt: memory cannot do better. Take another model."
        ]
    elif best.one.share < _IN_PART * prompt.one.share:
        sentences = [
            "This model does not read its memory: what it answers from its prompt it does not answer from a unit."
        ]
    else:
        how = "reads" if diagnosis.reads_well else "reads in part"
        sentences = [f"This model {how} one unit: {best.one} right answers, {prompt.one} from its prompt."]
        if best.several.share < _READS * prompt.several.share:
            sentences.append(
                f"Of {SEVERAL} units at once it reads less ({best.several}, {prompt.several} from its prompt): "
                "keep few, with memory.retrieval_units and feedback.retrieval_top_k, or take an adapter trained for it."
            )
    if best.placement and diagnosis.reads:
        sentences.append(f"Set memory.placement to {best.placement}.")
    if diagnosis.nothing.share > _KNOWS:
        sentences.append(f"It answers {diagnosis.nothing} without any passage, so the figures say little.")
    return sentences
