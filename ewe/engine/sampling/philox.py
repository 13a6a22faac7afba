"""The random numbers of many sequences at once.

A number depends on its key and counter alone: it is the first that numpy's generator draws with them.
"""

import numpy as np
import numpy.typing as npt

Uint64Array = npt.NDArray[np.uint64]

_ROUNDS = 10
# A line for each half of what is multiplied in a round, so that numpy is called once for both.
_MULTIPLIERS = np.array([[0xD2E7470EE14C6C93], [0xCA5A826395121157]], np.uint64)
_BUMPS = np.array([[0x9E3779B97F4A7C15], [0xBB67AE8584CAA73B]], np.uint64)
_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
_UPPER, _LOWER = _MULTIPLIERS >> _HALF, _MULTIPLIERS & _LOW


def first_uniforms(keys: Uint64Array, counters: Uint64Array) -> npt.NDArray[np.float64]:
    """Numbers in [0, 1), float64 [n], of keys uint64 [n, 2] and counters uint64 [n, 4] (below 2^64 - 1 in front)."""
    key = keys.T.copy()
    multiplied, added = counters.T[::2].copy(), counters.T[1::2]
    multiplied[0] += np.uint64(1)  # numpy's generator counts up before it draws
    for _ in range(_ROUNDS):
        high, low = _product(multiplied)
        multiplied, added = high[::-1] ^ added ^ key, low[::-1]
        key += _BUMPS
    uniforms: npt.NDArray[np.float64] = (multiplied[0] >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return uniforms


def _product(values: Uint64Array) -> tuple[Uint64Array, Uint64Array]:
    """The upper and the lower 64 bits of products with the multipliers, by halves of 32 bits."""
    upper, lower = values >> _HALF, values & _LOW
    middle = _UPPER * lower + ((_LOWER * lower) >> _HALF)
    other = _LOWER * upper + (middle & _LOW)
    return _UPPER * upper + (middle >> _HALF) + (other >> _HALF), _MULTIPLIERS * values
