"""An agent that reasons in steps, calls tools, and knows how far each of its memories can be believed."""

from ewe.agent.agent import VeriMemAgent
from ewe.agent.records import AgentResult, Call, MemoryUsed, Step, Stopped
from ewe.agent.tools import Tool, ToolError

__all__ = ["AgentResult", "Call", "MemoryUsed", "Step", "Stopped", "Tool", "ToolError", "VeriMemAgent"]
