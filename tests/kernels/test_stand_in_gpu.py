"""The engine as it runs on a GPU, on a stand-in for one: the texts are the same, and its loop waits for nothing."""

from __future__ import annotations

import json
import logging
import math
import time
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
import torch
from accelerate.hooks import AlignDevicesHook, add_hook_to_module
from kernels.test_static_engine import CONFIG, SCHEDULER, SIZE
from parity.families import build
from parity.paged import PagedModel
from stand_in_gpu import DEVICE, in_place
from tolerances import LOGPROBS
from triton_interpreter import INTERPRETED
from unit.small_causal import write_causal

from benchmarks.feedback import Library, Script
from benchmarks.rig import load_synthetic, write_together
from ewe import LLM, SamplingParams
from ewe.config import Config
from ewe.config.memory_mark import PlacedPrompt
from ewe.engine.evidence.writer_judge import writer_fingerprint
from ewe.engine.kvcache.pool import KVPool, LayerShape
from ewe.engine.sampling import sampler
from ewe.errors import DeviceMemoryError
from ewe.retrieval.datastore import Datastore
from ewe.types import Passage, Query, Verdict
from ewe.verification.judges.labelled_claims import LabelledClaim
from ewe.verification.judges.writer_calibration import calibration_path

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="there is a real GPU")
PARAMS = [
    SamplingParams(max_tokens=9, temperature=1.0, seed=1, ignore_eos=True),
    SamplingParams(max_tokens=7, logprobs=3, repetition_penalty=1.3, logit_bias={5: 1.0}, ignore_eos=True),
    SamplingParams(max_tokens=5, temperature=1.0, seed=3, top_p=0.8, top_k=50, min_tokens=4),
]


@pytest.fixture
def gpu():
    with in_place():
        yield


def write(device, prompt_tokens=3, prefix="", **settings):
    """Answers, what the loop waited for, and swaps; prompts, pauses, refreshes and rewinds are among what is done.

    Where graphs are captured, passes with units and prompts are replayed as well.
    """
    library = Library(Script(0.0, 0.6, "blocking"), passage_tokens=12)
    loaded = load_synthetic(SIZE, device)
    scheduler = SCHEDULER | settings.pop("scheduler", {})
    with LLM(
        config=CONFIG | settings | {"scheduler": scheduler}, loaded=loaded, datastore=library, verifier=library
    ) as llm:
        DEVICE.waits.clear()
        prompts = [list(range(5 + n, 5 + n + prompt_tokens)) for n in range(len(PARAMS))]
        if prefix:
            prompts = [PlacedPrompt("", prefix, f"{n}:") for n in range(len(PARAMS))]
        answers = write_together(llm, [(*pair, None) for pair in zip(prompts, PARAMS, strict=True)])
        waits = {what for what, _ in DEVICE.waits}
        llm.check_integrity()
        decoder = llm.client.engine.decoder
        assert decoder is None or any(step.is_captured and step.runs > 1 for step in decoder._mixed)
        swaps = llm.client.engine.core.scheduler.swapper.swaps
    return sorted(answers, key=lambda answer: len(answer.token_ids)), waits, swaps


def check(prompt_tokens=3, prefix="", **settings):
    expected, _, _ = write("cpu", prompt_tokens, prefix, **settings)
    with in_place():
        found, waits, swaps = write("cuda", prompt_tokens, prefix, **settings)
    assert [answer.token_ids for answer in found] == [answer.token_ids for answer in expected]
    for one, other in zip(found, expected, strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, abs=LOGPROBS)
    assert sum(answer.stats.tokens_discarded for answer in found) > 0, "nothing was rewritten"
    return waits, swaps


def test_the_texts_are_those_of_a_cpu_and_nothing_waits():
    assert check() == (set(), 0)


def test_the_texts_are_those_of_a_cpu_on_a_gpu_for_which_there_are_no_kernels(monkeypatch):
    expected, _, _ = write("cpu")
    with in_place():
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *device: (7, 5))
        sampler._kernels_run_on.cache_clear()
        found, _, _ = write("cuda")
    sampler._kernels_run_on.cache_clear()
    assert [answer.token_ids for answer in found] == [answer.token_ids for answer in expected]


