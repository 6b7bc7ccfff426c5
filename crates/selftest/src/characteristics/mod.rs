//! How often do verdicts err? Comparisons with known truth, synthetic and real, beside what other rules would say.
