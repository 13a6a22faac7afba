"""What happened to a generation, for people and for programs: the trace as JSONL and as one HTML page.

Owns: the trace file and the trace page. Knows `ewe.types` only.
"""

from ewe.report.jsonable import jsonable
from ewe.report.page import trace_page, write_page
from ewe.report.trace_file import trace_lines, write_trace

__all__ = ["jsonable", "trace_lines", "trace_page", "write_page", "write_trace"]
