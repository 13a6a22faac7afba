"""A BERT without padding answers as the one of transformers does."""

import pytest
import torch
from test_judges_cross_encoder import config
from transformers import BertForSequenceClassification

from ewe.verification.judges.packed_bert import PackedBert

LENGTHS = (9, 9, 5, 9, 1)


@pytest.mark.parametrize(("bfloat16", "tolerance"), [(False, 1e-5), (True, 0.05)])
def test_each_text_of_a_batch_gets_the_logits_that_it_gets_alone(bfloat16: bool, tolerance: float) -> None:
    torch.manual_seed(0)
    model = BertForSequenceClassification(config("abc")).eval()
    torch.nn.init.normal_(model.classifier.weight, std=2.0)
    packed = PackedBert(model, bfloat16)
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
