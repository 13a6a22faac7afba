"""`ewe index push`: a datastore's passages in a store outside this process."""

from contextlib import closing
from typing import Annotated

import typer

from ewe.cli.index_report import indexing
from ewe.cli.options import Settings
from ewe.cli.terminal import say
from ewe.config import Config
from ewe.open_datastore import open_passages
from ewe.text.words import counted


def push_command(
    datastore: Annotated[
        str,
        typer.Argument(help="builtin, the folder of a datastore, or a JSONL file of passages.", show_default=False),
    ],
    address: Annotated[
        str,
        typer.Argument(
            help="Target: milvus+file:FILE.db/NAME, milvus+https://HOST:PORT/NAME, or the same with elasticsearch+ "
            "or opensearch+ and the name of an index. A token or user:password is read from EWE_DATASTORE_TOKEN.",
            show_default=False,
        ),
    ],
    settings: Settings = None,
) -> None:
    """Copy a datastore to Milvus, Elasticsearch or OpenSearch; run again to continue, or to copy changes.

    Vectors are copied if the datastore has them, or with --set retrieval.retriever=hybrid.
    """
    from ewe.retrieval.open_retriever import encoder_for
    from ewe.retrieval.vector_stores.connect import connect
    from ewe.retrieval.vector_stores.push import push

    source = open_passages(datastore)
    encoder, reason = encoder_for(source, Config().override(settings or ()).retrieval)
    with closing(connect(address)) as store, indexing("pushing") as show:
        report = push(source, store, encoder, show)
    there = f", {report.existing:,} were there already" if report.existing else ""
    print(f"{counted(report.pushed, 'passage')} pushed{there}; {report.stored:,} are in {address}")
    others = report.stored - report.pushed - report.existing
    if others:
        say(f"it holds {counted(others, 'passage')} that {datastore} does not; push into a new one to be rid of them")
    if reason:
        say(f"without vectors: {reason}")
    print(f"search them with --set datastore={address}")
