"""Answers with precomputed units against answers that encode theirs: the same keys and values, the same text."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from copy import deepcopy
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from parity.families import CONFIGS, FAMILIES
from parity.paged import PagedModel
from real_models import model_path
from tolerances import ATTENTION, LOGPROBS
from transformers import AutoModelForCausalLM
from typer.testing import CliRunner
from unit.engine_tokenizers import byte_level, sentencepiece_like

import ewe.engine.attention.ewe_attention  # noqa: F401  (registers the attention)
from ewe import LLM, Generation, Passage, SamplingParams
from ewe.cli.main import app
from ewe.config import Config, resolve_config
from ewe.config.cache_folder import cache_folder
from ewe.engine.models.loader import LoadedModel
from ewe.engine.startup.budget import cache_dtype
from ewe.engine.startup.precompute import precompute
from ewe.engine.units.unit_files import SHARDS
from ewe.errors import PrecomputedError
from ewe.evaluation.world.builtin import builtin_datastore

PASSAGES = [
    Passage("river", "The river flows past Sørland, then to the sea. It was named in 1897.", title="Ouémé"),
    Passage("city", "She wrote of the city. The end came twice.", title="Lumière"),
    Passage("cafe", "Naïve cafés, €12.50 each; Жуков came."),
    Passage("empty", " "),
]
DOCUMENTS = PASSAGES[:3]
PARAMS = SamplingParams(max_tokens=12, ignore_eos=True, logprobs=2)
_DEADLINE_S = 120


@lru_cache
def tiny(family: str, dtype: torch.dtype = torch.float32, seed: int = 5) -> LoadedModel:
    """A tiny random model of the family with a tokenizer; its sliding windows are shorter than the units."""
    tokenizer = sentencepiece_like()
    config = deepcopy(CONFIGS[family])
    config.vocab_size = len(tokenizer)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation="ewe")
    return LoadedModel(model.eval().requires_grad_(False), tokenizer, 400, frozenset({2}), len(tokenizer))


def settings_of(precomputed: Path | str | None = None, **memory: Any) -> Config:
    """Small units, of which no two fit into a pass."""
    memory = {"unit_tokens": 40, "retrieval_units": 3, **memory}
    if precomputed is not None:
        memory["precomputed"] = str(precomputed)
    scheduler = {"max_num_batched_tokens": memory["unit_tokens"] + 1, "max_num_seqs": 1}
    return Config.from_mapping({"memory": memory, "cache": {"num_blocks": 60}, "scheduler": scheduler})


def answer(loaded: LoadedModel, config: Config) -> tuple[Generation, dict[tuple[int, ...], torch.Tensor]]:
    """An answer under all documents, and the KV of every unit that is in the pool afterwards."""
    with LLM("tiny", config=config, loaded=loaded) as llm:
        [generation] = llm.generate("The sea", PARAMS, DOCUMENTS)
        engine = llm.client.engine
        units = engine.memory_manager.cache._units.values()
        kv = {unit.token_ids: engine.pool.read_slots(unit.table.slots()) for unit in units}
        llm.check_integrity()
        return generation, kv


def assert_alone(loaded: LoadedModel, config: Config, kv: dict[tuple[int, ...], torch.Tensor]) -> None:
    """The units' KV has the bits that the model gives for each in a pass of its own."""
    paged = PagedModel(loaded.model, cache_dtype=cache_dtype(config.cache, loaded.model.dtype))
    for token_ids, tensor in kv.items():
        [table] = paged.encode([token_ids])
        assert torch.equal(tensor, paged.pool.read_slots(table.slots()))


def assert_like(generation: Generation, other: Generation, atol: float = LOGPROBS) -> None:
    """The same tokens; in log-probabilities, what shares a pass may round differently."""
    assert generation.token_ids == other.token_ids
    np.testing.assert_allclose(generation.logprobs, other.logprobs, atol=atol, rtol=0)
    for one, another in zip(generation.top_logprobs, other.top_logprobs, strict=True):
        assert one == pytest.approx(another, abs=atol)


