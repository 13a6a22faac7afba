"""One of two ranks that run models of many families in parts: RANK FOLDER, with a checkpoint in each of its folders.

Rank 0 prints, per checkpoint, how far its log-probabilities under units are from transformers' own, or the refusal.
"""

import json
import sys
from pathlib import Path

import torch
from parity.paged import PagedModel
from parity.test_units import CAPACITY, PROMPT, UNITS, eager_logits
from torch import distributed
from transformers import AutoModelForCausalLM

from ewe.config import ModelConfig
from ewe.engine.distributed.group import join, leave, refuse_unshardable
from ewe.engine.models.loader import load_model
from ewe.errors import EWEError

WEIGHTS = [0.25, 1.0, 3.5, 0.6]


def difference(path: Path) -> float | str:
    config = ModelConfig(name=str(path), tensor_parallel=2)
    try:
        refuse_unshardable(config)
    except EWEError as error:
        return str(error)
    paged = PagedModel(load_model(config).model)
    found = paged.logits(paged.context(CAPACITY, paged.encode(UNITS), WEIGHTS), PROMPT)
    eager = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation="eager").eval()
    with torch.inference_mode():
        expected = eager_logits(eager, UNITS, PROMPT, WEIGHTS, "paper")
    return float((found.log_softmax(-1) - expected.log_softmax(-1)).abs().max())


def main() -> None:
    rank, folder = int(sys.argv[1]), Path(sys.argv[2])
    join(rank, 2, distributed.FileStore(str(folder / "store"), 2), "cpu")
    found = {path.name: difference(path) for path in sorted(folder.iterdir()) if path.is_dir()}
    if rank == 0:
        print(json.dumps(found))
    leave()


if __name__ == "__main__":
    main()
