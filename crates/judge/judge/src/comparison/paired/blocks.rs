//! How many blocks a pair of trusted kernels measures: as many as the noise within processes needs.
//!
//! With more blocks the effect of a process is known better, which is worth its time as long as noise within processes is what
//! makes pairs differ; beyond that only more pairs help (Kalibera & Jones 2013, section 6, choose repetitions at each level so).
//! The number follows from the spread within earlier pairs alone, whatever their effects were, so that it has no influence on
//! the error of verdicts.

use std::f64::consts::FRAC_PI_2;

use gauntlet_stats::{Block, Sample};

/// The scatter of a process's effect that noise within it may leave, as a logarithm: about what processes differ by anyway.
const SCATTER: f64 = 0.01;

/// The number of blocks for the next pair: half of the `usual` number to twice as many, and as many as usual if there is no pair yet.
pub fn blocks_after(earlier: &[Block], usual: usize) -> usize {
    let Ok(sample) = Sample::from_blocks(earlier) else {
        return usual;
    };
    let (mut squares, mut freedom) = (0.0, 0);
    for effects in sample.by_process() {
        let mean = effects.iter().sum::<f64>() / effects.len().max(1) as f64;
        squares += effects.iter().map(|effect| (effect - mean).powi(2)).sum::<f64>();
        freedom += effects.len().saturating_sub(1);
    }
    match freedom {
        0 => usual,
        // A process's effect is a median, whose variance is π/2 of that of a mean.
        _ => ((FRAC_PI_2 * squares / freedom as f64 / SCATTER.powi(2)).ceil() as usize)
            .clamp(usual.div_ceil(2), 2 * usual),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks of a process whose effects alternate around a value by this much.
    fn blocks(effect: f64, by: f64) -> Vec<Block> {
        let block = |number: usize| {
            let sign = if number.is_multiple_of(2) { 1.0 } else { -1.0 };
            Block::new(0, vec![(effect + sign * by).exp(); 2], vec![1.0; 2])
        };
        (0..6).map(block).collect()
    }

    #[test]
    fn more_noise_within_processes_takes_more_blocks() {
        assert_eq!(blocks_after(&[], 6), 6);
        assert_eq!(blocks_after(&blocks(0.0, 0.001), 6), 3);
        // 1.57 · 1.2 · (2 %)² over (1 %)².
        assert_eq!(blocks_after(&blocks(0.0, 0.02), 6), 8);
        assert_eq!(blocks_after(&blocks(0.0, 0.2), 6), 12);
    }

    #[test]
    fn the_effect_itself_has_no_influence() {
        assert_eq!(
            blocks_after(&blocks(0.7, 0.02), 6),
            blocks_after(&blocks(-0.2, 0.02), 6)
        );
    }
}
