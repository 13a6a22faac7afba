"""The configurations for Llama-3.1 with a datastore in MassiveDS' layout, run with small dummy weights."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from transformers import LlamaConfig
from typer.testing import CliRunner
from unit.engine_tokenizers import sentencepiece_like

from ewe import LLM, SamplingParams
from ewe.cli.main import app
from ewe.config import Config

CONFIGS = Path(__file__).parents[2] / "configs"
ROPE = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
ROPE |= {"original_max_position_embeddings": 8192}


def model_folder(folder: Path) -> Path:
    """Llama-3.1's structure in small, without weights."""
    tokenizer = sentencepiece_like()
    tokenizer.save_pretrained(folder)
    LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=131072,
        rope_parameters=ROPE,
        eos_token_id=tokenizer.eos_token_id,
    ).save_pretrained(folder)
    return folder


def store(folder: Path) -> Path:
    """A datastore of `raw_data/DOMAIN/*.jsonl`."""
    for domain in ("wikipedia", "c4"):
        (folder / "raw_data" / domain).mkdir(parents=True)
        lines = [{"text": f"The city of {name} lies by the sea, says {domain}.", "source": domain} for name in "ABC"]
        path = folder / "raw_data" / domain / "shard-0.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    made = folder / "massiveds"
    sources = [str(folder / "raw_data" / domain) for domain in ("c4", "wikipedia")]
    command = ["index", "build", *sources, "--out", str(made), "--dedup", "off", "--no-index"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    return made


@pytest.mark.parametrize("size", ["8b", "70b"])
def test_the_configurations_for_llama_write_with_dummy_weights(tmp_path: Path, size: str) -> None:
    config = Config.from_yaml(CONFIGS / f"ewe-llama-3.1-{size}.yaml")
    assert (config.feedback.retrieve_every, config.feedback.verify_every) == (1, 8)
    here = [f"model.name={model_folder(tmp_path / 'model')}", "model.load_format=dummy", "model.device=cpu"]
    # Contriever is no part of the tests, and the passages are too few for a judge to matter.
    here += ["retrieval.retriever=bm25", "retrieval.encoder=null", "verifier=builtin", "cache.num_blocks=600"]
    with LLM(config=config.override([*here, f"datastore={store(tmp_path)}"])) as llm:
        [answer] = llm.generate("Where is the city of C?", SamplingParams(max_tokens=12, ignore_eos=True))
    assert len(answer.token_ids) == 12
    assert answer.stats.retrievals >= 1
    assert {passage.source for passage in answer.sources.values()} == {"wikipedia", "c4"}
