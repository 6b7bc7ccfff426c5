"""Writes crates/judge/stats/tests/reference/scipy.json: what scipy and numpy make of the cases on which gauntlet-stats is tested.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install -r scripts/reference/requirements.txt
    /tmp/venv/bin/python scripts/reference/reference.py

Nothing is computed the way the crate does it where scipy has a function for it.
"""

import json
from pathlib import Path

import numpy as np
import scipy
from scipy import stats

OUT = Path(__file__).parents[2] / "crates/judge/stats/tests/reference/scipy.json"
random = np.random.default_rng(20260101)


def rounded(values, digits=4):
    return [float(value) for value in np.round(values, digits)]


def student_quantiles():
    return [
        {"processes": processes, "confidence": confidence, "quantile": stats.t.ppf((1 + confidence) / 2, processes - 1)}
        for processes in [2, 3, 4, 5, 6, 9, 15, 40, 1000]
        for confidence in [0.9, 0.95, 0.98, 0.99, 0.995, 0.999]
    ]


def student_p_values():
    cases = []
    for processes in [2, 4, 6, 9, 30]:
        means = rounded(0.01 + 0.02 * random.standard_normal(processes))
        for threshold in [-0.05, 0.0, 0.02, 0.1]:
            test = stats.ttest_1samp(means, threshold, alternative="less")
            cases.append({"means": means, "threshold": threshold, "p_value": test.pvalue})
    return cases


def holm(p_values):
    """By the definition: the step-down maxima of (m − j + 1)·p over the sorted p-values."""
    order = np.argsort(p_values)
    steps = (len(p_values) - np.arange(len(p_values))) * np.asarray(p_values)[order]
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return list(adjusted)


def holm_cases():
    cases = [rounded(random.random(count) ** 3) for count in [1, 2, 4, 8, 20]] + [[0.02, 0.02, 0.5, 0.02]]
    return [{"p_values": p_values, "adjusted": holm(p_values)} for p_values in cases]


def sign_flips():
    cases = []
    draws = [0.004 + 0.01 * random.standard_normal(count) for count in [2, 3, 4, 6, 9, 12]]
    # Ties: equal sizes, zeros, and a sum of zero.
    draws += [np.array([0.01, 0.01, -0.01, 0.02, 0.0]), np.array([0.01, -0.01, 0.02, -0.02]), np.full(6, -0.003)]
    for means in map(rounded, draws):
        test = lambda alternative: stats.permutation_test(
            (means,), np.mean, permutation_type="samples", n_resamples=np.inf, alternative=alternative).pvalue
        cases.append({"means": means, "faster": test("greater"), "slower": test("less"), "two_sided": test("two-sided")})
    return cases


def score_and_variance(sequence):
    """Kendall's score and its variance under ties, recovered from scipy's coefficient and its normal p-value."""
    steps = np.arange(len(sequence))
    test = stats.kendalltau(steps, sequence, method="asymptotic")
    tied = np.unique(sequence, return_counts=True)[1]
    pairs = len(sequence) * (len(sequence) - 1) / 2
    score = round(test.statistic * np.sqrt(pairs * (pairs - (tied * (tied - 1) / 2).sum())))
    return score, (score / stats.norm.isf(test.pvalue / 2)) ** 2 if score else None


def trends():
    cases = []
    for lengths in [[9], [12], [30], [4, 4, 4, 4], [3] * 9, [5, 8, 13]]:
        for slope in [0.02, 0.3]:
            # One decimal, so that there are ties; a score of 0 would hide the variance from the p-value.
            while True:
                sequences = [rounded(random.standard_normal(length) + slope * np.arange(length), 1) for length in lengths]
                if all(len(set(each)) > 1 and score_and_variance(each)[0] for each in sequences):
                    break
            score, variance = np.sum([score_and_variance(each) for each in sequences], axis=0)
            p_value = 2 * stats.norm.sf(max(abs(score) - 1, 0) / np.sqrt(variance))
            case = {"sequences": sequences, "p_value": p_value}
            if len(sequences) == 1:
                case["slope"] = stats.theilslopes(sequences[0]).slope
            cases.append(case)
    return cases


