"""The right result. No pitch may change this file."""
import numpy as np


def reference(x):
    wide = x.astype(np.float64)
    exponentials = np.exp(wide - wide.max(axis=1, keepdims=True))
    return {"y": (exponentials / exponentials.sum(axis=1, keepdims=True)).astype(np.float32)}
