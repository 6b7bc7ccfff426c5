"""Does an interval of the typical pair keep the promise of all looks, and what does it cost?

    /tmp/venv/bin/python scripts/reference/typical_study.py [comparisons [pairs]]        (see reference.py; 10000 27)

Simulates open-ended comparisons whose time is up after a number of pairs, by two rules: the mean with Student's interval, and the
typical pair of crates/judge/stats/src/effects.rs, each with its plan of looks. For noise of many shapes: how often some look's
interval misses the truth (the mean; the typical pair), how often a candidate is adopted that lies on the target, and called a
regression that lies on -1 %. Then, on symmetric noise, how often a true effect is found and how many pairs that takes.
"""

import sys
from functools import cache

import numpy as np
from scipy import stats

ALPHA = 0.05
TARGET, ZERO = np.log(1.02), (np.log(0.99), np.log(1.01))
SPREAD = 0.03


def noise(kind, size, random):
    """Draws of a kind, for example "log-normal 0.5"; a kind that ends with "-" is mirrored."""
    if kind.endswith("-"):
        return -noise(kind[:-1], size, random)
    name, _, parameter = kind.partition(" ")
    normal = random.standard_normal(size)
    if name == "normal":
        return normal
    if name == "t":
        return random.standard_t(float(parameter), size)
    if name == "outliers":          # 15 % of pairs five times as far off
        return 0.55 * np.where(random.random(size) < 0.15, 5, 1) * normal
    if name == "exponential":
        return random.exponential(1, size) + 0.1 * normal
    if name == "log-normal":
        variance = float(parameter) ** 2
        return np.expm1(float(parameter) * normal) / np.sqrt(np.expm1(variance) * np.exp(variance))
    share = float(parameter)        # "class 0.1": this share of pairs is off, the others differ by little
    return (random.random(size) < share) / np.sqrt(share * (1 - share)) + 0.05 * normal


@cache
def truths(kind):
    """The mean and the median of a kind."""
    draws = noise(kind, 2_000_000, np.random.default_rng(99))
    return draws.mean(), np.median(draws)


