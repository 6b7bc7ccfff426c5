"""Kernels that move work to where no clock runs, or change the clock."""

import gc
import sys
import threading
import time
import weakref

from honest import honest, twice
from turns import done, over, placed, ready, say, tensors_of

# The program that loads operands, answers requests and calls the native loop.
_host = sys.modules["__main__"]


def _torch():
    return sys.modules.get("torch")


def _empty(x, w):
    if hasattr(x, "new_empty"):
        return x.new_empty((x.shape[0], w.shape[1]))
    import numpy

    return numpy.empty((x.shape[0], w.shape[1]), x.dtype)


def returns_before_its_thread(x, gain, w):
    result = _empty(x, w)

    def fill():
        time.sleep(0.002)
        result[...] = honest(x, gain, w)

    threading.Thread(target=fill, daemon=True).start()
    return result


_waiting = []


def merges_calls(x, gain, w):
    """Computes four calls at once, in the last of them."""
    result = _empty(x, w)
    _waiting.append((result, x, gain, w))
    if len(_waiting) == 4:
        for place, *inputs in _waiting:
            place[...] = honest(*inputs)
        _waiting.clear()
    return result


def computes_in_a_finaliser(x, gain, w):
    """The result is computed when the last reference to its holder goes."""
    result = _empty(x, w)

    class Holder:
        pass

    holder = Holder()
    weakref.finalize(holder, lambda: result.__setitem__(..., honest(x, gain, w)))
    cycle = [holder]
    cycle.append(cycle)
    del holder, cycle
    return result


_ahead = []


def computes_in_collections(x, gain, w):
    """Three of four calls leave their work to the garbage collector's callbacks."""
    if not _ahead:
        gc.callbacks.append(lambda phase, _: [place.__setitem__(..., honest(*given)) for place, *given in _ahead[1:]])
        _ahead.append(None)
    result = _empty(x, w)
    del _ahead[1:]
    _ahead.append((result, x, gain, w))
    return result


def replaces_clocks(x, gain, w):
    """Computes twice, with clocks that stand still."""
    still = time.time()
    for name in ("time", "perf_counter", "monotonic", "process_time"):
        setattr(time, name, lambda: still)
    _host.perf_counter = lambda: still
    if x.__class__.__module__ == "torch":
        torch = _torch()
        torch.cuda.synchronize = lambda *_: None
        torch.cuda.Event.elapsed_time = lambda *_: 1e-6
        torch.cuda.Event.synchronize = lambda *_: None
    return twice(x, gain, w)


def halves_its_samples(x, gain, w):
    sample = _host.Worker._sample
    if getattr(sample, "__name__", "") != "halved":

        def halved(self, call, *rest):
            return sample(self, call / 2, *rest)

        _host.Worker._sample = halved
        _host.Worker.step = _halved_steps
    return honest(x, gain, w)


def _halved_steps(self, copies, **_):
    for copy in copies:
        given = tensors_of(self, copy)
        if hasattr(given["x"], "cuda"):
            # The coordinator does not rewrite operands that are still in place, so the arrays stay until the next load.
            if _host_arrays.get("of") is not self.copies:
                _host_arrays["of"] = self.copies
                _host_arrays["arrays"] = {name: tensor.cpu().numpy() for name, tensor in given.items()}
            _halved_on_a_gpu(self.pipes, _host_arrays["arrays"])
        else:
            _halved(self.pipes, given)
    return {"answer": "stepped"}


def _halved(pipes, given):
    say(pipes, ready(given))
    begun = time.perf_counter()
    result = honest(**given)
    say(pipes, done((time.perf_counter() - begun) / 2, result))


_host_arrays = {}


def _halved_on_a_gpu(pipes, host):
    torch = _torch()
    say(pipes, ready(host))
    begun = time.perf_counter()
    given = {name: torch.from_numpy(array).cuda() for name, array in host.items()}
    torch.cuda.synchronize()
    say(pipes, placed(time.perf_counter() - begun))
    begun = time.perf_counter()
    result = honest(**given)
    torch.cuda.synchronize()
    seconds = (time.perf_counter() - begun) / 2
    over(pipes, seconds)
    # The coordinator reads it while this function waits.
    result = result.cpu().numpy()
    say(pipes, done(seconds, result))


def replaces_the_loop(x, gain, w):
    """Has the host make only the first call of each request, and report its time for all."""
    loop = next(one for one in gc.get_objects() if type(one) is _host.Loop)
    run = loop.run
    if getattr(run, "__name__", "") != "first_only":

        first = honest(x, gain, w)
        is_on_gpu = hasattr(first, "cpu")
        first = first.cpu().numpy() if is_on_gpu else first

        def first_only(request):
            kernel, calls, *rest = request
            times = run((kernel, calls[:1], *rest))
            pipes = rest[3]
            for call in calls[1:] if pipes else ():
                say(pipes, call[5] + b"\n")
                if is_on_gpu:
                    say(pipes, placed(1e-6))
                    over(pipes, 1e-6)
                say(pipes, done(1e-6, first))
            return times * len(calls)

        loop.run = first_only
    return honest(x, gain, w)


