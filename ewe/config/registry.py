"""Factories by the names that settings accept: those of this package, of the program, and of installed plugins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from inspect import Parameter, signature
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from ewe.config.setting_names import AUTO, NONE, unknown
from ewe.errors import ConfigError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Factory = Callable[..., Any]


class Registry:
    """The factories of one kind of part.

    what: the kind, in messages. group: the entry points with which a package adds to it. builtin: name ->
    "module:attribute", imported when it is asked for; a plugin cannot take such a name. others: what the setting
    accepts beside names of factories. removed: names of earlier versions -> what to use in their place. former_group:
    entry points of earlier versions, which are refused by name.
    """

    def __init__(
        self,
        what: str,
        group: str,
        builtin: Mapping[str, str],
        others: tuple[str, ...] = (),
        removed: Mapping[str, str] | None = None,
        former_group: str = "",
    ) -> None:
        self._what, self._group, self._others, self._removed = what, group, others, dict(removed or {})
        self._builtin = dict(builtin)
        self._former_group = former_group
        self._registered: dict[str, Factory] = {}

    def register(self, name: str) -> Callable[[Factory], Factory]:
        """A decorator that adds a factory for this process. Raises ConfigError for a name that is taken."""
        if name in self:
            raise ConfigError(f"there is a {self._what} {name!r} already: choose another name")

        def add(factory: Factory) -> Factory:
            self._registered[name] = factory
            return factory

        return add

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._builtin, *self._registered, *self._plugins())))

    def __contains__(self, name: object) -> bool:
        return name in self._builtin or name in self._registered or name in self._plugins()

    @property
    def names(self) -> tuple[str, ...]:
        """All that the setting accepts."""
        return tuple(dict.fromkeys((*self, *self._others)))

    def check(self, name: str) -> str:
        """The name itself; raises ConfigError with the known ones if the setting does not accept it."""
        if name not in self and name not in self._others:
            raise ConfigError(self.unknown(name))
        return name

    def unknown(self, name: object) -> str:
        """What to tell who named something that is not known, or not any more."""
        if name in self._removed:
            return f"the {self._what} {name!r} was removed: use {self._removed[str(name)]}"
        if self._former_group and name in self._plugins(self._former_group):
            return (
                f"the {self._what} {name!r} is registered under {self._former_group}, which is gone: write it as a "
                f"generator and register that under {self._group} (docs/guides/plugins.md)"
            )
        return unknown(self._what, name, self.names)

    def is_removed(self, name: object) -> bool:
        """Whether an earlier version had this name and nothing has it now."""
        return name in self._removed and name not in self

    def get(self, name: str) -> Factory:
        """The factory of this name, imported if it is not yet. Raises ConfigError for an unknown name."""
        if name in self._builtin:
            factory: Factory = resolve_name(self._builtin[name])
            return factory
        return self._registered[name] if name in self._registered else self._load(name)

    def make(self, name: str, **given: Any) -> Any:
        """What the factory makes; it is handed those of `given` that its parameters name. Raises ConfigError."""
        return self.get(name)(**{key: value for key, value in given.items() if self.takes(name, key)})

    def takes(self, name: str, parameter: str) -> bool:
        """Whether the factory of this name has such a parameter. Raises ConfigError for an unknown name."""
        parameters = signature(self.get(name)).parameters
        takes_all = any(one.kind is Parameter.VAR_KEYWORD for one in parameters.values())
        return takes_all or parameter in parameters

    def _plugins(self, group: str = "") -> dict[str, EntryPoint]:
        from importlib.metadata import entry_points  # 20 ms that settings with built-in names do not need

        return {point.name: point for point in entry_points(group=group or self._group)}

    def _load(self, name: str) -> Factory:
        plugin = self._plugins().get(name)
        if plugin is None:
            raise ConfigError(self.unknown(name))
        try:
            factory: Factory = plugin.load()
        except Exception as error:  # a plugin is anybody's code
            package = plugin.dist.name if plugin.dist else plugin.module
            raise ConfigError(
                f"{self._what} {name!r} of the package {package} cannot be loaded: {type(error).__name__}: {error}"
            ) from error
        return factory


BUILTIN_DATASTORE = "ewe.evaluation.world.builtin:builtin_datastore"

RETRIEVERS = Registry(
    "retriever",
    "ewe.retrievers",
    {
        "bm25": "ewe.retrieval.bm25:BM25Retriever",
        "dense": "ewe.retrieval.open_retriever:make_dense",
        "hybrid": "ewe.retrieval.open_retriever:make_hybrid",
    },
    (AUTO,),
)
VERIFIERS = Registry(
    "verifier",
    "ewe.verifiers",
    {
        "claims": "ewe.verification.open_verifier:make_claim_verifier",
        "builtin": "ewe.evaluation.world.verifier:make_world_verifier",
    },
    (AUTO, NONE),
    {"values": "claims"},
)
EXTRACTORS = Registry(
    "extractor",
    "ewe.extractors",
    {"sentences": "ewe.verification.extraction.whole_sentences:WholeSentences"},
    ("openai:MODEL@URL",),
)
JUDGES = Registry(
    "judge",
    "ewe.judges",
    {
        "builtin": "ewe.verification.judges.builtin_judge:load_builtin",
        "base": "ewe.verification.judges.base:load_base",
        "reader": "ewe.verification.judges.base:load_reader",
        "writer": "ewe.verification.judges.writer:load_writer",
    },
    (AUTO, "a model's folder or hub id", "openai:MODEL@URL"),
    {"values": "builtin"},
)
SCORERS = Registry(
    "scorer",
    "ewe.scorers",
    {
        "default": "ewe.longterm.scoring.scorers:DefaultScorer",
        "verimem": "ewe.longterm.scoring.scorers:VeriMemScorer",
        "verimem-a": "ewe.longterm.scoring.scorers:VeriMemScorer",
        "verimem-b": "ewe.longterm.scoring.scorers:VeriMemScorer",
        "mma": "ewe.longterm.scoring.scorers:MMAScorer",
        "mark": "ewe.longterm.scoring.scorers:MARKScorer",
        "mark-settled": "ewe.longterm.scoring.scorers:SettledMARKScorer",
        "none": "ewe.longterm.scoring.scorers:NoScorer",
    },
)
POLICIES = Registry(
    "policy",
    "ewe.policies",
    {
        "ewe": "ewe.policies.ewe:ewe",
        "rag": "ewe.policies.rag:rag",
        "flare": "ewe.policies.flare:flare",
        "plain": "ewe.policies.plain:plain",
        "nest": "ewe.policies.nest:nest",
        "dragin": "ewe.policies.dragin:dragin",
        "ra": "ewe.policies.ra:ra",
        "cove": "ewe.policies.cove:cove",
        "cove+retrieval": "ewe.policies.cove:cove_with_retrieval",
        "self-rag-like": "ewe.policies.self_rag_like:self_rag_like",
        "rewrite-after": "ewe.policies.rewrite_after:rewrite_after",
    },
    former_group="ewe.pipelines",
)


def verifies(policy: str) -> bool:
    """Whether a policy of this name has sentences checked. Raises ConfigError for an unknown name."""
    return bool(getattr(POLICIES.get(policy), "verifies", False))
