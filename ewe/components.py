"""The parts that look outside the model, as the settings or the caller name them: retriever, verifier, memories.

Nothing here imports torch: what is wrong is refused before any weights are read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ewe.config import Config
from ewe.config.addons import longterm
from ewe.config.lazy import warm
from ewe.config.loading import LoadStep, OnLoad, ignore_step
from ewe.config.registry import VERIFIERS, verifies
from ewe.config.setting_names import AUTO, BUILTIN_JUDGE, NONE, WRITER
from ewe.engine.startup.engine_summary import DatastoreSummary, EngineSummary, public_name
from ewe.errors import ConfigError
from ewe.open_datastore import is_given, open_datastore
from ewe.types.protocols import Memories, Retriever, Verifier

if TYPE_CHECKING:
    from ewe.engine.evidence.shared_judge import Run, SharedJudge
    from ewe.engine.models.loader import LoadedModel
    from ewe.retrieval.source import PassageSource

_UNASKED = "claims"  # the verifier that "auto" stands for


@dataclass(frozen=True, slots=True)
class Components:
    """The parts that look outside the model; None where there is none.

    summary: what is on. judge: what is to be attached to the engine.
    """

    retriever: Retriever | None
    verifier: Verifier | None
    memories: Memories | None = None
    summary: EngineSummary | None = None
    judge: SharedJudge | None = None

    @property
    def has_any(self) -> bool:
        """Whether anything brings texts into the memory."""
        return self.can_retrieve or self.verifier is not None

    @property
    def can_retrieve(self) -> bool:
        """Whether there are passages or memories to search; there may be none in them yet."""
        return self.retriever is not None or self.memories is not None

    def attached(self, run: Run, loaded: LoadedModel, on_load: OnLoad) -> Components:
        """The same for an engine that runs: the judge that is its own model, if there is one, is told of it.

        run: gives the answers to requests. Raises JudgeError if the model or the adapter cannot judge.
        """
        if self.judge is None:
            return self
        self.judge.attach(run, loaded, on_load)
        return replace(self, summary=self.summary and replace(self.summary, judge=self.judge.description))

    def warm(self, on_load: OnLoad = ignore_step) -> None:
        """Loads the models that retriever, verifier and memories would load with their first request."""
        for name, part in (("retriever", self.retriever), ("verifier", self.verifier), ("memories", self.memories)):
            if part is not None:
                on_load(LoadStep(f"warming the {name}"))
                warm(part)

    def close(self) -> None:
        """Ends what runs beside the engine."""
        if self.memories is not None:
            self.memories.close()


def check_verifier_of(config: Config) -> None:
    """Refuses a verifier that cannot be had, before anything is opened for it; raises ConfigError or JudgeError."""
    has_datastore = is_given(config.datastore)
    chosen = _chosen(config.verifier, has_datastore, config)
    _refuse_unusable(chosen, has_datastore, config)
    if config.verification.judge == WRITER:
        _shared_judge(chosen, config)


def make_components(
    config: Config,
    datastore: str | Path | PassageSource | Retriever | None,
    verifier: str | Verifier | None,
    memories: Any = None,
    on_load: OnLoad = ignore_step,
    has_model: bool = False,
) -> Components:
    """The retriever, verifier and memories that the settings or the caller name; objects are used as they are.

    The verifier "auto" is "claims" where there are a datastore, a policy that checks and room for feedback, else none.
    on_load: hears of the datastore as it is opened, and of passages that are indexed on the way. has_model: whether the
    model is in memory already. Raises ConfigError for names that are not known, or a verifier by name without a
    datastore; JudgeError for a judge that cannot be had; DatastoreError for passages or a store of memories that cannot
    be opened.
    """
    source = datastore if datastore is not None else config.datastore
    named = verifier if verifier is not None else config.verifier
    chosen = _chosen(named, is_given(source), config)
    _refuse_unusable(chosen, is_given(source), config)
    if chosen != NONE and config.policy == "ewe" and not config.memory.verification_units:
        raise ConfigError(
            "verification needs a place for its feedback: set memory.verification_units to 1 or more, "
            "or verifier to none"
        )
    judge = _shared_judge(chosen, config, has_model)
    retriever, summary = open_datastore(source, config.retrieval, on_load)
    checker = None if chosen == NONE else _open_verifier(chosen, config, retriever, judge=judge)
    live: Memories | None = None
    if memories is not None or config.longterm.path is not None:
        live = longterm("open_memories").open_memories(config, retriever, checker, memories)
    return Components(retriever, checker, live, _summary(config, summary, named, chosen, live is not None), judge)


def memory_store(given: Any) -> tuple[Any, str | Path | None]:
    """The service of memories that was given, if it was one, and the place of the store. Raises ConfigError."""
    if given is None or isinstance(given, str | Path):
        return None, given
    return given, longterm("open_memories").place_of(given)


def open_checker(config: Config, retriever: Retriever, is_complete: bool | None = None) -> Verifier:
    """What checks finished texts; is_complete: whether the passages tell everything (None: feedback.closed_world)."""
    name = _UNASKED if config.verifier in (AUTO, NONE) else config.verifier
    return _open_verifier(name, config, retriever, is_complete)


def writing_judge(config: Config) -> str | None:
    """The judge by whose word sentences are checked while they are written, None where no judge checks them."""
    chosen = _chosen(config.verifier, config.datastore is not None, config)
    return _judge_name(config) if chosen == _UNASKED and verifies(config.policy) else None


def _judge_name(config: Config) -> str:
    """What decides first, or alone."""
    return BUILTIN_JUDGE if config.verification.judge == AUTO else config.verification.judge


def _chosen(named: str | Verifier, has_datastore: bool, config: Config) -> str | Verifier:
    """What "auto" stands for here; anything else as it is."""
    if named != AUTO:
        return named
    checks = verifies(config.policy) and (config.policy != "ewe" or config.memory.verification_units)
    return _UNASKED if has_datastore and checks else NONE


def _refuse_unusable(verifier: Any, has_datastore: bool, config: Config) -> None:
    """Refuses a verifier that cannot be had, before passages are read for it."""
    if verifier == NONE:
        return
    if isinstance(verifier, str):
        from ewe.verification.open_verifier import check_verifier

        check_verifier(verifier, has_datastore, config.verification, config.model.device)
    elif not isinstance(verifier, Verifier):
        known = ", ".join(VERIFIERS.names)
        raise ConfigError(
            f"the verifier must be one of {known}, or have a verify() method, got {type(verifier).__name__}"
        )


def _shared_judge(verifier: str | Verifier, config: Config, has_model: bool = False) -> SharedJudge | None:
    """The judge of claims, if it is the model that writes; raises ConfigError or JudgeError for one that cannot be had.

    The verifier asks it, and the engine holds the verifier: so it is attached to the engine once that is there.
    """
    if verifier != _UNASKED:
        return None
    from ewe.engine.evidence.open_shared_judge import shared_judge

    return shared_judge(config, has_model)


def _open_verifier(
    chosen: str | Verifier,
    config: Config,
    retriever: Retriever | None,
    is_complete: bool | None = None,
    judge: SharedJudge | None = None,
) -> Verifier:
    if not isinstance(chosen, str):
        return chosen
    from ewe.verification.open_verifier import open_verifier

    return open_verifier(
        chosen,
        retriever,
        config.judging,
        device=config.model.device,
        veracity_weighting=config.memory.veracity_weighting != "off",
        assume_complete=config.feedback.closed_world if is_complete is None else is_complete,
        judge=judge,
    )


def _summary(
    config: Config,
    datastore: DatastoreSummary | None,
    named: str | Verifier,
    chosen: str | Verifier,
    longterm_memory: bool,
) -> EngineSummary:
    """What is on, with the verifier as it was named and as it was chosen."""
    if not verifies(config.policy):
        unchecked = f"policy {config.policy} checks nothing"
    elif chosen != NONE:
        unchecked = ""
    elif datastore is None:
        unchecked = "there is no datastore"
    else:
        unchecked = "verifier none" if named == NONE else "memory.verification_units is 0"
    return EngineSummary(
        policy=config.policy,
        datastore=datastore,
        verifier=chosen if isinstance(chosen, str) else type(chosen).__name__,
        judge=public_name(_judge_name(config)) if chosen == _UNASKED else None,
        unchecked=unchecked,
        longterm_memory=longterm_memory,
    )