def write_checked(device):
    """An answer of the built-in model over its datastore, checked by the judge of the package."""
    retrieval, scheduler = {"retriever": "bm25"}, {"cuda_graphs": False, "max_num_seqs": 1}
    # The interpreter multiplies bfloat16 wrongly.
    model = {"device": device, "dtype": "float32"}
    config = {"model": model, "retrieval": retrieval, "scheduler": scheduler, "cache": {"memory_gib": 0.1}}
    with LLM("builtin", datastore="builtin", verifier="claims", config=config) as llm:
        DEVICE.waits.clear()
        [answer] = llm.generate("Tell me about Storim Pidroy.", SamplingParams(max_tokens=14))
    return answer.text, [(item.text, item.verdict, item.source_ids) for item in answer.sentences]


@pytest.mark.slow
def test_a_checked_answer_is_that_of_a_cpu_and_the_loop_does_not_wait_for_the_judge():
    expected = write_checked("cpu")
    assert any(verdict is Verdict.SUPPORTED for _, verdict, _ in expected[1])
    with in_place():
        assert write_checked("auto") == expected
        assert DEVICE.waits
        assert all("cross_encoder" in place for _, place in DEVICE.waits)


def measured(folder, device):
    """What measuring says of a model when an engine for its claims is opened; None where it is not measured."""
    values = {
        "model": {"name": str(folder), "device": device, "dtype": "float32"},
        "memory": {"retrieval_units": 1, "verification_units": 1, "unit_tokens": 16},
        "retrieval": {"retriever": "bm25"},
        "scheduler": {"cuda_graphs": False},
        "cache": {"num_blocks": 400},
    }
    config, steps = Config.from_mapping(values), []
    passages = Datastore([Passage("a", "It is true.")])
    with LLM(config=config, datastore=passages, on_load=lambda step: steps.append(step.phase)) as llm:
        assert llm.client.components.summary.judge == "builtin"  # the weights are random
    path = calibration_path(writer_fingerprint(config.model))
    assert path.exists() == (steps[-1] == "measuring how well the model judges")
    return json.loads(path.read_text()) if path.exists() else None


def test_the_model_is_measured_as_a_judge_when_its_engine_starts(tmp_path, monkeypatch):
    monkeypatch.setenv("EWE_CACHE_DIR", str(tmp_path / "cache"))
    claims = [LabelledClaim(f"it is {n}", n, (Passage("p", "it is true", f"article {n}"),)) for n in range(3)]
    monkeypatch.setattr("ewe.verification.judges.labelled_claims.read_claims", lambda: claims)
    folder = write_causal(tmp_path / "model")
    (folder / "chat_template.jinja").write_text("{% for m in messages %}{{ m['content'] }}{% endfor %}:")
    assert measured(folder, "cpu") is None
    with in_place():  # without kernels: interpreted, prompts of this length take minutes
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *device: (7, 5))
        sampler._kernels_run_on.cache_clear()
        on_gpu = measured(folder, "auto")
    sampler._kernels_run_on.cache_clear()
    monkeypatch.setattr("ewe.engine.evidence.writer_judge._is_quick", lambda *_: True)
    calibration_path(on_gpu["fingerprint"]).unlink()
    on_cpu = measured(folder, "cpu")
    assert on_gpu["temperature"] == pytest.approx(on_cpu["temperature"], rel=1e-3)
    assert on_gpu["bias"] == pytest.approx(on_cpu["bias"], rel=1e-2, abs=1e-2)


@pytest.mark.slow
def test_nothing_waits_where_the_memory_stands_inside_prompts():
    assert check(prefix="Read: ") == (set(), 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"scheduler": {"cuda_graphs": False}},
        {"scheduler": {"async_scheduling": False}},
        {"feedback": {"verify_every": 4, "mode": "optimistic", "verify_when": "entropy", "verify_entropy": 0.0}},
    ],
    ids=str,
)
def test_nothing_waits_in_other_modes(settings):
    waits, _ = check(**settings)
    assert not waits


@pytest.mark.slow
def test_nothing_waits_for_a_context_that_is_swapped():
    waits, swaps = check(40, cache={"num_blocks": 39, "block_size": 4})
    assert swaps
    assert not waits


