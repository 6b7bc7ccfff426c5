"""A program to start a search from: a softmax over the rows of a matrix, the task of examples/softmax."""

import numpy as np


# EVOLVE-BLOCK-START
def softmax(x):
    exponentials = np.exp(x - x.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


# EVOLVE-BLOCK-END
