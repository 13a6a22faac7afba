"""Runs a factuality evaluation and shows what it came to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ewe.cli import options

if TYPE_CHECKING:
    from ewe.config import Config
    from ewe.eval.factuality import Record
    from ewe.eval.factuality_report import Report
    from ewe.eval.factuality_run import Job
    from ewe.eval.graders import Part
    from ewe.eval.prompt_sets import PromptSet
    from ewe.eval.systems import Sweep
    from ewe.sampling import SamplingParams
    from ewe.verification.endpoint.protocol import Completer


@dataclass(slots=True)
class Evaluation:
    """Systems, prompts and how answers are sampled. configs: the settings of each system by its name."""

    config: Config
    sweep: Sweep
    params: SamplingParams
    prompts: PromptSet
    baseline: str
    configs: dict[str, Config]
    settings: dict[str, Any] = field(default_factory=dict)
    records: list[Record] = field(default_factory=list)

    @classmethod
    def of(
        cls, config: Config, sweep: Sweep, params: SamplingParams, prompts: PromptSet, baseline: str | None
    ) -> Evaluation:
        """Raises ConfigError for settings that cannot be, or a baseline that is no system."""
        from ewe.components import preflight
        from ewe.errors import ConfigError
        from ewe.vocabulary import unknown

        configs = {system.name: config.override(system.settings) for system in sweep.systems}
        chosen = baseline or ("plain" if "plain" in configs else sweep.systems[0].name)
        if chosen not in configs:
            raise ConfigError(unknown("baseline", chosen, list(configs)))
        for one in configs.values():
            preflight(one)
        return cls(config, sweep, params, prompts, chosen, configs)

    def run(
        self,
        parts: Sequence[Part],
        judges: Mapping[str, Any],
        shard: str,
        output: Path | None,
        comparer: Completer | None = None,
    ) -> None:
        """Makes whatever `output` does not hold yet. Raises InvalidRequestError for a file of another evaluation."""
        from ewe.cli.findings_file import FindingsFile
        from ewe.eval.factuality import RECORDS
        from ewe.eval.factuality_run import Job

        self.settings = self._written_with(judges, shard)
        job = Job(self.config, self.sweep.systems, parts, self.params, self.baseline, comparer)
        with closing(FindingsFile(output, self.settings, RECORDS)) as findings:
            self.records = findings.records
            _run(job, findings.records, findings.add)

    def show(self, json_file: Path | None, plot: Path | None, markdown: bool) -> None:
        """The table of what is there."""
        from ewe.eval.factuality_report import Run, reports_of

        show(reports_of([Run("this run", self.settings, self.records)]), json_file, plot, markdown)

    def _written_with(self, judges: Mapping[str, Any], shard: str) -> dict[str, Any]:
        from ewe.cli.asking import PromptForm
        from ewe.cli.findings_file import run_settings

        prompts, form = self.prompts, PromptForm()
        systems = {
            system.name: {
                "series": system.series,
                "x": system.x,
                "settings": run_settings(self.configs[system.name], self.params, form, None),
            }
            for system in self.sweep.systems
        }
        return {
            "set": {"name": prompts.name, "prompts": len(prompts.items), "k": prompts.k, "content": prompts.digest},
            "judges": dict(judges),
            "systems": systems,
            "baseline": self.baseline,
            "axis": self.sweep.axis,
            "shard": shard,
        }


def _run(job: Job, records: Sequence[Record], add: Any) -> None:
    """Runs what the records lack, under a progress bar."""
    from ewe.cli.terminal import progress_bar
    from ewe.eval.factuality import Found
    from ewe.eval.factuality_run import run

    found = Found.of(records)
    with progress_bar() as progress:
        task = progress.add_task("answers", total=job.total(), completed=found.num_finished)

        def take(record: Record) -> None:
            add(record)
            progress.update(task, advance=1, description=f"{type(record).__name__.lower()}s, {record.system}")

        run(job, found, take)


def show(reports: Sequence[Report], json_file: Path | None, plot: Path | None, markdown: bool) -> None:
    """Tables on standard output; figures as JSON, and a plot per prompt set, into files."""
    from ewe.cli.collect_env import environment
    from ewe.cli.terminal import output_console
    from ewe.eval.factuality_table import markdown_table, rich_table, save_plot

    if json_file is not None:
        document = {"reports": [asdict(report) for report in reports], "environment": environment()}
        json_file.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    for report in reports:
        if plot is not None:
            save_plot(report, plot if len(reports) == 1 else plot.with_stem(f"{plot.stem}-{report.name}"))
        if markdown:
            print(markdown_table(report))
        else:
            output_console().print(rich_table(report), *report.notes, sep="\n", markup=False)


def report(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="What --output of `ewe eval` wrote: shards, models, sets.")
    ],
    baseline: Annotated[
        str | None, typer.Option(help="The system that others are compared with.", show_default="that of the runs")
    ] = None,
    json_file: options.FiguresFile = None,
    plot: options.PlotFile = None,
    markdown: options.Markdown = False,
) -> None:
    """Put the files of finished or unfinished evaluations into one table per prompt set."""
    from ewe.cli.findings_file import read_findings
    from ewe.errors import InvalidRequestError
    from ewe.eval.factuality import RECORDS
    from ewe.eval.factuality_report import Run, reports_of

    runs = []
    for path in dict.fromkeys(files):
        settings, records, _ = read_findings(path, RECORDS)
        if not records or "systems" not in settings:
            raise InvalidRequestError(f"{path} holds no answer of `ewe eval factuality` or `ewe eval world`")
        runs.append(Run(str(path), settings, records))
    show(reports_of(runs, baseline), json_file, plot, markdown)