# That both are kept is tested with steps from static buffers.
@pytest.mark.parametrize("keeps", [pytest.param("hidden", marks=pytest.mark.slow), "queries"])
def test_a_layer_on_another_device_attends_where_the_pool_is(keeps):
    """The middle layer works on the host, as one would on another GPU."""

    def passes(model):
        paged = PagedModel(model, attribution=True, keeps=keeps)
        context = paged.context(0, paged.encode([[5, 6, 7]]))
        found = [paged.run(paged.row(context, tokens)) for tokens in ([8, 9, 10], [11])]
        return [item.logits.cpu() for item in found], [item.attention for item in found], paged.pool.states.cpu()

    expected = passes(build("llama"))
    with in_place():
        model = build("llama").to("cuda")
        model.hf_device_map = {"model.layers.1": "cpu"}
        for number, device in enumerate(("cuda", "cpu", "cuda")):
            add_hook_to_module(model.model.layers[number].to(device), AlignDevicesHook(device))
        assert PagedModel(model).runner.static is None  # nothing is captured
        found = passes(model)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=LOGPROBS, rtol=0)


def test_kernels_run_on_the_model_s_device_whichever_is_the_current_one(gpu):
    DEVICE.current = 1
    try:
        with LLM(
            config=CONFIG | {"policy": "plain", "scheduler": SCHEDULER | {"max_num_seqs": 2}},
            loaded=load_synthetic(SIZE, "cuda"),
        ) as llm:
            params = [replace(item, max_tokens=length) for item, length in zip(PARAMS[:2], (3, 2), strict=True)]
            answers = write_together(llm, [([5, 6, 7], item, ["Some text."]) for item in params])
            status = llm.client.status()
        assert DEVICE.current == 1
    finally:
        DEVICE.current = 0
    assert sorted(len(answer.token_ids) for answer in answers) == [2, 3]
    assert all(logprob < 0 for answer in answers for logprob in answer.logprobs), "read before they had arrived"
    assert (status.graphs, status.failed_graphs) == (3, 0)


def test_an_engine_on_a_gpu_has_the_places_of_one(gpu, monkeypatch):
    monkeypatch.setattr("ewe.config.GPU_PLACES", 3)
    scheduler = {"max_num_batched_tokens": 64, "cuda_graphs": False}
    with LLM(config=CONFIG | {"policy": "plain", "scheduler": scheduler}, loaded=load_synthetic(SIZE, "cuda")) as llm:
        assert llm.config.scheduler.places == 3
        assert llm.client.engine.core.active.max_num_seqs == 3


def test_what_retriever_and_verifier_load_is_there_before_the_pool_takes_the_rest(gpu):
    class Warming(Library):
        def warm(self):
            phases.append("warm")

    phases = []
    config = CONFIG | {"scheduler": SCHEDULER | {"cuda_graphs": False}}
    loaded, library = load_synthetic(SIZE, "cuda"), Warming(Script(0.0, 0.6, "blocking"), passage_tokens=12)
    with LLM(config=config, loaded=loaded, verifier=library, on_load=lambda step: phases.append(step.phase)):
        assert phases.index("warm") < phases.index("allocating the KV pool")


@pytest.fixture
def room(gpu):
    """Sets the bytes of the largest tensor that the device has room for."""
    yield lambda largest: setattr(DEVICE, "largest", largest)
    DEVICE.largest = math.inf


def test_weights_and_a_pool_without_room_are_told_with_what_to_change(room):
    room(1000)
    with pytest.raises(DeviceMemoryError, match=r"the weights of .* set model.dtype to bfloat16"):
        load_synthetic(SIZE, "cuda")
    room(math.inf)
    loaded = load_synthetic(SIZE, "cuda")
    room(1000)
    with pytest.raises(DeviceMemoryError, match=r"KV pool: lower cache.memory_gib .* The budget was weights: "):
        LLM(config=CONFIG, loaded=loaded)


def test_graphs_without_room_are_told_with_what_to_change(room):
    loaded = load_synthetic(SIZE, "cuda")

    def look(step):
        if "graphs" in step.phase:
            room(1000)

    with pytest.raises(DeviceMemoryError, match=r"lower scheduler.max_num_seqs.* The budget was weights: "):
        LLM(config=CONFIG | {"scheduler": {"max_num_seqs": 1}}, loaded=loaded, on_load=look)


def test_a_prompt_without_room_is_run_in_parts_with_the_same_result(room, caplog):
    plain = {"policy": "plain", "scheduler": {"cuda_graphs": False}}
    with LLM(config=CONFIG | plain, loaded=load_synthetic(SIZE, "cuda")) as llm:
        prompt, params = [5 + n for n in range(60)], SamplingParams(max_tokens=2, ignore_eos=True)
        expected = llm.generate([prompt], params)[0].token_ids
        room(5400)
        with caplog.at_level(logging.WARNING):
            assert llm.generate([prompt], params)[0].token_ids == expected
    assert "lower scheduler.max_num_batched_tokens" in caplog.text
    assert "The budget was weights: " in caplog.text


