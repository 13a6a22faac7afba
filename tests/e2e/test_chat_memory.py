"""Memory inside chats and raw prompts through LLM: against the literal form, and what cannot be split."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import torch
from e2e.llm_rig import tiny_llm
from parity.families import CONFIGS
from parity.in_prompt import Oracle
from tolerances import LOGPROBS
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast
from unit.engine_tokenizers import byte_level

from ewe import LLM, Passage, SamplingParams
from ewe.cli.index_precompute import _prefix
from ewe.config.memory_mark import PlacedPrompt
from ewe.engine.models.loader import LoadedModel
from ewe.engine.startup.precompute import precompute
from ewe.errors import ConfigError, InvalidRequestError, PrecomputedError

TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}\n{% endfor %}<assistant>"
TEN = SamplingParams(max_tokens=10, ignore_eos=True)
MEMORY = {"unit_tokens": 24, "retrieval_units": 3, "verification_units": 0}
PASSAGES = [
    Passage("a", "It was named.", veracity=0.5),
    Passage("b", "By the sea.", title="Sør"),
    Passage("c", "A café."),
]
RIVER = [{"role": "user", "content": "The river"}]
SEA = [
    {"role": "system", "content": "Be short."},
    {"role": "user", "content": "The sea {memory}"},
    {"role": "assistant", "content": "It flows."},
    {"role": "user", "content": " And then? "},
]


@lru_cache
def weights(attention: str) -> Any:
    config = deepcopy(CONFIGS["llama"])
    config.vocab_size = len(byte_level())
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation=attention).eval()


def chat_llm(template: str = TEMPLATE, num_blocks: int = 300, **memory: Any) -> LLM:
    """A model whose tokenizer can be cut anywhere, with a chat template of its own."""
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=byte_level().backend_tokenizer, eos_token="<eos>")
    tokenizer.chat_template = template
    model = weights("ewe").requires_grad_(False)
    loaded = LoadedModel(model, tokenizer, 400, frozenset({tokenizer.eos_token_id}), len(tokenizer))
    config = {"memory": {**MEMORY, **memory}, "cache": {"num_blocks": num_blocks, "block_size": 4}, "verifier": "none"}
    return LLM("tiny", config=config, loaded=loaded)


def precomputed(out: Path, prefix: str, **memory: Any) -> None:
    with chat_llm(**memory) as llm:
        precompute(llm.client.engine.loaded, llm.config, PASSAGES, out, prefix=prefix)


@pytest.fixture(scope="module")
def llm() -> Iterator[LLM]:
    with chat_llm() as engine:
        yield engine
        engine.check_integrity()


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    return Oracle("llama", deepcopy(weights("eager")))


def check(llm: LLM, oracle: Oracle, answer: Any, before: str, after: str, own: list[float], merge: str) -> None:
    """The answer's tokens and log-probabilities are the literal form's, run anew at every step."""
    prefix, ids = (llm.tokenizer(text)["input_ids"] for text in (before, after))
    units = [llm.unit_token_ids(passage, in_prompt=True) for passage in PASSAGES]
    count = len(ids)
    for _ in answer.token_ids:
        scores = oracle.logprobs(prefix, units, ids, MEMORY["unit_tokens"], own, merge)[-1]
        ids.append(int(scores.argmax()))
    assert answer.token_ids == tuple(ids[count:])
    expected = oracle.logprobs(prefix, units, ids[:-1], MEMORY["unit_tokens"], own, merge)[count - 1 :].max(-1).values
    assert answer.logprobs == pytest.approx(expected.tolist(), abs=LOGPROBS)


@pytest.mark.parametrize(
    ("merge", "weighting", "expected"),
    [("auto", "off", "plain"), ("paper", "linear", "paper"), ("auto", "linear", "plain")],
)
def test_chats_are_the_literal_form(oracle: Oracle, merge: str, weighting: str, expected: str) -> None:
    own = [passage.veracity if weighting == "linear" else 1.0 for passage in PASSAGES]
    with chat_llm(merge=merge, veracity_weighting=weighting) as llm:
        [short, long] = llm.chat([RIVER, SEA], TEN, PASSAGES)
        check(llm, oracle, short, "<user>Context: ", "\nThe river\n<assistant>", own, expected)
        # Everything before the user's last turn is prefix; its own words are trimmed by the template.
        before = "<system>Be short.\n<user>The sea {memory}\n<assistant>It flows.\n<user>Context: "
        check(llm, oracle, long, before, "\n And then?\n<assistant>", own, expected)
        assert long.prompt == before + "\n And then?\n<assistant>"
        assert long.stats.prompt_tokens == sum(
            len(llm.tokenizer(t)["input_ids"]) for t in (before, long.prompt[len(before) :])
        )
        llm.check_integrity()


def test_units_in_a_prompt_have_a_temperature(tmp_path: Path) -> None:
    tempered = Oracle("llama", deepcopy(weights("eager")), temperature=0.6)
    place = "<user>Context: ", "\nThe river\n<assistant>", [1.0] * 3, "plain"
    precomputed(tmp_path, place[0])
    with chat_llm(unit_temperature=0.6) as llm, chat_llm() as plain:
        # Two requests encode the same units together; a third finds them.
        answers = [*llm.chat([RIVER, RIVER], TEN, PASSAGES), *llm.chat(RIVER, TEN, PASSAGES)]
        assert [answer.stats.units_encoded for answer in answers] == [3, 0, 0]
        for answer in answers:
            check(llm, tempered, answer, *place)
        bare = [engine.generate("The river", TEN, PASSAGES)[0].logprobs for engine in (llm, plain)]
        assert bare[0] == bare[1]
        assert answers[0].logprobs != plain.chat(RIVER, TEN, PASSAGES)[0].logprobs
    with chat_llm(unit_temperature=0.6, precomputed=str(tmp_path)) as llm:
        [loaded] = llm.chat(RIVER, TEN, PASSAGES)
        assert loaded.stats.units_loaded == 3
        check(llm, tempered, loaded, *place)


def test_units_with_a_temperature_come_and_go() -> None:
    talks = [[{"role": "system", "content": f"Be {kind}."}, *RIVER] for kind in ("short", "long", "kind", "bold")]
    with chat_llm(unit_temperature=0.6) as roomy, chat_llm(num_blocks=60, unit_temperature=0.6) as narrow:
        expected = roomy.chat(talks, TEN, PASSAGES)
        found = narrow.chat(talks, TEN, PASSAGES) + narrow.chat(talks[::-1], TEN, PASSAGES)
        assert [answer.token_ids for answer in found] == [answer.token_ids for answer in expected + expected[::-1]]
        assert sum(answer.stats.units_encoded for answer in found) > 12  # some were evicted
        narrow.check_integrity()


def test_a_prefix_and_its_units_are_encoded_once_for_all_requests() -> None:
    with chat_llm() as llm:
        first, second = llm.chat([RIVER, RIVER], [TEN, TEN], PASSAGES)
        [third] = llm.chat([{"role": "user", "content": "Another"}], TEN, PASSAGES[:1])
        [other] = llm.chat([{"role": "system", "content": "S"}, *RIVER], TEN, PASSAGES)
        prefix = len(llm.tokenizer("<user>Context: ")["input_ids"])
        counts = [(answer.stats.prefix_tokens_encoded, answer.stats.units_encoded) for answer in (first, second, third)]
        assert counts == [(prefix, 3), (0, 0), (0, 0)]
        assert other.stats.units_encoded == 3  # what follows another prefix is another unit
        assert first.token_ids == second.token_ids


def test_units_that_were_encoded_beforehand(llm: LLM, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    prefix = _prefix(llm.tokenizer, llm.config, "Be short.")
    assert prefix == "<system>Be short.\n<user>Context: "
    precomputed(tmp_path, prefix)
    talk = [SEA[0], *RIVER]
    with chat_llm(precomputed=str(tmp_path)) as engine, caplog.at_level(logging.WARNING):
        [answer] = engine.chat(talk, TEN, PASSAGES)
        assert (answer.stats.units_loaded, answer.stats.units_encoded) == (3, 0)
        [expected] = llm.chat(talk, TEN, PASSAGES)
        assert answer.token_ids == expected.token_ids
        assert answer.logprobs == pytest.approx(expected.logprobs, abs=LOGPROBS)
        assert not caplog.records
        others = [engine.chat(RIVER, TEN, PASSAGES)[0], engine.generate("The river", TEN, PASSAGES)[0]]
        assert [other.stats.units_encoded for other in others] == [3, 3]
        assert others[0].token_ids == llm.chat(RIVER, TEN, PASSAGES)[0].token_ids
    [line] = [record.getMessage() for record in caplog.records]
    assert line == f"{tmp_path} is of no use to prompts that begin otherwise than what it was made for"


def test_folders_of_units_are_refused_by_what_they_were_made_for(tmp_path: Path) -> None:
    inside, bare = tmp_path / "inside", tmp_path / "bare"
    precomputed(inside, "<user>Context: ")
    precomputed(bare, "")
    with pytest.raises(PrecomputedError, match=r"holds units after '<user>Context: ', and memory\.placement is bare"):
        chat_llm(precomputed=str(inside), placement="bare")
    with pytest.raises(PrecomputedError, match=r"holds bare units, and memory\.placement is in_prompt"):
        chat_llm(precomputed=str(bare), placement="in_prompt")
    for folder, prefix in ((inside, "<user>Read: "), (inside, ""), (bare, "<user>Context: ")):
        with pytest.raises(PrecomputedError, match="its units follow another beginning of a prompt"):
            precomputed(folder, prefix)


def test_several_answers_and_streams_share_the_prefix(llm: LLM) -> None:
    params = SamplingParams(max_tokens=8, n=3, temperature=1.0, seed=5, ignore_eos=True)
    answers = llm.chat(RIVER, params, PASSAGES)
    assert len({answer.text for answer in answers}) > 1
    events = list(llm.stream(llm.chat_prompt(RIVER), TEN, PASSAGES, add_special_tokens=False))
    assert events[-1].generation.token_ids == llm.chat(RIVER, TEN, PASSAGES)[0].token_ids


def test_what_can_have_no_memory_is_the_plain_chat(llm: LLM) -> None:
    [answer] = llm.chat(RIVER, TEN)
    [plain] = llm.generate(llm.apply_chat_template(RIVER), TEN)
    assert (answer.prompt, answer.token_ids) == ("<user>The river\n<assistant>", plain.token_ids)
    assert answer.logprobs == plain.logprobs


def test_control_tokens_of_passages_are_text(llm: LLM) -> None:
    eos = llm.tokenizer.eos_token_id
    assert eos not in llm.unit_token_ids("An <eos> in a text.", in_prompt=True)
    assert eos in llm.tokenizer("<eos>")["input_ids"]


def test_a_mark_in_a_raw_prompt(oracle: Oracle) -> None:
    with chat_llm(placement="in_prompt") as llm:
        [answer] = llm.generate("Read: {memory}The river", TEN, PASSAGES)
        check(llm, oracle, answer, "Read: ", "The river", [1.0] * 3, "plain")
        [plain] = llm.generate("Read: {memory}The river", TEN)
        assert (plain.prompt, plain.logprobs) == ("Read: The river", llm.generate("Read: The river", TEN)[0].logprobs)
        # Nothing stands before the mark, and this tokenizer adds no BOS.
        [bare] = llm.generate("{memory}The river", TEN, PASSAGES)
        assert bare.token_ids == llm.generate("The river", TEN, PASSAGES)[0].token_ids
        for prompt, problem in (("a {memory} b {memory}", "more than once"), ("a {memory} ", "nothing follows")):
            with pytest.raises(InvalidRequestError, match=problem):
                llm.generate(prompt, TEN, PASSAGES)
        with pytest.raises(InvalidRequestError, match=r"prompt_logprobs: .* set memory\.placement to bare"):
            llm.generate("a {memory} b", SamplingParams(prompt_logprobs=1), PASSAGES)


def test_a_mark_that_nobody_asked_for_is_text(llm: LLM) -> None:
    [answer] = llm.generate("Read {memory}: it", TEN, PASSAGES)
    assert answer.prompt == "Read {memory}: it"
    assert answer.stats.prompt_tokens == len(llm.tokenizer("Read {memory}: it")["input_ids"])
    assert answer.stats.prefix_tokens_encoded == 0


def test_bare_is_bare_in_chats_too(llm: LLM) -> None:
    with chat_llm(placement="bare") as bare:
        [found] = bare.chat(RIVER, TEN, PASSAGES)
        assert bare.chat_prompt(RIVER) == bare.apply_chat_template(RIVER)
    assert found.prompt == "<user>The river\n<assistant>"
    assert found.token_ids == llm.generate(found.prompt, TEN, PASSAGES)[0].token_ids


@pytest.mark.parametrize(
    ("template", "messages"),
    [
        ("{% for m in messages %}{{ m.content | upper }}{% endfor %}:", RIVER),
        ("{% for m in messages %}{{ m.content }} {{ m.content }}{% endfor %}:", RIVER),
        ("{% for m in messages %}{{ m.content | length }}{% endfor %}:", RIVER),
        ("{% for m in messages %}{{ m.content[:9] }}{% endfor %}:", RIVER),
    ],
)
def test_a_template_that_cannot_be_split(template: str, messages: Any, caplog: pytest.LogCaptureFixture) -> None:
    with chat_llm(template) as llm, caplog.at_level(logging.WARNING):
        for _ in range(2):
            [answer] = llm.chat(messages, TEN, PASSAGES)
            assert answer.prompt == llm.apply_chat_template(messages)
    [line] = [record.getMessage() for record in caplog.records]
    assert line.startswith("memory stands before chats, not in them (memory.placement: bare), as the model's chat")
    problem = "in_prompt will not do, as the model's chat template changes"
    with chat_llm(template, placement="in_prompt") as llm, pytest.raises(InvalidRequestError, match=problem):
        llm.chat(messages, TEN, PASSAGES)


def test_a_tokenizer_that_cannot_be_cut(caplog: pytest.LogCaptureFixture) -> None:
    """One that begins every text with a space, as Llama 2's does."""
    with tiny_llm() as llm, pytest.MonkeyPatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr(llm.tokenizer, "chat_template", TEMPLATE)
        assert llm.chat_prompt(RIVER) == llm.apply_chat_template(RIVER)
    assert "tokenizer changes a text that is cut at the memory" in caplog.text


def test_a_conversation_without_a_user_has_no_place_for_memory(llm: LLM) -> None:
    assert llm.chat_prompt([{"role": "system", "content": "S"}]) == "<system>S\n<assistant>"


def test_the_mark_is_none_of_the_conversations_words(llm: LLM) -> None:
    placed = llm.chat_prompt([{"role": "user", "content": "<memory 0> {memory} {prompt}"}])
    assert placed == PlacedPrompt(
        "<user><memory 0> {memory} {prompt}\n<assistant>",
        "<user>Context: ",
        "\n<memory 0> {memory} {prompt}\n<assistant>",
    )


@pytest.mark.parametrize("frame", ["", "{memory}", "{prompt} {memory}", "{memory}{memory}{prompt}"])
def test_frames_that_make_no_sense(frame: str) -> None:
    with pytest.raises(ConfigError, match=r"memory.frame.*\{memory\} once and then \{prompt\} once"):
        chat_llm(frame=frame)


def test_a_frame_may_ask_around_the_users_words() -> None:
    with chat_llm(frame="{memory}Q: {prompt} A:") as llm:
        assert llm.chat_prompt(RIVER) == PlacedPrompt(
            "<user>The river\n<assistant>", "<user>", "Q: The river A:\n<assistant>"
        )
