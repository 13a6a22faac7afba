"""Engines whose model lies in several processes, which talk over gloo on the CPU, against the same in one process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from e2e.test_llm_builtin import Strict, outline
from e2e.test_precomputed_units import DOCUMENTS, PARAMS, PASSAGES, assert_like, settings_of, tiny
from parity.families import FAMILIES
from parity.more_families import MORE, save_checkpoint
from real_models import model_path
from tolerances import LOGPROBS

from ewe import LLM, Generation, SamplingParams
from ewe.config import Config, ModelConfig, resolve_config
from ewe.engine.models.loader import load_model
from ewe.engine.startup.precompute import precompute
from ewe.errors import ConfigError, EngineDeadError
from ewe.evaluation.world.builtin import load_world

needs_builtin = pytest.mark.skipif(
    not (model_path() / "model.safetensors").is_file(), reason="the built-in model has no weights in this checkout"
)
# Few blocks, so that sequences are swapped out and come back.
BUILTIN = resolve_config("builtin", None).override(
    ["cache.num_blocks=50", "memory.retrieval_units=2", "memory.verification_units=1", "attribution=true"]
)
DEATH_S = 30  # well below the minute after which a pass gives up by itself
# Transformers has no plan that splits their attention by heads, or too few heads.
NOT_SPLIT = {
    "cohere", "gemma4_text experts", "gpt2", "gpt_neox", "granitemoe", "granitemoehybrid", "hunyuan_v1_dense",
    "minimax_m2", "olmo2", "olmo3", "olmoe", "opt", "phi3 longrope", "phimoe",
}  # fmt: skip


def in_parts(config: Config, parts: int = 2) -> Config:
    return config.override([f"model.tensor_parallel={parts}"])


def write(llm: LLM) -> list[Generation]:
    """Answers with everything: units that are refreshed, refuted sentences, several answers to a prompt."""
    prompts = [prompt.text for prompt in load_world().prompts(kinds=("life",))[:4]]
    params = SamplingParams(max_tokens=24, temperature=0.7, seed=4, n=2, logprobs=2, prompt_logprobs=1)
    found = llm.generate(prompts, params)
    llm.check_integrity()
    return found


def assert_same_answers(found: list[Generation], expected: list[Generation]) -> None:
    for one, other in zip(found, expected, strict=True):
        assert_like(one, other)
        assert outline(one) == outline(other)
        assert one.stats.refreshes == other.stats.refreshes
        for mine, others in zip(one.sentences, other.sentences, strict=True):
            assert mine.attention == pytest.approx(others.attention, abs=1e-5)
    assert sum(one.stats.rewrites for one in found) > 0
    assert sum(one.stats.refreshes for one in found) > 0


@pytest.fixture(scope="module")
def expected() -> list[Generation]:
    with LLM(config=BUILTIN, verifier=Strict()) as llm:
        found = write(llm)
        assert llm.client.engine.core.scheduler.swapper.swaps > 0
        return found


@pytest.mark.slow
@needs_builtin
def test_two_processes_write_what_one_does(expected: list[Generation]) -> None:
    with LLM(config=in_parts(BUILTIN), verifier=Strict()) as llm:
        engine = llm.client.engine
        assert {shape.num_kv_heads for shape in engine.pool.layer_shapes} == {2}
        whole = sum(item.nbytes for item in engine.loaded.model.parameters())
        assert engine.budget is not None
        assert engine.budget.weights < 0.51 * whole
        assert_same_answers(write(llm), expected)
        assert engine.core.scheduler.swapper.swaps > 0


@needs_builtin
@pytest.mark.slow
def test_four_processes_write_what_one_does(expected: list[Generation]) -> None:
    with LLM(config=in_parts(BUILTIN, 4), verifier=Strict()) as llm:
        assert_same_answers(write(llm), expected)


def saved(family: str, folder: Path) -> str:
    loaded = tiny(family)
    loaded.model.save_pretrained(folder / family)
    loaded.tokenizer.save_pretrained(folder / family)
    return str(folder / family)


def answer(model: str, prompt: str, config: Config) -> Generation:
    with LLM(model, config=config) as llm:
        [found] = llm.generate(prompt, PARAMS, DOCUMENTS)
        llm.check_integrity()
        return found


@pytest.mark.parametrize(
    ("family", "cache_dtype"),
    [
        pytest.param(family, kind, marks=[pytest.mark.slow] * ((family, kind) != ("llama", "auto")))
        for family, kind in [*((name, "auto") for name in FAMILIES if name != "phi3"),
                             ("llama", "fp8_e4m3"), ("gemma2", "fp8_e4m3")]
    ],
)  # fmt: skip
def test_every_family_with_units_from_files_and_units_encoded(tmp_path: Path, family: str, cache_dtype: str) -> None:
    model, out = saved(family, tmp_path), tmp_path / "units"
    config = settings_of().override([f"cache.dtype={cache_dtype}"])
    precompute(load_model(ModelConfig(name=model)), config, PASSAGES[1:], out)
    config = config.override([f"memory.precomputed={out}"])
    found, expected = answer(model, "The sea", in_parts(config)), answer(model, "The sea", config)
    assert_like(found, expected, atol=LOGPROBS if cache_dtype == "auto" else 5e-3)
    assert (found.stats.units_loaded, found.stats.units_encoded) == (2, 1)


@pytest.mark.slow
def test_more_families_in_parts_give_what_transformers_gives(tmp_path: Path) -> None:
    for name, make in MORE.items():
        save_checkpoint(make(), tmp_path / name.replace("/", " "))
    rank = [sys.executable, str(Path(__file__).with_name("tensor_parallel_rank.py"))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    ranks = [
        subprocess.Popen(
            [*rank, str(number), str(tmp_path)], env={**environment, "LOCAL_RANK": str(number)},
            stdout=subprocess.PIPE, text=True,
        )
        for number in (0, 1)
    ]  # fmt: skip
    try:
        found = json.loads(ranks[0].communicate(timeout=600)[0])
    finally:
        for process in ranks:
            process.kill()
            process.wait()
    refused = {name for name, difference in found.items() if isinstance(difference, str)}
    assert refused == NOT_SPLIT
    assert max(found[name] for name in found.keys() - refused) < LOGPROBS


@pytest.mark.slow
def test_units_inside_a_prompt_with_a_temperature(tmp_path: Path) -> None:
    model, prompt = saved("llama", tmp_path), "The river. {memory} The sea"
    config = settings_of(unit_temperature=0.7, placement="in_prompt")
    found, expected = answer(model, prompt, in_parts(config)), answer(model, prompt, config)
    assert_like(found, expected)
    assert found.stats.prefix_tokens_encoded > 0
    other = answer(model, prompt, config.override(["memory.unit_temperature=1"]))
    assert abs(found.logprobs[0] - other.logprobs[0]) > LOGPROBS


@pytest.mark.slow
def test_nest_copies_from_the_hidden_states_of_rank_0(tmp_path: Path) -> None:
    config = resolve_config("builtin", None).override(["policy=nest", "verifier=none"])
    prompt = load_world().prompts(kinds=("life",))[0].text
    with LLM(config=config) as llm:
        [expected] = llm.generate(prompt, SamplingParams(max_tokens=20))
    with LLM(config=in_parts(config)) as llm:
        [found] = llm.generate(prompt, SamplingParams(max_tokens=20))
    assert_like(found, expected)
    assert found.stats.tokens_copied == expected.stats.tokens_copied


def worker_of(llm: LLM) -> int:
    executor = llm.client.engine.executor
    assert executor is not None
    [link] = executor._links
    assert link._process is not None
    return link._process.pid


@pytest.mark.slow
@needs_builtin
@pytest.mark.parametrize(
    ("sent", "how"),
    [(signal.SIGKILL, "was ended by signal 9"), (signal.SIGSTOP, "has given no sign of life for 8 s")],
)
def test_a_rank_that_dies_or_is_stopped_ends_the_requests_that_run(sent: signal.Signals, how: str) -> None:
    with LLM("builtin", config={"model": {"tensor_parallel": 2}}) as llm:
        events = llm.stream("Once", SamplingParams(max_tokens=1500, ignore_eos=True))
        next(event for event in events if event.kind == "text")
        os.kill(worker_of(llm), sent)
        begin = time.monotonic()
        with pytest.raises(EngineDeadError, match=rf"rank 1 .of 2. {how}"):
            list(events)
        assert time.monotonic() - begin < DEATH_S
        assert not llm.client.is_alive


@pytest.mark.slow
@needs_builtin
def test_a_rank_that_dies_while_nothing_runs_is_noticed_and_others_can_be_started() -> None:
    with LLM("builtin", config={"model": {"tensor_parallel": 2}}) as llm:
        os.kill(worker_of(llm), signal.SIGKILL)
        begin = time.monotonic()
        while llm.client.is_alive:
            assert time.monotonic() - begin < DEATH_S
            time.sleep(0.01)
        with pytest.raises(EngineDeadError, match=r"rank 1 .of 2. was ended by signal 9"):
            llm.generate("Once")
    with LLM("builtin", config={"model": {"tensor_parallel": 2}}) as llm:
        assert llm.generate("Once", SamplingParams(max_tokens=3))[0].token_ids
        with pytest.raises(ConfigError, match="one model in parts at a time"):
            LLM("builtin", config={"model": {"tensor_parallel": 2}})
        assert llm.generate("Once", SamplingParams(max_tokens=3))[0].token_ids


@pytest.mark.slow
@needs_builtin
def test_a_rank_that_dies_while_the_model_is_read_is_the_error() -> None:
    def kill(step: object) -> None:
        if "allocating" in str(step):
            for child in psutil.Process().children():
                if "ewe.engine.distributed.worker" in child.cmdline():
                    child.kill()

    with pytest.raises(EngineDeadError, match="signal 9"):
        LLM("builtin", config={"model": {"tensor_parallel": 2}}, on_load=kill).generate("Once")


@pytest.mark.slow
@needs_builtin
def test_a_script_that_torchrun_starts_twice_writes_once(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from ewe import LLM, SamplingParams\n"
        "with LLM('builtin', config={'model': {'tensor_parallel': 2}}) as llm:\n"
        "    print(llm.generate('Once', SamplingParams(max_tokens=8))[0].token_ids)\n"
    )
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    done = subprocess.run(torchrun, stdout=subprocess.PIPE, text=True, timeout=300, check=True)
    with LLM("builtin") as llm:
        [expected] = llm.generate("Once", SamplingParams(max_tokens=8))
    assert done.stdout.splitlines() == [str(expected.token_ids)]


@pytest.mark.slow
@needs_builtin
def test_workers_end_with_rank_0() -> None:
    code = (
        "import sys; from ewe import LLM; llm = LLM('builtin', config={'model': {'tensor_parallel': 2}});"
        "print('open', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        workers = psutil.Process(process.pid).children()
        assert len(workers) == 1
        process.kill()
        _, alive = psutil.wait_procs(workers, timeout=DEATH_S)
        assert alive == []
