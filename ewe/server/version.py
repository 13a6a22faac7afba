"""Which version this is.

Owns: its name on the wire.
"""

from __future__ import annotations

from importlib.metadata import version

VERSION = version("ewe-engine")
FINGERPRINT = f"ewe-{VERSION}"
"""OpenAI's `system_fingerprint`: answers with the same seed are alike as long as it is the same."""
