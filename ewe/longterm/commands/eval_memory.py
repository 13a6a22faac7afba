"""`ewe eval memory`: what the papers on long-term memory measure, for each scorer of memories."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ewe.cli import options
from ewe.cli.findings_file import FigureOptions, FindingsFile, recording
from ewe.cli.terminal import output_console
from ewe.errors import ConfigError

if TYPE_CHECKING:
    from ewe.longterm.evaluation.answerers import ChatModel
    from ewe.longterm.evaluation.bench import Bench, Finding, Row, Setup

BenchName = Literal["mma-bench", "selective", "verimem", "mark"]
_MODULES = {  # each has open_benches(setup)
    "mma-bench": "ewe.longterm.evaluation.mma_bench",
    "selective": "ewe.longterm.evaluation.selective",
    "verimem": "ewe.longterm.evaluation.verimem_bench",
    "mark": "ewe.longterm.evaluation.mark_bench",
}

_MMA = "oracle,none,mma,mma judged,mma kinds,mma st,mma cs,mma tc,verimem,mark,default,coin"
_SYSTEMS = {  # by default
    "mma-bench": _MMA,
    "selective": _MMA,
    "verimem": "oracle,no memory,rag,none,verimem,verimem fixed threshold,verimem no uncertainty,"
    "verimem no lookup,verimem static,verimem-a,verimem-b,mma,mark,default,default fixed threshold,coin",
    "mark": "no memory,none,mark,mark settled,mark core_blend,mark similarity_freshness,mark popularity_similarity,"
    "mark feedback_freshness,mark similarity_feedback,mark balanced,mark similarity,mark as written,default,oracle",
}


def memory(
    *,
    bench: Annotated[BenchName, typer.Option(help="The benchmark, named after its paper.", show_default=False)],
    model: Annotated[
        str | None,
        typer.Option(
            help="The answering model: openai:MODEL@URL, or a model for the engine.",
            show_default="an exact reader of the world",
        ),
    ] = None,
    systems: Annotated[
        str | None,
        typer.Option(help="Systems to compare, comma-separated.", show_default="those that the paper compares"),
    ] = None,
    cases: Annotated[int | None, typer.Option(min=1, help="Number of cases.", show_default="the bench's own")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed for generation and sampling.")] = 0,
    data: Annotated[
        Path | None, typer.Option(help="A case file of MMA-Bench, or the folder of the public sets.", exists=True)
    ] = None,
    images: Annotated[
        Path | None,
        typer.Option(
            help="Show the model images (drawn into this folder) instead of captions.",
            exists=True,
            file_okay=False,
        ),
    ] = None,
    output: options.OutputFile = None,
    figures: FigureOptions,
) -> None:
    """Compare memory systems on conversations and questions about them."""
    from ewe.longterm.evaluation.answerers import open_model
    from ewe.longterm.evaluation.bench import Finding, Setup, summarise

    if images is not None and (model is None or bench != "mma-bench"):
        raise ConfigError(
            "--images draws the pictures of mma-bench for a model that sees them: name it (--bench mma-bench --model "
            "openai:MODEL@URL); without --images pictures are told in words"
        )
    setup = Setup(cases, seed, data, images)
    names = [name.strip() for name in (systems or _SYSTEMS[bench]).split(",") if name.strip()]
    named = {"data": data and data.name, "model": Path(model).name if model and Path(model).exists() else model}
    settings = {"bench": bench, "cases": cases, "seed": seed, "images": images is not None, **named}
    benches: list[Bench] = import_module(_MODULES[bench]).open_benches(setup)
    with (
        closing(FindingsFile(output, settings, [Finding])) as findings,
        nullcontext() if model is None else open_model(model, benches[0].answer_tokens) as chat,
    ):
        for one in benches:
            _play(one, names, chat, setup, findings)
    rows = {one.name: summarise(one, names, findings.records) for one in benches}
    _tell(benches, rows, settings, figures)
    for one in benches:
        if own := figures.plot_of(one.name.replace(" ", "-"), len(benches)):
            one.plot([finding for finding in findings.records if finding.bench == one.name], own)


def _play(
    bench: Bench, systems: Sequence[str], chat: ChatModel | None, setup: Setup, findings: FindingsFile[Finding]
) -> None:
    from ewe.longterm.evaluation.answerers import ModelAnswerer
    from ewe.longterm.evaluation.bench import run

    answerer = bench.reader if chat is None else ModelAnswerer(chat, setup.images is not None)
    if answerer is None:
        raise ConfigError(f"{bench.name} has no exact reader: name who answers with --model")
    own = [finding for finding in findings.records if finding.bench == bench.name]
    with recording(findings, bench.name, len(systems) * len(bench.items), len(own)) as take:
        run(bench, systems, answerer, own, take)


def _tell(
    benches: Sequence[Bench], rows: dict[str, list[Row]], settings: dict[str, Any], figures: FigureOptions
) -> None:
    from ewe.evaluation.tables import markdown_table, rich_table

    figures_of = {name: [asdict(row) for row in own] for name, own in rows.items()}
    simulated = [bench.name for bench in benches if bench.simulated]
    figures.write({"benches": figures_of, "simulations": simulated, "settings": settings})
    for bench in benches:
        titles, cells = ["system", "items", *bench.columns.values()], [row.cells() for row in rows[bench.name]]
        if figures.markdown:
            print(f"{bench.title}\n\n{markdown_table(titles, cells)}\n")
        else:
            output_console().print(rich_table(titles, cells, f"{bench.title}; 95% intervals in brackets"))
