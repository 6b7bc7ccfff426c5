"""How to share the error among the planned looks?

Prints for each plan, at 95 % over looks at 4, 6 and 9 pairs of processes: the power to adopt (lower bound at or over
T = 2 %), how many pairs it took on average, and how often an interval of a look that was taken did not hold the truth.
Intervals are Student's on process means, which is what few processes come to. The comparison stops at the first look
that decides by the default criteria. The figures stand in crates/judge/stats/src/looks.rs.
"""

import numpy as np
from scipy import stats

LOOKS = np.array([4, 6, 9])
ALPHA = 0.05
TARGET, ZERO = np.log(1.02), (np.log(0.99), np.log(1.01))
REPLICATIONS = 40_000


def power_family(exponent):
    """Alpha-spending function α·t^ρ of Kim & DeMets, t the share of the looks; parts added up (Bonferroni)."""
    spent = ALPHA * (np.arange(4) / 3) ** exponent
    return np.diff(spent)


def exact(shape):
    """Levels whose union error is α for normal increments at these looks, by simulation of the normal case."""
    random = np.random.default_rng(7)
    steps = random.standard_normal((1_000_000, 9)).cumsum(axis=1)[:, LOOKS - 1] / np.sqrt(LOOKS)
    low, high = 0.5, 8.0
    for _ in range(50):
        bound = (low + high) / 2
        error = (np.abs(steps) > bound * shape).any(axis=1).mean()
        low, high = (bound, high) if error > ALPHA else (low, bound)
    return 2 * stats.norm.sf(bound * shape)


PLANS = {
    "equal parts": power_family(1),
    "parts by squares (rho 2)": power_family(2),
    "parts by cubes (rho 3)": power_family(3),
    "parts rho 4": power_family(4),
    "Pocock, normal increments": exact(np.ones(3)),
    "O'Brien-Fleming, normal": exact(np.sqrt(9 / LOOKS)),
    "one look at 9": np.array([0, 0, ALPHA]),
}


def run(looks, levels, means, truth):
    """Share adopted, pairs taken, share of comparisons with an interval that missed the truth, share decided."""
    count = len(means)
    open_, adopted, missed = np.ones(count, bool), np.zeros(count, bool), np.zeros(count, bool)
    everdecided = np.zeros(count, bool)
    pairs = np.zeros(count)
    for level, processes in zip(levels, looks):
        if level == 0:
            continue
        left = np.flatnonzero(open_)
        seen = means[left, :processes]
        reach = stats.t.isf(level / 2, processes - 1) * seen.std(axis=1, ddof=1) / np.sqrt(processes)
        lower, upper = seen.mean(axis=1) - reach, seen.mean(axis=1) + reach
        pairs[left] = processes
        missed[left] |= (lower > truth) | (upper < truth)
        decided = (lower >= TARGET) | (upper <= ZERO[0]) | ((lower > ZERO[0]) & (upper < ZERO[1]))
        decided |= (lower > 0) & (upper < TARGET)
        adopted[left] |= lower >= TARGET
        everdecided[left] |= decided
        open_[left] = ~decided
    return adopted.mean(), pairs.mean(), missed.mean(), everdecided.mean()


def all_looks(levels, means):
    """How often any of the three intervals misses 0, however the comparison would stop."""
    missed = np.zeros(len(means), bool)
    for level, processes in zip(levels, LOOKS):
        missed |= stats.ttest_1samp(means[:, :processes], 0, axis=1).pvalue < level
    return missed.mean()


def main():
    for name, levels in PLANS.items():
        print(f"\n{name}: levels {np.round(levels, 5)}")
        random = np.random.default_rng(5)
        for noise in ["normal", "t2", "t3"]:
            draw = random.standard_normal if noise == "normal" else (
                lambda size: random.standard_t(int(noise[1]), size))
            print(f"  any look misses 0, {noise}: {all_looks(levels, draw((REPLICATIONS, 9))):.4f}")
        for spread in [0.005, 0.010, 0.015]:
            for effect in [0.0, 0.03, 0.05]:
                truth = np.log1p(effect)
                means = truth + spread * random.standard_normal((REPLICATIONS, 9))
                adopted, pairs, missed, decided = run(LOOKS, levels, means, truth)
                print(f"  process sd {spread:.1%}, effect {effect:.0%}: adopted {adopted:6.1%}, "
                      f"decided {decided:6.1%}, {pairs:.2f} pairs, missed {missed:.3%}")


if __name__ == "__main__":
    main()
