"""Settings of what the engine knows beside its model: passages, judges, memories that last."""

import json
from typing import Annotated, Literal, TypeGuard
from urllib.parse import parse_qsl, urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from ewe.config.config_files import Settings
from ewe.config.registry import RETRIEVERS, SCORERS
from ewe.config.setting_names import AUTO
from ewe.errors import ConfigError

SEARCH_TOP_K = 5
"""Memories that a search brings at most, wherever nobody says how many."""
_DATE = r"^(\d{4}(-\d{2}(-\d{2})?)?)?$"


def _texts(value: object) -> object:
    """One value or several, numbers and truth values as JSON writes them."""
    items = value if isinstance(value, list | tuple) else [value]
    return tuple(json.dumps(item) if isinstance(item, int | float) else item for item in items)


class FilterConfig(Settings):
    """Which passages may be found: conditions that all hold, those left empty aside.

    sources: only these; without: not these. since and until: ISO dates, both included; a passage without a date meets
    neither. url_prefix: how its address begins. min_veracity: in [0, 1]. where: values of the passages' further fields,
    by name: of each field one that is listed.
    """

    sources: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    since: str = Field("", pattern=_DATE)
    until: str = Field("", pattern=_DATE)
    url_prefix: str = ""
    min_veracity: float = Field(0.0, ge=0, le=1)
    where: dict[str, Annotated[tuple[str, ...], BeforeValidator(_texts)]] = Field(default_factory=dict)

    def __hash__(self) -> int:
        return hash(self.model_dump_json())  # settings may be keys, and a dict has no hash


class RetrievalConfig(Settings):
    """How passages are found in the datastore.

    retriever: "auto" is hybrid (BM25 and dense) if a sentence encoder is installed and the passages have vectors or are
    few, else BM25. encoder, reranker: a hub id or a folder; None: all-MiniLM-L6-v2, and no reranking. recall: the share
    of the exact result that an approximate index has to find. sources: a table of veracities per source (YAML or CSV);
    half_life_days: the age at which one counts half; agreement: whether those found together vouch for each other.
    """

    retriever: Annotated[str, AfterValidator(RETRIEVERS.check)] = "auto"
    encoder: str | None = None
    index: Literal["auto", "flat", "ivf", "hnsw", "pq"] = "auto"
    recall: float = Field(0.95, gt=0, le=1)
    query_prefix: str = ""
    passage_prefix: str = ""
    reranker: str | None = None
    filters: FilterConfig = FilterConfig()
    sources: str | None = None
    half_life_days: float | None = Field(None, gt=0)
    agreement: bool = False


class VerificationConfig(Settings):
    """How claims are judged, for the verifier "claims" ("builtin" uses evidence_top_k only).

    judge: "auto" ("builtin"; and while a model writes, the model itself for what that leaves open, if it was measured
    to be able to; on a GPU it is measured at its first start), "builtin", "base", "reader", "writer" (the model that
    writes, or an error if it was not measured or cannot), a hub id or folder of a classification model, a folder with
    an adapter for a chat model, or "openai:MODEL@URL". judge_labels: what that model's labels mean, where they do not
    say it. judge_model: the folder or hub id of the chat model under an adapter, in place of the one that it names; of
    "writer", in place of the one that writes. judge_calibration: what was measured of "writer" (None: the file in the
    cache folder). extractor: "sentences" (the clauses of each are claims), or "openai:MODEL@URL". evidence_top_k:
    passages per claim (None: the verifier's own number).
    """

    judge: str = AUTO
    judge_labels: dict[str, Literal["supported", "refuted", "inconclusive"]] | None = None
    judge_model: str | None = None
    judge_calibration: str | None = None
    extractor: str = "sentences"
    evidence_top_k: int | None = Field(None, gt=0)


def is_postgres(path: object) -> TypeGuard[str]:
    """Whether this is the URL of a store in PostgreSQL. Raises ConfigError, without repeating it, for a password."""
    if not isinstance(path, str) or not path.startswith(("postgresql://", "postgres://")):
        return False
    parts = urlsplit(path)
    if parts.password is not None or any(key.endswith("password") for key, _ in parse_qsl(parts.query)):
        raise ConfigError("the URL of a store must hold no password: put it into PGPASSWORD or ~/.pgpass")
    return True


def _without_password(path: str | None) -> str | None:
    is_postgres(path)
    return path


class LongTermConfig(Settings):
    """Memories that last across requests, beside a datastore or instead of one.

    path: the folder of their store, or postgresql://USER@HOST/DATABASE, made if missing (None: none). user, agent:
    whose they are where a request does not say. scorer: how far they are believed. threshold: the veracity asked for
    (None: theta(q)). top_k: most per retrieval. promote: whether what a check supported becomes one. extractor: what
    takes facts from users' messages. judge_turns: whether the judge of claims compares what people say in
    conversations, too. review_every: seconds between reviews (None: none).
    """

    path: Annotated[str | None, AfterValidator(_without_password)] = None
    user: str = ""
    agent: str = ""
    scorer: Annotated[str, AfterValidator(SCORERS.check)] = "default"
    threshold: float | None = Field(None, ge=0, le=1)
    top_k: int = Field(2, gt=0)
    promote: bool = False
    extractor: Literal["rules", "model"] = "rules"
    judge_turns: bool = False
    review_every: float | None = Field(None, gt=0)
