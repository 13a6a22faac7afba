"""Training a reader of memory units: who sees whom, what is asked, that the loss falls, what is written."""

import sys
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
import torch
from engine_tokenizers import byte_level
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import LlamaConfig, LlamaForCausalLM

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from reader_training.attention import block_mask, flex_mask
from reader_training.batches import Batch, Batches, Shape
from reader_training.evaluation import Item, Way, answer_all, is_right, wilson
from reader_training.frames import Encoder, Example, Talk
from reader_training.greedy import answers
from reader_training.mixture import Mixture
from reader_training.model import add_adapter, save_adapter, target_logits, with_adapter
from reader_training.packing import Packed, Rows, parallel_layout, sequential_layout
from reader_training.questions import askable, present, question_about, quote
from reader_training.records import Passage, Reading, read_readings
from reader_training.sources import Claim, Sources, paragraphs
from reader_training.training import Settings, Training

_UNIT_TOKENS = 24
_TURN = "<{{ m.role }}>{{ m.content }}<end>"
_TEMPLATE = f"{{% for m in messages %}}{_TURN}{{% endfor %}}{{% if add_generation_prompt %}}<bot>{{% endif %}}"
EXAMPLES = (
    Example([5, 6], [[7, 8, 9], [10, 11]], (0,), [12, 13], [14, 15], True, True),
    Example([5, 6], [[17, 18]], (0,), [19], [20, 21, 22], True, True),
    Example([5], [], (), [30, 31], [32], True, False),
)


@pytest.fixture(scope="module")
def model() -> LlamaForCausalLM:
    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=320,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        initializer_range=0.3,
        tie_word_embeddings=True,
    )
    return LlamaForCausalLM(config).eval().requires_grad_(False)


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    tokenizer = byte_level()
    tokenizer.chat_template = _TEMPLATE
    return Encoder(tokenizer, _UNIT_TOKENS)


def packed(examples: tuple[Example, ...], rows: int, width: int) -> Packed:
    made = Rows(rows, width)
    for example in examples:
        layout = parallel_layout(example, _UNIT_TOKENS)
        row = made.row_for(layout)
        assert row is not None
        made.place(row, layout)
    return made.packed().to(torch.device("cpu"))


def literal_logits(model: LlamaForCausalLM, example: Example) -> torch.Tensor:
    """Each unit read on its own after the prefix, then rest and target over the keys of all."""
    prefix = torch.tensor([example.prefix])
    start = len(example.prefix)
    cache = model(prefix, use_cache=True).past_key_values
    parts = []
    for unit in example.units:
        own = model(prefix, use_cache=True).past_key_values
        model(torch.tensor([unit]), past_key_values=own, position_ids=torch.arange(start, start + len(unit))[None])
        parts.append(own)
    for number, layer in enumerate(cache.layers):
        layer.keys = torch.cat([layer.keys, *(part.layers[number].keys[:, :, start:] for part in parts)], 2)
        layer.values = torch.cat([layer.values, *(part.layers[number].values[:, :, start:] for part in parts)], 2)
    context = start + (_UNIT_TOKENS if example.in_memory else 0)
    tail = example.rest + example.target
    positions = torch.arange(context, context + len(tail))[None]
    logits = model(torch.tensor([tail]), past_key_values=cache, position_ids=positions).logits
    return logits[0, len(example.rest) - 1 : -1]


@pytest.mark.parametrize("width", [11, 24], ids=["one each", "shared rows"])
def test_packed_examples_read_as_each_one_does_literally(model: LlamaForCausalLM, width: int) -> None:
    batch = packed(EXAMPLES, 3, width)
    expected = torch.cat([literal_logits(model, example) for example in EXAMPLES])
    torch.testing.assert_close(target_logits(model, batch, "sdpa"), expected, rtol=1e-4, atol=1e-4)
    assert batch.labels.tolist() == [14, 15, 20, 21, 22, 32]


def test_flex_attention_sees_the_same() -> None:
    batch = packed(EXAMPLES, 2, 24)
    mask = flex_mask(batch)
    rows, width = batch.ids.shape
    grid = torch.meshgrid(torch.arange(rows), torch.arange(width), torch.arange(width), indexing="ij")
    seen = mask.mask_mod(grid[0], torch.tensor(0), grid[1], grid[2])
    assert torch.equal(seen, block_mask(batch)[:, 0])


