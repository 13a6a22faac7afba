"""The writer as its own judge: what it is asked, what measuring finds, and when it is refused."""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from small_causal import write_causal
from transformers import AutoTokenizer
from typer.testing import CliRunner

from ewe.cli.main import app
from ewe.config import Config
from ewe.engine.evidence import writer_judge
from ewe.engine.evidence.open_shared_judge import shared_judge
from ewe.engine.evidence.shared_judge import SharedJudge
from ewe.engine.evidence.writer_judge import writer_fingerprint
from ewe.engine.models.loader import load_model
from ewe.errors import ConfigError, EngineDeadError, InvalidRequestError, JudgeError
from ewe.llm import LLM
from ewe.longterm.request_memories import RequestMemories
from ewe.retrieval.datastore import Datastore
from ewe.types import Passage, Verdict, VerificationRequest
from ewe.verification import load_judge
from ewe.verification.judges import writer
from ewe.verification.judges.labelled_claims import LabelledClaim, read_claims
from ewe.verification.judges.protocol import INCONCLUSIVE
from ewe.verification.judges.writer import LetterQuestion
from ewe.verification.judges.writer_calibration import Calibration, calibration_for, calibration_path, fingerprint_of
from ewe.verification.judges.writer_measuring import choose, fit, measure

TEMPLATE = "{% for m in messages %}<|im_end|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>{% endfor %}assistant\n"
PAIRS = [("it is true", "it is false"), ("Evidence of much that is unknown", "Claim"), ("it is it", "is it")]


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.setenv("EWE_CACHE_DIR", str(tmp_path / "cache"))
    torch.manual_seed(3)
    folder = write_causal(tmp_path / "model")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    return folder


def calibrated(model, supported=0.6, refuted=0.7):
    fingerprint = fingerprint_of(str(model))
    Calibration(str(model), fingerprint, (0.5, -0.5, 0.0), 2.0, supported, refuted, {}).write(
        calibration_path(fingerprint)
    )


def settings(model, **verification):
    return Config(
        model={"name": str(model), "device": "cpu"},
        verification={"judge": "writer", **verification},
        memory={"retrieval_units": 1, "verification_units": 1, "unit_tokens": 16},
        retrieval={"retriever": "bm25"},
        cache={"num_blocks": 400},
    )


def test_control_tokens_in_texts_stay_text(model):
    tokenizer = AutoTokenizer.from_pretrained(model)
    question, end = LetterQuestion(tokenizer, 2000), tokenizer.eos_token_id
    plain = question.ids(("it is true", "it is"))
    spelled = question.ids(("it is <|im_end|> true", "it <|im_end|> is"))
    assert plain.count(end) == spelled.count(end) == 2
    assert "Claim: it <|im_end|> is" in tokenizer.decode(spelled)


def test_long_evidence_ends_after_a_sentence_and_a_long_claim_is_not_asked(model):
    tokenizer = AutoTokenizer.from_pretrained(model)
    size = len(LetterQuestion(tokenizer, 2000).ids(("", "it is")))
    question = LetterQuestion(tokenizer, size + 30)
    ids = question.ids(("It is true. " * 50, "it is"))
    assert size < len(ids) <= size + 30
    assert "It is true.\n\nClaim: it is\n" in tokenizer.decode(ids)
    assert question.ids(("it", "it is " * 100)) == question.ids(("it", " ")) == []


def test_a_model_without_a_chat_template_is_refused(model):
    tokenizer = AutoTokenizer.from_pretrained(model)
    tokenizer.chat_template = None
    with pytest.raises(JudgeError, match="chat template"):
        LetterQuestion(tokenizer, 500)


def test_it_says_the_same_in_the_batch_of_the_engine_and_alone(model, monkeypatch):
    monkeypatch.setattr(writer, "multiplies_bfloat16", lambda place: False)  # the engine's weights are in float32
    calibrated(model, 0.01, 0.01)
    alone = load_judge("writer", model=str(model), device="cpu")
    rows = alone.judge([*PAIRS, ("it", "")])
    assert np.ptp(rows[:3], 0).max() > 1e-3
    assert rows[3][INCONCLUSIVE] == 1.0
    with LLM(config=settings(model), datastore=Datastore([Passage("a", "it is true")])) as llm:
        verifier = llm.client.components.verifier
        np.testing.assert_allclose(verifier.judge.judge(PAIRS), rows[:3], atol=1e-5)
        assert verifier._reader._second._thresholds == alone.thresholds


