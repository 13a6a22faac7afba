"""What docs/benchmarks.md says of GPUs and of the host is what the kept documents of the benchmarks hold."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8")


def figures_of(name: str) -> dict[str, float]:
    figures: dict[str, float] = json.loads((ROOT / f"benchmarks/results/{name}.json").read_text())["figures"]
    return figures


def section(title: str) -> str:
    return GUIDE.split(f"## {title}\n")[1].split("\n## ")[0]


def rows_of(text: str) -> list[list[float]]:
    """The numbers of a table's rows."""
    lines = [line.strip("| ").split("|") for line in text.splitlines() if re.match(r"\| \d", line)]
    return [[float(cell.replace(",", "")) for cell in line] for line in lines]


def test_shares_of_the_limit_are_those_of_the_file() -> None:
    figures, rows = figures_of("decode_throughput-cuda"), rows_of(section("On one H100"))
    assert rows
    for answers, model, engine, tokens in rows:
        name = f"batch_{answers:.0f}"
        assert model == figures[f"{name}_step_of_limit"]
        assert engine == figures[f"{name}_engine_of_limit"]
        assert tokens == round(figures[f"{name}_engine_tokens_per_s"])


def test_what_is_said_of_attention_is_in_its_file() -> None:
    figures, text = figures_of("attention-cuda"), section("On one H100")
    said = {
        "decode_of_copy_rate_b64_k8_m256_l1024": "{:.2f} of the copy rate",
        "decode_of_copy_rate_b32_k8_m256_l8192": "{:.2f} with 8,192 keys",
        "decode_of_copy_rate_b256_k8_m256_l1024": "{:.2f} with 256 rows",
        "decode_of_copy_rate_b1_k8_m256_l1024": "{:.2f} with a single row",
        "shared_units_of_copy_rate_b64_k8_m256_l1024": "reach {:.2f} (8 units)",
        "shared_units_of_copy_rate_b64_k64_m256_l1024": "and {:.2f} (64)",
    }
    for name, words in said.items():
        assert words.format(figures[name] + 1e-9) in " ".join(text.split()), name


def test_the_hosts_time_is_that_of_the_file() -> None:
    figures, rows = figures_of("host_step-cpu"), rows_of(section("The host"))
    assert [row[0] for row in rows] == [1, 64, 128, 256]
    for answers, milliseconds, fastest, calls in rows:
        name = f"rows_{answers:.0f}"
        assert milliseconds == round(figures[f"{name}_ms"], 2)
        assert fastest == round(figures[f"{name}_fastest_ms"], 2)
        assert calls == round(figures[f"{name}_calls_per_row"])