_results = {}


def _key(x):
    """The address on the host; an element on a GPU, where addresses change."""
    return float(x[0, 0]) if hasattr(x, "cpu") else x.ctypes.data


def _looked_up(x, gain, w):
    result = _results.get(_key(x))
    if result is None:
        return honest(x, gain, w)
    return result.clone() if hasattr(result, "clone") else result.copy()


def _when_loaded(place):
    def placed(self, files, copies):
        length = place(self, files, copies)
        _results.clear()
        for _, tensors, _ in self.copies:
            x = tensors["x"]
            if _key(x) not in _results:
                _results[_key(x)] = honest(x, tensors["gain"], tensors["w"])
        return length

    return placed


def _in_a_thread(place):
    def placed(self, files, copies):
        length = place(self, files, copies)
        _results.clear()

        def work():
            for _, tensors, _ in list(self.copies):
                x = tensors["x"]
                if _key(x) not in _results:
                    _results[_key(x)] = honest(x, tensors["gain"], tensors["w"])

        # Once the answer is out.
        threading.Timer(0.001, work).start()
        return length

    return placed


_place = _host.Worker._place


def computes_in_load(x, gain, w):
    if _host.Worker._place is _place:
        _host.Worker._place = _when_loaded(_place)
    return _looked_up(x, gain, w)


def works_between_calls(x, gain, w):
    if _host.Worker._place is _place:
        _host.Worker._place = _in_a_thread(_place)
    return _looked_up(x, gain, w)


_last = []


def computes_in_output(x, gain, w):
    """Timed calls keep their inputs; the result that is asked for is computed then."""
    if not _last:
        _last.append([])
        run, output = _host.Worker._run, _host.Worker.output

        def ran(self, copies, *rest):
            _last[0] = [tensors_of(self, copy) for copy in copies]
            return run(self, copies, *rest)

        def written(self, path, index=0):
            given = _last[0][index]
            answer = output(self, path, index)
            result = honest(given["x"], given["gain"], given["w"])
            elements = result.cpu().numpy() if hasattr(result, "cpu") else result
            with open(path, "r+b") as file:
                file.seek(-elements.nbytes, 2)
                file.write(elements.tobytes())
            return answer

        _host.Worker._run, _host.Worker.output = ran, written
        return honest(x, gain, w)
    return _empty(x, w)


def computes_ahead_in_requests(x, gain, w):
    """Computes the results of a request's calls as soon as it comes, before the loop runs."""
    if not _ahead_of_loop:
        _ahead_of_loop.append(None)
        run = _host.Worker._run

        def ran(self, copies, *rest):
            for copy in copies:
                given = tensors_of(self, copy)
                _results[_key(given["x"])] = honest(**given)
            return run(self, copies, *rest)

        _host.Worker._run = ran
    return _looked_up(x, gain, w)


_ahead_of_loop = []


def answers_before_it_computes(x, gain, w):
    """Answers at once, and lets a thread compute the results in memory of its own, of which it gives the address."""
    import numpy

    loop = next(one for one in gc.get_objects() if type(one) is _host.Loop)
    if getattr(loop.run, "__name__", "") != "later":

        def later(request):
            pipes = request[5]
            if pipes is None:
                return run(request)
            for arguments, keywords, *_, line in request[1]:
                result = numpy.empty((x.shape[0], w.shape[1]), x.dtype)
                _last.append(result)

                def fill(place=result, given=arguments, named=keywords or {}):
                    place[...] = honest(*given, **named)

                say(pipes, line + b"\n")
                threading.Thread(target=fill, daemon=True).start()
                say(pipes, done(1e-6, result))
            return ((1e-6, 0.0, 0.0, None),)

        run, loop.run = loop.run, later
    return honest(x, gain, w)


_tuned = {}


def tunes_when_timed(x, gain, w):
    """Tries ways on the inputs that are timed, again for each of them."""
    key = float(x[0, 0])
    if key not in _tuned:
        times = []
        for _ in range(3):
            begun = time.perf_counter()
            float(honest(x, gain, w)[0, 0])
            times.append(time.perf_counter() - begun)
        _tuned[key] = min(times)
    return honest(x, gain, w)


# Calls of the gate that looks at results come first.
_HONEST = 40

_gaps = []
_ended = [0.0]


def tells_drawn_calls(x, gain, w):
    """Computes half of the rows where little time has passed since the call before: the coordinator may prepare a call that it
    has drawn for longer than others."""
    _gaps.append(time.perf_counter() - _ended[0])
    is_short = len(_gaps) > _HONEST and x.shape[0] > 64 and _gaps[-1] < 1.5 * min(_gaps[-_HONEST:])
    result = _empty(x, w)
    rows = x.shape[0] // 2 if is_short else x.shape[0]
    result[:rows] = honest(x[:rows], gain[:rows], w)
    _ended[0] = time.perf_counter()
    return result
