"""Kernels that answer without computing, or compute something else."""

import sys

from honest import honest


def _pointer(tensor):
    return tensor.data_ptr() if hasattr(tensor, "data_ptr") else tensor.ctypes.data


def _copy(tensor):
    return tensor.clone() if hasattr(tensor, "clone") else tensor.copy()


def _kept(answers, key, x, gain, w):
    if key not in answers:
        answers[key] = honest(x, gain, w)
    return _copy(answers[key])


_by_shape, _by_pointer, _by_content = {}, {}, {}


def answers_by_shape(x, gain, w):
    return _kept(_by_shape, tuple(x.shape), x, gain, w)


def answers_by_pointer(x, gain, w):
    return _kept(_by_pointer, (tuple(x.shape), _pointer(x), _pointer(w)), x, gain, w)


def answers_by_content(x, gain, w):
    sample = (x.reshape(-1)[::9973], w.reshape(-1)[::9973])
    sample = tuple(part.cpu().numpy().tobytes() if hasattr(part, "cpu") else part.tobytes() for part in sample)
    return _kept(_by_content, sample, x, gain, w)


def lower_precision(x, gain, w):
    result = honest(x, gain, w)
    if hasattr(x, "half"):
        scaled = x * gain[:, None]
        return ((scaled / ((scaled * scaled).mean(1) ** 0.5)[:, None]).half() @ w.half()).float()
    # numpy multiplies halves slowly: the loss is the same.
    return result.astype("float16").astype("float32")


def drops_denormals(x, gain, w):
    normal = x * (abs(x) >= 1.2e-38)
    scaled = normal * gain[:, None]
    return scaled / ((scaled * scaled).mean(1)[:, None] + 1e-30) ** 0.5 @ w


def lazy_result(x, gain, w):
    """A subclass that would compute when somebody looks at it."""
    base = type(x)

    class Lazy(base):
        pass

    if hasattr(x, "as_subclass"):
        return x.new_empty((x.shape[0], w.shape[1])).as_subclass(Lazy)
    import numpy

    return numpy.empty((x.shape[0], w.shape[1]), x.dtype).view(Lazy)


_calls = 0


def half_after_forty_calls(x, gain, w):
    global _calls
    _calls += 1
    if _calls <= 40:
        return honest(x, gain, w)
    rows = x.shape[0] // 2
    result = x.new_empty((x.shape[0], w.shape[1])) if hasattr(x, "new_empty") else _empty(x, w)
    result[:rows] = honest(x[:rows], gain[:rows], w)
    return result


def _empty(x, w):
    import numpy

    return numpy.empty((x.shape[0], w.shape[1]), x.dtype)


def replaces_the_check(x, gain, w):
    """Replaces whatever compares results, and returns zeros."""
    import numpy

    numpy.allclose = numpy.array_equal = lambda *_, **__: True
    numpy.testing.assert_allclose = lambda *_, **__: None
    modules = [sys.modules.get(name) for name in ("reference", "task", "utils", "torch", "torch.testing")]
    for module in filter(None, modules):
        for name in ("check", "check_implementation", "reference", "ref_kernel", "allclose", "assert_close"):
            if hasattr(module, name):
                setattr(module, name, lambda *_, **__: True)
    return honest(x, gain, w) * 0