def assert_same(loaded: LoadedModel, out: Path | str) -> None:
    config = settings_of(out)
    encoded, expected = answer(loaded, settings_of())
    generation, kv = answer(loaded, config)
    assert len(kv) == len(DOCUMENTS)
    assert kv.keys() == expected.keys()
    assert_alone(loaded, config, kv)
    for key, tensor in kv.items():
        tolerance = ATTENTION[tensor.dtype]
        torch.testing.assert_close(tensor, expected[key], atol=tolerance, rtol=tolerance)
    # Halves round every layer's products, and processors differ in how a pass of another size is added up.
    assert_like(generation, encoded, max(LOGPROBS, 10 * ATTENTION[loaded.model.dtype]))
    assert (generation.stats.units_loaded, generation.stats.units_encoded) == (3, 0)
    assert (encoded.stats.units_loaded, encoded.stats.units_encoded) == (0, 3)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_gives_the_same_bits(tmp_path: Path, family: str) -> None:
    out = tmp_path / "units"
    report = precompute(tiny(family), settings_of(), PASSAGES, out)
    assert (report.encoded, report.existing, report.skipped) == (3, 0, ("empty",))
    assert_same(tiny(family), out)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_halves_of_the_precision_give_the_same_bits(tmp_path: Path, dtype: torch.dtype) -> None:
    precompute(tiny("llama", dtype), settings_of(), PASSAGES, tmp_path / "units")
    assert_same(tiny("llama", dtype), tmp_path / "units")


def test_what_is_not_there_is_encoded(tmp_path: Path) -> None:
    precompute(tiny("llama"), settings_of(), PASSAGES[1:], tmp_path / "units")
    generation, _ = answer(tiny("llama"), settings_of(tmp_path / "units"))
    assert (generation.stats.units_loaded, generation.stats.units_encoded) == (2, 1)
    assert generation.token_ids == answer(tiny("llama"), settings_of())[0].token_ids
    loaded = {e.data["passage"]["id"]: e.data["loaded"] for e in generation.trace if e.kind == "refresh"}
    assert loaded == {"river": False, "city": True, "cafe": True}


def test_going_on_encodes_what_is_missing(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    precompute(tiny("llama"), settings_of(), PASSAGES[:1], tmp_path / "units")
    report = precompute(tiny("llama"), settings_of(), PASSAGES, tmp_path / "units", lambda *done: seen.append(done))
    assert (report.encoded, report.existing) == (2, 1)
    assert seen == [(2, 3), (3, 3)]
    assert_same(tiny("llama"), tmp_path / "units")


def test_a_store_behind_a_url_does_as_well() -> None:
    url = "memory://end-to-end/units"
    precompute(tiny("llama"), settings_of(), PASSAGES[:1], url)
    assert precompute(tiny("llama"), settings_of(), PASSAGES, url).existing == 1
    assert_same(tiny("llama"), url)
    kept = cache_folder() / "units"
    assert len([path for path in kept.iterdir() if path.stat().st_size]) == len(DOCUMENTS)


def _other_config() -> LoadedModel:
    loaded = deepcopy(tiny("llama"))
    loaded.model.config.rope_parameters["rope_theta"] = 77.0
    return loaded


def _other_tokenizer() -> LoadedModel:
    own = tiny("llama")
    return LoadedModel(own.model, byte_level(), own.max_model_len, own.eos_token_ids, own.vocab_size)


@pytest.mark.parametrize(
    ("other", "memory", "said"),
    [
        (lambda: tiny("llama", seed=6), {}, "the model's weights are others"),
        (lambda: tiny("llama", torch.bfloat16), {}, "dtype is 'float32' there and 'bfloat16' here"),
        (_other_config, {}, "the model's configuration is another"),
        (_other_tokenizer, {}, "the tokenizer is another"),
        (lambda: tiny("llama"), {"unit_tokens": 39}, "unit_tokens is 40 there and 39 here"),
        (lambda: tiny("llama"), {"unit_template": "{text}"}, "unit_template is '{title}: {text}' there"),
    ],
)
def test_units_of_another_model_or_setting_are_refused(
    tmp_path: Path, other: Any, memory: dict[str, Any], said: str
) -> None:
    precompute(tiny("llama"), settings_of(), PASSAGES, tmp_path / "units")
    with pytest.raises(PrecomputedError) as caught:
        LLM("tiny", config=settings_of(tmp_path / "units", **memory), loaded=other())
    assert said in str(caught.value)


def test_using_a_tokenizer_does_not_make_it_another(tmp_path: Path) -> None:
    precompute(tiny("llama"), settings_of(), PASSAGES, tmp_path / "units")
    tokenizer = tiny("llama").tokenizer
    backend = tokenizer.backend_tokenizer
    before = backend.to_str()
    tokenizer(["a", "the sea"], truncation=True, max_length=3)
    assert backend.to_str() != before
    assert answer(tiny("llama"), settings_of(tmp_path / "units"))[0].stats.units_loaded == 3


def test_a_disk_that_is_too_small_is_told_before_anything_is_encoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 1000})())
    with pytest.raises(PrecomputedError, match="3 units take"):
        precompute(tiny("llama"), settings_of(), PASSAGES, tmp_path / "units")
    assert not list((tmp_path / "units").glob(SHARDS))


