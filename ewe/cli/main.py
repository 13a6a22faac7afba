"""The `ewe` command: its subcommands, its errors and its exit codes."""

import os
import sys
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ewe.cli.batch_run import batch
from ewe.cli.collect_env import collect_env
from ewe.cli.demo import demo
from ewe.cli.eval_factuality import factuality, world
from ewe.cli.eval_qa import qa
from ewe.cli.eval_run import report
from ewe.cli.generate import chat, generate
from ewe.cli.index import index_app
from ewe.cli.judge import judge_app
from ewe.cli.model import doctor, model_app
from ewe.cli.options import expand_groups
from ewe.cli.route import route
from ewe.cli.serve import serve
from ewe.cli.terminal import INTERRUPTED, say
from ewe.cli.validate import validate
from ewe.cli.verify import verify
from ewe.config.addons import longterm
from ewe.errors import EWEError


class _Commands(TyperGroup):
    """Errors of the engine, and files that cannot be read or written, become one line and exit code 2."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (EWEError, OSError) as error:
            if ctx.params.get("debug") or isinstance(error, BrokenPipeError):  # whose reader has seen enough
                raise
            say(f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error))
            raise typer.Exit(2) from error
        except KeyboardInterrupt as interrupt:
            say("interrupted")
            raise typer.Exit(INTERRUPTED) from interrupt


app = typer.Typer(
    name="ewe",
    cls=_Commands,
    help="Language models whose answers are checked while they are generated.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(requested: bool) -> None:
    if requested:
        print(f"ewe {version('ewe-engine')}")
        raise typer.Exit


@app.callback()
def root(
    debug: Annotated[
        bool, typer.Option("--debug", envvar="EWE_DEBUG", help="Show the traceback of an error.", show_envvar=True)
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options that come before the subcommand."""


eval_app = typer.Typer(no_args_is_help=True, help="Evaluate decoding policies, and how well models read memory.")

memories = longterm("commands")

for evaluation in (factuality, world, report, qa, memories.memory, memories.locomo):
    eval_app.command()(expand_groups(evaluation))
for command in (demo, generate, chat, memories.agent, serve, route, batch, verify, doctor, validate, collect_env):
    app.command(command.__name__.replace("_", "-"))(expand_groups(command))
groups = {"index": index_app, "memory": memories.app, "model": model_app, "judge": judge_app, "eval": eval_app}
for name, group in groups.items():
    app.add_typer(group, name=name)


def main() -> None:
    """Entry point of the `ewe` script."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets a question mark, not a crash at the end of a long run.
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    # Bars of a model that loads would stay on the screen above what is printed.
    for name in ("HF_HUB_DISABLE_PROGRESS_BARS", "TQDM_DISABLE"):
        os.environ.setdefault(name, "1")
    app()


if __name__ == "__main__":
    main()