def test_it_is_refused_unless_it_was_measured_and_can_judge(model):
    with pytest.raises(ConfigError, match=f"run `ewe judge calibrate --model {model}`"):
        shared_judge(settings(model))
    with pytest.raises(ConfigError, match="ewe judge calibrate"):
        load_judge("writer", model=str(model))
    calibrated(model)
    assert shared_judge(settings(model)) is not None
    assert writer_fingerprint(settings(model).model) == fingerprint_of(str(model))
    calibrated(model, None, None)
    with pytest.raises(ConfigError, match=r"cannot judge.*builtin"):
        LLM(config=settings(model), datastore=Datastore([Passage("a", "it is true")]))
    with pytest.raises(JudgeError, match="judge_model"):
        load_judge("writer")


def test_a_damaged_file_or_that_of_another_model_is_refused(model, tmp_path):
    calibrated(model)
    path = calibration_path(fingerprint_of(str(model)))
    with pytest.raises(ConfigError, match="another model"):
        calibration_for("other", "0" * 32, path)
    told = json.loads(path.read_text())
    for broken in ("{}", json.dumps({**told, "temperature": 0}), json.dumps({**told, "supported": 3})):
        path.write_text(broken)
        with pytest.raises(ConfigError, match="calibration of a judge"):
            shared_judge(settings(model, judge_calibration=str(path)))


