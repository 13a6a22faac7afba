import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from test_judges_cross_encoder import PAIRS, config, expected, tokenizer
from transformers import BertForSequenceClassification

from ewe.errors import JudgeError
from ewe.verification import load_judge
from ewe.verification.judges.builtin_judge import dequantise, load_builtin, load_int8


@pytest.fixture
def model(tmp_path):
    """A model whose matrices are exact in int8, saved in the layout of the built-in judge; (model, folder)."""
    torch.manual_seed(0)
    model = BertForSequenceClassification(config(["supported", "refuted", "inconclusive"])).eval()
    packed = {}
    for name, weight in model.state_dict().items():
        if weight.ndim != 2:
            packed[name] = weight
            continue
        scale = torch.rand(len(weight)) / 500 + 0.001
        packed[name] = torch.randint(-127, 128, weight.shape, dtype=torch.int8)
        packed[f"{name}.scale"] = scale
        weight.copy_(packed[name] * scale[:, None])
    model.config.save_pretrained(tmp_path)
    tokenizer(model_max_length=16).save_pretrained(tmp_path)
    save_file(packed, tmp_path / "model.safetensors")
    return model, tmp_path


@pytest.fixture(params=[False, True], ids=["float32", "bfloat16"])
def exactness(request, monkeypatch):
    """With and without a CPU that multiplies bfloat16; the tolerance that goes with it."""
    monkeypatch.setattr("ewe.verification.judges.builtin_judge.multiplies_bfloat16", lambda place: request.param)
    return 1e-2 if request.param else 1e-5


def test_int8_weights_give_the_probabilities_of_the_weights_they_stand_for(model, exactness):
    judge = load_builtin("cpu", model[1])
    for row, pair in zip(judge.judge(PAIRS), PAIRS, strict=True):
        np.testing.assert_allclose(row, expected(model[0], *pair), atol=exactness)


def test_the_tokenizer_says_how_long_pairs_may_be(model):
    judge = load_builtin("cpu", model[1])
    long, cut = ("a b c d e f g h i j k l m n", "o p"), ("a b c d e f g h i j k", "o p")
    np.testing.assert_allclose(judge.judge([long]), judge.judge([cut]), atol=1e-2)


def test_what_is_missing_or_damaged_is_named(model, tmp_path):
    folder = model[1]
    weights = load_file(folder / "model.safetensors")

    def broken(name, change):
        copy = tmp_path.parent / f"{tmp_path.name}-{name}"
        shutil.copytree(folder, copy)
        change(copy)
        with pytest.raises(JudgeError) as caught:
            load_builtin("cpu", copy)
        return str(caught.value)

    assert "reinstall" in broken("none", lambda copy: (copy / "model.safetensors").unlink())
    assert "model.safetensors" in broken("short", lambda copy: (copy / "model.safetensors").write_bytes(b"abc"))
    name = "bert.encoder.layer.0.output.dense.weight"
    without = {key: value for key, value in weights.items() if not key.startswith(name)}
    assert name in broken("less", lambda copy: save_file(without, copy / "model.safetensors"))
    no_scale = {key: value for key, value in weights.items() if key != f"{name}.scale"}
    assert f"{name} have no scale" in broken("scale", lambda copy: save_file(no_scale, copy / "model.safetensors"))
    assert "damaged" in broken("json", lambda copy: (copy / "config.json").write_text("{"))
    assert "damaged" in broken("words", lambda copy: (copy / "tokenizer.json").write_text("{}"))


def test_a_name_that_ends_like_a_scale_is_a_weight(tmp_path):
    packed = {
        "norm.scale": torch.ones(3),
        "a.weight": torch.ones(2, 2, dtype=torch.int8),
        "a.weight.scale": torch.ones(2),
    }
    assert dequantise(packed).keys() == {"norm.scale", "a.weight"}
    save_file(packed, tmp_path / "w.safetensors")
    assert load_int8(tmp_path / "w.safetensors")["a.weight"].dtype == torch.float32


def test_asking_for_judges_needs_no_model_library():
    code = (
        "import sys, json; from ewe.verification import load_judge; load_judge('builtin');"
        "import ewe.verification.open_verifier;"
        "print(json.dumps([m for m in ('torch', 'transformers') if m in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_the_judge_that_was_removed_says_what_to_use():
    with pytest.raises(JudgeError, match="the judge 'values' was removed: use builtin"):
        load_judge("values")
