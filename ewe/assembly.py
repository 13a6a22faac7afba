"""Building an engine around its components: model, pool, memory, loop. Importing it imports torch and transformers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from ewe.components import Components
from ewe.config import Config
from ewe.config.known_models import MEMORY_READER
from ewe.config.loading import LoadStep, OnLoad, ignore_step
from ewe.config.registry import POLICIES, verifies
from ewe.config.setting_names import AUTO
from ewe.engine import workers
from ewe.engine.attention.probe import attention_layers
from ewe.engine.budget import MemoryBudget, cache_dtype, make_pool, plan_memory
from ewe.engine.core import EngineCore
from ewe.engine.effects import Policy
from ewe.engine.grammar import Grammars
from ewe.engine.input_processor import InputProcessor
from ewe.engine.kvcache.block_manager import BlockManager
from ewe.engine.kvcache.pool import KVPool, TokenStates
from ewe.engine.model_runner import ModelRunner, layer_shapes
from ewe.engine.models.compiled import compile_layers
from ewe.engine.models.device import in_own_stream
from ewe.engine.models.loader import LoadedModel, load_model
from ewe.engine.out_of_memory import FrugalRunner, Runner, memory_for_graphs
from ewe.engine.policy_runner import PolicyRunner
from ewe.engine.precompute import open_precomputed
from ewe.engine.prompt_maker import PromptMaker
from ewe.engine.prompt_passages import PromptPassages
from ewe.engine.refresh import MemoryKeeper
from ewe.engine.request_tokenizer import Limits
from ewe.engine.scheduler import Scheduler
from ewe.engine.sequence import Sequence
from ewe.engine.side_prompts import SidePrompts
from ewe.engine.side_runner import SideRunner
from ewe.engine.units.precomputed import PrecomputedUnits
from ewe.engine.units.unit_cache import UnitCache
from ewe.engine.units.unit_text import UnitTokenizer
from ewe.engine.workers import Worker
from ewe.errors import ConfigError
from ewe.policies.plain import plain
from ewe.types import Generation
from ewe.types.protocols import FeedbackBuilder

if TYPE_CHECKING:
    from ewe.engine.distributed.executor import Executor
    from ewe.engine.static_decode import StaticDecoder


@dataclass(frozen=True, slots=True)
class Engine:
    """The parts of a running engine that its owner needs; decoder: None where no steps are captured.

    executor: of the other ranks, None in one process.
    """

    config: Config
    loaded: LoadedModel
    core: EngineCore
    input_processor: InputProcessor
    manager: BlockManager
    keeper: MemoryKeeper
    unit_tokenizer: UnitTokenizer | None
    changed: threading.Event
    pool: KVPool
    precomputed: PrecomputedUnits | None
    budget: MemoryBudget | None
    decoder: StaticDecoder | None = None
    executor: Executor | None = None


def build_engine(
    config: Config,
    components: Components,
    on_finish: Callable[[Sequence, Generation], None],
    loaded: LoadedModel | None,
    on_load: OnLoad = ignore_step,
) -> Engine:
    """All parts of one engine, not yet running; `loaded` reuses a model that is already in memory."""
    if config.model.tensor_parallel > 1:
        return _build_in_parts(config, components, on_finish, loaded, on_load)
    if loaded is None:
        adapters = components.judge.adapters if components.judge else {}
        loaded = load_model(config.model, on_load, adapters, config.cache.memory_gib)
    return _build(config, components, on_finish, loaded, on_load)


def _build_in_parts(
    config: Config,
    components: Components,
    on_finish: Callable[[Sequence, Generation], None],
    loaded: LoadedModel | None,
    on_load: OnLoad,
) -> Engine:
    """The engine of rank 0, with the processes of the other ranks."""
    if loaded is not None:
        raise ConfigError("model.tensor_parallel: the parts are read from files; a model in memory cannot be split")
    from ewe.engine.distributed.executor import Executor
    from ewe.engine.distributed.group import wait_for_all
    from ewe.engine.distributed.message import Message
    from ewe.engine.distributed.runner import DriverRunner
    from ewe.engine.distributed.sharded_pool import DriverPool

    # The tokens of a pass are told with the next, and graphs have not been tried with several processes.
    scheduler = config.scheduler.model_copy(update={"async_scheduling": False, "cuda_graphs": False})
    config = config.model_copy(update={"scheduler": scheduler})
    on_load(LoadStep("starting the processes of the other ranks"))
    executor = Executor(config.model)
    with executor.starting():
        loaded = load_model(config.model, on_load)
        if config.memory.precomputed is not None:
            executor.send(Message("digest"))  # of all weights, to which every rank contributes
        new_pool, new_runner = partial(DriverPool, executor), partial(DriverRunner, executor)
        engine = _build(config, components, on_finish, loaded, on_load, new_pool, new_runner)
        on_load(LoadStep("waiting for the other ranks"))
        wait_for_all()
    return replace(engine, executor=executor)


def _build(
    config: Config,
    components: Components,
    on_finish: Callable[[Sequence, Generation], None],
    loaded: LoadedModel,
    on_load: OnLoad,
    new_pool: Callable[..., KVPool] | None = None,
    new_runner: Callable[..., ModelRunner] = ModelRunner,
) -> Engine:
    if loaded.tokenizer is None and components.has_any:
        raise ConfigError("this model has no tokenizer, so it can hold no units: leave datastore and verifier out")
    if loaded.tokenizer is None and _named_policy(config).asks:
        raise ConfigError(f"this model has no tokenizer, and policy {config.policy} needs one: set policy to plain")
    shapes = layer_shapes(loaded.model)
    kept = _token_states(config, components, loaded)
    budget = plan_memory(config, loaded, shapes, kept)
    on_load(LoadStep("allocating the KV pool"))
    pool = make_pool(budget, shapes, cache_dtype(config.cache, loaded.model.dtype), kept, new_pool)
    if config.model.compile:
        compile_layers(loaded.model)
    runner = new_runner(
        loaded.model, pool, config.memory.merge, config.attribution, config.scheduler.cuda_graphs,
        config.memory.num_units, loaded.adapters,
    )  # fmt: skip
    with memory_for_graphs(budget.summary()):
        runner.prepare(config.scheduler.max_num_seqs, config.scheduler.max_num_batched_tokens, on_load)
    frugal = FrugalRunner(runner, budget.summary())
    return replace(wire(config, components, on_finish, loaded, pool, frugal, budget), decoder=runner.static)


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
    copies = config.feedback.nest_passages if _states_kept(config, components) == "hidden" else 0
    processor = None
    if copies:
        from ewe.engine.nearest_neighbours import NearestNeighbours

        processor = NearestNeighbours(config.feedback, pool)
    keeper = MemoryKeeper(UnitCache(manager, config.cache.unit_cache), unit_tokenizer, memory, processor)
    changed = threading.Event()
    precomputed = open_precomputed(config, loaded, pool, changed.set)
    retrieval, verification = _workers(config, components, copies, changed, pool)
    policy = _policy(config, retrieval, verification)
    ends = {} if loaded.adapters is None else loaded.adapters.eos_token_ids
    grammars = Grammars(tokenizer, loaded.vocab_size, loaded.eos_token_ids)
    retrieves, checks = policy.retrieves and retrieval is not None, policy.verifies and verification is not None
    uses_memory = not policy.asks and (checks or (retrieves and not copies))
    summary = components.summary
    limits = Limits(
        loaded.max_model_len, loaded.vocab_size, manager.num_blocks, manager.block_size, ends, uses_memory, copies,
        summary.unchecked if summary is not None else "",
    )  # fmt: skip
    input_processor = InputProcessor(config, tokenizer, limits, manager, keeper, grammars)
    in_prompt = _prompt_passages(config, unit_tokenizer, input_processor) if retrieves else None
    remembers = components.memories is not None
    side = SideRunner(SidePrompts(input_processor, pool), config.feedback, retrieval, verification)
    policies = PolicyRunner(
        config.policy, policy, config.feedback, retrieval, verification, keeper, side, config.pipeline,
        _feedback(config) if verification else None, in_prompt, remembers,
    )  # fmt: skip
    chosen = config.scheduler.async_scheduling
    core = EngineCore(
        config=config,
        ahead=pool.device.type == "cuda" if chosen is None else chosen,
        runner=runner,
        scheduler=Scheduler(manager, pool, keeper, config.scheduler, precomputed, memory.unit_temperature),
        keeper=keeper,
        policies=policies,
        workers=tuple(worker for worker in (retrieval, verification) if worker is not None),
        eos_token_ids=loaded.eos_token_ids,
        on_finish=on_finish,
        changed=changed,
        processor=processor,
    )
    return Engine(
        config, loaded, core, input_processor, manager, keeper, unit_tokenizer, changed, pool, precomputed, budget
    )  # fmt: skip


def _workers(
    config: Config, components: Components, copies: int, changed: threading.Event, pool: KVPool
) -> tuple[Worker | None, Worker | None]:
    """What retrieves and what verifies beside the loop, None for what there is not."""
    retrieval = verification = None
    # In memory, beside it, or in a prompt.
    has_place = config.memory.retrieval_units or copies or _named_policy(config).asks
    if (components.retriever or components.memories) is not None and has_place:
        top_k = copies or config.feedback.retrieval_top_k
        search = in_own_stream(partial(workers.retrieve, components.retriever, components.memories, top_k), pool.device)
        retrieval = Worker("retrieval", search, changed.set, getattr(components.retriever, "warm", None))
    if components.verifier is not None and verifies(config.policy):
        check = in_own_stream(partial(workers.verify, components.verifier), pool.device)
        verification = Worker("verification", check, changed.set, getattr(components.verifier, "warm", None))
    return retrieval, verification


def _policy(config: Config, retrieval: Worker | None, verification: Worker | None) -> Policy:
    """What steers sequences: plain decoding without the components that the policy needs."""
    policy = _named_policy(config)
    is_possible = policy.asks or retrieval is not None or (verification is not None and not policy.needs_retriever)
    return policy if is_possible else plain


def _named_policy(config: Config) -> Policy:
    """The policy of the settings as it is registered; raises ConfigError for what is none."""
    found = POLICIES.get(config.policy)
    if not isinstance(found, Policy):
        raise ConfigError(f"policy {config.policy!r} must be a generator function under @ewe.engine.effects.policy()")
    return found


def _prompt_passages(
    config: Config, units: UnitTokenizer | None, input_processor: InputProcessor
) -> PromptPassages | None:
    """What puts the question's passages into prompts; None where they become units."""
    place = config.memory.question_passages
    if place == AUTO:
        place = "units" if config.model.adapter == MEMORY_READER else "prompt"
    has_weights = config.memory.veracity_weighting != "off"  # which a prompt does not know
    if units is None or place == "units" or has_weights:
        return None
    prompts = PromptMaker(input_processor.tokenizer, units, config)
    return PromptPassages(prompts, input_processor, config.pipeline.passages)


def _states_kept(config: Config, components: Components) -> Literal["hidden", "queries"] | None:
    """What the policy reads of every token beside its keys and values, if it can retrieve at all."""
    can_retrieve = (components.retriever or components.memories) is not None
    return _named_policy(config).captures if can_retrieve else None


def _token_states(config: Config, components: Components, loaded: LoadedModel) -> TokenStates | None:
    kind = _states_kept(config, components)
    if kind is None:
        return None
    from ewe.engine.token_states import token_states

    return token_states(kind, loaded.model, attention_layers(loaded.model))


def _feedback(config: Config) -> FeedbackBuilder:
    from ewe.verification.feedback import PassageFeedback  # an engine without a verifier loads nothing of verification

    return PassageFeedback(config.feedback.forms)
