"""Steps from static buffers give what the present path gives, whatever joins, leaves, pauses or goes back.

On a CPU nothing is captured, and the kernels are interpreted; on a GPU the same steps are replayed as CUDA graphs.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from parity.families import VOCAB, build
from parity.paged import PagedModel
from tolerances import LOGPROBS
from triton_interpreter import INTERPRETED

from ewe.engine.attention.metadata import TokenOnDevice
from ewe.engine.attention.probe import attention_layers
from ewe.engine.attention.triton_backend import TritonBackend
from ewe.engine.model_executor.static_decode import StaticDecoder, buckets_for, lanes_for
from ewe.engine.sampling.fused_sampler import fetch, sample_fused
from ewe.engine.sampling.sampler import SamplingRow, sample_in_torch
from ewe.types.sampling_params import SamplingParams

GENERATOR = torch.Generator().manual_seed(6)
BLOCK = 4
START = 16
LONGER = 64


def random_tokens(length):
    return torch.randint(3, VOCAB, (length,), generator=GENERATOR).tolist()


UNITS = [random_tokens(length) for length in (5, 9, 1, 16)]
PREFIX = random_tokens(7)
# Per sequence: its units, their weights, its prompt, and whether its units stand in a prompt.
SEQUENCES = [
    ((0, 1), (1.0, 0.5), random_tokens(13), False),
    ((), (), random_tokens(3), False),
    ((1, 2, 3), (0.3, 2.0, 1.0), random_tokens(21), False),
    ((0, 1), (1.0, 3.0), random_tokens(1), False),
    ((0, 2), (1.0, 0.4), random_tokens(6), True),
    ((2,), (3.0,), random_tokens(2), True),
]
on_devices = pytest.mark.parametrize(
    "device",
    [
        pytest.param("cpu", marks=pytest.mark.skipif(not INTERPRETED, reason="with a GPU at hand, kernels run there")),
        pytest.param("cuda", marks=pytest.mark.gpu),
    ],
)


class Decoding:
    """A model with sequences that are prefilled; static: whether steps run from static buffers.

    longer: tokens of units and prompts that these have room for, beside as many rows as there are sequences.
    """

    def __init__(self, family, static, device, keeps=None, longer=0):
        model = build(family).to(device)
        # One layer of each kind; the interpreter is slow.
        model.model.layers, model.config.num_hidden_layers = model.model.layers[:2], 2
        self.paged = PagedModel(model, block_size=BLOCK, keeps=keeps)
        runner, pool = self.paged.runner, self.paged.pool
        self.decoder = None
        backend = TritonBackend(model.device, BLOCK, pool.keys[0].shape[1])
        if static:
            layers = attention_layers(model)
            self.decoder = StaticDecoder(model, layers, pool, "paper", backend, capture=device == "cuda")
        runner.static = None
        [prefix] = self.paged.encode([PREFIX])
        bare, after = self.paged.encode(UNITS), self.paged.encode(UNITS, prefix)
        self.contexts = []
        for numbers, weights, prompt, in_prompt in SEQUENCES:
            start = (START if numbers else 0) + (len(PREFIX) if in_prompt else 0)
            units = [(after if in_prompt else bare)[number] for number in numbers]
            context = self.paged.context(start, units, weights, prefix if in_prompt else None)
            self.paged.logits(context, prompt)
            self.contexts.append(context)
        self.reading = self.paged.context(START, bare[:2])
        runner.static = self.decoder
        if static and longer:
            self.decoder.prepare(len(SEQUENCES), longer)

    def step(self, tokens, placeholder=(), refreshed=None, chunk=()):
        """Log-probabilities of one step; tokens: per sequence that takes part, its next token.

        placeholder: the sequences whose token the device alone knows. refreshed: the sequence whose newest unit is
        encoded in the pass; chunk: what is read meanwhile of a prompt.
        """
        units = self.refresh(refreshed)
        drawn = torch.tensor([token for _, token in reversed(tokens)], device=self.paged.pool.device)
        rows = []
        for place, (number, token) in enumerate(tokens):
            on_device = TokenOnDevice(drawn, len(tokens) - 1 - place) if number in placeholder else None
            known = 0 if on_device else token
            rows.append(replace(self.paged.row(self.contexts[number], [known]), placeholder=on_device))
        if chunk:
            rows.insert(1, self.paged.row(self.reading, chunk, wants_logits=False))
        return self.paged.run(*units, *rows).logits.log_softmax(-1)

    def rewind(self, number, count):
        table = self.contexts[number].table
        table.truncate(max(1, table.length - count))

    def refresh(self, number):
        """Replaces the sequence's first unit by a new one; the rows that encode it."""
        if number is None or not self.contexts[number].units:
            return []
        context = self.contexts[number]
        start = 0 if context.prefix is None else context.prefix.length
        unit = self.paged.context(start, prefix=context.prefix)
        context.units = (unit.table, *context.units[1:])
        return [self.paged.row(unit, UNITS[number % 4][::-1], wants_logits=False)]


