"""A whole engine that decodes from static buffers writes what it writes without them, pauses and rewinds included."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tolerances import LOGPROBS
from triton_interpreter import INTERPRETED

from benchmarks.common import SMOKE
from benchmarks.feedback import Library, Script
from benchmarks.rig import load_synthetic, write_together
from ewe import LLM, SamplingParams
from ewe.config.memory_mark import PlacedPrompt
from ewe.engine.attention.triton_backend import TritonBackend
from ewe.engine.model_executor.model_runner import ModelRunner
from ewe.engine.model_executor.static_decode import StaticDecoder

# As small as sentences allow; the interpreter is slow.
SHAPE = {
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
}
SIZE = replace(SMOKE, model={**SMOKE.model, **SHAPE})
CONFIG = {
    "policy": "ewe",
    "memory": {"retrieval_units": 2, "verification_units": 1, "unit_tokens": 16},
    "feedback": {"verify_every": 4},
    "cache": {"num_blocks": 200, "block_size": 8},
}
SCHEDULER = {"max_num_seqs": 4, "max_num_batched_tokens": 64}


class Counted(StaticDecoder):
    """Notes how many rows each step had, and whether it ran from static buffers; and how often one drew its tokens."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.batches, self.draws = [], 0

    def forward(self, rows, draws=None):
        found = super().forward(rows, draws)
        self.batches.append((len(rows), found is not None))
        self.draws += found is not None and found[1] is not None
        return found


def write(device, static, in_prompt):
    """Answers, and the decoder that ran the steps (None without static buffers); with it, passes are launched ahead."""
    decoders = []

    def make(runner):
        model, pool = runner._model, runner._pool
        backend = TritonBackend(model.device, pool.block_size, pool.keys[0].shape[1])
        decoders.append(Counted(model, runner._layers, pool, runner._merge, backend, capture=device == "cuda"))
        return decoders[0]

    loaded = load_synthetic(SIZE, device)
    library = Library(Script(0.0, 0.6, "blocking"), passage_tokens=12)
    config = CONFIG | {"scheduler": {**SCHEDULER, "cuda_graphs": static, "async_scheduling": static}}
    params = [
        SamplingParams(max_tokens=length, temperature=1.0, seed=seed, ignore_eos=True)
        for length, seed in ((20, 1), (14, 2))
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ModelRunner, "_static_decoder", make)
        with LLM(config=config, loaded=loaded, datastore=library, verifier=library) as llm:
            prompts = [PlacedPrompt("", "Read: ", f"then {n}:") if in_prompt else [5, 6, 7 + n] for n in range(2)]
            answers = write_together(llm, [(*job, None) for job in zip(prompts, params, strict=True)])
            llm.check_integrity()
    return sorted(answers, key=lambda answer: len(answer.token_ids)), decoders[0] if decoders else None


@pytest.mark.parametrize(
    "device",
    [
        pytest.param(
            "cpu", marks=[pytest.mark.slow, pytest.mark.skipif(not INTERPRETED, reason="kernels run on the GPU")]
        ),
        pytest.param("cuda", marks=pytest.mark.gpu),
    ],
)
@pytest.mark.parametrize("in_prompt", [False, True])
def test_the_same_texts_are_written(device, in_prompt):
    (found, decoder), (expected, without) = write(device, True, in_prompt), write(device, False, in_prompt)
    assert without is None
    assert [answer.token_ids for answer in found] == [answer.token_ids for answer in expected]
    for one, other in zip(found, expected, strict=True):
        assert one.stats.tokens_discarded == other.stats.tokens_discarded
        assert one.logprobs == pytest.approx(other.logprobs, abs=LOGPROBS)
    assert sum(answer.stats.tokens_discarded for answer in found) > 0, "nothing was rewritten"
    assert sum(answer.stats.refreshes for answer in found) > 3, "the memory did not change"
    # Alone while the other one waited, and together; all of them, units and prompts included.
    assert {1, 2} <= {rows for rows, _ in decoder.batches}
    assert all(ran for _, ran in decoder.batches)
    assert decoder.draws > len(decoder.batches) / 2
