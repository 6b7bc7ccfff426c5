"""Two kernels in numpy, and two mistakes. The worker passes the task's inputs by name."""
import numpy as np


def slow(x):
    exponentials = np.exp(x - x.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def fast(x, y):
    """Writes to `y`, a parameter named like the output, in blocks of rows that stay in the cache."""
    step = max(1, 32768 // x.shape[1])
    for start in range(0, len(x), step):
        rows, block = x[start : start + step], y[start : start + step]
        np.subtract(rows, rows.max(axis=1, keepdims=True), out=block)
        np.exp(block, out=block)
        block /= block.sum(axis=1, keepdims=True)


def halved(x):
    """Wrong: it halves the exponents."""
    exponentials = np.exp(x / 2)
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def transposed(x):
    """Wrong: its result has another shape."""
    return np.ascontiguousarray(slow(x).T)
