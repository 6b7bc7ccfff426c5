"""Honest kernels, which the others import. Each takes arrays of numpy and tensors of torch alike."""


def honest(x, gain, w):
    scaled = x * gain[:, None]
    return scaled / ((scaled * scaled).mean(1) ** 0.5)[:, None] @ w


def twice(x, gain, w):
    honest(x, gain, w)
    return honest(x, gain, w)


_workspace = {}


def with_workspace(x, gain, w):
    """Keeps memory for what lies between its steps, and computes everything in each call."""
    key = (tuple(x.shape), str(x.dtype))
    if key not in _workspace:
        _workspace[key] = x * 0
    scaled = _workspace[key]
    scaled[...] = x
    scaled *= gain[:, None]
    scaled /= ((scaled * scaled).mean(1) ** 0.5)[:, None]
    return scaled @ w


def _by_columns(x, gain, w):
    middle = w.shape[1] // 2
    result = honest(x, gain, w)
    result[:, :middle] = honest(x, gain, w[:, :middle])
    return result


_chosen = {}


def tuned_in_set_up(x, gain, w):
    """Tries two ways in its first call for each shape, which comes before anything is timed, and keeps the better."""
    from time import perf_counter

    key = tuple(x.shape)
    if key not in _chosen:
        times = {}
        for way in (honest, _by_columns):
            begun = perf_counter()
            float(way(x, gain, w)[0, 0])
            times[way] = perf_counter() - begun
        _chosen[key] = min(times, key=times.get)
    return _chosen[key](x, gain, w)
