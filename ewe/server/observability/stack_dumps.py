"""Where a process of the server hangs."""

import faulthandler
import signal

_LONG_LOADING_S = 600.0  # then every thread's stack is printed once, and loading goes on


def dump_stacks() -> None:
    """Has this process say where it hangs: on SIGUSR1, and by itself if loading takes very long."""
    if hasattr(signal, "SIGUSR1"):
        faulthandler.register(signal.SIGUSR1)
    faulthandler.dump_traceback_later(_LONG_LOADING_S)


def end_loading() -> None:
    """Loading is over."""
    faulthandler.cancel_dump_traceback_later()
