"""What bringing new knowledge into a running answer costs: refreshing memory against rebuilding the prompt.

EWE encodes the new unit alone and keeps everything else. A decoder that holds its documents in the prompt must run the
prompt again: all documents, the question and the text so far. Measured: one unit of M tokens, and all k units at once,
against transformers' forward pass over k * M + prompt + text tokens with the same weights in the same process; the same
up to the next token of the text, which is in the pass of the unit; and a unit against transformers' pass over its M
tokens alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch

from benchmarks import plots
from benchmarks.common import parse_arguments, pick_size, report, seconds
from benchmarks.rig import Rig, load_synthetic, transformers_twin


def panels(document: plots.Document) -> list[plots.Panel]:
    """What --plot draws."""
    figures, settings = document["figures"], document["settings"]
    unit, units = settings["unit_tokens"], settings["units"]
    prompt = units * unit + settings["prompt_tokens"] + settings["text_tokens"]
    names = {
        f"transformers over {unit} tokens alone": "unit_tokens_in_transformers_s",
        f"engine: one unit of {unit} tokens": "refresh_one_unit_s",
        "engine: one unit and the next token": "next_token_after_one_unit_s",
        f"engine: all {units} units": "refresh_all_units_s",
        f"transformers: the prompt again\n({prompt} tokens)": "rebuild_prompt_s",
    }
    times = {name: 1000 * figures[key] for name, key in names.items() if key in figures}
    return [plots.Panel("What it costs to bring new knowledge in", "", "milliseconds", {"": times})]


def main() -> None:
    """Runs the benchmark."""
    arguments = parse_arguments(__doc__, plots.add_option)
    size = pick_size(arguments)
    text_tokens = 8 if arguments.smoke else 256
    memory_tokens = size.units * size.unit_tokens
    prompt_tokens = memory_tokens + size.prompt_tokens + text_tokens
    rig = Rig(load_synthetic(size, arguments.device), size.unit_tokens, prompt_tokens)
    rig.runner.prepare(1, memory_tokens)
    peer = transformers_twin(rig.model)
    units = [rig.slots(size.unit_tokens) for _ in range(size.units)]
    prompt = torch.tensor([rig.random_tokens(prompt_tokens)], device=arguments.device)

    context = rig.slots(size.prompt_tokens + text_tokens)

    def refresh_all() -> None:
        rig.runner.forward([rig.unit(rig.random_tokens(len(unit)), unit) for unit in units])

    def refresh_one() -> None:
        rig.encode(rig.random_tokens(len(units[0])), units[0])

    def next_token() -> None:
        changed = rig.unit(rig.random_tokens(len(units[0])), units[0])
        rig.runner.forward([changed, rig.row([3], context, units)])

    @torch.inference_mode()
    def pass_over(tokens: torch.Tensor) -> None:
        peer(tokens, use_cache=True, logits_to_keep=1)

    def took(function: Callable[[], object]) -> float:
        return seconds(function, arguments.device, arguments.repeats, warmups=2)

    one, every, first = took(refresh_one), took(refresh_all), took(next_token)
    rebuilt, alone = took(partial(pass_over, prompt)), took(partial(pass_over, prompt[:, : size.unit_tokens]))
    settings = {
        "model": size.name,
        "dtype": size.dtype,
        "units": size.units,
        "unit_tokens": size.unit_tokens,
        "prompt_tokens": size.prompt_tokens,
        "text_tokens": text_tokens,
    }
    figures = {
        "refresh_one_unit_s": round(one, 5),
        "refresh_all_units_s": round(every, 5),
        "rebuild_prompt_s": round(rebuilt, 5),
        "next_token_after_one_unit_s": round(first, 5),
        "unit_tokens_in_transformers_s": round(alone, 5),
        "one_unit_over_its_tokens_in_transformers": round(one / alone, 2),
        "next_token_over_its_tokens_in_transformers": round(first / alone, 2),
        "rebuild_over_next_token_after_one_unit": round(rebuilt / first, 2),
        "rebuild_over_one_unit": round(rebuilt / one, 2),
        "rebuild_over_all_units": round(rebuilt / every, 2),
    }
    plots.draw(arguments.plot, panels, report("refresh_cost", arguments, settings, figures))


if __name__ == "__main__":
    main()
