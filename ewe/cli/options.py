"""Options that several subcommands share."""

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from ewe.cli.engine import as_assignments
from ewe.cli.prompts import read_text
from ewe.types.sampling_params import SamplingParams

_setting = partial(typer.Option, rich_help_panel="Model and settings")
result = partial(typer.Option, rich_help_panel="Results")
sampling = partial(typer.Option, rich_help_panel="Sampling")
server = partial(typer.Option, rich_help_panel="Server")


def place_for_a_file(path: Path | None) -> Path | None:
    """Refuses a path that cannot be written before hours are spent on what should go there."""
    if path is not None and path.is_dir():
        raise typer.BadParameter(f"{path} is a folder")
    if path is not None and not path.absolute().parent.is_dir():
        raise typer.BadParameter(f"the folder {path.parent} does not exist")
    return path


def _place_for_results(path: Path | None) -> Path | None:
    """Also refuses a device, which may have no end: what is there is read, so that a run can go on."""
    path = place_for_a_file(path)
    if path is not None and path.exists() and not path.is_file():
        raise typer.BadParameter(f"{path} is no file")
    return path


ConfigFile = Annotated[
    Path | None, _setting("--config", help="Settings (YAML).", exists=True, dir_okay=False, show_default=False)
]
Settings = Annotated[
    list[str] | None,
    _setting("--set", metavar="KEY=VALUE", help="One setting, e.g. memory.retrieval_units=6. Repeatable."),
]
_MODEL = "builtin, smollm2, a folder with safetensors, a GGUF file, or a hub id (owner/name)."
Model = Annotated[str | None, _setting(help=_MODEL, show_default="builtin")]
ModelArgument = Annotated[str | None, typer.Argument(help=_MODEL, show_default="builtin")]
Adapter = Annotated[
    str | None,
    _setting(
        help="A LoRA adapter to merge into the model: a folder saved by peft, the name of an adapter included for the "
        "model, or none.",
        show_default=False,
    ),
]
Datastore = Annotated[
    str | None,
    _setting(
        help="Source of passages: a folder built by `ewe index build`, a .jsonl file of passages, wikipedia-sample, "
        "builtin, or an address filled by `ewe index push`."
    ),
]
Verifier = Annotated[
    str | None, _setting(help="Verifier of sentences: claims (default with a datastore), builtin, none.")
]

ClosedWorld = Annotated[
    bool | None,
    _setting(
        "--closed-world/--open-world",
        help="Treat claims that the datastore does not support as refuted, even if nothing contradicts them.",
        show_default="feedback.closed_world",
    ),
]


Policy = Annotated[
    str | None,
    _setting(
        metavar="NAME",
        help="When to retrieve and verify: ewe (after every sentence; refuted ones are regenerated), rag (retrieve "
        "once), flare (look ahead, regenerate uncertain sentences), plain (neither), nest (retrieve once, copy likely "
        "spans from passages); or by prompting the model several times: ra (passages in the prompt), dragin (retrieve "
        "where attention and uncertainty are high), cove, cove+retrieval (draft, check by questions, revise), "
        "self-rag-like (try passages, judge the sentences), rewrite-after (edit refuted sentences afterwards).",
        show_default="ewe",
    ),
]
Raw = Annotated[bool, typer.Option("--raw", help="Pass prompts to the model verbatim, without its chat template.")]
System = Annotated[str, typer.Option(help="The system message of every conversation.", show_default=False)]
Documents = Annotated[
    list[Path] | None,
    typer.Option(
        help="A text file, or a .jsonl file of passages, put into memory at the start. Repeatable.",
        exists=True,
        dir_okay=False,
    ),
]
AsJSON = Annotated[bool, result("--json", help="Results as JSON, one document per line.")]
HTMLFile = Annotated[
    Path | None, result("--html", help="Write the results as an HTML page.", callback=place_for_a_file)
]
TraceFile = Annotated[Path | None, result("--trace", help="Write every event as JSONL.", callback=place_for_a_file)]
OutputFile = Annotated[
    Path | None,
    result(
        "--output",
        help="Write results to this JSONL file; run again to continue after the last one.",
        callback=_place_for_results,
    ),
]