class Streams(Library):
    """Notes where its work goes."""

    found: ClassVar[list[object]] = []

    def retrieve(self, queries, top_k):
        self.found.append(torch.cuda.current_stream())
        return super().retrieve(queries, top_k)

    def verify(self, requests):
        self.found.append(torch.cuda.current_stream())
        return super().verify(requests)


def test_encoders_and_judges_have_streams_of_their_own(gpu):
    library, plain = Streams(Script(0.0, 0.0, "blocking"), 12), {"scheduler": {"cuda_graphs": False}}
    with LLM(config=CONFIG | plain, loaded=load_synthetic(SIZE, "cuda"), datastore=library, verifier=library) as llm:
        runner = llm.client.engine.core.policies.effect_runner
        for worker, payload in ((runner.retrieval, Query("Who?")), (runner.verification, [])):
            job = worker.submit(payload, 60.0)
            while not job.done:
                time.sleep(0.01)
            assert not job.error
    assert len({id(stream) for stream in (torch.cuda.current_stream(), *library.found)}) == 3


def test_units_swaps_and_copies_take_one_launch_for_all_layers_and_wait_for_nothing(gpu):
    pool = KVPool([LayerShape(2, 3, 3)] * 5, num_blocks=6, block_size=4, dtype=torch.float32, device="cuda")
    stored = torch.randn(8 * KVPool.bytes_per_token(pool.layer_shapes, pool.dtype) // 4).pin_memory()
    DEVICE.waits.clear()
    DEVICE.launched.clear()
    pool.write_slots(np.arange(4, 12), stored)
    pool.write_blocks([4, 3], pool.read_blocks([1, 2]))
    pool.copy_blocks([(3, 5)])
    assert not DEVICE.waits
    # Beside the keys and values, those numbers leave the host that say where they go.
    launched = {"index_copy_": 3, "index_select": 2, "copy from the host": 7, "copy to the host": 1}
    assert DEVICE.launched == launched
    assert torch.equal(pool.read_slots(np.r_[16:20, 20:24]), stored)
    assert torch.equal(pool.read_slots(np.arange(12, 16)), pool.read_slots(np.arange(8, 12)))


# --- the stand-in itself


def test_what_a_gpu_refuses_is_refused(gpu):
    here = torch.zeros(4, 3, device="cuda")
    assert (here.device.type, here.is_cuda, here[1:].shape) == ("cuda", True, (3, 3))
    with pytest.raises(RuntimeError, match=r"add: expected all tensors on cuda:0, found \(3,\) on cpu"):
        here + torch.ones(3)
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="not permitted when stream is capturing"), torch.cuda.graph(graph):
        here.sum().item()


def test_copies_take_their_time(gpu):
    pinned = torch.zeros(3, pin_memory=True)
    here = torch.zeros(3, device="cuda")
    here.copy_(pinned, non_blocking=True)
    pinned += 1
    with pytest.raises(AssertionError, match="written while a copy was under way"):
        torch.cuda.synchronize()
    arriving = (here + 2).to("cpu", non_blocking=True)
    assert (arriving != 2).all(), "it was read too early"
    event = torch.cuda.Event()
    event.record()
    later = (here + 3).to("cpu", non_blocking=True)
    event.synchronize()
    assert (arriving == 2).all()
    assert (later != 3).all()
    assert later.to("cuda", non_blocking=True).tolist() == [3, 3, 3], "the device works in order"
    assert [what for what, _ in DEVICE.waits] == ["the device", "tolist"]
    for wait in (lambda: torch.zeros(3).to("cuda", non_blocking=True), lambda: torch.tensor([1], device="cuda")):
        DEVICE.waits.clear()
        wait()
        assert len(DEVICE.waits) == 1


def test_a_graph_does_again_what_was_recorded_over_the_same_tensors(gpu):
    given, taken, number = torch.ones(2, device="cuda"), torch.zeros(2, device="cuda"), 3
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        doubled = (given * number).view(1, 2)
        taken.copy_(doubled[0] + 1)
    assert taken.tolist() == [0, 0], "recording computes nothing"
    given.fill_(2)
    number = 100  # as on a GPU, the graph does not know
    graph.replay()
    assert taken.tolist() == [7, 7]
