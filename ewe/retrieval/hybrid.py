"""Several retrievers as one, by reciprocal rank fusion."""

from collections.abc import Sequence

from ewe.config.lazy import warm
from ewe.errors import ConfigError
from ewe.retrieval.source import check_top_k, describe
from ewe.types import ScoredPassage
from ewe.types.protocols import Retriever

# Chosen on every second query of benchmarks/retrieval_recall.py, in the middle of a plateau. The usual 60 with equal
# weights gives ranks 1 to 5 nearly the same score, so that a weak retriever drowns the finds of a strong one.
RANK_OFFSET = 2.0
LEXICAL_AND_DENSE = (1.0, 2.0)
_DEPTH = 100


class HybridRetriever:
    """Reciprocal rank fusion: a passage's score is the sum over retrievers of weight / (k + its rank there).

    Scores lie in (0, sum of weights / (k + 1)], and say how well the retrievers agree on a passage, not how well it
    fits: they cannot tell a good query from a hopeless one. Ranks count from 1; a passage that a retriever does not
    return in its first `depth` adds nothing there. Equal scores go by the best single rank, then by the order of the
    retrievers. Passages are the same if their ids are. weights: None for equal ones; `LEXICAL_AND_DENSE` for BM25 and
    the default encoder. Safe to call from several threads if the retrievers are.

    Raises ConfigError without retrievers, or for weights that are not positive or not one per retriever.
    """

    def __init__(
        self,
        retrievers: Sequence[Retriever],
        weights: Sequence[float] | None = None,
        depth: int = _DEPTH,
    ) -> None:
        self.retrievers = tuple(retrievers)
        self._weights = tuple(weights) if weights is not None else (1.0,) * len(self.retrievers)
        self._depth = depth
        if not self.retrievers:
            raise ConfigError("hybrid retrieval needs at least one retriever")
        if len(self._weights) != len(self.retrievers) or min(self._weights) <= 0:
            raise ConfigError("hybrid retrieval needs one positive weight per retriever")
        self.description = "hybrid: " + " + ".join(describe(retriever) for retriever in self.retrievers)

    def warm(self) -> None:
        """Loads what the retrievers need."""
        for retriever in self.retrievers:
            warm(retriever)

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[ScoredPassage]]:
        """Per query, at most `top_k` passages, best first; raises ValueError if top_k < 1."""
        check_top_k(top_k)
        depth = max(self._depth, top_k)
        rankings = [retriever.retrieve(queries, depth) for retriever in self.retrievers]
        return [fuse(rows, self._weights)[:top_k] for rows in zip(*rankings, strict=True)]


def fuse(
    rankings: Sequence[Sequence[ScoredPassage]], weights: Sequence[float], rank_offset: float = RANK_OFFSET
) -> list[ScoredPassage]:
    """All passages of the rankings (each best first, at most one weight each) with their fused scores, best first."""
    scores: dict[str, float] = {}
    best: dict[str, int] = {}
    passages: dict[str, ScoredPassage] = {}
    for ranking, weight in zip(rankings, weights, strict=True):
        for rank, scored in enumerate(ranking, 1):
            key = scored.passage.id
            scores[key] = scores.get(key, 0.0) + weight / (rank_offset + rank)
            best[key] = min(rank, best.get(key, rank))
            passages.setdefault(key, scored)
    order = sorted(scores, key=lambda key: (-scores[key], best[key]))
    return [ScoredPassage(passages[key].passage, scores[key]) for key in order]
