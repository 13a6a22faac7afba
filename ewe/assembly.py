"""Building an engine around its components: model, pool, memory, loop. Importing it imports torch and transformers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal

from ewe.components import Components
from ewe.config import Config
from ewe.config.loading import LoadStep, OnLoad
from ewe.config.registry import verifies
from ewe.engine.attention.probe import attention_layers
from ewe.engine.core import EngineCore
from ewe.engine.effects import Policy
from ewe.engine.evidence import workers
from ewe.engine.evidence.workers import Worker
from ewe.engine.inputs.input_processor import InputProcessor
from ewe.engine.inputs.prompt_passages import open_prompt_passages
from ewe.engine.inputs.request_tokenizer import Limits
from ewe.engine.inputs.side_prompts import SidePrompts
from ewe.engine.kvcache.block_manager import BlockManager
from ewe.engine.kvcache.pool import KVPool, TokenStates
from ewe.engine.memory_manager import MemoryManager
from ewe.engine.model_executor.model_runner import ModelRunner, layer_shapes
from ewe.engine.model_executor.out_of_memory import FrugalRunner, Runner, memory_for_graphs
from ewe.engine.models.compiled import compile_layers
from ewe.engine.models.device import in_own_stream
from ewe.engine.models.loader import LoadedModel, load_model
from ewe.engine.policy_runtime.effect_runner import EffectRunner
from ewe.engine.policy_runtime.policy_runner import PolicyRunner
from ewe.engine.policy_runtime.side_runner import SideRunner
from ewe.engine.sampling.grammar import Grammars
from ewe.engine.scheduling.active_sequences import ActiveSequences
from ewe.engine.scheduling.scheduler import Scheduler
from ewe.engine.scheduling.swapping import ContextSwapper
from ewe.engine.sequence import Sequence
from ewe.engine.startup.budget import MemoryBudget, cache_dtype, make_pool, plan_memory
from ewe.engine.startup.engine_summary import EngineSummary
from ewe.engine.startup.precompute import open_precomputed
from ewe.engine.startup.running_engine import Engine
from ewe.engine.units.unit_cache import UnitCache
from ewe.engine.units.unit_text import UnitTokenizer
from ewe.errors import ConfigError
from ewe.policies.named import named_policy, usable_policy
from ewe.types import Generation


def build_engine(
    config: Config,
    components: Components,
    on_finish: Callable[[Sequence, Generation], None],
    loaded: LoadedModel | None,
    on_load: OnLoad,
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
    if loaded.tokenizer is None and named_policy(config).asks:
        raise ConfigError(f"this model has no tokenizer, and policy {config.policy} needs one: set policy to plain")
    if loaded.model.device.type == "cuda":
        config = config.on_gpu()
        components.warm(on_load)  # the pool takes what is left, and an encoder or a judge on the same GPU is in it
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
        runner.prepare(config.scheduler.places, config.scheduler.max_num_batched_tokens, on_load)
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
    block_manager = BlockManager(pool.num_blocks, pool.block_size)
    tokenizer = loaded.tokenizer
    memory = config.memory
    unit_tokenizer = UnitTokenizer(tokenizer, memory.unit_tokens, memory.unit_template) if tokenizer else None
    copies = config.feedback.nest_passages if _states_kept(config, components) == "hidden" else 0
    processor = None
    if copies:
        from ewe.engine.scheduling.nearest_neighbours import NearestNeighbours

        processor = NearestNeighbours(config.feedback, pool)
    memory_manager = MemoryManager(UnitCache(block_manager, config.cache.unit_cache), unit_tokenizer, memory, processor)
    swapper = ContextSwapper(block_manager, pool, memory_manager)
    changed = threading.Event()
    precomputed = open_precomputed(config, loaded, pool, changed.set)
    retrieval, verification = _workers(config, components, copies, changed, pool)
    policy = usable_policy(config, retrieval is not None, verification is not None)
    retrieves, checks = policy.retrieves and retrieval is not None, policy.verifies and verification is not None
    uses_memory = not policy.asks and (checks or (retrieves and not copies))
    limits = _limits(loaded, block_manager, components.summary, uses_memory, copies)
    grammars = Grammars(tokenizer, loaded.vocab_size, loaded.eos_token_ids)
    input_processor = InputProcessor(config, tokenizer, limits, block_manager, memory_manager, grammars)
    policies = _policy_runner(config, components, policy, retrieval, verification, input_processor, pool)
    chosen = config.scheduler.async_scheduling
    active = ActiveSequences(config.scheduler.places, policies, memory_manager, swapper, runner, on_finish)
    core = EngineCore(
        config=config,
        async_scheduling=pool.device.type == "cuda" if chosen is None else chosen,
        runner=runner,
        scheduler=Scheduler(swapper, pool, memory_manager, config.scheduler, precomputed, memory.unit_temperature),
        active=active,
        policies=policies,
        workers=tuple(worker for worker in (retrieval, verification) if worker is not None),
        eos_token_ids=loaded.eos_token_ids,
        changed=changed,
        processor=processor,
    )
    return Engine(
        config, loaded, core, input_processor, block_manager, memory_manager, changed, pool, precomputed, budget
    )


def _limits(
    loaded: LoadedModel, block_manager: BlockManager, summary: EngineSummary | None, uses_memory: bool, copies: int
) -> Limits:
    return Limits(
        loaded.max_model_len,
        loaded.vocab_size,
        block_manager.num_blocks,
        block_manager.block_size,
        adapters={} if loaded.adapters is None else loaded.adapters.eos_token_ids,
        uses_memory=uses_memory,
        copies=copies,
        unchecked=summary.unchecked if summary is not None else "",
        engine=str(summary or ""),
    )


def _policy_runner(
    config: Config,
    components: Components,
    policy: Policy,
    retrieval: Worker | None,
    verification: Worker | None,
    input_processor: InputProcessor,
    pool: KVPool,
) -> PolicyRunner:
    memory_manager = input_processor.memory_manager
    in_prompt = None
    if policy.retrieves and retrieval is not None:
        in_prompt = open_prompt_passages(config, memory_manager.unit_tokenizer, input_processor)
    side = SideRunner(SidePrompts(input_processor, pool), config.feedback, retrieval, verification)
    effect_runner = EffectRunner(config.feedback, retrieval, verification, memory_manager, side, in_prompt)
    feedback = None
    if verification is not None:  # an engine without a verifier loads nothing of verification
        from ewe.verification.feedback import PassageFeedback

        feedback = PassageFeedback(config.feedback.forms)
    return PolicyRunner(
        config.policy, policy, config.feedback, config.pipeline, effect_runner, memory_manager, feedback,
        remembers=components.memories is not None,
    )  # fmt: skip


def _workers(
    config: Config, components: Components, copies: int, changed: threading.Event, pool: KVPool
) -> tuple[Worker | None, Worker | None]:
    """What retrieves and what verifies beside the loop, None for what there is not."""
    retrieval = verification = None
    # In memory, beside it, or in a prompt.
    has_place = config.memory.retrieval_units or copies or named_policy(config).asks
    if components.can_retrieve and has_place:
        top_k = copies or config.feedback.retrieval_top_k
        search = in_own_stream(partial(workers.retrieve, components.retriever, components.memories, top_k), pool.device)
        retrieval = Worker("retrieval", search, changed.set, getattr(components.retriever, "warm", None))
    if components.verifier is not None and verifies(config.policy):
        check = in_own_stream(partial(workers.verify, components.verifier), pool.device)
        verification = Worker("verification", check, changed.set, getattr(components.verifier, "warm", None))
    return retrieval, verification


def _states_kept(config: Config, components: Components) -> Literal["hidden", "queries"] | None:
    """What the policy reads of every token beside its keys and values, if it can retrieve at all."""
    return named_policy(config).captures if components.can_retrieve else None


def _token_states(config: Config, components: Components, loaded: LoadedModel) -> TokenStates | None:
    kind = _states_kept(config, components)
    if kind is None:
        return None
    from ewe.engine.model_executor.token_states import token_states

    return token_states(kind, loaded.model, attention_layers(loaded.model))
