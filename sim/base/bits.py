"""Bits of whole numbers in compiled code."""

from __future__ import annotations

# Any: Numba has no types for compilers' own objects.
from typing import Any

from numba import types
from numba.extending import intrinsic


def _lowest_bit(context: Any, word: Any) -> Any:
    """The place of the lowest bit that is set in a whole number that is not 0."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], target.get_constant(types.boolean, True))

    return types.int64(types.int64), generate


lowest_bit: Any = intrinsic(_lowest_bit)
