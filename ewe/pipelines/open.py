"""Which pipeline a policy's name stands for."""

from __future__ import annotations

from collections.abc import Callable

from ewe.assembly import Engine
from ewe.config import Config
from ewe.engine.sequence import Sequence
from ewe.pipelines.cove import ChainOfVerification
from ewe.pipelines.dragin import DRAGIN
from ewe.pipelines.driver import Do, PipelineDriver
from ewe.pipelines.ra import RetrievalInPrompt
from ewe.pipelines.rewrite_after import RewriteAfter
from ewe.pipelines.self_rag_like import SelfRAGLike
from ewe.pipelines.steps import Pipeline
from ewe.types import Generation


def make_pipeline(config: Config) -> Pipeline:
    """The pipeline of the settings' policy. Without the components that it asks for its retrievals find nothing."""
    settings = config.pipeline
    makers: dict[str, Callable[[], Pipeline]] = {
        "ra": lambda: RetrievalInPrompt(settings.passages),
        "dragin": lambda: DRAGIN(settings),
        "cove": lambda: ChainOfVerification(settings, retrieves=False),
        "cove+retrieval": lambda: ChainOfVerification(settings, retrieves=True),
        "self-rag-like": lambda: SelfRAGLike(settings),
        "rewrite-after": lambda: RewriteAfter(settings),
    }
    return makers[config.policy]()


def open_pipeline(engine: Engine, do: Do, deliver: Callable[[Sequence, Generation], None]) -> PipelineDriver:
    """What runs the engine's policy. do: has the engine's thread call something; deliver: takes finished answers."""
    return PipelineDriver(make_pipeline(engine.config), engine, do, deliver)