def test_greedy_answers_are_those_of_one_forward_per_token(model: LlamaForCausalLM) -> None:
    found = answers(model, EXAMPLES, lambda e: parallel_layout(e, _UNIT_TOKENS), end=-1, tokens=5)
    for example, ids in zip(EXAMPLES, found, strict=True):
        grown = replace(example, target=[*ids, 0])
        assert literal_logits(model, grown).argmax(-1)[:5].tolist() == ids


def test_without_memory_both_layouts_are_plain_prompts() -> None:
    plain = sequential_layout(EXAMPLES[2], ())
    assert plain.positions == parallel_layout(EXAMPLES[2], _UNIT_TOKENS).positions == [0, 1, 2, 3]


def test_units_are_cut_at_a_sentence(encoder: Encoder) -> None:
    short, long = "It is red.", "It was built in 1897 by some men of Oslo."
    [whole, cut] = encoder.encode(Talk("Why?", "So.", (Passage("", short), Passage("", f"{short} {long}")))).units
    assert whole == cut
    assert encoder.tokenizer.decode(cut) == f"{short}\n"
    [torn] = encoder.encode(Talk("Why?", "So.", (Passage("A", long),))).units
    assert len(torn) == _UNIT_TOKENS


def test_units_stand_in_the_first_user_turn(encoder: Encoder) -> None:
    talk = Talk("Who?", "Ann.", (Passage("T", "It."),), turns=(("When?", "In 1897."),))
    example = encoder.encode(talk)
    prefix, unit, rest = (encoder.tokenizer.decode(ids) for ids in (example.prefix, example.units[0], example.rest))
    assert prefix == "<user>Context: "
    assert unit == "T: It.\n"
    assert rest == "\nWhen?<end><assistant>In 1897.<end><user>Who?<end><bot>"
    assert example.target[-1] == encoder.tokenizer.eos_token_id


def test_an_answer_ends_as_the_template_ends_a_turn() -> None:
    tokenizer = deepcopy(byte_level())  # others share it
    tokenizer.chat_template = _TEMPLATE
    tokenizer.add_tokens("<end>")
    encoder = Encoder(tokenizer, _UNIT_TOKENS)
    assert tokenizer.decode(encoder.encode(Talk("Who?", "Ann.")).target[-1:]) == "<end>"
    assert encoder.end != tokenizer.eos_token_id


@pytest.mark.parametrize(
    ("sentence", "answer", "question"),
    [
        ("Ann Bell wrote the song.", "Ann Bell", "wrote the song?"),
        ("The choir was founded in 1969.", "1969", "was the choir founded?"),
        ("In 1969, Ann Bell moved to Leeds.", "1969", "did Ann Bell move to Leeds?"),
        ("The choir won 12 prizes in Leeds.", "12", "How many prizes"),
    ],
)
def test_questions_follow_their_rules(sentence: str, answer: str, question: str) -> None:
    [value] = [value for value in askable(sentence) if value.text == answer]
    assert any(question in question_about(Random(seed), sentence, value) for seed in range(20))


@given(st.integers(0, 10**6))
@settings(max_examples=60)
def test_no_question_tells_its_answer(seed: int) -> None:
    rng = Random(seed)
    sentence = rng.choice(
        ("In 1969, 12 men of Leeds, led by Ann Bell, won a prize.", "Leeds has 12 choirs; Leeds pays.")
    )
    value = rng.choice(askable(sentence))
    assert value.text not in question_about(rng, sentence, value)


_VERBS = """moved:move tried:try won:win stopped:stop called:call visited:visit produced:produce released:release
    opened:open based:base defeated:defeat discovered:discover directed:direct created:create played:play
"""


@pytest.mark.parametrize("pair", _VERBS.split())
def test_verbs_lose_their_past(pair: str) -> None:
    past, plain = pair.split(":")
    assert present(past) == plain


def test_long_sentences_are_quoted_around_the_answer() -> None:
    sentence = (
        "The choir, " + ", ".join(["which sings in many towns of the north"] * 6) + ", was founded in 1969, they say."
    )
    told = quote(sentence, "1969")
    assert "1969" in told
    assert len(told.split()) <= 30
    assert told[0].isupper()
    assert quote("It is red.", "red") == "It is red."


def test_paragraphs_have_about_the_same_length() -> None:
    texts = list(paragraphs(["One two three four five."] * 100))
    assert [len(text.split()) for text in texts] == [150, 150, 150]


