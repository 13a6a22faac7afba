"""OpenMP's worker threads, which torch starts on a CPU for every thread that computes.

Once there are more of them than cores, they fall asleep between two products and take longer to wake than a product of
few rows takes: decoding one prompt ran at two thirds of its speed beside the workers of a thread that had only loaded
the model.
"""

import ctypes

_SOFT = 1  # omp_pause_soft of OpenMP 5.0: what was set stays set


def end_workers() -> None:
    """Ends the workers of the calling thread; they come back when it computes again.

    Does nothing where the OpenMP that torch brought does not know how.
    """
    try:
        ctypes.CDLL(None).omp_pause_resource_all(_SOFT)
    except (AttributeError, OSError):
        return
