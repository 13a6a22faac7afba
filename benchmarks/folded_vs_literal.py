"""What folding eq. 1 of the EWE paper saves: one softmax over everything against k + 1 attentions, one per unit.

The literal form attends to [unit; context] for each of k units and to the context once more, so it reads the context
k + 1 times. The folded form adds log(k + 1) to the context's logits and reads every key once. Both run here on the same
backend, for one decoding step; the literal form as one batch of k + 1 rows and as k + 1 calls, of which the faster
counts, and it is given its normalisers for free, so its cost is a lower bound. The ratio should near (k + 1) as the
context grows against the memory.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import torch

from benchmarks import plots
from benchmarks.common import parse_arguments, pick_size, report, seconds
from ewe.engine.attention.backend import LayerCall
from ewe.engine.attention.metadata import ForwardRow, IntArray, place_rows
from ewe.engine.attention.torch_backend import TorchBackend

_LAYERS = 20


class Layer:
    """One layer's queries, keys and values, and the ways to attend to k units and a context."""

    def __init__(self, shape: dict[str, int], dtype: torch.dtype, device: str, num_slots: int) -> None:
        self.heads, self.kv_heads = shape["num_attention_heads"], shape["num_key_value_heads"]
        self.head_dim = shape["hidden_size"] // self.heads
        self.keys = torch.randn(num_slots, self.kv_heads, self.head_dim, dtype=dtype, device=device)
        self.values = torch.randn_like(self.keys)
        self.query = torch.randn(self.heads, 1, self.head_dim, dtype=dtype, device=device)
        slot_bytes = self.keys[0].nbytes + self.values[0].nbytes
        self.backend = TorchBackend(torch.device(device), slot_bytes)

    def attend(self, rows: list[ForwardRow]) -> torch.Tensor:
        """Output [rows, Hq, D] of the last of `_LAYERS` layers that share one plan, as a model's layers do."""
        plan = self.backend.plan(place_rows(rows, "paper"), None, False)
        query = self.query.expand(-1, len(rows), -1)
        new = query[: self.kv_heads]
        call = LayerCall(query, new, new, self.keys, self.values, self.head_dim**-0.5, None)
        for _ in range(_LAYERS):
            output = self.backend.attend(call, plan)
        return output

    def folded(self, context: IntArray, units: list[IntArray]) -> None:
        """One row that sees everything."""
        self.attend([ForwardRow([0], 0, context, tuple(units), (1.0,) * len(units))])

    def literal_batch(self, context: IntArray, units: list[IntArray]) -> None:
        """k + 1 rows in one call, averaged."""
        self.attend(_literal_rows(context, units)).mean(0)

    def literal_calls(self, context: IntArray, units: list[IntArray]) -> None:
        """k + 1 calls of one row, averaged."""
        torch.cat([self.attend([row]) for row in _literal_rows(context, units)]).mean(0)


def _literal_rows(context: IntArray, units: list[IntArray]) -> list[ForwardRow]:
    rows = [ForwardRow([0], 0, np.concatenate([unit, context])) for unit in units]
    return [*rows, ForwardRow([0], 0, context)]


def panels(document: plots.Document) -> list[plots.Panel]:
    """What --plot draws."""

    def line(name: str) -> dict[float, float]:
        return plots.by_number(plots.found(document["figures"], rf"{name}_us_context_(\d+)"))

    settings = document["settings"]
    title = f"One layer's attention under {settings['units']} units of {settings['unit_tokens']} tokens"
    forms = {"one softmax (the engine's form)": line("folded"), "equation 1 as written": line("literal")}
    return [plots.Panel(title, "tokens of context", "microseconds", forms, log_values=True)]


def main() -> None:
    """Runs the benchmark."""
    arguments = parse_arguments(__doc__, plots.add_option)
    size = pick_size(arguments)
    unit_tokens = 16 if arguments.smoke else 64
    lengths = (64,) if arguments.smoke else (256, 1024, 4096, 8192)
    num_slots = max(lengths) + size.units * unit_tokens
    layer = Layer(size.model, getattr(torch, size.dtype), arguments.device, num_slots)
    units = [np.arange(index * unit_tokens, (index + 1) * unit_tokens) for index in range(size.units)]
    figures: dict[str, float] = {}
    for length in lengths:
        context = np.arange(num_slots - length, num_slots)
        forms = (layer.folded, layer.literal_batch, layer.literal_calls)
        folded, *literal = (
            seconds(partial(form, context, units), arguments.device, arguments.repeats) / _LAYERS for form in forms
        )
        figures[f"folded_us_context_{length}"] = round(folded * 1e6, 1)
        figures[f"literal_us_context_{length}"] = round(min(literal) * 1e6, 1)
        figures[f"literal_over_folded_context_{length}"] = round(min(literal) / folded, 2)
    settings = {"shape": size.name, "dtype": size.dtype, "units": size.units, "unit_tokens": unit_tokens}
    plots.draw(arguments.plot, panels, report("folded_vs_literal", arguments, settings, figures))


if __name__ == "__main__":
    main()