# Steps: who takes part, who goes back afterwards by how many tokens, whose memory changes in it, and how many tokens
# are read of a prompt. Who goes back had a token that the host had not read.
EVENTS = st.lists(
    st.tuples(
        st.sets(st.integers(0, len(SEQUENCES) - 1), min_size=1),
        st.integers(0, len(SEQUENCES) - 1),
        st.integers(0, 3),
        st.sampled_from([None, 0, 2, 4]),
        st.sampled_from([0, 1, 6]),
    ),
    min_size=1,
    max_size=3,
)


def check_steps(family, device, events):
    static, present = Decoding(family, True, device, longer=LONGER), Decoding(family, False, device)
    tokens = torch.Generator().manual_seed(9)
    for taking_part, who, back, refreshed, chunk in events:
        step = [(number, int(torch.randint(3, VOCAB, (), generator=tokens))) for number in sorted(taking_part)]
        found = static.step(step, [who], refreshed, PREFIX[:chunk])
        expected = present.step(step, (), refreshed, PREFIX[:chunk])
        torch.testing.assert_close(found, expected, atol=LOGPROBS, rtol=0)
        for decoding in (static, present):
            decoding.rewind(who, back)
    with_longer = sum(refreshed is not None or chunk > 0 for *_, refreshed, chunk in events)
    assert [step.runs - step.is_captured for step in static.decoder._mixed] == [with_longer]
    for one, other in zip(static.paged.pool.keys, present.paged.pool.keys, strict=True):
        torch.testing.assert_close(one, other, atol=LOGPROBS, rtol=LOGPROBS)
    assert not any(tensor[:BLOCK].any() for tensor in (*static.paged.pool.keys, *static.paged.pool.values))


@pytest.mark.parametrize("family", ["llama", pytest.param("gemma2", marks=pytest.mark.slow)])
@on_devices
def test_steps_equal_those_of_the_present_path(family, device):
    """Memory in front and in a prompt, tokens that are not read yet, going back, other units, steps of other sizes."""
    events = [({0, 1, 2, 4}, 0, 3, 0, 6), ({0, 5}, 5, 1, None, 0), ({0, 4}, 0, 0, 4, 1), ({0}, 0, 0, None, 0)]
    check_steps(family, device, events)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["llama", "gemma2"])
@on_devices
@settings(max_examples=10)
@given(events=EVENTS)
def test_any_steps_equal_those_of_the_present_path(family, device, events):
    check_steps(family, device, events)


@on_devices
@pytest.mark.parametrize("longer", [0, LONGER])
def test_what_pads_a_step_writes_nowhere_and_brings_no_nan(device, longer):
    """All that no sequence holds is NaN: a lane that read it would show, and one that wrote it would change it."""
    decoding = Decoding("llama", True, device, longer=longer)
    pool, manager = decoding.paged.pool, decoding.paged.manager
    free = sorted(manager._free)
    slots = torch.tensor([block * BLOCK + offset for block in free for offset in range(BLOCK)], device=device)
    held = torch.ones(len(pool.keys[0]), dtype=torch.bool, device=device)
    held[slots] = False
    for tensor in (*pool.keys, *pool.values):
        tensor[slots] = torch.nan
    before = [tensor[held].clone() for tensor in (*pool.keys, *pool.values)]
    refreshed = decoding.refresh(0) if longer else []
    rows = refreshed + [decoding.paged.row(decoding.contexts[number], [5 + number]) for number in range(3)]
    new = [row.context_slots[-len(row.token_ids) :].tolist() for row in rows]
    written = torch.tensor([slot for slots in new for slot in slots], device=device)
    logits = decoding.paged.run(*rows).logits
    assert logits.shape == (3, VOCAB)
    assert logits.isfinite().all()
    for tensor, old in zip((*pool.keys, *pool.values), before, strict=True):
        assert not tensor[written].isnan().any()
        untouched = held.clone()
        untouched[written] = False
        assert torch.equal(tensor[untouched], old[untouched[held]])
        still_free = torch.tensor([slot for slot in slots.tolist() if slot not in written.tolist()], device=device)
        assert tensor[still_free].isnan().all()