def some_sources() -> Sources:
    pages = tuple(
        Passage(f"Page {name}", f"{name} Bell was born in 19{year}. She won {year} prizes in Leeds.", "wiki")
        for name, year in (("Ann", 41), ("Bob", 52), ("Cid", 63), ("Dan", 74))
    )
    claims = (Claim("Ann Bell was born in 1941.", True, pages[0], ("Ann Bell was born in 1941.",)),)
    reading = Reading("Who won 52 prizes?", ("Bob Bell",), (pages[1],), (pages[2],), "Bob Bell did.")
    return Sources(pages, claims, (reading,))


def test_mixtures_hold_the_right_passages_and_repeat_themselves() -> None:
    mixture = Mixture(some_sources(), [("Hello!", "Hi.")])
    talks = [mixture.draw(Random(seed)) for seed in range(200)]
    assert talks == [mixture.draw(Random(seed)) for seed in range(200)]
    assert {len(talk.units) for talk in talks} > {0, 1, 2, 3}
    assert any(talk.turns for talk in talks)
    asked = [talk for talk in talks if talk.question == "Who won 52 prizes?"]
    assert asked
    for talk in asked:
        assert [talk.units[number].title for number in talk.right] == ["Page Bob"]
        assert talk.target == "Bob Bell did."


def test_readings_come_from_jsonl(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text(
        '{"question": "Who?", "target": "Ann.", "passages": [{"text": "a"}, {"text": "b"}], "right": [1]}\n'
    )
    [reading] = read_readings(file)
    assert (reading.right, reading.others) == ((Passage("", "b", "mine"),), (Passage("", "a", "mine"),))
    file.write_text('{"question": "Who?", "passages": [], "right": []}\n')
    with pytest.raises(ValueError, match="object 1"):
        read_readings(file)


def test_training_lowers_the_loss_goes_on_and_its_adapter_changes_the_model(
    model: LlamaForCausalLM, encoder: Encoder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = some_sources()
    mixture = Mixture(replace(sources, claims=(), passages=sources.passages[:2]), ())
    batches = Batches(mixture, Encoder(encoder.tokenizer, 128), Shape(1, 384), seed=1)
    student = add_adapter(LlamaForCausalLM(model.config), 4, seed=1)
    student.get_base_model().load_state_dict(
        {name.replace("proj.weight", "proj.base_layer.weight"): value for name, value in model.state_dict().items()},
        strict=False,
    )
    checkpoint = tmp_path / "checkpoint.safetensors"

    def train(steps: int) -> Training:
        pace = Settings(0, steps, peak_lr=0.02, say_every=4, probes=1)
        training = Training(student, model, batches, pace, checkpoint, lambda: "probed")
        training.run()
        return training

    assert train(4).step == 4
    assert train(16).step == 16
    said = capsys.readouterr().out
    losses = [float(line.split(" loss ")[1].split()[0]) for line in said.splitlines() if " loss " in line]
    assert len(losses) == 4
    assert losses[-1] < 0.9 * losses[0]
    assert "probed" in said
    save_adapter(tmp_path / "adapter", student, "tiny")
    batch = packed(EXAMPLES, 3, 11)
    trained = target_logits(student.get_base_model(), batch, "sdpa")
    fresh = LlamaForCausalLM(model.config)
    fresh.load_state_dict(model.state_dict())
    merged = target_logits(with_adapter(fresh, tmp_path / "adapter"), batch, "sdpa")
    torch.testing.assert_close(merged, trained, rtol=0.05, atol=0.05)
    assert not torch.allclose(merged, target_logits(model, batch, "sdpa"), atol=0.5)


def test_batches_depend_on_the_step_alone(encoder: Encoder) -> None:
    made = [
        Batches(Mixture(some_sources(), ()), Encoder(encoder.tokenizer, 128), Shape(2, 512), seed=1) for _ in range(2)
    ]
    first, second = (batches[7] for batches in made)
    assert isinstance(first, Batch)
    assert torch.equal(first.student.ids, second.student.ids)
    student = first.student.labels[first.taught]
    assert torch.equal(student, first.teacher.labels)


def test_answers_are_measured(model: LlamaForCausalLM, encoder: Encoder) -> None:
    item = Item("Who?", ("the Bell",), Passage("", "Ann."), tuple(Passage("", text) for text in "abcdefg"))
    for way in (Way("nothing"), Way("prompt", 2), Way("units", 2)):
        assert len(answer_all(model, encoder, [item], way)) == 1
    assert is_right("It was Bell, they say.", ["the Bell"])
    assert not is_right("It was Bella.", ["Bell"])
    low, high = wilson(5, 24)
    assert (round(low, 3), round(high, 3)) == (0.092, 0.405)
