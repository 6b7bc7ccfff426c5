"""What to resample: blocks within processes as well, or whole processes only?

Prints, for each kind of noise and number of pairs of processes, the coverage of the nominal interval of both and how
much narrower the second is. Times are simulated slot by slot in ABBA or BAAB order, both arms with the same mean, so
that the true log speed-up is 0 by symmetry. Takes some minutes. The figures stand in crates/judge/stats/src/bootstrap.rs.
"""

import numpy as np
from scipy import stats

BLOCKS = 3
REPLICATIONS = 4000
RESAMPLES = 1000
BATCH = 100


def luck(random, shape, scale):
    """What each arm's process has by luck, as a log time: (replication, process, arm)."""
    return scale / np.sqrt(2) * random.standard_normal(shape)


def autocorrelated(random, shape, correlation, scale):
    """First-order autoregression along the last axis, stationary."""
    noise = random.standard_normal(shape)
    series = np.empty(shape)
    series[..., 0] = noise[..., 0]
    for place in range(1, shape[-1]):
        series[..., place] = correlation * series[..., place - 1] + np.sqrt(1 - correlation**2) * noise[..., place]
    return scale * series


def log_times(kind, random, count, processes):
    """Log times (replication, process, arm, slot of the block's four, block), as the kind of noise has them."""
    arms, slots = (count, processes, 2), (count, processes, 2, BLOCKS * 4)
    place = np.arange(BLOCKS * 4)
    between, white = 0.005, 0.01 * random.standard_normal(slots)
    if kind == "white":
        times = white
    elif kind == "white, no luck of the process":
        between, times = 0.0, white
    elif kind == "luck of the process only":
        between, times = 0.01, 0.001 * random.standard_normal(slots)
    elif kind == "t2 in slots":
        times = 0.007 * random.standard_t(2, slots)
    elif kind == "t3 in slots":
        times = 0.007 * random.standard_t(3, slots)
    elif kind == "t2 between processes":
        between = 0.0
        times = white + 0.005 * random.standard_t(2, arms)[..., None]
    elif kind == "lognormal interruptions":
        struck = random.random(slots) < 0.1
        times = 0.003 * random.standard_normal(slots) + struck * np.log1p(0.05 * random.lognormal(0, 1.5, slots))
    elif kind == "autocorrelated 0.8":
        times = autocorrelated(random, slots, 0.8, 0.01)
    elif kind == "bimodal processes":
        between = 0.001
        times = 0.002 * random.standard_normal(slots) + 0.03 * (random.random(arms) < 0.3)[..., None]
    elif kind == "drifting":
        phase = random.random((count, 1, 1, 1)) * 2 * np.pi
        at = np.arange(processes)[None, :, None, None] * BLOCKS * 4 + place
        drift = 0.002 * at + 0.02 * np.sin(at / 7 + phase)
        times = 0.003 * random.standard_normal(slots) + drift
    else:
        raise ValueError(kind)
    return times + luck(random, arms, between)[..., None]


KINDS = [
    "white",
    "white, no luck of the process",
    "luck of the process only",
    "t2 in slots",
    "t3 in slots",
    "t2 between processes",
    "lognormal interruptions",
    "autocorrelated 0.8",
    "bimodal processes",
    "drifting",
]


def effects(kind, random, count, processes):
    """Log speed-ups by block (replication, process, block): of each arm the median of its two slots' times."""
    times = log_times(kind, random, count, processes)
    times = times.reshape(count, processes, 2, BLOCKS, 4)
    first = random.random((count, processes, BLOCKS)) < 0.5
    outer, inner = [0, 3], [1, 2]
    of = lambda arm, slots: np.log(np.exp(times[:, :, arm][..., slots]).mean(axis=-1))
    abba = of(0, outer) - of(1, inner)
    baab = of(0, inner) - of(1, outer)
    return np.where(first, abba, baab)


def replicates(blocks, random, both_stages):
    """Means of resampled processes, and with `both_stages` of resampled blocks in them: (replication, resample)."""
    count, processes, _ = blocks.shape
    drawn = random.integers(processes, size=(count, RESAMPLES, processes))
    at = np.arange(count)[:, None, None]
    if not both_stages:
        return blocks.mean(axis=2)[at, drawn].mean(axis=2)
    block = random.integers(BLOCKS, size=(count, RESAMPLES, processes, BLOCKS))
    return blocks[at[..., None], drawn[..., None], block].mean(axis=(2, 3))


def interval(blocks, random, confidence, both_stages):
    means = blocks.mean(axis=2)
    processes = means.shape[1]
    critical = stats.t.ppf((1 + confidence) / 2, processes - 1)
    tail = stats.norm.cdf(-np.sqrt(processes / (processes - 1)) * critical)
    resampled = replicates(blocks, random, both_stages)
    lower, upper = np.quantile(resampled, [tail, 1 - tail], axis=1, method="median_unbiased")
    reach = critical * means.std(axis=1, ddof=1) / np.sqrt(processes)
    centre = means.mean(axis=1)
    student = np.stack([centre - reach, centre + reach])
    return np.stack([np.minimum(lower, student[0]), np.maximum(upper, student[1])]), student


def main():
    for confidence in [0.95, 0.98]:
        print(f"\nnominal {confidence:.0%}; coverage in % of both stages | processes only | Student alone; "
              "narrower by (median width)")
        for kind in KINDS:
            for processes in [4, 6, 9]:
                random = np.random.default_rng([processes, KINDS.index(kind)])
                covering, widths = np.zeros(3), [[], [], []]
                for _ in range(REPLICATIONS // BATCH):
                    blocks = effects(kind, random, BATCH, processes)
                    two, student = interval(blocks, random, confidence, True)
                    one, _ = interval(blocks, random, confidence, False)
                    for index, (lower, upper) in enumerate([two, one, student]):
                        covering[index] += ((lower <= 0) & (0 <= upper)).sum()
                        widths[index].extend(upper - lower)
                share = covering / REPLICATIONS * 100
                width = [np.median(each) for each in widths]
                print(f"{kind:30} {processes} pairs: {share[0]:5.1f} | {share[1]:5.1f} | {share[2]:5.1f}   "
                      f"{(1 - width[1] / width[0]) * 100:4.1f} %", flush=True)


main()
