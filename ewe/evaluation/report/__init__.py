"""What happened to a generation, and what checking a text found, for people and for programs."""

from ewe.evaluation.report.check_page import check_page, memory_page, write_check_page, write_memory_page
from ewe.evaluation.report.checked_text import checked_data
from ewe.evaluation.report.page import trace_lines, trace_page, write_page, write_trace
from ewe.text.jsonable import jsonable

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
