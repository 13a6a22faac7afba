"""LoRA adapters by name: every row is computed as by the model with its adapter merged, whatever shares its batch."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file
from test_adapters import logits, save_adapter, save_model, small

from ewe.config import Config, ModelConfig
from ewe.engine.models.loader import load_model
from ewe.engine.request import Request
from ewe.errors import ConfigError, InvalidRequestError
from ewe.llm import LLM
from ewe.types.sampling_params import SamplingParams

PROMPTS = ["alpha beta", "gamma delta epsilon zeta", "eta theta iota kappa lambda mu"]
DOCUMENT = "one text for all"
PARAMS = SamplingParams(max_tokens=6, prompt_logprobs=0, ignore_eos=True)
TARGETS = {"law": ["q_proj", "v_proj", "down_proj"], "tax": ["k_proj", "o_proj", "up_proj", "gate_proj"]}


def open_llm(folder, groups=None, **model):
    settings = {"model": {"name": str(folder), "device": "cpu", **model}, "policy": "plain"}
    settings |= {"memory": {"unit_tokens": 16}, "cache": {"num_blocks": 64}, **(groups or {})}
    return LLM(config=Config.from_mapping(settings))


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
        for found, told in ((one.logprobs, other.logprobs), (one.prompt_logprobs, other.prompt_logprobs)):
            assert torch.allclose(torch.tensor(found), torch.tensor(told), rtol=1e-4, atol=1e-4)


@pytest.fixture(scope="module")
def expected(places):
    """Per adapter what the model says with it merged."""
    found = {}
    for name in ("", *TARGETS):
        with open_llm(places / "model", adapter=str(places / name) if name else None) as llm:
            found[name] = answers(llm)
    assert len({answer[0].token_ids for answer in found.values()}) == len(found)
    return found


@pytest.fixture(scope="module")
def llm(places):
    """The model with both adapters beside it."""
    with open_llm(places / "model", adapters=adapters(places)) as opened:
        yield opened


@pytest.fixture(scope="module")
def asked():
    """Requests of all adapters and of none, in one batch."""
    order = ["law", "", "tax", "", "law", "tax"]
    return [(prompt, name) for name in order for prompt in range(len(PROMPTS))]


def run_mixed(llm, asked):
    found = llm.client.run([Request(PROMPTS[place], PARAMS, [DOCUMENT], adapter=name) for place, name in asked], None)
    llm.check_integrity()
    return found


def test_a_mixed_batch_says_what_merged_models_say(llm, expected, asked):
    assert_same(run_mixed(llm, asked), [expected[name][place] for place, name in asked])


def test_eight_bit_weights_round_the_base_and_not_the_adapter(places, expected, asked):
    with open_llm(places / "model", adapters=adapters(places), weights="int8") as llm:
        found = run_mixed(llm, asked)
    for answer, (place, name) in zip(found, asked, strict=True):
        errors = {other: distance(answer, expected[other][place]) for other in expected}
        assert min(errors, key=errors.get) == name
        assert errors[name] < 0.1


def distance(one, other):
    """How far log-probabilities of the prompt's tokens are from each other, in the mean."""
    pairs = zip(one.prompt_logprobs, other.prompt_logprobs, strict=True)
    return sum(abs(first - second) for first, second in pairs) / len(one.prompt_logprobs)


def test_without_a_name_nothing_changes_to_the_last_bit(places):
    plain, beside = (
        load_model(ModelConfig(name=str(places / "model"), device="cpu", adapters=named)).model
        for named in ({}, adapters(places))
    )
    assert torch.equal(logits(plain), logits(beside))
    assert not any("lora" in name for name, _ in beside.named_modules())


def test_units_are_encoded_once_per_adapter(llm):
    found = [llm.generate(PROMPTS, PARAMS, ["another text"], adapter=name) for name in ("law", "", "law", "tax")]
    assert [sum(answer.stats.units_encoded for answer in batch) for batch in found] == [1, 1, 0, 1]


