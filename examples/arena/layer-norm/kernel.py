"""Layer norm over the rows of a matrix."""
import numpy as np

EPSILON = 1e-5


def layer_norm(x, gamma, beta):
    mean = np.mean(x, axis=1, keepdims=True)
    variance = np.mean((x - np.mean(x, axis=1, keepdims=True)) ** 2, axis=1, keepdims=True)
    normalised = (x - mean) / np.sqrt(variance + EPSILON)
    return normalised * gamma + beta