@on_devices
def test_steps_of_the_same_size_share_buffers_and_others_do_not(device):
    decoding, present = Decoding("llama", True, device), Decoding("llama", False, device)
    for taking_part in ([0, 1, 2, 3], [1], [3, 1, 0]):
        # What a larger step left in the buffers does nothing in a smaller one.
        found, expected = (item.step([(number, 7) for number in taking_part]) for item in (decoding, present))
        torch.testing.assert_close(found, expected, atol=LOGPROBS, rtol=0)
    # Three and four sequences take four lanes; one takes one. A captured step has run once more, to warm up.
    warm = device == "cuda"
    assert sorted(step.runs for step in decoding.decoder._steps.values()) == [1 + warm, 2 + warm]


def with_units_and_prompts(decoding):
    """Two passes: units of which some are seen at once, prompts that end and one that does not, decoding among them."""
    paged, contexts = decoding.paged, decoding.contexts
    units = [*decoding.refresh(0), *decoding.refresh(2), *decoding.refresh(4)]
    prompts = [paged.context(START, (contexts[0].units[0],), (0.4,)), paged.context()]
    rows = [
        paged.row(contexts[0], [7]),
        paged.row(prompts[0], random_tokens(11)),
        paged.row(contexts[4], [8]),
        paged.row(decoding.reading, random_tokens(5), wants_logits=False),
        paged.row(prompts[1], random_tokens(2)),
    ]
    yield paged.run(*units, *rows)
    yield paged.run(
        paged.row(prompts[0], [9]), paged.row(decoding.reading, random_tokens(20)), paged.row(contexts[0], [6])
    )
    yield paged.run(*(paged.row(context, [5]) for context in (*prompts, decoding.reading, contexts[4])))


@on_devices
def test_units_and_prompts_equal_those_of_the_present_path(device):
    passes = []
    for static in (True, False):
        GENERATOR.manual_seed(11)
        decoding = Decoding("gemma2", static, device, longer=LONGER)
        passes.append([result.logits.log_softmax(-1) for result in with_units_and_prompts(decoding)])
        if static:
            assert [step.runs - step.is_captured for step in decoding.decoder._mixed] == [2]
    assert [len(logits) for logits in passes[0]] == [4, 3, 4]
    for found, expected in zip(*passes, strict=True):
        torch.testing.assert_close(found, expected, atol=LOGPROBS, rtol=0)


SAMPLED = [
    SamplingParams(temperature=0.0),
    SamplingParams(temperature=0.9, top_p=0.8),
    SamplingParams(temperature=1.5, top_k=20, min_p=0.02),
]


def draws_of(numbers, position):
    """Greedy and sampled rows in turns; position: how many tokens of each text have been drawn."""
    params = [SAMPLED[number % len(SAMPLED)] for number in numbers]
    return [
        SamplingRow(item, (), (), number, temperature=item.temperature, num_placeholders=position)
        for number, item in zip(numbers, params, strict=True)
    ]


