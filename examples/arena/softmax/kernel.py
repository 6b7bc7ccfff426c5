"""Softmax over the rows of a matrix."""
import numpy as np


def softmax(x):
    wide = x.astype(np.float64)
    shifted = wide - wide.max(axis=1, keepdims=True)
    powers = np.e**shifted
    sums = (np.e**shifted).sum(axis=1, keepdims=True)
    return (powers / sums).astype(np.float32)
