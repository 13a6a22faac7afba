"""The random numbers of many sequences at once.

A number depends on its key and counter alone: it is the first that numpy's generator draws with them.
"""

import numpy as np
import numpy.typing as npt

Uint64Array = npt.NDArray[np.uint64]

_ROUNDS = 10
_MULTIPLIERS = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)
_BUMPS = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)
_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


def first_uniforms(keys: Uint64Array, counters: Uint64Array) -> npt.NDArray[np.float64]:
    """Numbers in [0, 1), float64 [n], of keys uint64 [n, 2] and counters uint64 [n, 4] (below 2^64 - 1 in front)."""
    k0, k1 = keys.T.copy()
    c0, c1, c2, c3 = counters.T.copy()
    c0 += np.uint64(1)  # numpy's generator counts up before it draws
    with np.errstate(over="ignore"):
        for _ in range(_ROUNDS):
            high0, low0 = _product(_MULTIPLIERS[0], c0)
            high1, low1 = _product(_MULTIPLIERS[1], c2)
            c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
            k0, k1 = k0 + _BUMPS[0], k1 + _BUMPS[1]
    uniforms: npt.NDArray[np.float64] = (c0 >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return uniforms


def _product(factor: np.uint64, values: Uint64Array) -> tuple[Uint64Array, Uint64Array]:
    """The upper and the lower 64 bits of products, by halves of 32 bits."""
    f1, f0 = factor >> _HALF, factor & _LOW
    v1, v0 = values >> _HALF, values & _LOW
    middle = f1 * v0 + ((f0 * v0) >> _HALF)
    other = f0 * v1 + (middle & _LOW)
    return f1 * v1 + (middle >> _HALF) + (other >> _HALF), factor * values
