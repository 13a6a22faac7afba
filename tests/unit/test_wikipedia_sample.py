"""The datastore of real text that is part of the package: whole, small, and with its origin beside it."""

from __future__ import annotations

from pathlib import Path

from ewe.config import RetrievalConfig
from ewe.open_datastore import open_passages
from ewe.retrieval import open_retriever as module
from ewe.retrieval.open_retriever import open_retriever

FOLDER = Path(module.__file__).parent / "wikipedia_sample"


def test_every_passage_says_where_it_comes_from():
    passages = [passage for _, passage in open_passages("wikipedia-sample").scan()]
    titles = {passage.title for passage in passages}
    assert len(passages) == len({passage.id for passage in passages}) == 492
    assert len(titles) == 48
    assert {passage.source for passage in passages} == {"Wikipedia"}
    assert all(passage.url.startswith("https://en.wikipedia.org/wiki/") for passage in passages)
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 1_000_000
    readme = " ".join((FOLDER / "README.md").read_text().split())
    assert "creativecommons.org/licenses/by-sa/4.0" in readme
    assert all(f"[{passage.title}]({passage.url})" in readme for passage in passages)


def test_it_is_searched_by_its_name():
    retriever = open_retriever("wikipedia-sample", RetrievalConfig(retriever="bm25"))
    [found] = retriever.retrieve(["Who invented packet switching?"], 3)
    assert found[0].passage.title == "Packet switching"
