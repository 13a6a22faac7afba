"""Which pipeline a policy's name stands for.

Owns: this choice. Each pipeline is imported if it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable

from ewe.assembly import Engine
from ewe.config import Config
from ewe.engine.sequence import Sequence
from ewe.pipelines.driver import Do, PipelineDriver
from ewe.pipelines.retrieval_in_prompt import RetrievalInPrompt
from ewe.pipelines.steps import Pipeline
from ewe.types import Generation


def make_pipeline(config: Config) -> Pipeline:
    """The pipeline of the settings' policy. Without the components that it asks for its retrievals find nothing."""
    settings = config.pipeline
    return RetrievalInPrompt(settings.passages)


def open_pipeline(engine: Engine, do: Do, deliver: Callable[[Sequence, Generation], None]) -> PipelineDriver:
    """What runs the engine's policy. do: has the engine's thread call something; deliver: takes finished answers."""
    return PipelineDriver(make_pipeline(engine.config), engine, do, deliver)
