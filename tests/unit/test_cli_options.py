"""Options that belong together, as one parameter of a command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from ewe.cli.options import EngineOptions, expand_groups


@dataclass(frozen=True)
class Place:
    city: Annotated[str, typer.Option(help="Where.")] = "Oslo"
    floor: Annotated[int | None, typer.Option("--level")] = None


def test_a_group_stands_for_its_fields_between_the_other_parameters() -> None:
    seen: list[object] = []

    def visit(
        *, guest: Annotated[str, typer.Argument()], place: Place, nights: Annotated[int, typer.Option()] = 1
    ) -> None:
        seen.append((guest, place, nights))

    app = typer.Typer(add_completion=False)
    app.command()(expand_groups(visit))
    assert CliRunner().invoke(app, ["Ada", "--level", "3"]).exit_code == 0
    assert CliRunner().invoke(app, ["Ada", "--city", "Bergen", "--nights", "2"]).exit_code == 0
    assert seen == [("Ada", Place("Oslo", 3), 1), ("Ada", Place("Bergen"), 2)]
    options = [parameter.name for parameter in typer.main.get_command(app).params]
    assert options == ["guest", "city", "floor", "nights"]


def test_named_settings_come_before_those_of_set() -> None:
    options = EngineOptions(adapter="no", policy="rag", settings=["policy=plain", "cache.num_blocks=8"])
    assert options.assignments == ["model.adapter='no'\n", "policy=rag\n...\n", "policy=plain", "cache.num_blocks=8"]
    assert EngineOptions().assignments == []
