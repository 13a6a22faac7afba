"""`ewe eval factuality` and `ewe eval world`: every policy on the same prompts, weights, passages and judge.

`ewe.cli.eval_run` does the work.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ewe.cli import options
from ewe.cli.engine import settings_of
from ewe.cli.eval_run import Evaluation, Judges, show
from ewe.cli.findings_file import FigureOptions
from ewe.cli.prompts import read_prompts
from ewe.config import resolve_config
from ewe.config.registry import POLICIES
from ewe.errors import ConfigError, InvalidRequestError
from ewe.evaluation.prompt_sets import DETAIL, KS, PromptSet, parse_shard, prompt_set
from ewe.evaluation.systems import Sweep, find_sweep, read_sweep, systems_of
from ewe.types.sampling_params import SamplingParams

Chosen = Annotated[
    list[str],
    typer.Option(
        "--set",
        metavar="NAME | KEY=VALUE",
        help="The prompts: biography, longfact, fava, alpacafact, or your own file. KEY=VALUE: a setting of the "
        "engine, as in other commands. Repeatable.",
        show_default=False,
    ),
]
PromptsFile = Annotated[
    Path | None,
    typer.Option(
        help="The file of a named set: a prompt (for biography a name) per line, or JSONL with `prompt`.",
        show_default=False,
    ),
]
Suffix = Annotated[str, typer.Option(help="Added to every prompt.", show_default="the paper's request for details")]
K = Annotated[
    float | None,
    typer.Option(
        "--k",
        min=1,
        help="Number of supported claims expected of a full answer. Choose it before grading.",
        show_default="that of the set, or the median number of claims",
    ),
]
Limit = Annotated[int | None, typer.Option(min=1, help="Only the first prompts.", show_default="all")]
Shard = Annotated[str, typer.Option(metavar="i/n", help="Only every n-th prompt, from the i-th on.")]
Answers = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        help="The --output file of an earlier run: its answers are reused if prompts and settings are the "
        "same, and graded and compared again.",
    ),
]
Seed = Annotated[
    int, typer.Option(help="Seed of the first prompt's answer; each next prompt's seed is one higher.", min=0)
]


@dataclass(frozen=True, slots=True)
class SystemOptions:
    """Which systems are compared, and with which of them."""

    policies: Annotated[
        str | None, typer.Option(help="Policies to compare, separated by commas.", show_default="all of them")
    ] = None
    sweep: Annotated[
        str | None,
        typer.Option(
            metavar="NAME | FILE",
            help="Compare settings instead: those of the paper's figures and tables by name (figure-3, table-1; an "
            "unknown name lists all), or those of a YAML file.",
        ),
    ] = None
    baseline: Annotated[
        str | None,
        typer.Option(help="The baseline system of the comparison.", show_default="plain, or the first one"),
    ] = None

    def read(self) -> Sweep:
        """What --policies or --sweep names; raises ConfigError."""
        if self.sweep is None:
            named = POLICIES.names if self.policies is None else filter(None, map(str.strip, self.policies.split(",")))
            return Sweep("", systems_of(list(named)))
        if self.policies is not None:
            raise ConfigError("give --policies or --sweep, not both: a sweep's points may set a policy")
        return read_sweep(find_sweep(self.sweep))


def factuality(
    *,
    chosen: Chosen,
    prompts: PromptsFile = None,
    systems: SystemOptions,
    model: options.Model = None,
    adapter: options.Adapter = None,
    datastore: options.Datastore = None,
    verifier: options.Verifier = None,
    config: options.ConfigFile = None,
    judges: Judges,
    suffix: Suffix = DETAIL,
    k: K = None,
    limit: Limit = None,
    shard: Shard = "1/1",
    answers: Answers = None,
    max_tokens: options.MaxTokens = 1024,
    temperature: options.Temperature = 0.0,
    seed: Seed = 0,
    output: options.OutputFile = None,
    figures: FigureOptions,
) -> None:
    """Generate answers to a set's prompts with every policy, grade them by VeriScore, and compare."""
    from ewe.evaluation.graders import Part

    names = [item for item in chosen if "=" not in item]
    settings = settings_of(
        model, config, [item for item in chosen if "=" in item], adapter=adapter, datastore=datastore, verifier=verifier
    )
    judges.evidence = judges.evidence or settings.datastore or ""
    evaluation = Evaluation.of(
        settings,
        systems.read(),
        SamplingParams(max_tokens=max_tokens, temperature=temperature, seed=seed),
        _read_set(names, prompts, suffix, limit, k),
        systems.baseline,
    )
    items = evaluation.prompts.shard(*parse_shard(shard)).items
    judges.check(evaluation.configs.values())
    evaluation.refuse_other(judges.as_settings(), shard, output)
    grader = judges.open_grader(settings)
    run = evaluation.run([Part(items, grader)], judges.as_settings(), shard, output, judges.open_comparer(), answers)
    show([run], figures)


def world(
    *,
    people: Annotated[int, typer.Option(help="People per seed.", min=2)] = 200,
    seeds: Annotated[int, typer.Option(help="Number of worlds.", min=1)] = 3,
    first_seed: Annotated[int, typer.Option(help="Seed of the first world.", min=0, max=900_000)] = 100,
    poisoned: Annotated[float, typer.Option(help="Share of passages with a false statement.", min=0)] = 0.0,
    systems: SystemOptions,
    settings: options.Settings = None,
    max_tokens: options.MaxTokens = 256,
    output: options.OutputFile = None,
    figures: FigureOptions,
) -> None:
    """Compare policies on biographies of fictional people not used in training, graded exactly."""
    from ewe.evaluation.graders import WORLD_SETTINGS, world_parts

    base = resolve_config("builtin", None).override((*WORLD_SETTINGS, *(settings or ())))
    prompts, parts = world_parts(range(first_seed, first_seed + seeds), people, poisoned)
    evaluation = Evaluation.of(
        base.model_copy(update={"datastore": None}),
        systems.read(),
        SamplingParams(max_tokens=max_tokens, seed=0),
        prompts,
        systems.baseline,
    )
    exact = {"judge": "the world itself", "compare": None, "same": False}
    show([evaluation.run(parts, exact, "1/1", output)], figures)


def _read_set(names: list[str], prompts: Path | None, suffix: str, limit: int | None, k: float | None) -> PromptSet:
    """The one prompt set that --set names, read from its file; raises ConfigError and InvalidRequestError."""
    if len(names) != 1:
        raise ConfigError(f"name one prompt set with --set ({', '.join(KS)}, or a file), got {len(names)}")
    [name] = names
    if prompts is None and name in KS:
        raise ConfigError(
            f"the prompts of {name} are not part of this package: give their file with --prompts (docs/guides/"
            "evaluation.md says where they come from)"
        )
    path = prompts or Path(name)
    read = read_prompts(None, path)[:limit]
    talk = next((item.id for item in read if item.messages), None)
    if talk is not None:
        raise InvalidRequestError(f'{path}: {talk!r} is a conversation, and answers are graded alone: give "prompt"')
    return prompt_set(name if name in KS else path.stem, [(item.id, item.text, item.title) for item in read], suffix, k)
