"""LoRA adapters by name: every row is computed as by the model with its adapter merged, whatever shares its batch."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from test_adapters import save_adapter, save_model, small

from ewe.config import Config
from ewe.engine.loader import load_model
from ewe.engine.request import Request
from ewe.errors import ConfigError, InvalidRequestError
from ewe.llm import LLM
from ewe.sampling import SamplingParams

PROMPTS = ["alpha beta", "gamma delta epsilon zeta", "eta theta iota kappa lambda mu"]
DOCUMENT = "one text for all"
PARAMS = SamplingParams(max_tokens=6, logprobs=3, ignore_eos=True)
TARGETS = {"law": ["q_proj", "v_proj", "down_proj"], "tax": ["k_proj", "o_proj", "up_proj", "gate_proj"]}


def open_llm(folder, **model):
    settings = {"model": {"name": str(folder), "device": "cpu", **model}, "policy": "plain"}
    return LLM(config=Config.from_mapping({**settings, "memory": {"unit_tokens": 16}, "cache": {"num_blocks": 64}}))


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """The folders of a model and of two adapters that change other layers, with other ranks and scales."""
    root = tmp_path_factory.mktemp("row-adapters")
    save_model(root / "model", small())
    for rank, (name, targets) in enumerate(TARGETS.items(), 3):
        save_adapter(root / name, small(), r=rank, target_modules=targets, lora_alpha=7, use_rslora=name == "tax")
    return root


def adapters(places):
    return {name: str(places / name) for name in TARGETS}


def answers(llm, name=""):
    return llm.generate(PROMPTS, PARAMS, [DOCUMENT], adapter=name)


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert one.token_ids == other.token_ids
        assert torch.allclose(torch.tensor(one.logprobs), torch.tensor(other.logprobs), rtol=0, atol=1e-5)


@pytest.fixture(scope="module")
def expected(places):
    """Per adapter what the model says with it merged."""
    found = {}
    for name in ("", *TARGETS):
        with open_llm(places / "model", adapter=str(places / name) if name else None) as llm:
            found[name] = answers(llm)
    assert len({answer[0].token_ids for answer in found.values()}) == len(found)
    return found


@pytest.mark.parametrize("weights", ["auto", "int8"])
def test_a_mixed_batch_says_what_merged_models_say(places, expected, weights):
    """Of 8-bit weights, the base is rounded and the adapters are not: only they are compared, with a wide tolerance."""
    with open_llm(places / "model", adapters=adapters(places), weights=weights) as llm:
        order = ["law", "", "tax", "", "law", "tax"]
        asked = [Request(prompt, PARAMS, [DOCUMENT], adapter=name) for name in order for prompt in PROMPTS]
        found = llm.client.run(asked, None)
        for place, name in enumerate(order):
            part = found[place * len(PROMPTS) : (place + 1) * len(PROMPTS)]
            if weights == "auto":
                assert_same(part, expected[name])
            else:
                pairs = [(one.logprobs[0], other.logprobs[0]) for one, other in zip(part, expected[name], strict=True)]
                assert all(abs(one - other) < 0.15 for one, other in pairs)
        llm.check_integrity()


def test_without_a_name_nothing_changes_to_the_last_bit(places, expected):
    with open_llm(places / "model", adapters=adapters(places)) as llm:
        found = answers(llm)
    assert [answer.logprobs for answer in found] == [answer.logprobs for answer in expected[""]]


def test_units_are_encoded_once_per_adapter(places):
    with open_llm(places / "model", adapters=adapters(places)) as llm:
        encoded = [
            sum(answer.stats.units_encoded for answer in answers(llm, name)) for name in ("law", "", "law", "tax")
        ]
        assert encoded == [1, 1, 0, 1]


def test_an_unknown_name_is_refused(places):
    with open_llm(places / "model", adapters={"law": str(places / "law")}) as llm:
        with pytest.raises(InvalidRequestError, match="there is no adapter 'tax'; there are: law"):
            answers(llm, "tax")


def test_answers_end_with_the_tokens_of_their_adapter(places, expected):
    first = expected["law"][0].token_ids[0]
    (places / "law" / "generation_config.json").write_text(json.dumps({"eos_token_id": [first]}))
    try:
        with open_llm(places / "model", adapters=adapters(places)) as llm:
            ended, base = (llm.generate(PROMPTS[0], documents=[DOCUMENT], adapter=name)[0] for name in ("law", ""))
            assert (ended.token_ids, ended.finish_reason) == ((first,), "stop")
            assert len(base.token_ids) > 1
    finally:
        (places / "law" / "generation_config.json").unlink()


MISFITS = {
    "DoRA": {"use_dora": True},
    "biases": {"bias": "all"},
    "the output layer": {"target_modules": ["lm_head"]},
}


@pytest.mark.parametrize("case", MISFITS)
def test_what_can_only_be_merged_is_refused(tmp_path, case):
    model = small(tie_word_embeddings=False)
    folder = save_model(tmp_path / "model", model)
    adapter, _ = save_adapter(tmp_path / "adapter", model, **MISFITS[case])
    weights = load_file(adapter / "adapter_model.safetensors")  # peft adds whole embeddings, which are refused anyway
    kept = {name: weight for name, weight in weights.items() if "base_layer" not in name or "bias" in name}
    save_file(kept, adapter / "adapter_model.safetensors")
    config = Config(model={"name": str(folder), "adapters": {"law": str(adapter)}})
    with pytest.raises(ConfigError, match=r"name it in model\.adapter"):
        load_model(config.model)


@pytest.mark.parametrize("setting", [{"compile": True}, {"tensor_parallel": 2}])
def test_settings_without_a_place_for_adapters_are_refused(setting):
    with pytest.raises(ConfigError, match="adapters"):
        Config.from_mapping({"model": {"adapters": {"law": "somewhere"}, **setting}})
