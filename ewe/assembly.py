"""Building an engine from its settings: model, pool, memory, components, loop.

Owns: which concrete part stands behind each protocol. With `llm.py` it is the one place that knows them all.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ewe.config import Config, LongTermConfig
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
from ewe.parts import choose_verifier, open_datastore, summarise
from ewe.protocols import Retriever, Verifier
from ewe.retrieval.source import PassageSource
from ewe.summary import EngineSummary
from ewe.types import Generation
from ewe.verification.claim_verifier import ClaimVerifier
from ewe.verification.feedback import PassageFeedback
from ewe.verification.judges.cached import CachedJudge
from ewe.verification.judges.load import load_judge
from ewe.verification.judges.protocol import Judge
from ewe.verification.value_verifier import ValueVerifier


@dataclass(frozen=True, slots=True)
class Components:
    """The parts that look outside the model; None where there is none."""

    retriever: Retriever | None
    verifier: Verifier | None
    memories: LiveMemories | None = None
    summary: EngineSummary | None = None

    @property
    def has_any(self) -> bool:
        """Whether anything brings texts into the memory."""
        return (self.retriever or self.verifier or self.memories) is not None

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

    The verifier "auto" is "claims" where there are a datastore, a policy that checks and room for feedback, else none.
    Raises ConfigError for names that are not known, or a verifier by name without a datastore; DatastoreError for a
    store of memories that cannot be opened.
    """
    source = datastore if datastore is not None else config.datastore
    retriever, found = open_datastore(source, config.retrieval)
    named = verifier if verifier is not None else config.verifier
    chosen = choose_verifier(config, retriever, named)
    if chosen is not None and config.policy == "ewe" and not config.memory.verification_units:
        raise ConfigError(
            "verification needs a place for its feedback: set memory.verification_units to 1 or more, "
            "or verifier to none"
        )
    live = _memories(config, retriever, chosen, memories)
    return Components(retriever, chosen, live, summarise(config, found, named, chosen, live is not None))


def build_engine(
    config: Config,
    components: Components,
    on_finish: Callable[[Sequence, Generation], None],
    loaded: LoadedModel | None,
) -> Engine:
    """All parts of one engine, not yet running; `loaded` reuses a model that is already in memory."""
    loaded = loaded or load_model(config.model)
    if loaded.tokenizer is None and components.has_any:
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
