//! The written rules that turn a dossier into scores. There is one function for each dimension, and each states the
//! figures it used. Constants that cite the shark tank take their figures from the recorded rounds in
//! `examples/shark-tank`.

use crate::forecast::{SHORTEST_HOURS, expectation};
use crate::pitch::{EvidenceKind, Pitch, Quantiles, RiskLevel};
use gauntlet_judge::Prediction;
use gauntlet_judge::Verdict;

use super::{Dossier, Score, Scores};

/// The speed-up that gets all 10 points. A speed-up of 2× gets half the points: the scale is logarithmic, and two steps
/// of 2× make 4×, the boldest claim of the shark tank.
const FULL_SPEEDUP: f64 = 4.0;

/// The feasibility of one hour's work, and the points lost for each factor of ten in hours. They match the shark tank's
/// judge within 0.7 (0.5 h: 9.5, 16 h: 7, 28 h: 6, 160 h: 4).
const FEASIBILITY_OF_AN_HOUR: f64 = 9.0;
const LOST_A_TENFOLD_OF_HOURS: f64 = 2.0;

/// The chance of harm assumed for a pitch that declares no risk and states no chance of harm. The shark tank's "zero
/// risk" pitch ended as a regression on four cases of four, so a value between medium and high is mild.
const HARM_OF_THE_OVERCONFIDENT: f64 = 0.35;

/// A chance of harm below this counts as not stated.
const NO_CHANCE: f64 = 0.005;

/// Maximum points for each part of quality; they add up to 10.
const BEST_EVIDENCE: f64 = 4.0;
const SEVERAL_KINDS: f64 = 1.0;
const ABORT_RULES: f64 = 1.5;
const CONCRETE_FALLBACK: f64 = 1.5;
const WORDS_FOR_FALLBACK: f64 = 0.75;
const SPREAD_ODDS: f64 = 1.0;
const HONEST_QUANTILES: f64 = 1.0;

/// Odds on one verdict above which a forecast claims more knowledge than is possible before measuring.
const BOLD_ODDS: f64 = 0.8;

/// Quantiles must span at least this share of the claimed effect, or they are only a decorated point estimate…
const NARROWEST_PART: f64 = 0.5;
/// …and at most this factor from lowest to highest, or they carry no information.
const WIDEST_FACTOR: f64 = 4.0;

/// All four scores of a pitch.
pub(super) fn scores(dossier: &Dossier) -> Scores {
    Scores {
        speedup: speedup(dossier),
        feasibility: feasibility(dossier),
        risk: risk(dossier.pitch),
        quality: quality(dossier.pitch),
    }
}

/// Whether a pitch declares no risk and states no chance of harm.
pub(super) fn is_overconfident(pitch: &Pitch) -> bool {
    pitch.risk.level == RiskLevel::None && chance_of_harm(pitch) < NO_CHANCE
}

/// The speed-up expected from the claim, the record and, where it may be relied on, the model (see [`expectation`]): 0
/// points at 1× or less, 10 at [`FULL_SPEEDUP`], logarithmic between. The roofline caps it only where the model may be
/// relied on.
fn speedup(dossier: &Dossier) -> Score {
    let claimed = dossier.pitch.claim.speedup.q50;
    let record = &dossier.record;
    let mut reason = format!(
        "claimed {claimed:.2}×, of which {:.0} % is believed",
        record.credibility * 100.0
    );
    if record.settled > 0 {
        reason += &format!(" of one who had {} of {} adopted", record.adopted, record.settled);
    }
    let mut expected = expectation(&dossier.grounds()).map_or(0.0, |belief| belief.mean);
    if let Some(prediction) = dossier.predicted.filter(|prediction| !prediction.is_relied_on()) {
        reason += &format!(
            "; the model's {:.2}× does not count, since {}",
            prediction.middle,
            prediction.record()
        );
    }
    if let Some(prediction) = dossier.predicted.filter(Prediction::is_relied_on) {
        reason += &format!(
            ", with the model's {:.2}× makes {:.2}×",
            prediction.middle,
            expected.exp()
        );
        let most = prediction.headroom.max(1.0).ln();
        if expected > most {
            expected = most;
            reason += &format!(
                ", capped at the {:.2}× that the roofline leaves",
                prediction.headroom
            );
        }
    }
    reason += &format!(": {:.2}× expected", expected.exp());
    Score::by_rule(10.0 * expected / FULL_SPEEDUP.ln(), reason)
}

