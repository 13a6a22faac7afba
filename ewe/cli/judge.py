"""`ewe judge`: whether a chat model can judge its own claims."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ewe.cli import options
from ewe.cli.engine import open_llm, settings_of
from ewe.cli.progress_lines import counted_progress
from ewe.cli.terminal import output_console
from ewe.config import Config
from ewe.engine.startup.preflight import preflight

if TYPE_CHECKING:
    from ewe.evaluation.tables import FittingTable
    from ewe.verification.judges.labelled_claims import LabelledClaim
    from ewe.verification.judges.writer_measuring import Measured

judge_app = typer.Typer(no_args_is_help=True, help="Measure whether a chat model can judge its own claims.")

_ALONE = ("policy=plain", "datastore=none", "verifier=none", "longterm.path=null")
_NAMES = ("true", "false", "left open")


@judge_app.callback()
def root() -> None:
    """So that `calibrate` stays a subcommand."""


@judge_app.command("calibrate")
def calibrate_command(
    model: options.Model = None,
    claims: Annotated[
        Path | None,
        typer.Option(
            help="Labelled claims (JSONL): claim, label, passages with title and text.",
            exists=True,
            dir_okay=False,
            show_default="480 claims of the package",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="File for the measurement, for verification.judge_calibration.",
            callback=options.place_for_a_file,
            show_default="the cache folder",
        ),
    ] = None,
    adapter: options.Adapter = None,
    config: options.ConfigFile = None,
    settings: options.Settings = None,
) -> None:
    """Have a chat model judge labelled claims, and store how reliable it is for `verification.judge: writer`.

    Exit status 0: the model can judge, 1: it cannot.
    """
    from ewe.engine.evidence.writer_judge import writer_fingerprint
    from ewe.verification.judges.labelled_claims import read_claims
    from ewe.verification.judges.writer_calibration import calibration_path

    chosen = settings_of(model, config, settings, adapter=adapter).override(_ALONE)
    preflight(chosen)
    fingerprint = writer_fingerprint(chosen.model)
    measured = _measure(chosen, read_claims(claims))
    path = output or calibration_path(fingerprint)
    measured.calibration(chosen.model.name, fingerprint).write(path)
    console = output_console()
    console.print(_table(measured))
    for sentence in (*_words(measured), f"written to {path}"):
        console.print(sentence, markup=False)
    if not measured.can_judge:
        raise typer.Exit(1)


def _measure(config: Config, claims: list[LabelledClaim]) -> Measured:
    from ewe.engine.evidence.shared_judge import EngineScore
    from ewe.engine.evidence.writer_judge import measured_on

    with open_llm(config) as llm, counted_progress("judging claims", len(claims)) as advance:
        score = EngineScore(llm.client.run)
        return measured_on(claims, score, llm.client.engine.loaded, lambda: advance("judging claims"))


def _table(measured: Measured) -> FittingTable:
    from ewe.evaluation.tables import Interval, rich_table

    rows = []
    for name, decided in zip(_NAMES, measured.decided.tolist(), strict=True):
        total = sum(decided)
        rows.append([f"{total} {name}", *(str(Interval.of_share(count, total)) for count in decided)])
    return rich_table(["claims", "supported", "refuted", "left open"], rows, "what the model said, with 95% intervals")


def _words(measured: Measured) -> list[str]:
    """What the figures mean, in sentences."""
    if not measured.can_judge:
        return [*measured.words(), "this model cannot judge: verification.judge auto is builtin for it"]
    return [*measured.words(), "this model can judge: verification.judge auto and writer ask it"]
