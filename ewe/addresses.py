"""Addresses in settings, which are shown in messages, logs, results and reports: so they hold no secrets."""

import re

from ewe.errors import ConfigError

_PASSWORD = re.compile(r"[^/@]*:(?!\d+/)[^@]*@")  # a port is none; keys of S3 may hold a slash


def without_secrets(text: str) -> str:
    """A path or an address as it is; raises ConfigError, which does not repeat it, for a password or a query in it."""
    _, mark, rest = text.partition("://")
    if mark and (_PASSWORD.match(rest) or "?" in rest):
        raise ConfigError(
            "an address must hold no password and no '?': secrets come from the environment, for files as fsspec names "
            "them (AWS_SECRET_ACCESS_KEY, FSSPEC_FTP_PASSWORD), for stores of passages as EWE_DATASTORE_TOKEN"
        )
    return text
