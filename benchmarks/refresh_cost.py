"""What bringing new knowledge into a running answer costs: refreshing memory against rebuilding the prompt.

EWE encodes the new unit alone and keeps everything else. A decoder that holds its documents in the prompt must run the
prompt again: all documents, the question and the text so far. Measured: one unit of M tokens, and all k units at once,
against transformers' forward pass over k * M + prompt + text tokens with the same weights in the same process; the same
up to the next token of the text, which is in the pass of the unit; and a unit against transformers' pass over its M
tokens alone, on a GPU also replayed from a graph.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

import torch

from benchmarks import plots
from benchmarks.common import Sections, Size, parse_arguments, pick_size, seconds
from benchmarks.rig import Rig, load_synthetic, transformers_twin


def panels(document: plots.Document) -> list[plots.Panel]:
    """What --plot draws."""
    figures, settings = document["figures"], document["settings"]
    unit, units = settings["unit_tokens"], settings["units"]
    prompt = units * unit + settings["prompt_tokens"] + settings["text_tokens"]
    names = {
        f"transformers over {unit} tokens, from a graph": "unit_tokens_from_a_graph_s",
        f"transformers over {unit} tokens alone": "unit_tokens_in_transformers_s",
        f"engine: one unit of {unit} tokens": "refresh_one_unit_s",
        "engine: one unit and the next token": "next_token_after_one_unit_s",
        f"engine: all {units} units": "refresh_all_units_s",
        f"transformers: the prompt again\n({prompt} tokens)": "rebuild_prompt_s",
    }
    times = {name: 1000 * figures[key] for name, key in names.items() if key in figures}
    return [plots.Panel("What it costs to bring new knowledge in", "", "milliseconds", {"": times})]


class Refresh:
    """An engine's memory and text, driven by hand, and transformers with the same weights over the same tokens.

    took: seconds of what has been measured, by name.
    """

    def __init__(self, size: Size, arguments: argparse.Namespace, text_tokens: int) -> None:
        prompt_tokens = size.units * size.unit_tokens + size.prompt_tokens + text_tokens
        self._rig = rig = Rig(load_synthetic(size, arguments.device), size.unit_tokens, prompt_tokens)
        rig.runner.prepare(1, size.units * size.unit_tokens)
        self._peer = transformers_twin(rig.model)
        self._units = [rig.slots(size.unit_tokens) for _ in range(size.units)]
        self._context = rig.slots(size.prompt_tokens + text_tokens)
        self._prompt = torch.tensor([rig.random_tokens(prompt_tokens)], device=arguments.device)
        self._device, self._repeats = arguments.device, arguments.repeats
        self.took: dict[str, float] = {}

    def engine(self) -> dict[str, float]:
        """Units encoded, and a token of the text after them."""
        rig, units = self._rig, self._units

        def refresh_all() -> None:
            rig.runner.forward([rig.unit(rig.random_tokens(len(unit)), unit) for unit in units])

        def refresh_one() -> None:
            rig.encode(rig.random_tokens(len(units[0])), units[0])

        def next_token() -> None:
            changed = rig.unit(rig.random_tokens(len(units[0])), units[0])
            rig.runner.forward([changed, rig.row([3], self._context, units)])

        self._time("refresh_one_unit", refresh_one)
        self._time("refresh_all_units", refresh_all)
        self._time("next_token_after_one_unit", next_token)
        return self._seconds(*self.took)

    def rebuilt(self) -> dict[str, float]:
        """transformers over the whole prompt."""
        took = self._time("rebuild_prompt", partial(self._pass_over, self._prompt))
        return self._seconds("rebuild_prompt") | {
            "rebuild_over_next_token_after_one_unit": round(took / self.took["next_token_after_one_unit"], 2),
            "rebuild_over_one_unit": round(took / self.took["refresh_one_unit"], 2),
            "rebuild_over_all_units": round(took / self.took["refresh_all_units"], 2),
        }

    def alone(self) -> dict[str, float]:
        """transformers over a unit's tokens."""
        return self._over("unit_tokens_in_transformers", "its_tokens_in_transformers", self._unit_pass)

    def graphed(self) -> dict[str, float]:
        """The same replayed from a CUDA graph, so that the host's time does not hide the device's."""
        if not self._device.startswith("cuda"):
            raise RuntimeError("graphs need a GPU")
        self._unit_pass()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._unit_pass()
        return self._over("unit_tokens_from_a_graph", "its_tokens_from_a_graph", graph.replay)

    def _over(self, name: str, peer: str, call: Callable[[], object]) -> dict[str, float]:
        """A peer's time, and the engine's over it."""
        took = self._time(name, call)
        return self._seconds(name) | {
            f"one_unit_over_{peer}": round(self.took["refresh_one_unit"] / took, 2),
            f"next_token_over_{peer}": round(self.took["next_token_after_one_unit"] / took, 2),
        }

    def _unit_pass(self) -> None:
        self._pass_over(self._prompt[:, : len(self._units[0])])

    @torch.inference_mode()
    def _pass_over(self, tokens: torch.Tensor) -> None:
        self._peer(tokens, use_cache=True, logits_to_keep=1)

    def _time(self, name: str, call: Callable[[], object]) -> float:
        self.took[name] = seconds(call, self._device, self._repeats, warmups=2)
        return self.took[name]

    def _seconds(self, *names: str) -> dict[str, float]:
        return {f"{name}_s": round(self.took[name], 5) for name in names}


def main() -> None:
    """Runs the benchmark."""
    arguments = parse_arguments(__doc__, plots.add_option)
    size = pick_size(arguments)
    text_tokens = 8 if arguments.smoke else 256
    settings = {
        "model": size.name,
        "dtype": size.dtype,
        "units": size.units,
        "unit_tokens": size.unit_tokens,
        "prompt_tokens": size.prompt_tokens,
        "text_tokens": text_tokens,
    }
    sections = Sections("refresh_cost", arguments, settings)
    refresh = Refresh(size, arguments, text_tokens)
    for name in ("engine", "graphed", "alone", "rebuilt"):
        sections.take(name, getattr(refresh, name))
    plots.draw(arguments.plot, panels, sections.close())


if __name__ == "__main__":
    main()