MaxTokens = Annotated[int, sampling(help="Maximum tokens to generate.")]
Temperature = Annotated[float, sampling(help="0 is greedy.")]
Seed = Annotated[int | None, sampling(help="Random seed.")]
LogitBias = Annotated[list[str] | None, sampling(metavar="ID=VALUE", help="Added to the logit of a token. Repeatable.")]

JSONSchema = Annotated[
    Path | None,
    sampling(
        "--json-schema", help="Answers are JSON that follows the schema in this file.", exists=True, dir_okay=False
    ),
]

Grammar = Annotated[
    Path | None,
    sampling("--grammar", help="Answers follow the grammar in this file (Lark's syntax).", exists=True, dir_okay=False),
]


Host = Annotated[str | None, server(help="Address to listen on.", show_default="127.0.0.1")]
Port = Annotated[int | None, server(help="Port to listen on.", show_default="8000")]


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Which engine it is."""

    model: Model = None
    adapter: Adapter = None
    datastore: Datastore = None
    verifier: Verifier = None
    closed_world: ClosedWorld = None
    policy: Policy = None
    config: ConfigFile = None
    settings: Settings = None

    @property
    def assignments(self) -> list[str]:
        """`key=value` for what was given beside the file, in the order in which it counts."""
        named = {name: getattr(self, name) for name in ("datastore", "verifier", "policy")}
        of_groups = {"model.adapter": self.adapter, "feedback.closed_world": self.closed_world}
        return [*as_assignments({**of_groups, **named}), *(self.settings or ())]


@dataclass(frozen=True, slots=True)
class ServedEngineOptions(EngineOptions):
    """The same for a command whose subject is the model."""

    model: ModelArgument = None


def expand_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer takes it: in place of each parameter whose type is a dataclass, one option per field."""
    groups: dict[str, Any] = {}
    parameters: list[Parameter] = []
    hints = get_type_hints(command, include_extras=True)
    for name, parameter in signature(command).parameters.items():
        if is_dataclass(hints[name]):
            groups[name] = hints[name]
            own = get_type_hints(hints[name], include_extras=True)
            for item in fields(hints[name]):
                default = Parameter.empty if item.default is MISSING else item.default
                parameters.append(
                    Parameter(item.name, Parameter.KEYWORD_ONLY, default=default, annotation=own[item.name])
                )
        else:
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name]))

    @wraps(command)
    def run(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{item.name: values.pop(item.name) for item in fields(group)})
        command(**values)

    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def sampling_params(values: Mapping[str, Any]) -> SamplingParams:
    """The SamplingParams among a subcommand's parameters (they have the same names); lists left out are empty.

    Raises InvalidRequestError for values out of range, BadParameter for a logit bias that is not ID=VALUE or a schema
    that is no JSON object.
    """
    chosen = {item.name: values[item.name] for item in fields(SamplingParams) if item.name in values}
    chosen["stop"] = tuple(chosen.get("stop") or ())
    chosen["stop_token_ids"] = tuple(chosen.get("stop_token_ids") or ())
    chosen["logit_bias"] = _logit_biases(chosen.get("logit_bias"))
    chosen["json_schema"] = _schema(chosen.get("json_schema"))
    grammar = chosen.get("grammar")
    chosen["grammar"] = None if grammar is None else read_text(grammar, "--grammar")
    return SamplingParams(**chosen)


def _schema(path: Path | None) -> Mapping[str, Any] | None:
    if path is None:
        return None
    try:
        schema = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise typer.BadParameter(f"{path} is no JSON: {error}", param_hint="--json-schema") from error
    if not isinstance(schema, dict):
        raise typer.BadParameter(f"{path} holds no JSON object", param_hint="--json-schema")
    return schema


def _logit_biases(assignments: list[str] | None) -> dict[int, float]:
    biases = {}
    for assignment in assignments or ():
        token, _, value = assignment.partition("=")
        try:
            biases[int(token)] = float(value)
        except ValueError as error:
            raise typer.BadParameter(
                f"{assignment!r} is not of the form ID=VALUE", param_hint="--logit-bias"
            ) from error
    return biases
