"""Building an engine from its settings: model, pool, memory, components, loop.

Owns: which concrete part stands behind each protocol. With `llm.py` it is the one place that knows them all.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ewe.config import Config, LongTermConfig, RetrievalConfig
from ewe.engine import calls
from ewe.engine.budget import MemoryBudget, cache_dtype, make_pool, plan_memory
from ewe.engine.compiled import compile_layers
from ewe.engine.core import EngineCore
from ewe.engine.grammar import Grammars
from ewe.engine.intake import Intake, Limits
from ewe.engine.loader import LoadedModel, load_model
from ewe.engine.model_runner import ModelRunner, layer_shapes
from ewe.engine.out_of_memory import FrugalRunner, Runner
from ewe.engine.pauses import Pauses
from ewe.engine.policies import make_policy
from ewe.engine.precompute import open_precomputed
from ewe.engine.refresh import MemoryKeeper
from ewe.engine.rewriter import Rewriter
from ewe.engine.scheduler import Scheduler
from ewe.engine.sequence import Sequence
from ewe.engine.workers import Worker
from ewe.errors import ConfigError
from ewe.kvcache.block_manager import BlockManager
from ewe.kvcache.pool import KVPool
from ewe.longterm.live import LiveMemories, LiveRules
from ewe.longterm.open import open_service
from ewe.longterm.reviews import BackgroundReviews
from ewe.longterm.service import MemoryService
from ewe.memory.precomputed import PrecomputedUnits
from ewe.memory.unit_cache import UnitCache
from ewe.memory.unit_text import UnitTokenizer
from ewe.protocols import Retriever, Verifier
from ewe.retrieval.open import open_retriever
from ewe.retrieval.source import PassageSource
from ewe.types import Generation
from ewe.verification.claim_verifier import ClaimVerifier
from ewe.verification.feedback import PassageFeedback
from ewe.verification.judges.cached import CachedJudge
from ewe.verification.judges.load import load_judge
from ewe.verification.judges.protocol import Judge
from ewe.verification.open import open_verifier
from ewe.verification.value_verifier import ValueVerifier
from ewe.world.builtin import builtin_datastore


@dataclass(frozen=True, slots=True)
class Components:
    """The parts that look outside the model; None where there is none."""

    retriever: Retriever | None
    verifier: Verifier | None
    memories: LiveMemories | None = None

    def close(self) -> None:
        """Ends what runs beside the engine."""
        if self.memories is not None:
            self.memories.close()


@dataclass(frozen=True, slots=True)
class Engine:
    """The parts of a running engine that its owner needs."""

    config: Config
    loaded: LoadedModel
    core: EngineCore
    intake: Intake
    manager: BlockManager
    keeper: MemoryKeeper
    unit_tokenizer: UnitTokenizer | None
    changed: threading.Event
    pool: KVPool
    precomputed: PrecomputedUnits | None
    budget: MemoryBudget | None


def make_components(
    config: Config,
    datastore: str | Path | PassageSource | Retriever | None,
    verifier: str | Verifier | None,
    memories: MemoryService | None = None,
) -> Components:
    """The retriever, verifier and memories that the settings or the caller name; objects are used as they are.

    Raises ConfigError for names that are not known, or a verifier by name without a datastore; DatastoreError for a
    store of memories that cannot be opened.
    """
    source = datastore if datastore is not None else config.datastore
    retriever = _retriever(source, config.retrieval)
    chosen = verifier if verifier is not None else config.verifier
    if isinstance(chosen, str):
        chosen = open_verifier(
            chosen,
            retriever,
            config.verification,
            device=config.model.device,
            veracity_weighting=config.memory.veracity_weighting != "off",
            assume_complete=config.feedback.closed_world,
        )
    elif chosen is not None and not isinstance(chosen, Verifier):
        raise ConfigError(f"the verifier must have a verify() method, got {type(chosen).__name__}")
    if chosen is not None and config.policy == "ewe" and not config.memory.verification_units:
        raise ConfigError(
            "verification needs a place for its feedback: set memory.verification_units to 1 or more, "
            "or leave the verifier out"
        )
    return Components(retriever, chosen, _memories(config, retriever, chosen, memories))


def build_engine(
    config: Config,
    components: Components,
    on_finish: Callable[[Sequence, Generation], None],
    loaded: LoadedModel | None,
) -> Engine:
    """All parts of one engine, not yet running; `loaded` reuses a model that is already in memory."""
    loaded = loaded or load_model(config.model)
    if loaded.tokenizer is None and components != Components(None, None):
        raise ConfigError("this model has no tokenizer, so it can hold no units: leave datastore and verifier out")
    shapes = layer_shapes(loaded.model)
    budget = plan_memory(config, loaded, shapes)
    pool = make_pool(budget, shapes, cache_dtype(config.cache, loaded.model.dtype))
    if config.model.compile:
        compile_layers(loaded.model)
    runner = ModelRunner(loaded.model, pool, config.memory.merge, config.attribution, config.scheduler.cuda_graphs)
    frugal = FrugalRunner(runner, budget.summary())
    return wire(config, components, on_finish, loaded, pool, frugal, budget)


def wire(
    config: Config,
    components: Components,
    on_finish: Callable[[Sequence, Generation], None],
    loaded: LoadedModel,
    pool: KVPool,
    runner: Runner,
    budget: MemoryBudget | None = None,
) -> Engine:
    """The engine around a runner and its pool (tests bring a runner without a model)."""
    manager = BlockManager(pool.num_blocks, pool.block_size)
    tokenizer = loaded.tokenizer
    memory = config.memory
    unit_tokenizer = UnitTokenizer(tokenizer, memory.unit_tokens, memory.unit_template) if tokenizer else None
    keeper = MemoryKeeper(UnitCache(manager, config.cache.unit_cache), unit_tokenizer, memory)
    changed = threading.Event()
    precomputed = open_precomputed(config, loaded, pool, changed.set)
    retrieval = verification = None
    if (components.retriever or components.memories) is not None and memory.retrieval_units:
        top_k = config.feedback.retrieval_top_k
        call = partial(calls.retrieve, components.retriever, components.memories, top_k)
        retrieval = Worker("retrieval", call, changed.set)
    if components.verifier is not None and config.policy == "ewe":
        verification = Worker("verification", partial(calls.verify, components.verifier), changed.set)
    policy = make_policy(config.policy, config.feedback, retrieval is not None, verification is not None)
    chosen = config.scheduler.async_scheduling
    core = EngineCore(
        config=config,
        ahead=pool.device.type == "cuda" if chosen is None else chosen,
        runner=runner,
        scheduler=Scheduler(manager, pool, keeper, config.scheduler, precomputed),
        keeper=keeper,
        pauses=Pauses(policy, config.feedback, retrieval, verification),
        rewriter=Rewriter(keeper, config.feedback, PassageFeedback(config.feedback.forms) if verification else None),
        workers=tuple(worker for worker in (retrieval, verification) if worker is not None),
        eos_token_ids=loaded.eos_token_ids,
        on_finish=on_finish,
        changed=changed,
    )
    limits = Limits(loaded.max_model_len, loaded.vocab_size)
    grammars = Grammars(tokenizer, loaded.vocab_size, loaded.eos_token_ids)
    intake = Intake(config, tokenizer, limits, manager, keeper, policy.retrieves or policy.verifies, grammars)
    return Engine(config, loaded, core, intake, manager, keeper, unit_tokenizer, changed, pool, precomputed, budget)


def _retriever(source: Any, settings: RetrievalConfig) -> Retriever | None:
    if source is None:
        return None
    if source == "builtin":
        return open_retriever(builtin_datastore(), settings)
    if isinstance(source, str | Path | PassageSource):
        return open_retriever(source, settings)
    if not isinstance(source, Retriever):
        raise ConfigError(
            f"datastore must be 'builtin', a path, a Datastore or a Retriever, got {type(source).__name__}"
        )
    return source


def _memories(
    config: Config, trusted: Retriever | None, verifier: Verifier | None, service: MemoryService | None
) -> LiveMemories | None:
    """The memories of the service that was given, or of the store that the settings name."""
    settings = config.longterm
    rules = LiveRules(settings.top_k, settings.threshold, settings.promote, config.feedback.timeout)
    if service is not None:
        return LiveMemories(service, rules, reviews=_reviews(service, settings))
    if settings.path is None:
        return None
    if settings.review_every is not None and trusted is None:
        raise ConfigError("longterm.review_every: memories are reviewed by the passages of a datastore: set one")
    judge = _judge(config, verifier)
    opened = open_service(settings.path, settings, judge, trusted=trusted, encoder=config.retrieval.encoder)
    return LiveMemories(opened, rules, reviews=_reviews(opened, settings), owns_store=True)


def _reviews(service: MemoryService, settings: LongTermConfig) -> BackgroundReviews | None:
    if settings.review_every is None:
        return None
    return BackgroundReviews(service.reviewer(), every_s=settings.review_every)


def _judge(config: Config, verifier: Verifier | None) -> Judge:
    """What memories are judged by: the judge that sentences are judged by."""
    if isinstance(verifier, ClaimVerifier):
        return verifier.judge
    settings = config.verification
    name = "values" if isinstance(verifier, ValueVerifier) else settings.judge
    return CachedJudge(load_judge(name, device=config.model.device, labels=settings.judge_labels))