@on_devices
def test_steps_draw_their_tokens_and_begin_with_those_of_the_step_before(device):
    """Of any order and number, with a unit, and after a step whose tokens were drawn outside; nothing is read."""
    static, present = (Decoding("llama", on, device, longer=LONGER) for on in (True, False))
    decoder, drawing, before, places = static.decoder, None, [5] * len(SEQUENCES), {}
    own = []
    for position, (numbers, refreshed, inside) in enumerate(
        [([1, 3, 5], None, True), ([3, 1], 3, True), ([1, 3], None, False), ([3], None, True), ([3], None, True)]
    ):
        draws = draws_of(numbers, position)
        fed = {number: TokenOnDevice(drawing.ids, places[number]) for number in numbers if number in places}
        rows = [
            replace(static.paged.row(static.contexts[number], [0 if fed else 5]), placeholder=fed.get(number))
            for number in numbers
        ]
        logits, drawn = decoder.forward([*static.refresh(refreshed), *rows], draws if inside else None)
        later = drawing
        own.append(drawn is not None)
        drawing = fetch(drawn) if inside else sample_fused(logits, draws, False)
        places = {number: place for place, number in enumerate(numbers)}
        rows = [present.paged.row(present.contexts[number], [before[number]]) for number in numbers]
        expected = sample_in_torch(present.paged.run(*present.refresh(refreshed), *rows).logits, draws, False).read()
        for number, token in zip(numbers, expected, strict=True):
            before[number] = token.id
        found = drawing.read()
        assert later is None or len(later.read()) in (1, 2, 3)
        assert [token.id for token in found] == [token.id for token in expected]
        assert [token.logprob for token in found] == pytest.approx([item.logprob for item in expected], abs=LOGPROBS)
    assert own == [True, True, False, True, True]
    assert [step.runs - step.is_captured for step in decoder._mixed] == [1]


@on_devices
def test_a_step_without_draws_leaves_those_of_the_step_before(device):
    """A pass that is run in parts, for want of memory, begins in each of them with tokens of the pass before."""
    decoding, present = Decoding("llama", True, device), Decoding("llama", False, device)
    rows = [decoding.paged.row(decoding.contexts[number], [5]) for number in (1, 3)]
    _, drawn = decoding.decoder.forward(rows, draws_of([1, 3], 0))
    drawing, found = fetch(drawn), []
    for number, place in ((3, 1), (1, 0)):
        row = decoding.paged.row(decoding.contexts[number], [0])
        found.append(decoding.decoder.forward([replace(row, placeholder=TokenOnDevice(drawing.ids, place))])[0])
    present.step([(1, 5), (3, 5)])
    first, second = drawing.read()
    expected = present.step([(3, second.id), (1, first.id)])
    torch.testing.assert_close(torch.cat(found).log_softmax(-1), expected, atol=LOGPROBS, rtol=0)


