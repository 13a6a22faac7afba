"""What the long-term memories add to the `ewe` command: `ewe memory`, `ewe agent`, `ewe eval memory | locomo`."""

from ewe.longterm.commands.agent_command import agent
from ewe.longterm.commands.eval_locomo import locomo
from ewe.longterm.commands.eval_memory import memory
from ewe.longterm.commands.memory_app import memory_app as app

__all__ = ["agent", "app", "locomo", "memory"]
