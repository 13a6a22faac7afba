import json
import time
from types import SimpleNamespace

import numpy as np
import peft
import pytest
import torch
from small_causal import write_causal
from transformers import AutoModelForCausalLM, AutoTokenizer

from ewe.config import Config
from ewe.config.known_models import KNOWN_MODELS
from ewe.engine.evidence.open_shared_judge import shared_judge
from ewe.errors import EngineDeadError, JudgeError
from ewe.llm import LLM
from ewe.longterm.records import Memory
from ewe.longterm.store import MemoryStore
from ewe.retrieval.datastore import Datastore
from ewe.text.check_result import is_failure
from ewe.types import Passage
from ewe.types.sampling_params import SamplingParams
from ewe.verification import load_judge
from ewe.verification.decision import rule_for
from ewe.verification.judges import checkpoints
from ewe.verification.judges.base import ANSWERS, CausalJudge, load_base
from ewe.verification.judges.protocol import INCONCLUSIVE

PAIRS = [("it is true", "it is false"), ("Evidence of much that is unknown " * 3, "Claim"), ("", "is it"), ("it", "it")]
TEMPERATURE = 0.5


@pytest.fixture
def parts(tmp_path, monkeypatch):
    """A small chat model where `ewe model get` puts it, an adapter for it, and both as peft runs them unmerged."""
    monkeypatch.setenv("EWE_CACHE_DIR", str(tmp_path / "cache"))
    torch.manual_seed(3)
    model = write_causal(KNOWN_MODELS["smollm2"].folder)
    wrapped = peft.get_peft_model(
        AutoModelForCausalLM.from_pretrained(model),
        peft.LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM"),
    ).eval()
    for name, parameter in wrapped.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.3)
    folder = tmp_path / "adapter"
    wrapped.save_pretrained(folder)
    (folder / checkpoints.JUDGE_SETTINGS).write_text(json.dumps({"temperature": TEMPERATURE}))
    monkeypatch.setattr("ewe.verification.judges.base.base_adapter_path", lambda: folder)
    return SimpleNamespace(model=model, wrapped=wrapped, folder=folder, tokenizer=AutoTokenizer.from_pretrained(model))


@pytest.fixture(params=[False, True], ids=["float32", "bfloat16"])
def exactness(request, monkeypatch):
    """With and without a CPU that multiplies bfloat16; the tolerance that goes with it."""
    monkeypatch.setattr("ewe.verification.judges.base.multiplies_bfloat16", lambda place: request.param)
    return 0.1 if request.param else 1e-5


@torch.inference_mode()
def expected(parts, evidence, claim):
    """The next word's probabilities after the whole prompt, alone and without padding, among the three answers."""
    prompt = f"Evidence: {evidence}\nClaim: {claim}\nThe claim is"
    ids = parts.tokenizer(prompt, add_special_tokens=False, return_tensors="pt").input_ids
    answers = [parts.tokenizer(answer, add_special_tokens=False).input_ids[0] for answer in ANSWERS]
    return (parts.wrapped(ids).logits[0, -1, answers].float() / TEMPERATURE).softmax(-1).numpy()


def test_it_says_what_the_model_with_its_adapter_would_write(parts, exactness):
    rows = load_judge("base", device="cpu").judge(PAIRS)
    assert np.ptp(rows, 0).max() > 0.2  # The pairs differ, so that a mix-up of rows is seen.
    for row, pair in zip(rows, PAIRS, strict=True):
        np.testing.assert_allclose(row, expected(parts, *pair), atol=exactness)


def test_batches_do_not_change_the_answers(parts, monkeypatch):
    judge = load_base("cpu")
    whole = judge.judge(PAIRS)
    monkeypatch.setattr("ewe.verification.judges.cross_encoder._BATCH_TOKENS", 1)
    np.testing.assert_allclose(judge.judge(PAIRS), whole, atol=2e-2)
    assert judge.judge([]).shape == (0, 3)


def test_evidence_is_cut_and_the_claim_is_kept(parts):
    judge = CausalJudge(load_base("cpu")._score, parts.tokenizer, checkpoints.JudgeSettings(TEMPERATURE, max_tokens=40))
    long = "it is true " * 400
    first, other, wordy, empty = judge.judge([(long, "it is"), (long, "is it"), ("it", "it is " * 40), ("it", " ")])
    assert np.abs(first - other).max() > 1e-3
    assert wordy[INCONCLUSIVE] == empty[INCONCLUSIVE] == 1.0
    np.testing.assert_allclose(judge.judge([(long + "unknown", "it is")])[0], first, atol=1e-2)


def engine(**groups):
    """An engine of the judge's own model, with what it checks by."""
    memory = {"retrieval_units": 1, "verification_units": 1, "unit_tokens": 16}
    values = {"memory": memory, "verification": {"judge": "base"}, "retrieval": {"retriever": "bm25"}, **groups}
    config = {**values, "model": {"name": "smollm2", "device": "cpu", **groups.get("model", {})}}
    config["cache"] = {"num_blocks": 80}
    return LLM(config=config, datastore=Datastore([Passage("a", "it is true"), Passage("b", "it is false")]))


def refuse_to_load(*_):
    raise AssertionError("the judge was loaded beside the model")


@pytest.fixture
def shared(parts, monkeypatch):
    """The judge's parts, in a world where no second copy of its model can be loaded."""
    monkeypatch.setattr("ewe.engine.evidence.open_shared_judge.base_adapter_path", lambda: parts.folder)
    monkeypatch.setattr("ewe.engine.evidence.open_shared_judge.reader_adapter_path", lambda: parts.folder)
    monkeypatch.setattr("ewe.verification.judges.base.load_base", refuse_to_load)
    monkeypatch.setattr("ewe.verification.judges.base.load_reader", refuse_to_load)
    monkeypatch.setattr("ewe.verification.judges.cross_encoder.multiplies_bfloat16", lambda place: False)
    return parts


