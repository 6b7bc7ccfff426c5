//! Where a row of times seems to change: E-divisive, of Matteson and James (2014). It sees whatever a machine did between two days too,
//! so what it finds is a place to look at, and no verdict.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// Fewer times on a side of a change say nothing.
const LEAST: usize = 2;

/// Random orders of the times that a change is held against.
const ORDERS: usize = 199;

/// A change is proposed if at most this part of the orders, with the true one, show one as large.
const LEVEL: f64 = 0.05;

/// The places in the row at which a time is the first of a new level, in order.
pub fn changes(times: &[f64]) -> Vec<usize> {
    let logs: Vec<f64> = times.iter().map(|time| time.ln()).collect();
    let mut found = Vec::new();
    let mut waiting = vec![(0, logs.len())];
    let mut random = ChaCha8Rng::seed_from_u64(0);
    while let Some((start, end)) = waiting.pop() {
        let Some((place, size)) = greatest(&logs[start..end]) else {
            continue;
        };
        let mut shuffled = logs[start..end].to_vec();
        let as_large = (0..ORDERS).filter(|_| {
            shuffled.shuffle(&mut random);
            greatest(&shuffled).is_some_and(|(_, other)| other >= size)
        });
        if (1 + as_large.count()) as f64 <= LEVEL * (1 + ORDERS) as f64 {
            let place = start + place;
            found.push(place);
            waiting.extend([(start, place), (place, end)]);
        }
    }
    found.sort_unstable();
    found
}

/// The division of a row into two whose energy distance is the greatest, and that distance; none if the row is too short.
fn greatest(row: &[f64]) -> Option<(usize, f64)> {
    let distance =
        |one: usize, others: &[f64]| others.iter().map(|other| (row[one] - other).abs()).sum::<f64>();
    let mut between = 0.0;
    let mut left = 0.0;
    let mut right: f64 = (0..row.len()).map(|one| distance(one, &row[one + 1..])).sum();
    let mut best = None;
    // Each time goes from the right to the left.
    for place in 1..row.len() {
        let moved = place - 1;
        let [before, after] = [distance(moved, &row[..moved]), distance(moved, &row[place..])];
        between += after - before;
        left += before;
        right -= after;
        let [m, n] = [place, row.len() - place];
        if m < LEAST || n < LEAST {
            continue;
        }
        let [m, n] = [m as f64, n as f64];
        let pairs = |count: f64| count * (count - 1.0) / 2.0;
        let energy = 2.0 * between / (m * n) - left / pairs(m) - right / pairs(n);
        let size = m * n / (m + n) * energy;
        if best.is_none_or(|(_, best)| size > best) {
            best = Some((place, size));
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;

    fn noisy(levels: &[(usize, f64)]) -> Vec<f64> {
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let mut noise = || random.random_range(0.98..1.02);
        levels
            .iter()
            .flat_map(|(count, level)| vec![*level; *count])
            .map(|level: f64| level * noise())
            .collect()
    }

    #[test]
    fn changes_are_proposed_where_the_level_changes_and_nowhere_else() {
        assert_eq!(changes(&noisy(&[(40, 1e-3)])), Vec::<usize>::new());
        assert_eq!(changes(&noisy(&[(20, 1e-3), (20, 1.1e-3)])), [20]);
        assert_eq!(
            changes(&noisy(&[(12, 1e-3), (12, 1.3e-3), (12, 0.9e-3)])),
            [12, 24]
        );
        assert!(changes(&[]).is_empty() && changes(&[1.0, 2.0]).is_empty());
    }
}
