"""Sums over long vectors, always in the same order: BLAS's depend on its number of threads."""

from __future__ import annotations

from goldspan._kernel import kernel


@kernel
def dot(left, right):
    """Return the inner product of two vectors, float64 [n]; eight sums side by side."""
    n = len(left) - len(left) % 8
    a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = 0.0
    for i in range(0, n, 8):
        a0 += left[i] * right[i]
        a1 += left[i + 1] * right[i + 1]
        a2 += left[i + 2] * right[i + 2]
        a3 += left[i + 3] * right[i + 3]
        a4 += left[i + 4] * right[i + 4]
        a5 += left[i + 5] * right[i + 5]
        a6 += left[i + 6] * right[i + 6]
        a7 += left[i + 7] * right[i + 7]
    total = ((a0 + a4) + (a1 + a5)) + ((a2 + a6) + (a3 + a7))
    for i in range(n, len(left)):
        total += left[i] * right[i]
    return total


@kernel
def add_multiple(target, factor, values):
    """Add factor * values to target, float64 [n], in place."""
    for i in range(len(target)):
        target[i] += factor * values[i]


@kernel
def add_and_dot(target, factor, values, other):
    """Add factor * values to target in place, and give its inner product with another vector."""
    n = len(target) - len(target) % 8
    a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = 0.0
    for i in range(0, n, 8):
        for k in range(8):
            target[i + k] += factor * values[i + k]
        a0 += target[i] * other[i]
        a1 += target[i + 1] * other[i + 1]
        a2 += target[i + 2] * other[i + 2]
        a3 += target[i + 3] * other[i + 3]
        a4 += target[i + 4] * other[i + 4]
        a5 += target[i + 5] * other[i + 5]
        a6 += target[i + 6] * other[i + 6]
        a7 += target[i + 7] * other[i + 7]
    total = ((a0 + a4) + (a1 + a5)) + ((a2 + a6) + (a3 + a7))
    for i in range(n, len(target)):
        target[i] += factor * values[i]
        total += target[i] * other[i]
    return total