@cache
def signed_rank(pairs):
    """P(W <= w) of the signed-rank statistic."""
    ways = np.zeros(pairs * (pairs + 1) // 2 + 1)
    ways[0] = 1
    for rank in range(1, pairs + 1):
        with_rank = ways.copy()
        with_rank[rank:] += ways[:-rank]
        ways = with_rank
    return np.cumsum(ways) / 2.0**pairs


def student(effects, alpha):
    count = effects.shape[1]
    reach = stats.t.isf(alpha / 2, count - 1) * effects.std(axis=1, ddof=1) / np.sqrt(count)
    return effects.mean(axis=1) - reach, effects.mean(axis=1) + reach


def typical(effects, alpha):
    count = effects.shape[1]
    one, other = np.triu_indices(count)
    averages = np.sort((effects[:, one] + effects[:, other]) / 2, axis=1)
    places, part = np.arange(count), 0.3        # the mean of the middle three tenths
    weights = np.minimum(places + 1, count * (1 + part) / 2) - np.maximum(places, count * (1 - part) / 2)
    middle = np.sort(effects, axis=1) @ np.maximum(weights, 0) / (part * count)

    def reaching_the_middle(centre, lower, upper):
        return lower + np.minimum(middle - centre, 0), upper + np.maximum(middle - centre, 0)

    chances = signed_rank(count)
    place = int(np.searchsorted(chances, alpha / 2 * (1 + 1e-12), side="right"))
    within = (alpha / 2 - chances[place - 1]) / (chances[place] - chances[place - 1]) if place else 0
    at = max(place, 1)
    lower = averages[:, at - 1] + within * (averages[:, at] - averages[:, at - 1])
    upper = averages[:, -at] + within * (averages[:, -at - 1] - averages[:, -at])
    lower, upper = reaching_the_middle(np.median(averages, axis=1), lower, upper)
    if not place:
        least, most = reaching_the_middle(effects.mean(axis=1), *student(effects, alpha))
        lower, upper = np.minimum(lower, least), np.maximum(upper, most)
    return lower, upper


def plan(planned, most, later, closing):
    """Pairs and error of each look: planned ones by squares, later ones, and the first closing look."""
    spent = (np.arange(len(planned) + 1) / len(planned)) ** 2
    left = (1 - later[0] - closing[0]) * ALPHA
    looks = list(zip(planned, left * np.diff(spent)))
    pairs, error = planned[-1], ALPHA * later[0] * (1 - later[1])
    while (pairs := int(np.ceil(1.5 * pairs))) <= most:
        looks.append((pairs, error))
        error *= later[1]
    return looks + [(most, ALPHA * closing[0] * (1 - closing[1]))]


def compare(effects, bounds, looks):
    """The verdict of each comparison and the pairs that it took."""
    verdicts = np.full(len(effects), "inconclusive", dtype="U16")
    pairs = np.full(len(effects), looks[-1][0])
    for count, error in looks:
        left = np.flatnonzero(verdicts == "inconclusive")
        if not len(left):
            break
        lower, upper = bounds(effects[left, :count], error)
        verdicts[left] = np.select(
            [lower >= TARGET, upper <= ZERO[0], (lower > ZERO[0]) & (upper < ZERO[1]), (lower > 0) & (upper < TARGET)],
            ["adopt", "regression", "valid negative", "marginal"], "inconclusive")
        pairs[left[verdicts[left] != "inconclusive"]] = count
    return verdicts, pairs


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    most = int(sys.argv[2]) if len(sys.argv) > 2 else 27
    rules = [
        ("mean by Student, looks at 4 6 12", 0, student, plan([4, 6, 12], most, (1 / 3, 2 / 3), (1 / 3, 1 / 3))),
        ("typical pair, looks at 3 4 6 9 12", 1, typical, plan([3, 4, 6, 9, 12], most, (1 / 4, 2 / 3), (5 / 12, 1 / 5))),
    ]
    shapes = ["log-normal 0.5", "log-normal 1", "exponential", "class 0.1", "class 0.2", "class 0.3"]
    for kind in ["normal", "t 2", "outliers", *(kind + sign for kind in shapes for sign in ["", "-"])]:
        draws = SPREAD * noise(kind, (count, most), np.random.default_rng(12))
        print(kind)
        for name, truth, bounds, looks in rules:
            centred = draws - SPREAD * truths(kind)[truth]
            missed = np.zeros(count, bool)
            for pairs, error in looks:
                lower, upper = bounds(centred[:, :pairs], error)
                missed |= (lower > 0) | (upper < 0)
            adopted = compare(TARGET + centred, bounds, looks)[0] == "adopt"
            slower = compare(ZERO[0] + centred, bounds, looks)[0] == "regression"
            print(f"  {name}: some look misses {missed.mean():6.2%}, adopted at the target {adopted.mean():6.2%}, "
                  f"regression at -1 % {slower.mean():6.2%}", flush=True)
    for kind, spread in [("normal", 0.0065), ("normal", 0.015), ("normal", 0.025), ("outliers", 0.025), ("t 2", 0.01)]:
        draws = spread * noise(kind, (count // 3, most), np.random.default_rng(5))
        for gain, right in [(0, "valid negative"), (0.03, "adopt"), (0.05, "adopt"), (0.1, "adopt"), (0.3, "adopt"), (1, "adopt")]:
            found = [compare(np.log1p(gain) + draws, bounds, looks) for _, _, bounds, looks in rules]
            print(f"{kind} {spread:.2%}, true {gain:.0%}: " + "; ".join(
                f"{right} {(verdicts == right).mean():6.1%} after {pairs.mean():.1f} pairs" for verdicts, pairs in found), flush=True)


if __name__ == "__main__":
    main()
