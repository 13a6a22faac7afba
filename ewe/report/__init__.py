"""What happened to a generation, and what checking a text found, for people and for programs."""

from ewe.report.check_page import check_page, memory_page, write_check_page, write_memory_page
from ewe.report.checked_text import checked_data
from ewe.report.jsonable import jsonable
from ewe.report.page import trace_lines, trace_page, write_page, write_trace

__all__ = [
    "check_page",
    "checked_data",
    "jsonable",
    "memory_page",
    "trace_lines",
    "trace_page",
    "write_check_page",
    "write_memory_page",
    "write_page",
    "write_trace",
]
