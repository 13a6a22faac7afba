"""The server's answers without a server."""

from ewe.llm import LLM
from ewe.server.app import create_app
from ewe.server.batch.batch_calls import BatchCaller
from ewe.server.settings import ServerSettings


def offline_caller(llm: LLM, settings: ServerSettings, max_concurrency: int) -> BatchCaller:
    """Asks an engine as its only caller, who needs no key and has so many requests under way; its service is to close.

    Raises ConfigError where an app cannot be made with these settings.
    """
    alone = {"api_key": None, "api_key_file": None, "batch_folder": None, "max_per_key": None, "engine_process": False}
    queue = {"max_waiting": max_concurrency * settings.max_n}
    app = create_app(llm, settings.model_copy(update={**alone, **queue}))
    return BatchCaller(app, app.state.service, may_wait=True)