@on_devices
def test_what_has_no_room_is_left_to_the_present_path(device):
    decoding = Decoding("llama", True, device)
    decoder, paged = decoding.decoder, decoding.paged
    unit = [paged.row(paged.context(), [1, 2], wants_logits=False)]
    assert decoder.forward(unit) is None, "no steps have been made for units"
    decoder.prepare(2, LONGER)
    [step] = decoder._mixed
    assert decoder.forward(unit)[0].shape == (0, VOCAB)
    assert (step.sizes.tokens, step.sizes.runs) == (LONGER + 2, LONGER // 8)
    for lengths, flags in (
        ([LONGER + 3], {}),
        ([3], {"all_logits": True}),
        ([2] * (LONGER // 8), {}),
        ([1] * 3, {"wants_logits": False}),
    ):
        rows = [paged.row(paged.context(), [1] * length, **flags) for length in lengths]
        assert decoder.forward(rows) is None


def test_buckets_reach_as_far_as_passes():
    assert buckets_for(2048) == [64, 128, *range(256, 2049, 256)] == buckets_for(9000)
    assert buckets_for(300) == [64, 128, 256, 300]
    assert buckets_for(65) == [64, 65]
    assert buckets_for(64) == buckets_for(5) == [64]


def test_lanes_are_enough_and_not_many_more():
    lanes = [lanes_for(number) for number in range(1, 300)]
    assert all(number <= lane < 2 * number for number, lane in enumerate(lanes, 1))
    assert all(one <= other for one, other in pairwise(lanes))
    assert lanes_for(256) == 256


@on_devices
def test_a_model_that_cannot_be_captured_is_decoded_without(device, caplog):
    """What CUDA refuses to record is a RuntimeError; it is tried twice, and the results are the same."""
    decoding, present = Decoding("llama", True, device), Decoding("llama", False, device)
    decoder = decoding.decoder
    decoder.close()
    decoder._capture = True
    calls = []

    def refuse(self, memory):
        calls.append(memory)
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    with pytest.MonkeyPatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr("ewe.engine.model_executor.static_decode.StaticStep.capture", refuse)
        for token in (4, 5, 6):
            found, expected = (item.step([(0, token), (2, token)]) for item in (decoding, present))
            torch.testing.assert_close(found, expected, atol=LOGPROBS, rtol=0)
    assert len(calls) == decoder.num_failed == 2
    *lines, last = [record.getMessage() for record in caplog.records]
    assert len(lines) == 2
    assert all("not permitted" in line and "more" not in line for line in lines)
    assert "without further CUDA graphs" in last


@on_devices
@pytest.mark.parametrize(("most", "kept", "failed"), [(LONGER + 2, [LONGER + 2], 2), (2, [], 4)])
def test_a_bucket_without_memory_costs_no_other(device, most, kept, failed):
    decoder = decoder_with_room_for(most, device)
    assert [step.sizes.tokens for step in decoder._mixed] == kept
    assert (decoder.num_graphs, decoder.num_failed) == (2 + len(kept), failed)


@on_devices
def test_without_memory_for_decoding_the_engine_is_told(device):
    with pytest.raises(torch.OutOfMemoryError):
        decoder_with_room_for(0, device)


def decoder_with_room_for(most_tokens, device):
    """A decoder whose larger passes find no memory when they are captured."""
    decoder = Decoding("llama", True, device).decoder
    decoder.close()
    decoder._capture = True

    def capture(step, memory):
        if step.sizes.tokens > most_tokens:
            raise torch.OutOfMemoryError("CUDA out of memory")
        step._graph = object()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ewe.engine.model_executor.static_decode.StaticStep.run", lambda step: None)
        patch.setattr("ewe.engine.model_executor.static_decode.StaticStep.capture", capture)
        decoder.prepare(2, 2 * LONGER)
    return decoder


@on_devices
def test_logits_stay_as_they_were_when_the_next_step_runs(device):
    decoding = Decoding("llama", True, device)
    results = [decoding.paged.run(decoding.paged.row(decoding.contexts[0], [token])).logits for token in (4, 5, 6)]
    copies = [logits.clone() for logits in results]
    decoding.step([(0, 8)])
    assert all(map(torch.equal, results, copies))
    assert len({float(logits.sum()) for logits in results}) == len(results)


@pytest.mark.gpu
def test_on_a_gpu_steps_are_captured():
    decoding = Decoding("llama", True, "cuda")
    decoder = decoding.decoder
    decoder.close()
    decoder._capture = True
    seen = []
    decoder.prepare(4, 2 * LONGER, lambda done, total: seen.append((done, total)))
    assert seen == [(done, 5) for done in range(6)]
    assert decoder.num_graphs == 5
    for token in (4, 5, 6):
        decoding.step([(0, token), (1, token), (2, token)], refreshed=0)
    assert decoder.num_graphs == 5, "a step was captured while it served"
    decoder.close()
    assert decoder.num_graphs == 0


@on_devices
@pytest.mark.parametrize("sizes", [{"units": 0}, {"blocks": 1}], ids=str)
def test_a_step_that_has_no_room_takes_the_present_path(device, sizes):
    """More units than were promised, or contexts over more blocks than the tables hold."""
    decoding, present = Decoding("llama", True, device), Decoding("llama", False, device)
    decoder = decoding.decoder
    decoder.close()
    decoder._units = sizes.get("units", 16)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ewe.engine.attention.static_plan._STATES_PER_SEGMENT", 1)
        patch.setattr(decoder._backend, "target_pieces", 1)
        if "blocks" in sizes:
            patch.setattr(decoder._pool, "num_blocks", 1)
        assert decoder.forward([decoding.paged.row(decoding.contexts[2], [9])]) is None
    found, expected = (item.step([(2, 7)]) for item in (decoding, present))
    assert found.shape == expected.shape


def test_a_runner_without_kernels_decodes_as_before():
    paged = PagedModel(build("llama"))
    assert paged.runner.static is None


@on_devices
@pytest.mark.parametrize("keeps", ["hidden", "queries"])
def test_what_is_kept_of_every_token_is_the_same(keeps, device):
    states = []
    for static in (False, True):
        decoding = Decoding("llama", static, device, keeps)
        decoding.step([(0, 5), (1, 6), (3, 7)])  # one lane of four has no row
        states.append(decoding.paged.pool.states[BLOCK:])
    torch.testing.assert_close(states[1], states[0], atol=LOGPROBS, rtol=LOGPROBS)
    assert states[0].count_nonzero() > 0
