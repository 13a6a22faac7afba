"""A factuality evaluation: who grades it, its run, and what it came to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ewe.cli.findings_file import (
    FigureOptions,
    FindingsFile,
    content_digest,
    read_findings,
    recording,
    refuse_differences,
    run_settings,
)
from ewe.cli.terminal import output_console
from ewe.components import open_checker, writing_judge
from ewe.config import Config
from ewe.config.setting_names import unknown
from ewe.engine.startup.preflight import preflight
from ewe.errors import ConfigError, InvalidRequestError
from ewe.evaluation.factuality import RECORDS, Answer, Found
from ewe.evaluation.prompt_sets import PromptSet
from ewe.evaluation.systems import Sweep
from ewe.open_datastore import open_datastore
from ewe.types.sampling_params import SamplingParams

if TYPE_CHECKING:
    from ewe.evaluation.graders import Grader, Part
    from ewe.evaluation.merged_runs import Run
    from ewe.verification.endpoint.protocol import Completer

_judging = partial(typer.Option, rich_help_panel="Judges")


@dataclass(slots=True)
class Judges:
    """Options that say who grades, and by what; same: whether a judge may grade that checked the writing."""

    judge: Annotated[
        str,
        _judging(help="Grades claims: builtin, base, a folder or hub id, or openai:MODEL@URL.", show_default=False),
    ]
    claims: Annotated[
        str | None,
        _judging(
            help="Finds claims: sentences (each is one), or openai:MODEL@URL.",
            show_default="the judge, if it is at an URL, else sentences",
        ),
    ] = None
    evidence: Annotated[str, _judging(help="The judge's datastore.", show_default="--datastore")] = ""
    compare: Annotated[str | None, _judging(help="Judge that decides which answer is better: openai:MODEL@URL.")] = None
    same: Annotated[bool, _judging("--same-judge", help="Allow the judge that checked the answers to grade them.")] = (
        False
    )

    def check(self, configs: Iterable[Config]) -> None:
        """Refuses, before anything is written, judges that are missing, cannot be had, or check what they grade.

        configs: those of all systems. `same` is afterwards whether the judge really is the same. Raises ConfigError and
        JudgeError.
        """
        from ewe.verification.open_verifier import check_verifier

        if not self.judge:
            raise ConfigError("name who grades the answers with --judge: base, a model's folder, or openai:MODEL@URL")
        if not self.evidence:
            raise ConfigError("the judge needs evidence: give --evidence or --datastore")
        check_verifier("claims", True, self._settings().verification, "auto")
        self.open_comparer()
        writing = {writing_judge(config) for config in configs}
        both = sorted({self.judge, self.compare or self.judge} & writing)
        if both and not self.same:
            raise ConfigError(
                f"{both[0]} also checks sentences while they are written, so its grades would flatter those systems: "
                "choose another --judge (or verification.judge), or say --same-judge"
            )
        self.same = bool(both)

    def as_settings(self) -> dict[str, Any]:
        """What grades depend on."""
        return {
            "judge": self.judge,
            "claims": self._settings().verification.extractor,
            "evidence": self.evidence,
            "evidence_content": content_digest(self.evidence),
            "compare": self.compare,
            "same": self.same,
        }

    def open_grader(self, config: Config) -> Grader:
        """The judge over its evidence, searched as the engine's settings say."""
        from ewe.evaluation.graders import JudgeGrader

        retriever, _ = open_datastore(self.evidence, config.retrieval)
        assert retriever is not None
        return JudgeGrader(open_checker(self._settings(), retriever))

    def open_comparer(self) -> Completer | None:
        """What says which answer is better."""
        from ewe.verification.endpoint import open_endpoint

        return None if self.compare is None else open_endpoint(self.compare)

    def _settings(self) -> Config:
        from ewe.verification.endpoint import is_endpoint

        extractor = self.claims or (self.judge if is_endpoint(self.judge) else "sentences")
        return Config.from_mapping({"verification": {"judge": self.judge, "extractor": extractor}})


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Systems, prompts and how answers are sampled. configs: the settings of each system by its name."""

    config: Config
    sweep: Sweep
    params: SamplingParams
    prompts: PromptSet
    baseline: str
    configs: dict[str, Config]

    @classmethod
    def of(
        cls, config: Config, sweep: Sweep, params: SamplingParams, prompts: PromptSet, baseline: str | None
    ) -> Evaluation:
        """Raises ConfigError for settings that cannot be, or a baseline that is no system."""
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
        answers: Path | None = None,
    ) -> Run:
        """Makes whatever `output` does not hold yet. Raises InvalidRequestError for a file of another evaluation.

        answers: an earlier run's file, whose answers are taken over where prompts and settings are the same.
        """
        from ewe.evaluation.factuality_run import Job, run
        from ewe.evaluation.merged_runs import Run

        settings = self._written_with(judges, shard)
        job = Job(self.config, self.sweep.systems, parts, self.params, self.baseline, comparer)
        with closing(FindingsFile(output, settings, RECORDS)) as findings:
            recorded = Found.of(findings.records)
            prompts = {item.id for part in parts for item in part.items}
            for one in [] if answers is None else _answers_of(answers, settings):
                if one.prompt in prompts and (one.system, one.prompt) not in recorded.answers:
                    findings.add(one)
                    recorded.add(one)
            others = job.total_answers() - len(recorded.answers) - 1
            with recording(findings, "answers and grades", job.total(), recorded.num_finished, others) as take:
                run(job, recorded, take)
        return Run("this run", settings, findings.records)

    def refuse_other(self, judges: Mapping[str, Any], shard: str, output: Path | None) -> None:
        """Raises InvalidRequestError for a file of another evaluation, before anything is loaded for this one."""
        if output is not None and output.exists() and output.stat().st_size:
            refuse_differences(output, read_findings(output, RECORDS)[0], self._written_with(judges, shard))

    def _written_with(self, judges: Mapping[str, Any], shard: str) -> dict[str, Any]:
        prompts, systems = self.prompts, {}
        for system in self.sweep.systems:
            settings = run_settings(self.configs[system.name], self.params)
            systems[system.name] = {"series": system.series, "x": system.x, "settings": settings}
        return {
            "set": {"name": prompts.name, "prompts": len(prompts.items), "k": prompts.k, "content": prompts.digest},
            "judges": dict(judges),
            "systems": systems,
            "baseline": self.baseline,
            "axis": self.sweep.axis,
            "shard": shard,
        }


def _answers_of(path: Path, settings: Mapping[str, Any]) -> list[Answer]:
    """The answers of an earlier run by systems with the same settings, but for those that could not be had.

    Raises InvalidRequestError if it had other prompts, or all of its systems other settings.
    """
    before, records, _ = read_findings(path, RECORDS)
    if before.get("set", {}).get("content") != settings["set"]["content"]:
        raise InvalidRequestError(f"--answers: {path} holds no answers to these prompts")
    differing = {name: about for name, about in settings["systems"].items() if before["systems"].get(name) != about}
    found = [one for one in records if isinstance(one, Answer) and one.system in settings["systems"]]
    found = [one for one in found if one.system not in differing and not one.error]
    if not found:
        for name in [name for name in differing if name in before["systems"]]:
            advice = "--answers needs the same settings"
            refuse_differences(path, before["systems"][name]["settings"], differing[name]["settings"], advice)
        raise InvalidRequestError(f"--answers: {path} holds no answer of {', '.join(settings['systems'])}")
    return found


def show(runs: Sequence[Run], figures: FigureOptions, baseline: str | None = None) -> None:
    """Tables on standard output; figures as JSON, and a plot per prompt set, into files."""
    from ewe.evaluation.factuality_report import reports_of
    from ewe.evaluation.factuality_table import markdown_table, rich_table, save_plot

    reports = reports_of(runs, baseline)
    figures.write({"reports": [asdict(report) for report in reports]})
    for report in reports:
        if plot := figures.plot_of(report.name, len(reports)):
            save_plot(report, plot)
        if figures.markdown:
            print(markdown_table(report))
        else:
            output_console().print(rich_table(report), *report.notes, sep="\n", markup=False)


def report(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Output files of `ewe eval`: shards, models, sets.")
    ],
    figures: FigureOptions,
    baseline: Annotated[
        str | None, typer.Option(help="The baseline system of the comparison.", show_default="that of the runs")
    ] = None,
) -> None:
    """Combine the files of finished or unfinished evaluations into one table per prompt set."""
    from ewe.evaluation.merged_runs import Run

    runs = []
    for path in dict.fromkeys(files):
        settings, records, _ = read_findings(path, RECORDS)
        if not records or "systems" not in settings:
            raise InvalidRequestError(f"{path} holds no answer of `ewe eval factuality` or `ewe eval world`")
        runs.append(Run(str(path), settings, records))
    show(runs, figures, baseline)
