"""Out of memory in a forward pass: the texts are those of a device that has enough, and what to change is said."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest
import torch
from engine_bench import LATENCIES, GatedBench, Latencies
from engine_parts import Judge, Library, sentences
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from parity.families import VOCAB, build
from parity.paged import PagedModel
from tolerances import LOGPROBS

from ewe.config import Config, ModelConfig
from ewe.engine.model_executor.model_runner import ForwardResult, ForwardRow
from ewe.engine.model_executor.out_of_memory import FrugalRunner, Runner
from ewe.engine.models import loader
from ewe.engine.models.loader import load_model
from ewe.errors import DeviceMemoryError
from ewe.types.sampling_params import SamplingParams


class SmallDevice:
    """Runs another runner's passes of at most `most` tokens; larger ones fail after part of their KV was written."""

    def __init__(self, runner: Runner, most: int) -> None:
        self._runner, self._most = runner, most
        self.sizes: list[int] = []

    def close(self) -> None:
        pass

    def forward(self, rows: Sequence[ForwardRow], draws: object = None) -> ForwardResult:
        self.sizes.append(sum(len(row.token_ids) for row in rows))
        if self.sizes[-1] > self._most:
            if len(rows) > 1:
                self._runner.forward(rows[:1])
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return self._runner.forward(rows)


def texts(most: int | None, latencies: Latencies, mode: str) -> dict[tuple[str, int], tuple[str, str]]:
    values = {
        "memory": {"unit_tokens": 12, "retrieval_units": 2, "verification_units": 2},
        "feedback": {"mode": mode, "verify_every": 5, "retrieve_every": 3},
        "cache": {"block_size": 4},
        "scheduler": {"max_num_seqs": 3},
    }
    bench = GatedBench(Config.from_mapping(values), Library(), Judge(), sentences, num_blocks=200)
    bench.runner.strength = 6.0
    if most is not None:
        bench.core.runner = FrugalRunner(SmallDevice(bench.runner, most), "all of it")
    for name, n in {"a": 1, "b": 2}.items():
        params = SamplingParams(max_tokens=20, temperature=0.7, seed=3, n=n)
        bench.add(name, "Tell me of the sea", params, ["one two", "three"])
    return {key: (g.text, g.finish_reason) for key, g in bench.run_with(latencies).items()}


@examples(5, 20)
@given(most=st.integers(1, 30), latencies=LATENCIES, mode=st.sampled_from(["blocking", "optimistic"]))
def test_a_small_device_writes_the_same_texts(most: int, latencies: Latencies, mode: str) -> None:
    assert texts(most, latencies, mode) == texts(None, latencies, mode)


def test_passes_of_a_model_are_cut_to_what_fits_and_stay_there() -> None:
    """All kinds of rows: a unit, a prompt under units, one that wants all logits, a token that is decoded."""
    results = []
    for most in (1000, 7):
        paged = PagedModel(build("mistral"))
        device = SmallDevice(paged.runner, most)
        runner = FrugalRunner(device, "all of it")
        units = paged.encode([[5, 6, 7], [8, 9]])
        long, short, plain = paged.context(24, units), paged.context(24, units[:1]), paged.context()
        runner.forward([paged.row(short, [11, 12, 13])])
        rows = [
            paged.row(paged.context(), list(range(3, 20)), wants_logits=False),
            paged.row(long, [token % VOCAB for token in range(20, 50)]),
            paged.row(plain, [30, 31, 32, 33, 34, 35, 36, 37, 38], all_logits=True),
            paged.row(short, [14]),
        ]
        first = runner.forward(rows)
        second = runner.forward([paged.row(long, [3]), paged.row(short, [4]), paged.row(plain, [5])])
        assert len(first.logits) == 1 + 9 + 1
        assert len(first.attention) == len(rows)
        results.append(torch.cat([first.logits, second.logits]).log_softmax(-1))
        if most == 7:
            assert [size for size in device.sizes if size > most] == [57, 17, 8]
    torch.testing.assert_close(results[0], results[1], atol=LOGPROBS, rtol=0)


def test_shares_of_attention_stay_with_their_rows() -> None:
    shares = []
    for most in (1000, 2):
        paged = PagedModel(build("llama"), attribution=True)
        units = paged.encode([[5, 6, 7], [8, 9]])
        contexts = [paged.context(24, units), paged.context(24, units[1:])]
        for context in contexts:
            paged.logits(context, [11, 12])
        runner = FrugalRunner(SmallDevice(paged.runner, most), "")
        result = runner.forward([*(paged.row(item, [13]) for item in contexts), paged.row(paged.context(), [4])])
        shares.append([item.tolist() for item in result.attention if item is not None])
    assert [len(item) for item in shares[0]] == [3, 2, 1]
    for one, other in zip(*shares, strict=True):
        assert one == pytest.approx(other, abs=1e-5)


def test_what_to_change_is_said_once_per_step_down(caplog: pytest.LogCaptureFixture) -> None:
    paged = PagedModel(build("llama"))
    runner = FrugalRunner(SmallDevice(paged.runner, 4), "weights: 3 MiB")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            runner.forward([paged.row(paged.context(), [1, 2, 3, 4, 5, 6, 7, 8])])
    [record] = caplog.records
    for part in ("8 tokens", "at most 4", "scheduler.max_num_batched_tokens", "weights: 3 MiB"):
        assert part in record.getMessage()


def test_a_device_without_room_for_a_token_ends_the_requests_and_not_the_engine() -> None:
    bench = GatedBench(Config(), None, None, sentences)
    fits = bench.core.runner
    bench.core.runner = FrugalRunner(SmallDevice(bench.runner, 0), "weights: 3 MiB")
    bench.add("a", "Tell me", SamplingParams(max_tokens=5))
    [generation] = bench.run().values()
    assert generation.finish_reason == "error"
    for part in ("cache.memory_gib", "scheduler.max_num_batched_tokens", "weights: 3 MiB"):
        assert part in generation.error
    bench.core.runner = fits
    bench.add("b", "Tell me", SamplingParams(max_tokens=5))
    assert bench.run()["b", 0].finish_reason == "length"


def test_weights_without_room_are_told_at_load(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise torch.OutOfMemoryError("Tried to allocate 2.00 GiB.")

    monkeypatch.setattr(loader, "_model", refuse)
    with pytest.raises(DeviceMemoryError) as caught:
        load_model(ModelConfig())
    for part in ("builtin", "model.dtype", "model.device", "2.00 GiB"):
        assert part in str(caught.value)