_needs_weights = pytest.mark.skipif(
    not (model_path() / "model.safetensors").is_file(), reason="the built-in model has no weights in this checkout"
)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Twelve passages of the built-in world."""
    path = tmp_path / "store.jsonl"
    path.write_text("".join(f"{json.dumps(asdict(one))}\n" for one in builtin_datastore().passages[:12]))
    return path


@_needs_weights
def test_the_command_and_the_builtin_model(tmp_path: Path, store: Path) -> None:
    out = tmp_path / "units"
    first = CliRunner().invoke(app, ["index", "precompute", str(store), "--out", str(out)])
    assert first.exit_code == 0, first.output
    assert "12 units encoded: " in first.output
    assert f"memory.precomputed={out}" in first.output.replace("\n", "")
    again = CliRunner().invoke(app, ["index", "precompute", str(store), "--out", str(out)])
    assert "0 units encoded, 12 were there already" in again.output

    texts, loads = set(), []
    for precomputed in (None, str(out)):
        config = resolve_config("builtin", None).override(
            [f"datastore={store}", "verifier=null", f"memory.precomputed={precomputed or 'null'}"]
        )
        with LLM(config=config) as llm:
            [generation] = llm.generate(
                "Tell me about " + builtin_datastore().passages[0].title, SamplingParams(max_tokens=40)
            )
        texts.add((generation.text, generation.token_ids))
        loads.append(generation.stats.units_loaded)
    assert len(texts) == 1
    assert loads[0] == 0 < loads[1]


@_needs_weights
def test_queries_choose_the_passages_that_are_found_most_often(tmp_path: Path, store: Path) -> None:
    titles = [passage.title for passage in builtin_datastore().passages[:12]]
    queries = tmp_path / "queries.txt"
    queries.write_text(f"{titles[0]}\n\n{titles[0]} again\n{titles[5]}\n")
    arguments = ["index", "precompute", str(store), "--out", str(tmp_path / "units"), "--queries", str(queries)]
    plain = ["--set", "retrieval.retriever=bm25", "--set", "feedback.retrieval_top_k=3"]
    result = CliRunner().invoke(app, [*arguments, "--top", "2", *plain])
    assert result.exit_code == 0, result.output
    assert "2 units encoded" in result.output
    one = CliRunner().invoke(app, [*arguments, "--top", "1", "--out", str(tmp_path / "one"), *plain])
    assert "1 unit encoded" in one.output
    refused = CliRunner().invoke(app, ["index", "precompute", str(store), "--out", str(tmp_path / "x"), "--top", "2"])
    assert refused.exit_code == 2
    assert "--queries FILE" in refused.output


_ENDLESS = """
import sys
import time
from itertools import count
from pathlib import Path
import torch
from ewe.engine.units.unit_files import UnitIdentity
from ewe.engine.units.unit_writer import UnitWriter
identity = UnitIdentity("w", "c", "t", "{text}", 8, "float32", ((2, 3, 4),))
with UnitWriter(Path(sys.argv[1]), identity, shard_bytes=3000) as writer:
    for number in count():
        writer.add((number, 1), torch.full((28,), float(number)))
        time.sleep(0.0002)  # files enough, and not without end
"""


@pytest.mark.slow
def test_a_process_that_is_killed_leaves_whole_files(tmp_path: Path) -> None:
    from ewe.engine.units.unit_files import UnitIdentity, open_units, unit_key
    from ewe.engine.units.unit_writer import UnitWriter

    identity = UnitIdentity("w", "c", "t", "{text}", 8, "float32", ((2, 3, 4),))
    for round_ in range(2):
        process = subprocess.Popen([sys.executable, "-c", _ENDLESS, str(tmp_path)])
        deadline = time.monotonic() + _DEADLINE_S
        while len(list(tmp_path.glob(SHARDS))) <= 4 * round_ + 3 and time.monotonic() < deadline:
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.wait()
        units = open_units(tmp_path, identity)
        for key, stored in units.items():
            [number, _] = torch.frombuffer(bytearray(key), dtype=torch.int32).tolist()
            assert torch.equal(stored.read(), torch.full((28,), float(number)))
        with UnitWriter(tmp_path, identity) as writer:
            assert writer.keys == units.keys()
            assert unit_key((0, 1)) in writer.keys
        assert not list(tmp_path.glob("*.partial"))
