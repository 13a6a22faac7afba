"""An agent that reasons in steps, calls tools, and knows how far each of its memories can be believed."""

from ewe.longterm.agent.agent import VeriMemAgent
from ewe.longterm.agent.function_tools import Tool, ToolError
from ewe.longterm.agent.result import AgentResult, Call, MemoryUsed, Step, Stopped

__all__ = ["AgentResult", "Call", "MemoryUsed", "Step", "Stopped", "Tool", "ToolError", "VeriMemAgent"]