/// 0 for a pitch that the device forbids. Otherwise it falls with the logarithm of the hours, and is lower for an
/// author whose pitches were stopped (infeasible, incorrect and so on) more often than is assumed for an unknown
/// author.
fn feasibility(dossier: &Dossier) -> Score {
    if let Some(first) = dossier.violations.first() {
        let more = match dossier.violations.len() - 1 {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        return Score::by_rule(0.0, format!("the device forbids it: {first}{more}"));
    }
    let hours = dossier.pitch.cost.hours;
    let value = FEASIBILITY_OF_AN_HOUR - LOST_A_TENFOLD_OF_HOURS * hours.max(SHORTEST_HOURS).log10();
    let (record, survival) = (&dossier.record, dossier.record.relative_survival());
    let mut reason = format!("no rule of the device is broken; {hours} h of work");
    if survival < 1.0 {
        reason += &format!(
            "; {:.0} % are taken to be stopped before they are compared, as {} of the author's {} and others' were, \
             which leaves {:.0} % of the points",
            record.stop_rate * 100.0,
            record.stopped,
            record.settled,
            survival * 100.0
        );
    }
    Score::by_rule(value * survival, reason)
}

/// 10 minus ten times the chance of harm: the larger of the chance from the odds and the chance that the declared level
/// implies.
fn risk(pitch: &Pitch) -> Score {
    let stated = chance_of_harm(pitch);
    if is_overconfident(pitch) {
        let reason = format!(
            "declares no risk and gives harm no chance; {:.0} % is taken instead",
            HARM_OF_THE_OVERCONFIDENT * 100.0
        );
        return Score::by_rule(10.0 * (1.0 - HARM_OF_THE_OVERCONFIDENT), reason);
    }
    let implied = implied_harm(pitch.risk.level);
    let reason = format!(
        "its odds give harm {:.0} %, its declared level implies {:.0} %; the greater counts",
        stated * 100.0,
        implied * 100.0
    );
    Score::by_rule(10.0 * (1.0 - stated.max(implied)), reason)
}

/// The stated chance of a worse outcome: slower, wrong, or not running. Giving up by its own rules, or missing a
/// requirement, harms nothing.
fn chance_of_harm(pitch: &Pitch) -> f64 {
    use Verdict::{DoesNotCompile, Incorrect, Infeasible, OverBudget, Racy, Regression};
    [
        Regression,
        Infeasible,
        OverBudget,
        DoesNotCompile,
        Incorrect,
        Racy,
    ]
    .into_iter()
    .map(|verdict| pitch.odds.of(verdict))
    .sum()
}

/// A declared level as a chance of harm. An assumption about the words, evenly spread.
fn implied_harm(level: RiskLevel) -> f64 {
    match level {
        RiskLevel::None => 0.0,
        RiskLevel::Low => 0.15,
        RiskLevel::Medium => 0.3,
        RiskLevel::High => 0.5,
        RiskLevel::VeryHigh => 0.7,
    }
}

/// Points for evidence, abort rules, fallback, odds and quantiles.
fn quality(pitch: &Pitch) -> Score {
    let best = pitch.evidence.iter().map(|evidence| evidence.kind).max();
    let evidence = best.map_or(0.0, |kind| BEST_EVIDENCE * strength(kind)) + several_kinds(pitch);
    let abort = if pitch.abort.is_empty() { 0.0 } else { ABORT_RULES };
    let fallback = if pitch.fallback.schedule.is_some() {
        CONCRETE_FALLBACK
    } else {
        WORDS_FOR_FALLBACK
    };
    let forecast = odds_points(pitch) + quantile_points(pitch.claim.speedup);
    let reason = format!(
        "evidence {evidence:.1} of {:.0}, abort rules {abort} of {ABORT_RULES}, \
         fallback {fallback} of {CONCRETE_FALLBACK}, odds and quantiles {forecast:.1} of {:.0}",
        BEST_EVIDENCE + SEVERAL_KINDS,
        SPREAD_ODDS + HONEST_QUANTILES
    );
    Score::by_rule(evidence + abort + fallback + forecast, reason)
}

/// The value of a kind of evidence, as a fraction of the best kind's.
fn strength(kind: EvidenceKind) -> f64 {
    match kind {
        EvidenceKind::Intuition => 0.1,
        EvidenceKind::Precedent => 0.25,
        EvidenceKind::Reference => 0.4,
        EvidenceKind::Calculation => 0.6,
        EvidenceKind::Profile => 0.85,
        EvidenceKind::Measurement => 1.0,
    }
}

/// Half a point for a second kind of evidence and half for a third; more of the same kind adds nothing.
fn several_kinds(pitch: &Pitch) -> f64 {
    let mut kinds: Vec<_> = pitch.evidence.iter().map(|evidence| evidence.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    SEVERAL_KINDS * (kinds.len().saturating_sub(1) as f64 / 2.0).min(1.0)
}

/// All points up to [`BOLD_ODDS`] on one verdict, no points for certainty.
fn odds_points(pitch: &Pitch) -> f64 {
    let boldest = Verdict::ALL
        .into_iter()
        .map(|verdict| pitch.odds.of(verdict))
        .fold(0.0, f64::max);
    SPREAD_ODDS * ((1.0 - boldest) / (1.0 - BOLD_ODDS)).clamp(0.0, 1.0)
}

/// All or nothing: the range must be neither too narrow for the claimed effect nor too wide to carry information.
fn quantile_points(Quantiles { q10, q50, q90 }: Quantiles) -> f64 {
    let width = (q90 / q10).ln();
    let narrowest = NARROWEST_PART * q50.ln().abs();
    if width > 0.0 && width >= narrowest && width <= WIDEST_FACTOR.ln() {
        HONEST_QUANTILES
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests;