@pytest.mark.parametrize("judge", ["base", "reader"])
@pytest.mark.parametrize("mode", ["blocking", "optimistic"])
def test_it_judges_in_the_batch_of_the_engine_that_has_its_model(shared, mode, judge):
    """Sentences are checked while they are written, with one place in the batch; pairs have the same probabilities."""
    checks = {"judge": judge} | ({"judge_model": str(shared.model)} if judge == "reader" else {})
    tokenizer = shared.tokenizer
    words = {tokenizer(word)["input_ids"][0]: 90.0 for word in (" is", " true", " false", " it", ".")}
    params = SamplingParams(max_tokens=60, temperature=1.0, seed=1, logit_bias=words)
    feedback = {"mode": mode, "timeout": 20.0}
    with engine(verification=checks, feedback=feedback, scheduler={"max_num_seqs": 1}) as llm:
        rows = llm.client.components.verifier.judge.judge(PAIRS)
        assert not llm.tokenizer.backend_tokenizer.encode_special_tokens, "prompts would lose their control tokens"
        written = llm.generate(["Claim: ", "Evidence: "], params)
        llm.check_integrity()
    for row, pair in zip(rows, PAIRS, strict=True):
        np.testing.assert_allclose(row, expected(shared, *pair), atol=1e-5)
    reasons = [sentence.reason for answer in written for sentence in answer.sentences]
    assert "" in reasons
    assert not [reason for reason in reasons if is_failure(reason)], reasons


def test_it_is_loaded_where_the_weights_are_not_its_own_or_it_is_faster_alone(shared, monkeypatch):
    def shares(**model):
        return shared_judge(Config(verification={"judge": "base"}, model={"name": "smollm2", "device": "cpu", **model}))

    assert shares()
    assert not shares(weights="int8")
    assert not shares(load_format="dummy")
    assert not shares(adapter=str(shared.folder))
    assert not shares(name="builtin")
    monkeypatch.setattr("ewe.verification.judges.cross_encoder.multiplies_bfloat16", lambda place: True)
    assert not shares()
    assert shares(dtype="bfloat16")


def test_a_reader_shares_the_weights_of_the_writer_that_it_is_for(shared):
    def judge(writer="smollm2", **checks):
        return shared_judge(Config(verification={"judge": "reader", **checks}, model={"name": writer, "device": "cpu"}))

    settings = {"temperature": 1.0, "max_characters": 900, "supported": 0.8, "refuted": 0.7}
    (shared.folder / checkpoints.JUDGE_SETTINGS).write_text(json.dumps(settings))
    found = judge(judge_model=str(shared.model))
    assert (found.name, found.window.max_characters) == ("reader", 900)
    assert rule_for(found, found.name).thresholds.supported == 0.8
    assert judge(), "the adapter names the model that writes"
    assert judge(judge_model="owner/another") is None
    assert judge(writer="builtin", judge_model=str(shared.model)) is None


def test_memories_are_reviewed_once_there_is_an_engine_to_judge_them(shared, tmp_path):
    with MemoryStore.create(tmp_path / "memories") as store:
        store.add([Memory("old", "it is true", created_at=1.0, updated_at=1.0)])
    with engine(longterm={"path": str(tmp_path / "memories"), "review_every": 3600}) as llm:
        deadline = time.monotonic() + 60
        while not (llm.memories.counts["reviewed"] or llm.memories.counts["review_failed"]):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert llm.memories.counts["review_failed"] == 0


def test_nobody_waits_for_an_engine_that_is_closed(shared):
    llm = engine()
    judge = llm.client.components.verifier.judge
    llm.close()
    with pytest.raises(EngineDeadError):
        judge.judge(PAIRS)


def test_what_is_missing_is_named_before_anything_is_loaded(parts, tmp_path, monkeypatch):
    monkeypatch.setenv("EWE_CACHE_DIR", str(tmp_path / "nothing"))
    with pytest.raises(JudgeError, match="run `ewe model get smollm2`"):
        load_judge("base")
    monkeypatch.setattr(checkpoints, "find_spec", lambda name: None)
    with pytest.raises(JudgeError, match="ewe-engine\\[adapters\\]"):
        load_judge("base")
    (parts.folder / checkpoints.JUDGE_SETTINGS).unlink()
    with pytest.raises(JudgeError, match="reinstall the package"):
        load_base("cpu")


def test_an_adapter_of_another_model_is_refused(parts, tmp_path):
    path = parts.folder / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "r": 8}))
    with pytest.raises(JudgeError, match="does not fit"):
        load_base("cpu")


def test_the_reading_judge_of_the_package_reads_together_and_brings_its_thresholds(parts):
    judge = load_judge("reader", model=str(parts.model))
    assert judge.window.max_characters > 1000
    assert rule_for(judge, judge.name).thresholds == judge.thresholds
    assert 0.5 < judge.thresholds.supported < 1
    assert 0.5 < judge.thresholds.refuted < 1
    with pytest.raises(JudgeError, match="does not fit"):
        judge.judge(PAIRS)


def test_a_reading_judge_whose_model_is_nowhere_says_how_to_name_it(tmp_path):
    with pytest.raises(JudgeError, match=r"verification\.judge_model"):
        load_judge("reader", model=str(tmp_path / "none")).judge(PAIRS)


def test_the_adapter_of_the_package_is_whole():
    checkpoints.check_base(checkpoints.base_adapter_path(), checkpoints.base_adapter_path())
