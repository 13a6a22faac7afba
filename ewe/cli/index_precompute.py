"""`ewe index precompute`: a datastore's passages as encoded units on disk."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from ewe.cli.engine import settings_of
from ewe.cli.index_report import indexing
from ewe.cli.options import Adapter, ConfigFile, Model, Settings
from ewe.cli.prompts import read_text
from ewe.cli.terminal import say
from ewe.config import Config
from ewe.config.memory_mark import PlacedPrompt
from ewe.open_datastore import open_passages
from ewe.text.words import counted
from ewe.types import Passage


def precompute_command(
    store: Annotated[
        str,
        typer.Argument(
            help="builtin, the folder of a datastore, or a JSONL file of passages.",
            metavar="DATASTORE",
            show_default=False,
        ),
    ],
    out: Annotated[str, typer.Option("--out", help="Folder of the units, or a URL: s3://...", show_default=False)],
    model: Model = None,
    adapter: Adapter = None,
    config: ConfigFile = None,
    settings: Settings = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            help="Only passages found by these queries: a text file, one query per line.",
            exists=True,
            dir_okay=False,
            show_default=False,
        ),
    ] = None,
    system: Annotated[
        str, typer.Option(help="For chats that begin with this system message.", show_default=False)
    ] = "",
    top: Annotated[
        int | None, typer.Option(min=1, help="With --queries: only this many, those found most often.")
    ] = None,
) -> None:
    """Encode passages once, for engines to load; run again to continue after an interruption.

    Units of chat models are encoded for their position inside a chat, unless memory.placement is bare.
    Model and settings must be those of the engine, which loads the units with --set memory.precomputed=FOLDER.
    """
    from ewe.engine.models.loader import load_model
    from ewe.engine.startup.precompute import precompute

    if top is not None and queries is None:
        raise typer.BadParameter("name the queries that say which passages count: --queries FILE", param_hint="--top")
    chosen = settings_of(model, config, settings, adapter=adapter)
    passages = _passages(store, chosen, queries, top)
    loaded = load_model(chosen.model)
    with indexing("encoding") as show:
        report = precompute(loaded, chosen, passages, out, show, _prefix(loaded.tokenizer, chosen, system))
    for name in report.skipped:
        say(f"passage {name} makes no unit and was left out")
    there = f", {report.existing} were there already" if report.existing else ""
    print(f"{counted(report.encoded, 'unit')} encoded{there}: {report.num_bytes / (1 << 20):.1f} MiB in {out}")
    print(f"use them with --set memory.precomputed={out}")


def _prefix(tokenizer: Any, config: Config, system: str) -> str:
    """What stands before the memory in chats with the model; empty where units are bare."""
    from ewe.text.tool_calls.memory_place import MemoryPlace
    from ewe.text.tool_calls.template import ChatTemplate

    if getattr(tokenizer, "chat_template", None) is None:
        return ""
    messages = [{"role": "system", "content": system}] if system else []
    place = MemoryPlace(ChatTemplate(tokenizer, config.model.name), tokenizer, config)
    prompt = place.prompt([*messages, {"role": "user", "content": "Hello."}])
    return prompt.before if isinstance(prompt, PlacedPrompt) else ""


def _passages(store: str, config: Config, queries: Path | None, top: int | None) -> Iterable[Passage]:
    from ewe.retrieval.open_retriever import open_retriever

    source = open_passages(store)
    if queries is None:
        return (passage for _, passage in source.scan())
    lines = [line.strip() for line in read_text(queries, "--queries").splitlines() if line.strip()]
    if not lines:
        raise typer.BadParameter(f"{queries} holds no query", param_hint="--queries")
    counts: Counter[Passage] = Counter()
    for results in open_retriever(source, config.retrieval).retrieve(lines, config.feedback.retrieval_top_k):
        counts.update(result.passage for result in results)
    return [passage for passage, _ in counts.most_common(top)]
