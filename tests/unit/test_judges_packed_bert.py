"""A BERT without padding answers as the one of transformers does."""

import pytest
import torch
from test_judges_cross_encoder import config
from transformers import BertForSequenceClassification

from ewe.text import packed_bert
from ewe.text.packed_bert import BertShape
from ewe.verification.judges.packed_classifier import PackedClassifier

LENGTHS = (9, 9, 5, 9, 1)


@pytest.mark.parametrize(("bfloat16", "tolerance"), [(False, 1e-5), (True, 0.05)])
def test_each_text_of_a_batch_gets_the_logits_that_it_gets_alone(bfloat16: bool, tolerance: float) -> None:
    torch.manual_seed(0)
    model = BertForSequenceClassification(config("abc")).eval()
    torch.nn.init.normal_(model.classifier.weight, std=2.0)
    packed = PackedClassifier(model.state_dict(), BertShape.of(model.config.to_dict()), 3, bfloat16)
    ids = torch.randint(5, 100, (len(LENGTHS), max(LENGTHS)))
    there = (torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]).long()
    types = (torch.arange(max(LENGTHS)) > 3).long().expand_as(ids)
    with torch.inference_mode():
        found = packed(ids, there, types).logits
        alone = [
            model(ids[row : row + 1, :length], token_type_ids=types[row : row + 1, :length]).logits[0]
            for row, length in enumerate(LENGTHS)
        ]
    assert found.dtype == torch.float32
    assert torch.allclose(found, torch.stack(alone), atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@torch.inference_mode()
def test_a_product_is_the_one_of_torch_for_any_number_of_rows(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    weight, bias = torch.randn(96, 64), torch.randn(96)
    product = packed_bert._product(weight, bias, dtype)
    for rows in (1, 3, 90, 300):
        x = torch.randn(rows, 64, dtype=dtype)
        expected = torch.nn.functional.linear(x, weight.to(dtype), bias.to(dtype))
        torch.testing.assert_close(product(x), expected)


def test_where_onednn_has_no_such_product_torch_multiplies(monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(*_: object) -> torch.Tensor:
        raise RuntimeError("mkldnn_bf16_device_check: needs avx512bw")

    monkeypatch.setattr(packed_bert, "_by_onednn", unsupported)
    weight, bias, x = torch.randn(8, 4), torch.randn(8), torch.randn(3, 4, dtype=torch.bfloat16)
    product = packed_bert._product(weight, bias, torch.bfloat16)
    assert torch.equal(product(x), torch.nn.functional.linear(x, weight.bfloat16(), bias.bfloat16()))


def test_weights_that_are_missing_or_do_not_fit_are_named() -> None:
    model = BertForSequenceClassification(config("abc"))
    shape = BertShape.of(model.config.to_dict())
    for name in ("bert.encoder.layer.0.output.LayerNorm.bias", "bert.pooler.dense.weight", "classifier.bias"):
        weights = model.state_dict()
        weights[name] = weights[name][:1]
        with pytest.raises(ValueError, match=name):
            PackedClassifier(weights, shape, 3)
        del weights[name]
        with pytest.raises(ValueError, match=name):
            PackedClassifier(weights, shape, 3)


@pytest.mark.parametrize("other", [{"model_type": "roberta"}, {"hidden_act": "relu"}])
def test_another_kind_of_model_is_refused(other: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="BERT"):
        BertShape.of({**config("abc").to_dict(), **other})