def test_an_unknown_name_is_refused(llm):
    with pytest.raises(InvalidRequestError, match="there is no adapter 'other'; there are: law, tax"):
        answers(llm, "other")


def test_answers_end_with_the_tokens_of_their_adapter(places, expected):
    first, short = expected["law"][0].token_ids[0], SamplingParams(max_tokens=4)
    (places / "law" / "generation_config.json").write_text(json.dumps({"eos_token_id": [first]}))
    try:
        with open_llm(places / "model", adapters=adapters(places)) as llm:
            ended, base = (llm.generate(PROMPTS[0], short, [DOCUMENT], adapter=name)[0] for name in ("law", ""))
            assert (ended.token_ids, ended.finish_reason) == ((first,), "stop")
            assert len(base.token_ids) > 1
    finally:
        (places / "law" / "generation_config.json").unlink()


def test_on_a_server_the_model_that_a_request_names_is_the_adapter(llm, expected):
    pytest.importorskip("fastapi", reason="the server's packages are not installed")
    from fastapi.testclient import TestClient

    from ewe.server.app import create_app

    body = {"prompt": PROMPTS[0], "max_tokens": 6, "ignore_eos": True, "documents": [DOCUMENT], "logprobs": 0}
    with TestClient(create_app(llm)) as client:
        listed = client.get("/v1/models").json()["data"]
        assert {item["id"]: item["parent"] for item in listed} == {"model": None, "law": "model", "tax": "model"}
        assert client.get("/v1/models/tax").json()["parent"] == "model"
        for name in ("law", "model", "tax"):
            answer = client.post("/v1/completions", json={**body, "model": name}).json()
            told = expected["" if name == "model" else name][0]
            assert (answer["model"], answer["choices"][0]["text"]) == (name, told.text)
            assert answer["choices"][0]["logprobs"]["token_logprobs"] == pytest.approx(list(told.logprobs), abs=1e-4)
        refused = client.post("/v1/completions", json={**body, "model": "other"}).json()["error"]["message"]
        assert refused == "there is no model 'other' here; 'model' or 'law' or 'tax' is"


MISFITS = {
    "DoRA": {"use_dora": True},
    "biases": {"bias": "all"},
    "a beginning that changes the weights": {"init_lora_weights": "pissa"},
    "new tokens": {"trainable_token_indices": [1, 2]},
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


@pytest.mark.parametrize("ahead", [True, False])
def test_adapters_follow_rows_that_are_cut_swapped_shared_and_forked(places, llm, ahead):
    """Prefixes that prompts of several adapters share, two answers each, labels on the way, hardly any blocks."""
    params = SamplingParams(max_tokens=7, temperature=0.8, n=2, seed=3, ignore_eos=True)
    scored = SamplingParams(max_tokens=1, logprobs=3)
    beginning = "alpha beta gamma delta"
    asked = []
    for number, name in enumerate(["law", "", "tax", "law"]):
        asked.append(Request(f"{beginning} {PROMPTS[number % 3]}", params, adapter=name, shared_prefix=beginning))
        asked.append(Request(PROMPTS[2], scored, adapter=name, is_plain=True, label_token_ids=(9, 4, 7)))
    scheduler = {"max_num_seqs": 3, "max_num_batched_tokens": 19, "async_scheduling": ahead}
    groups = {"cache": {"num_blocks": 15, "block_size": 4}, "scheduler": scheduler}
    with open_llm(places / "model", groups, adapters=adapters(places)) as tight:
        found = tight.client.run(asked, None)
        tight.check_integrity()
        assert tight.client.engine.core.scheduler.swapper.swaps
    alone = [answer for one in asked for answer in llm.client.run([replace(one, shared_prefix="")], None)]
    for one, other in zip(found, alone, strict=True):
        assert one.token_ids == other.token_ids
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)
