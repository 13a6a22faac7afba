"""Which pipeline a policy's name stands for."""

from __future__ import annotations

from collections.abc import Callable

from ewe.assembly import Engine
from ewe.config import PipelineConfig
from ewe.engine.sequence import Sequence
from ewe.pipelines.cove import ChainOfVerification
from ewe.pipelines.driver import Do, PipelineDriver
from ewe.registry import PIPELINES
from ewe.types import Generation


def open_pipeline(engine: Engine, do: Do, deliver: Callable[[Sequence, Generation], None]) -> PipelineDriver:
    """What runs the engine's policy. do: has the engine's thread call something; deliver: takes finished answers.

    Without the components that it asks for the pipeline's retrievals find nothing.
    """
    settings = engine.config.pipeline
    pipeline = PIPELINES.make(engine.config.policy, settings=settings, **dict(settings))
    return PipelineDriver(pipeline, engine, do, deliver)


def make_cove(settings: PipelineConfig) -> ChainOfVerification:
    """The policy "cove"."""
    return ChainOfVerification(settings, retrieves=False)


def make_cove_with_retrieval(settings: PipelineConfig) -> ChainOfVerification:
    """The policy "cove+retrieval"."""
    return ChainOfVerification(settings, retrieves=True)