def warm_ups():
    """The stratified rank-sum test of the leading tenth, from scipy's ranks and tie corrections."""
    cases = []
    for count, length, shift in [(4, 6, 0), (9, 6, 1), (9, 12, 1), (1, 100, 1.5), (6, 25, 0.5)]:
        sequences = random.standard_normal((count, length))
        sequences[:, : -(-length // 10)] += shift
        lead = -(-length // 10)
        distance = variance = 0
        for sequence in map(lambda each: rounded(each, 1), sequences):
            ranks = stats.rankdata(sequence)
            distance += ranks[:lead].sum() - lead * (length + 1) / 2
            variance += lead * (length - lead) * (length + 1) / 12 * stats.tiecorrect(ranks)
        p_value = min(2 * stats.norm.sf((abs(distance) - 0.5) / np.sqrt(variance)), 1)
        cases.append({"sequences": [rounded(each, 1) for each in sequences], "p_value": p_value})
    return cases


def powers():
    cases = []
    for processes in [2, 3, 4, 6, 9, 20, 200]:
        for confidence in [0.9, 0.95, 0.99]:
            for distance in [0.05, 0.3, 1.0, 3.0]:
                critical = stats.t.ppf((1 + confidence) / 2, processes - 1)
                power = stats.nct.sf(critical, processes - 1, distance * np.sqrt(processes))
                cases.append({"processes": processes, "confidence": confidence, "distance": distance, "power": power})
    return cases


def rivals():
    cases = []
    for count, other, shift, digits in [(2, 3, 0, 4), (6, 5, 1, 4), (12, 12, 0.3, 4), (8, 9, 0.5, 4), (40, 55, 0.4, 1),
                                        (25, 10, 0, 0), (7, 7, 6, 4)]:
        one = rounded(10 + random.standard_normal(count), digits)
        two = rounded(10 + shift + 2 * random.standard_normal(other), digits)
        case = {
            "one": one,
            "other": two,
            "welch": stats.ttest_ind(one, two, equal_var=False).pvalue,
            "mann_whitney": stats.mannwhitneyu(one, two, method="asymptotic").pvalue,
        }
        if len(set(one + two)) == count + other and min(count, other) >= 7:
            case["mann_whitney_exact"] = stats.mannwhitneyu(one, two, method="exact").pvalue
        cases.append(case)
    return cases


def quantiles():
    """Definition 8 of Hyndman & Fan is numpy's median_unbiased."""
    cases = []
    for count in [1, 2, 5, 10, 101]:
        values = rounded(random.lognormal(0, 1, count))
        for probability in [0.0, 0.001, 0.025, 0.25, 0.5, 0.9, 0.999, 1.0]:
            cases.append({"values": values, "probability": probability,
                          "quantile": np.quantile(values, probability, method="median_unbiased")})
    return cases


def plain(value):
    """numpy's numbers as Python's, which keep every bit in JSON."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return float(value) if isinstance(value, np.floating) else value


reference = {
    "made_by": f"scripts/reference/reference.py, scipy {scipy.__version__}, numpy {np.__version__}",
    "student_quantiles": student_quantiles(),
    "student_p_values": student_p_values(),
    "holm": holm_cases(),
    "sign_flips": sign_flips(),
    "trends": trends(),
    "warm_ups": warm_ups(),
    "powers": powers(),
    "rivals": rivals(),
    "quantiles": quantiles(),
}
OUT.parent.mkdir(parents=True, exist_ok=True)
sections = ",\n".join(
    f"{json.dumps(name)}: " + (json.dumps(value) if isinstance(value, str) else
                               "[\n" + ",\n".join(json.dumps(case) for case in value) + "\n]")
    for name, value in plain(reference).items())
OUT.write_text("{\n" + sections + "\n}\n")