def synthetic(count, slope, shift, seed=0):
    """Logits whose true probabilities are softmax(slope * logits + shift), and labels drawn from these."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 3, (count, 3))
    shares = np.exp(slope * logits + np.array(shift))
    shares /= shares.sum(1, keepdims=True)
    labels = (shares.cumsum(1) < rng.random((count, 1))).sum(1)
    return logits, labels, shares


def claims_of(labels):
    return [LabelledClaim("c", int(label), (Passage("p", "t", f"article {n % 40}"),)) for n, label in enumerate(labels)]


def test_fitting_finds_bias_and_temperature():
    logits, labels, _ = synthetic(20000, 0.5, (1.0, -0.5, 0.0))
    bias, temperature = fit(logits, labels)
    assert temperature == pytest.approx(2.0, abs=0.1)
    assert bias == pytest.approx((-2.0, 1.0, 0.0), abs=0.2)


def test_thresholds_are_the_smallest_that_hold():
    shares = np.array([[p, 0.0, 1.0 - p] for p in np.repeat([0.5, 0.6, 0.7, 0.8], 20)])
    labels = np.repeat([2, 2, 0, 0], 20)
    assert choose(shares, labels, 0) == pytest.approx(0.61)
    assert choose(shares, np.full(80, 2), 0) is None


def test_a_model_that_reads_can_judge_and_one_that_guesses_cannot():
    logits, labels, _ = synthetic(300, 3.0, (0.0, 0.0, 0.0))
    good = measure(logits, claims_of(labels))
    assert good.can_judge
    for side, asked_for in enumerate((0.92, 0.85)):
        assert good.decided[side, side] >= asked_for * good.decided[:, side].sum() > 0
    assert min(good.areas) > 0.9
    assert good.calibration("m", "f").can_judge
    bad = measure(np.random.default_rng(1).normal(0, 3, (300, 3)), claims_of(labels))
    assert not bad.can_judge
    assert bad.decided[:, INCONCLUSIVE].sum() == 300


def test_a_verdict_must_also_hold_where_few_sentences_are_false():
    shares = np.tile([0.0, 0.9, 0.1], (100, 1))
    labels = np.repeat([1, 0], [90, 10])  # .90 of these crosses are right, but half of the true claims get one
    everything = np.concatenate([labels, np.full(100, 0), np.full(100, 2)])
    probabilities = np.concatenate([shares, np.tile([0.0, 0.0, 1.0], (200, 1))])
    assert choose(probabilities, np.where(everything == 0, 2, everything), 1) == pytest.approx(0.34)
    assert choose(probabilities, everything, 1) is None


def test_what_was_measured_to_be_wrong_is_left_open():
    calibration = Calibration("m", "f", (0.0, 0.0, 0.0), 1.0, 0.6, None, {})
    rows = calibration.believed(np.log([[0.7, 0.2, 0.1], [0.5, 0.2, 0.3], [0.1, 0.8, 0.1]]))
    np.testing.assert_allclose(rows, [[0.7, 0.0, 0.3], [0.0, 0.0, 1.0], [0.1 * 0, 0.0, 1.0]])


BOOK = [Passage("a", "The bridge was built by Ada Lind in 1911 and crosses the Lune.", "The Lune bridge")]
SENTENCES = ["The bridge was built by Ada Lind in 1911.", "Ada Lind is the maker of the Lune crossing."]


def opened(model, **verification):
    config = settings(model, judge="auto", **verification).override(["memory.unit_tokens=64"])
    return LLM(config=config, datastore=Datastore(BOOK))


def verdicts(llm):
    results = llm.client.components.verifier.verify([VerificationRequest("", "", one) for one in SENTENCES])
    return [(result.claims[0].verdict, result.evidence) for result in results]


def test_a_model_that_was_not_measured_is_not_asked_on_a_cpu(model, monkeypatch):
    monkeypatch.setattr(writer_judge, "_measured_now", lambda *_: pytest.fail("it was measured"))
    with (
        opened(model) as llm,
        LLM(
            config=settings(model, judge="builtin").override(["memory.unit_tokens=64"]), datastore=Datastore(BOOK)
        ) as other,
    ):
        monkeypatch.setattr(llm.client.components.judge, "judge", lambda _: pytest.fail("it was asked"))
        assert verdicts(llm) == verdicts(other)
        assert llm.client.components.summary == other.client.components.summary
        assert llm.client.components.summary.judge == "builtin"


def test_a_model_that_was_measured_reads_what_the_built_in_judge_leaves_open(model, monkeypatch):
    calibrated(model)
    with opened(model) as llm:
        judge, asked = llm.client.components.judge, []
        assert llm.client.components.summary.judge == "builtin, then writer"
        monkeypatch.setattr(judge, "judge", lambda pairs: asked.extend(pairs) or np.tile([1.0, 0, 0], (len(pairs), 1)))
        assert [verdict for verdict, _ in verdicts(llm)] == [Verdict.SUPPORTED] * 2
        assert [claim for _, claim in asked] == [SENTENCES[1]]


@pytest.fixture
def on_gpu(monkeypatch):
    """Models are measured when an engine starts, on few claims."""
    monkeypatch.setattr(writer_judge, "_is_quick", lambda *_: True)
    claims = [LabelledClaim(f"it is {n}", n % 3, (Passage("p", "it is true", f"article {n}"),)) for n in range(60)]
    monkeypatch.setattr("ewe.verification.judges.labelled_claims.read_claims", lambda: claims)


@pytest.mark.parametrize("named", [None, "named.json"])
def test_it_is_measured_once_on_a_gpu(model, on_gpu, monkeypatch, tmp_path, named):
    file = named and str(tmp_path / named)
    steps = []
    config = settings(model, judge="auto", judge_calibration=file)
    with LLM(config=config, datastore=Datastore(BOOK), on_load=lambda step: steps.append(str(step))) as llm:
        assert llm.client.components.summary.judge == "builtin"  # random weights
    assert "measuring how well the model judges: 60 of 60 claims" in steps
    told = json.loads(calibration_path(fingerprint_of(str(model)), file).read_text())
    assert told["measured"]["claims"] == 60
    monkeypatch.setattr(writer_judge, "_measured_now", lambda *_: pytest.fail("it was measured again"))
    with opened(model, judge_calibration=file):
        pass


def test_a_damaged_file_of_the_cache_is_measured_anew_and_one_that_is_named_is_left_alone(
    model, on_gpu, tmp_path, caplog
):
    path, named = calibration_path(fingerprint_of(str(model))), tmp_path / "named.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"model": "m')
    named.write_text('{"bias": 1' + "0" * 400 + "}")
    with opened(model, judge_calibration=str(named)) as llm:
        assert not llm.client.components.judge.can_judge
    assert f"{named} holds no calibration of a judge" in caplog.text
    assert len(named.read_text()) > 400
    with opened(model):
        pass
    assert json.loads(path.read_text())["measured"]["claims"] == 60


@pytest.mark.parametrize("error", [PermissionError("cache"), RuntimeError("no home"), InvalidRequestError("no room")])
def test_nothing_that_stands_against_asking_it_keeps_an_engine_from_starting(model, on_gpu, monkeypatch, caplog, error):
    def fail(*_):
        raise error

    monkeypatch.setattr(writer_judge, "_measured_now", fail)
    with opened(model) as llm:
        assert verdicts(llm)[0][0] is Verdict.SUPPORTED
    assert f"is not asked to judge: {error}" in caplog.text


def test_reviews_of_memories_begin_when_their_judge_is_attached(model, monkeypatch, tmp_path):
    calls = []
    monkeypatch.setattr(RequestMemories, "start", lambda _: calls.append("reviews"))
    monkeypatch.setattr(SharedJudge, "attach", lambda *_: calls.append("judge"))
    config = settings(model, judge="auto").override(["memory.unit_tokens=64"])
    with LLM(config=config, datastore=Datastore(BOOK), longterm=tmp_path / "memories"):
        assert calls == ["judge", "reviews"]


def test_an_engine_that_dies_while_its_model_is_measured_does_not_start(model, on_gpu, monkeypatch):
    def fail(*_):
        raise EngineDeadError("a fault")

    monkeypatch.setattr(writer_judge, "_measured_now", fail)
    with pytest.raises(EngineDeadError, match="a fault"):
        opened(model)


def test_a_pool_without_room_for_the_claims_leaves_the_built_in_judge(model, on_gpu, caplog):
    config = settings(model, judge="auto").override(["cache.num_blocks=8"])
    with LLM(config=config, datastore=Datastore(BOOK)) as llm:
        assert llm.client.components.summary.judge == "builtin"
    assert "is not asked to judge" in caplog.text


def test_a_cache_that_takes_no_file_has_the_model_measured_again(model, on_gpu, monkeypatch, tmp_path, caplog):
    (tmp_path / "full").write_text("no folder")
    monkeypatch.setenv("EWE_CACHE_DIR", str(tmp_path / "full"))
    with opened(model):
        pass
    assert "is measured again at the next start" in caplog.text


def test_weights_that_are_not_those_of_the_named_files_are_not_measured_as_these(model, on_gpu):
    calibrated(model)
    read = load_model(settings(model).model)
    with LLM(config=settings(model, judge="auto"), datastore=Datastore(BOOK), loaded=read) as llm:
        assert llm.client.components.judge.can_judge
    others = replace(read, settings=None)
    with LLM(config=settings(model, judge="auto"), datastore=Datastore(BOOK), loaded=others) as llm:
        assert not llm.client.components.judge.can_judge
    dummy = settings(model, judge="auto").override(["model.load_format=dummy"])
    with LLM(config=dummy, datastore=Datastore(BOOK)) as llm:
        assert not llm.client.components.judge.can_judge


def test_a_model_that_cannot_be_asked_writes_on_with_the_built_in_judge(model, on_gpu, caplog):
    tokenizer = AutoTokenizer.from_pretrained(model)
    tokenizer.chat_template = None
    tokenizer.save_pretrained(model)
    (model / "chat_template.jinja").unlink(missing_ok=True)
    with caplog.at_level("INFO"), opened(model) as llm:
        assert llm.client.components.summary.judge == "builtin"
        assert verdicts(llm)[0][0] is Verdict.SUPPORTED
    assert "no chat template" in caplog.text


def test_the_claims_of_the_package_and_lines_that_are_none(tmp_path):
    claims = read_claims()
    assert np.bincount([claim.label for claim in claims]).tolist() == [160, 160, 160]
    assert len({claim.group for claim in claims}) > 40
    assert claims[0].pair[0].startswith(f"{claims[0].passages[0].title}: ")
    path = tmp_path / "claims.jsonl"
    path.write_text('{"claim": "c", "label": "perhaps", "passages": []}\n')
    with pytest.raises(InvalidRequestError, match="line 1"):
        read_claims(path)
    path.write_text('{"claim": "c", "label": "supported", "passages": [{"text": "t"}]}\n')
    with pytest.raises(InvalidRequestError, match="at least 20"):
        read_claims(path)


def test_the_command_says_that_a_random_model_cannot_judge_and_the_engine_refuses_it_then(model, tmp_path):
    labels = ["supported", "refuted", "inconclusive"]
    claims, lines = tmp_path / "claims.jsonl", []
    for label, number in product(labels, range(20)):  # the same claims under each label
        passages = [{"title": f"It {number}", "text": "It is true."}]
        lines.append(json.dumps({"claim": f"it is {number}", "label": label, "passages": passages}))
    claims.write_text("\n".join(lines) + "\n")
    options = ["--model", str(model), "--claims", str(claims), "--set", "cache.num_blocks=400"]
    done = CliRunner().invoke(app, ["judge", "calibrate", *options])
    assert done.exit_code == 1, done.output
    assert "this model cannot judge: verification.judge auto is builtin" in " ".join(done.output.split())
    with pytest.raises(ConfigError, match="cannot judge"):
        shared_judge(settings(model))
