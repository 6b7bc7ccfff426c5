//! A forest of extremely randomised trees, which predicts a value and how sure it is: P. Geurts, D. Ernst, L. Wehenkel,
//! "Extremely randomized trees", Machine Learning 63 (2006).

use rand::{Rng, RngExt};

/// Trees in a forest.
const TREES: usize = 30;

/// Cuts at random of which a node takes the best, each of another feature.
const CUTS: usize = 5;

/// Trees fitted to the same values, which differ by their cuts.
pub(super) struct Forest(Vec<Tree>);

/// The nodes of a tree, its root first.
struct Tree(Vec<Node>);

enum Node {
    Leaf(f64),
    /// Rows whose feature is at most `cut` belong to the next node, others to the node `above`.
    Fork {
        feature: usize,
        cut: f64,
        above: usize,
    },
}

impl Forest {
    /// Fits trees to the values of the rows. Every second tree sees only the first `columns` features.
    pub(super) fn grow(rows: &[&[f64]], values: &[f64], columns: usize, random: &mut impl Rng) -> Self {
        let all = rows.first().map_or(0, |row| row.len());
        let trees = (0..TREES).map(|index| {
            let mut sample = Sample {
                rows,
                values,
                features: (0..if index % 2 == 0 { columns } else { all }).collect(),
                nodes: Vec::new(),
            };
            sample.grow(&mut Vec::from_iter(0..rows.len()), random);
            Tree(sample.nodes)
        });
        Self(trees.collect())
    }

    /// The mean of the trees' predictions, and their standard deviation.
    pub(super) fn predict(&self, row: &[f64]) -> (f64, f64) {
        let (mut sum, mut squares) = (0.0, 0.0);
        for tree in &self.0 {
            let value = tree.predict(row);
            sum += value;
            squares += value * value;
        }
        let count = self.0.len() as f64;
        let mean = sum / count;
        (mean, (squares / count - mean * mean).max(0.0).sqrt())
    }
}

impl Tree {
    fn predict(&self, row: &[f64]) -> f64 {
        let mut at = 0;
        loop {
            match &self.0[at] {
                Node::Leaf(value) => return *value,
                Node::Fork { feature, cut, .. } if row[*feature] <= *cut => at += 1,
                Node::Fork { above, .. } => at = *above,
            }
        }
    }
}

/// A tree that grows.
struct Sample<'a> {
    rows: &'a [&'a [f64]],
    values: &'a [f64],
    features: Vec<usize>,
    nodes: Vec<Node>,
}

impl Sample<'_> {
    /// Adds the nodes of these rows.
    fn grow(&mut self, places: &mut [usize], random: &mut impl Rng) {
        let mean = places.iter().map(|place| self.values[*place]).sum::<f64>() / places.len().max(1) as f64;
        let differ = places
            .iter()
            .any(|place| (self.values[*place] - mean).abs() > 1e-7);
        let node = self.nodes.len();
        self.nodes.push(Node::Leaf(mean));
        let Some((feature, cut)) = differ.then(|| self.cut(places, random)).flatten() else {
            return;
        };
        let mut below = 0;
        for index in 0..places.len() {
            if self.rows[places[index]][feature] <= cut {
                places.swap(index, below);
                below += 1;
            }
        }
        let (low, high) = places.split_at_mut(below);
        self.grow(low, random);
        let above = self.nodes.len();
        self.grow(high, random);
        self.nodes[node] = Node::Fork { feature, cut, above };
    }

    /// Of some cuts at random, the one after which the values differ least within both parts; none if no feature tells
    /// the rows apart.
    fn cut(&mut self, places: &[usize], random: &mut impl Rng) -> Option<(usize, f64)> {
        let mut best: Option<(f64, usize, f64)> = None;
        let mut tried = 0;
        for index in 0..self.features.len() {
            let other = random.random_range(index..self.features.len());
            self.features.swap(index, other);
            let feature = self.features[index];
            let of = |place: &usize| self.rows[*place][feature];
            let least = places.iter().map(of).fold(f64::MAX, f64::min);
            let most = places.iter().map(of).fold(f64::MIN, f64::max);
            if least >= most {
                continue;
            }
            // Rounding must not put all rows on one side.
            let cut = least + (most - least) * random.random::<f64>();
            let cut = if cut < most { cut } else { least };
            let (mut low, mut high) = ((0.0, 0.0), (0.0, 0.0));
            for place in places {
                let side = if of(place) <= cut { &mut low } else { &mut high };
                side.0 += 1.0;
                side.1 += self.values[*place];
            }
            let gain = low.1 * low.1 / low.0 + high.1 * high.1 / high.0;
            if best.is_none_or(|(most, ..)| gain > most) {
                best = Some((gain, feature, cut));
            }
            tried += 1;
            if tried == CUTS {
                break;
            }
        }
        best.map(|(_, feature, cut)| (feature, cut))
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn known_rows_are_predicted_exactly_and_others_with_doubt() {
        let rows: Vec<[f64; 2]> = (0..16)
            .map(|index| [f64::from(index % 4) / 3.0, f64::from(index / 4) / 3.0])
            .collect();
        let rows: Vec<&[f64]> = rows.iter().map(<[f64; 2]>::as_slice).collect();
        let values: Vec<f64> = rows.iter().map(|row| 3.0 * row[0] + row[1]).collect();
        let forest = Forest::grow(&rows, &values, 2, &mut ChaCha8Rng::seed_from_u64(1));
        for (row, value) in rows.iter().zip(&values) {
            let (mean, deviation) = forest.predict(row);
            assert!((mean - value).abs() < 1e-9 && deviation < 1e-6);
        }
        let (mean, deviation) = forest.predict(&[0.5, 0.5]);
        assert!(
            (mean - 2.0).abs() < 0.5 && deviation > 0.1,
            "{mean} ± {deviation}"
        );
    }
}
