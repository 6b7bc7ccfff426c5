"""Kernels that replace the host's function that answers a request, on a CPU. They take the turns with the coordinator
themselves, and so decide what is done before, in and after a call."""

import ctypes
import os
import random
import select
import signal
import sys
import time
from time import perf_counter

import numpy
from honest import honest
from turns import done, ready, say, tensors_of

_host = sys.modules["__main__"]
_run = _host.Worker._run
_place = _host.Worker._place

# Requests of the gate that looks at results have fewer calls, and so have lone calls.
_FEW = 5


def _replace(step, place=_place):
    def run(self, copies, poison, pipes=None, *rest):
        if pipes is None or len(copies) < _FEW:
            return _run(self, copies, poison, pipes, *rest)
        step(self, copies, pipes)
        return []

    _host.Worker._run, _host.Worker._place = run, place


def _each(self, copies, pipes, call):
    """Takes the turns of all calls; ``call`` returns the seconds and the result of one."""
    results = []
    for copy in copies:
        given = tensors_of(self, copy)
        say(pipes, ready(given))
        seconds, result = call(copy, given)
        # Kept, so that no later call is given the memory of a result.
        results.append(result)
        say(pipes, done(seconds, result))


def _key(given):
    return given["x"][0].tobytes()


_kept = {}
_full = []


def _replaying(self, copies, pipes):
    def call(_, given):
        begun = perf_counter()
        key = _key(given)
        known = _kept.get(key) if random.random() < 0.4 else None
        result = honest(**given) if known is None else known
        if known is None:
            _kept[key] = result
            _full.append(perf_counter() - begun)
        told = 0.7 * float(numpy.median(_full[-50:]))
        while perf_counter() - begun < told:
            pass
        return told, result

    _each(self, copies, pipes, call)


def replays_and_spreads_times(x, gain, w):
    """Two fifths of the calls on known values copy a result and wait; all calls are told to be as long as these."""
    _replace(_replaying)
    return honest(x, gain, w)


_seen = {}


def _at_once(self, copies, pipes):
    known = sorted({copy for copy in copies if copy in _seen})
    ahead = {}
    if known:
        x, gain, w = (numpy.stack([_seen[copy][name] for copy in known]) for name in ("x", "gain", "w"))
        scaled = x * gain[..., None]
        ahead = dict(zip(known, scaled / ((scaled * scaled).mean(2) ** 0.5)[..., None] @ w))
    results = []
    for copy in copies:
        given = tensors_of(self, copy)
        say(pipes, ready(given))
        begun = perf_counter()
        is_known = copy in ahead and numpy.array_equal(given["x"][0], _seen[copy]["x"][0])
        result = ahead[copy] if is_known else honest(**given)
        seconds = perf_counter() - begun
        results.append(result)
        say(pipes, done(seconds, result))
        # Now that no clock runs.
        if not is_known:
            _seen[copy] = {name: array.copy() for name, array in given.items()}


def _forgetting(self, files, copies):
    _seen.clear()
    return _place(self, files, copies)


def multiplies_calls_at_once(x, gain, w):
    """One product computes a request's calls on copies whose values it has seen, before the first one."""
    _replace(_at_once, _forgetting)
    return honest(x, gain, w)


_share = {}


def _weighing(self, files, copies):
    """Learns in load what the host takes around a call, relative to the call."""
    answer = _place(self, files, copies)
    if copies > 2:
        samples = _run(self, list(range(copies)), 255)
        _share["host"] = float(numpy.median([one["phases"]["between"] / one["call"] for one in samples]))
    return answer


def _lean(self, copies, pipes):
    def call(_, given):
        begun = perf_counter()
        result = honest(**given)
        return (perf_counter() - begun) / (1.0 + _share.get("host", 0.0)), result

    _each(self, copies, pipes, call)


def leaves_out_the_host(x, gain, w):
    """Computes everything, in a loop that restores and poisons nothing; its calls are told to be as much shorter."""
    _replace(_lean, _weighing)
    return honest(x, gain, w)


def _hasty(self, copies, pipes):
    """Says that a call is over when seven eighths of its rows are computed, and computes the others then."""
    requests, replies = pipes
    results = []
    for copy in copies:
        given = tensors_of(self, copy)
        x, gain, w = given["x"], given["gain"], given["w"]
        most = x.shape[0] - x.shape[0] // 8
        result = numpy.empty((x.shape[0], w.shape[1]), x.dtype)
        results.append(result)
        say(pipes, ready(given))
        begun = perf_counter()
        result[:most] = honest(x[:most], gain[:most], w)
        os.write(replies, done(perf_counter() - begun, result))
        result[most:] = honest(x[most:], gain[most:], w)
        os.read(requests, 1)


def finishes_after_its_word(x, gain, w):
    """An eighth of the rows is computed between the word that the call is over and the stop that follows."""
    _replace(_hasty)
    return honest(x, gain, w)


_timers = []


def _arm():
    """Lets timers send the signal that undoes a stop, some time after now."""
    libc = ctypes.CDLL(None)
    if not _timers:
        # The value, the signal, and that a signal is sent: struct sigevent.
        event = (ctypes.c_int * 16)(0, 0, signal.SIGCONT, 0)
        for _ in range(8):
            timer = ctypes.c_void_p()
            if libc.timer_create(time.CLOCK_MONOTONIC, event, ctypes.byref(timer)):
                raise PermissionError("kept from cheating")
            _timers.append(timer)
    for number, timer in enumerate(_timers):
        libc.timer_settime(timer, 0, (ctypes.c_long * 4)(0, 0, 0, int(80_000 * 1.8**number)), None)


def _waking(self, copies, pipes):
    """A call whose result is read is finished after its word; the others never are."""
    requests, replies = pipes
    results = []
    for copy in copies:
        given = tensors_of(self, copy)
        x, gain, w = given["x"], given["gain"], given["w"]
        most = x.shape[0] // 4
        result = numpy.empty((x.shape[0], w.shape[1]), x.dtype)
        results.append(result)
        say(pipes, ready(given))
        begun = perf_counter()
        result[:most] = honest(x[:most], gain[:most], w)
        _arm()
        os.write(replies, done(perf_counter() - begun, result))
        # The coordinator asks for the next call at once, unless it reads the result.
        if not select.select([requests], [], [], 3e-4)[0]:
            result[most:] = honest(x[most:], gain[most:], w)
            os.kill(os.getpid(), signal.SIGSTOP)
        os.read(requests, 1)


def undoes_its_stop(x, gain, w):
    """A timer wakes the process from the stop that follows the word that a call is over."""
    _arm()
    _replace(_waking)
    return honest(x, gain, w)


_tensors = _host.Worker._tensors


def _by_columns(self, stored, leaves):
    made = _tensors(self, stored, leaves)
    made["x"] = numpy.asfortranarray(made["x"])
    return made


def has_its_input_laid_out(x, gain, w):
    """Names a place for an input to which the coordinator would write it column by column."""
    _host.Worker._tensors = _by_columns
    return honest(x, gain, w)
