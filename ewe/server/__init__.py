"""The engine behind HTTP, as OpenAI's clients expect it."""

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("ewe-engine")
except PackageNotFoundError:  # a checkout on the path of an interpreter that has all else, as `make gpu` uses one
    VERSION = "uninstalled"
FINGERPRINT = f"ewe-{VERSION}"
"""OpenAI's `system_fingerprint`: answers with the same seed are alike as long as it is the same."""
