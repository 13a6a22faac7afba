"""Models that wait until they are needed: made once, and reached by `warm` through whatever stands around them."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from retrieval_bench import HashEncoder, made_up_passages

from ewe.components import Components
from ewe.config import VerificationConfig
from ewe.config.lazy import Lazy, warm
from ewe.errors import JudgeError
from ewe.retrieval.bm25 import BM25Retriever
from ewe.retrieval.dense import DenseRetriever
from ewe.retrieval.hybrid import HybridRetriever
from ewe.retrieval.reranker import Reranked
from ewe.retrieval.veracity import SourceTable, Weighed
from ewe.verification.judges import builtin_judge
from ewe.verification.open_verifier import open_verifier


def test_a_value_is_made_once_whoever_asks() -> None:
    made: list[int] = []

    def make() -> int:
        time.sleep(0.01)  # the others come in meanwhile
        made.append(len(made))
        return made[-1]

    lazy = Lazy(make)
    assert not made
    threads = [threading.Thread(target=lazy.get) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (lazy.get(), made) == (0, [0])


def test_what_making_it_raises_is_raised_again() -> None:
    def fail() -> None:
        raise JudgeError("no judge")

    lazy = Lazy(fail)
    for _ in range(2):
        with pytest.raises(JudgeError, match="no judge"):
            lazy.get()


class Model:
    """Counts how often it is told to load."""

    name = "counting"

    def __init__(self) -> None:
        self.loads = 0

    def warm(self) -> None:
        self.loads += 1


class Encoder(Model, HashEncoder):
    def __init__(self) -> None:
        Model.__init__(self)
        HashEncoder.__init__(self)


def test_what_stands_around_a_model_passes_the_word_on(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("faiss", reason="dense retrieval needs the extra 'dense'")
    encoder, scorer, judge = Encoder(), Model(), Model()
    passages = made_up_passages(4)
    hybrid = HybridRetriever([BM25Retriever(passages), DenseRetriever(passages, encoder)])
    scorer_of_pairs: Any = scorer
    retriever = Weighed(Reranked(hybrid, scorer_of_pairs), SourceTable({}))
    monkeypatch.setattr(builtin_judge, "load_builtin", lambda device: judge.warm() or judge)
    verifier = open_verifier("claims", retriever, VerificationConfig())
    assert (encoder.loads, scorer.loads, judge.loads) == (0, 0, 0)
    steps: list[str] = []
    components = Components(retriever, verifier)
    for _ in range(2):
        components.warm(lambda step: steps.append(str(step)))
    assert (encoder.loads, scorer.loads, judge.loads) == (2, 2, 1)
    assert steps == ["warming the retriever", "warming the verifier"] * 2
    warm(None)
    Components(None, None).warm()
