//! Whether it pays to deal scarce hours by the gain that an hour is expected to bring, under the credit of contestants.
//!
//! Simulated tournaments with contestants of known skill and honesty, each played under four rules that decide whose pitches get
//! the round's hours: the largest claims, the panel's mean scores, chance, and the expected gain an hour of
//! [`Standing::roi`](gauntlet_tournament::panel::Standing::roi), which shrinks claims by their authors' records. The worlds are
//! the same for all four, so that differences are paired.
//!
//! ```sh
//! cargo run --release -p gauntlet-tournament --example dealing -- 2000 > dealing.json
//! ```
#![expect(
    clippy::unwrap_used,
    reason = "an experiment: whatever it reads, it has made itself"
)]

use std::collections::BTreeMap;

use gauntlet_judge::Verdict;
use gauntlet_judge::ledger::RunId;
use gauntlet_stats::Interval;
use gauntlet_tournament::forecast::{Answer, Forecasts, TrackRecord};
use gauntlet_tournament::panel::{Dossier, Panel, Ranking};
use gauntlet_tournament::{Overrides, Pitch, Tournament};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Normal, Uniform};
use serde_json::{Value, json};

/// Rounds of a tournament, working hours of a round, and how far a gain may lie from the truth when it is measured.
const ROUNDS: usize = 8;
const HOURS: f64 = 8.0;

/// Working hours that are dealt in each recorded round: a week, since most of its pitches take days.
const RECORDED_HOURS: f64 = 40.0;
const NOISE: f64 = 0.005;

/// A gain below this is not adopted; the usual target.
const TARGET: f64 = 0.02;

/// A kind of contestant: the figures from which its pitches are drawn.
struct Character {
    name: &'static str,
    /// Mean and standard deviation of the true log speed-up of its changes.
    skill: (f64, f64),
    /// The share of its changes that a gate stops.
    stopped: f64,
    /// What its claims add to the truth, on average, and how far they scatter.
    claims: (f64, f64),
    /// Whether its odds say the true share of stopped changes.
    honest_odds: bool,
}

/// Two of each play in every tournament.
const CHARACTERS: [Character; 5] = [
    Character {
        name: "good and honest",
        skill: (0.08, 0.08),
        stopped: 0.15,
        claims: (0.0, 0.08),
        honest_odds: true,
    },
    Character {
        name: "good and modest",
        skill: (0.08, 0.08),
        stopped: 0.15,
        claims: (-0.04, 0.08),
        honest_odds: true,
    },
    Character {
        name: "poor and honest",
        skill: (0.0, 0.04),
        stopped: 0.3,
        claims: (0.02, 0.06),
        honest_odds: true,
    },
    Character {
        name: "poor and loud",
        skill: (-0.02, 0.05),
        stopped: 0.4,
        claims: (0.6, 0.2),
        honest_odds: false,
    },
    Character {
        name: "cheats",
        skill: (0.0, 0.02),
        stopped: 0.9,
        claims: (0.8, 0.2),
        honest_odds: false,
    },
];
const OF_EACH: usize = 2;

/// What decides whose pitches get the hours.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rule {
    Claim,
    Panel,
    Chance,
    Credit,
}

const RULES: [(Rule, &str); 4] = [
    (Rule::Claim, "by claim"),
    (Rule::Panel, "by the panel's mean"),
    (Rule::Chance, "by chance"),
    (Rule::Credit, "by expected gain an hour, under credit"),
];

/// A pitch with what nobody knows beforehand.
struct Drawn {
    pitch: Pitch,
    truth: f64,
    stops: bool,
}

fn drawn(random: &mut ChaCha8Rng, round: usize, who: usize) -> Drawn {
    let character = &CHARACTERS[who / OF_EACH];
    let mut normal = |(mean, deviation): (f64, f64)| Normal::new(mean, deviation).unwrap().sample(random);
    let truth = normal(character.skill);
    let claim = (truth + normal(character.claims)).max(0.005);
    let hours = normal((1.0, 0.6)).exp().clamp(0.5, HOURS);
    let stops = Uniform::new(0.0, 1.0).unwrap().sample(random) < character.stopped;
    let stopped = if character.honest_odds {
        character.stopped
    } else {
        0.02
    };
    let pitch = json!({
        "name": format!("pitch {round} of {who}"),
        "author": format!("{} {}", character.name, who % OF_EACH + 1),
        "problem": "simulated", "change": "simulated",
        "claim": { "speedup": { "q10": (claim - 0.1).exp(), "q50": claim.exp(), "q90": (claim + 0.1).exp() } },
        "odds": { "adopt": 0.7 * (1.0 - stopped), "valid-negative": 0.3 * (1.0 - stopped), "incorrect": stopped },
        "cost": { "hours": hours },
        "risk": { "level": "low", "why": "simulated" },
        "evidence": [{ "kind": "calculation", "text": "simulated" }],
        "abort": [], "fallback": { "plan": "keep it" },
    });
    Drawn {
        pitch: serde_json::from_value(pitch).unwrap(),
        truth,
        stops,
    }
}

fn ranked<'p>(pitches: impl Iterator<Item = &'p Pitch>, record: impl Fn(&str) -> TrackRecord) -> Ranking {
    let dossiers: Vec<Dossier> = pitches
        .map(|pitch| Dossier {
            pitch,
            violations: Vec::new(),
            predicted: None,
            record: record(&pitch.author),
        })
        .collect();
    Panel::new(&[]).rank(&dossiers)
}

/// The pitches in the order in which a rule deals hours to them.
fn order(rule: Rule, pitches: &[&Pitch], forecasts: &Forecasts, random: &mut ChaCha8Rng) -> Vec<usize> {
    let mut order: Vec<usize> = (0..pitches.len()).collect();
    let by = |worth: &dyn Fn(usize) -> f64, mut order: Vec<usize>| {
        order.sort_by(|one, other| worth(*other).total_cmp(&worth(*one)));
        order
    };
    let of_ranking = |record: &dyn Fn(&str) -> TrackRecord, worth: &dyn Fn(f64, f64) -> f64| {
        let ranking = ranked(pitches.iter().copied(), record);
        let worths: BTreeMap<String, f64> = ranking
            .standings
            .iter()
            .map(|one| {
                (
                    one.pitch.clone(),
                    worth(one.mean, one.roi.map_or(0.0, |roi| roi.dealt())),
                )
            })
            .collect();
        pitches
            .iter()
            .map(|pitch| worths[&pitch.name])
            .collect::<Vec<f64>>()
    };
    match rule {
        Rule::Chance => {
            order.shuffle(random);
            order
        }
        Rule::Claim => by(&|at| pitches[at].claim.speedup.q50.ln(), order),
        Rule::Panel => {
            let means = of_ranking(&|_| TrackRecord::default(), &|mean, _| mean);
            by(&|at| means[at], order)
        }
        Rule::Credit => {
            let gains = of_ranking(&|author| forecasts.record_of(author), &|_, gain| gain);
            by(&|at| gains[at], order)
        }
    }
}

/// The log speed-up that a tournament reaches, and the hours that it takes.
fn played(rule: Rule, seed: u64) -> (f64, f64) {
    let mut world = ChaCha8Rng::seed_from_u64(seed);
    let mut chance = ChaCha8Rng::seed_from_u64(seed ^ 0x5eed);
    let mut forecasts = Forecasts::default();
    let (mut reached, mut spent) = (0.0, 0.0);
    for round in 0..ROUNDS {
        let drawn: Vec<Drawn> = (0..CHARACTERS.len() * OF_EACH)
            .map(|who| drawn(&mut world, round, who))
            .collect();
        let noise = Normal::new(0.0, NOISE).unwrap();
        let found: Vec<f64> = drawn
            .iter()
            .map(|one| one.truth + noise.sample(&mut world))
            .collect();
        let pitches: Vec<&Pitch> = drawn.iter().map(|one| &one.pitch).collect();
        let mut left = HOURS;
        let mut best: f64 = 0.0;
        for at in order(rule, &pitches, &forecasts, &mut chance) {
            let Drawn { pitch, truth, stops } = &drawn[at];
            if pitch.cost.hours > left {
                continue;
            }
            left -= pitch.cost.hours;
            spent += pitch.cost.hours;
            let verdict = match found[at] {
                _ if *stops => Verdict::Incorrect,
                gain if gain > TARGET => Verdict::Adopt,
                gain if gain < -TARGET => Verdict::Regression,
                _ => Verdict::ValidNegative,
            };
            if verdict == Verdict::Adopt {
                best = best.max(*truth);
            }
            forecasts.add(answer(pitch, verdict, (!stops).then_some(found[at])));
        }
        reached += best;
    }
    (reached, spent)
}

fn answer(pitch: &Pitch, verdict: Verdict, found: Option<f64>) -> Answer {
    let forecast = json!({
        "author": pitch.author, "identity": pitch.name,
        "scope": { "executor": "cpu", "device": "simulated", "suite": "simulated" },
        "round-digest": "", "odds": pitch.odds, "speedup": pitch.claim.speedup, "hours": pitch.cost.hours,
        "predicted": null, "forbidden": false, "changes-something": true, "withdrawn": false, "fallback": null,
    });
    let interval = |found: f64| -> Interval {
        let (lower, upper) = (found - 2.0 * NOISE, found + 2.0 * NOISE);
        Interval {
            estimate: found,
            lower,
            upper,
            origin: gauntlet_stats::Origin::Measured {
                confidence: 0.95,
                processes: 9,
            },
        }
    };
    Answer {
        run: RunId::new("simulated"),
        round: String::new(),
        pitch: pitch.name.clone(),
        forecast: serde_json::from_value(forecast).unwrap(),
        verdict,
        reason: String::new(),
        examined: true,
        found: found.map(interval),
    }
}

/// The mean with its interval of 95 %.
fn summary(values: &[f64]) -> Value {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let half = 1.959_964 * (variance / count).sqrt();
    json!({ "mean": mean, "lower": mean - half, "upper": mean + half })
}

/// The recorded rounds, and whose pitches each rule would give a week's hours.
fn recorded() -> Value {
    let file =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/shark-tank/replay.toml");
    let tournament = Tournament::load(&file, &Overrides::default()).unwrap();
    let rounds = tournament.rounds.iter().filter(|round| round.pitches.len() > 1);
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let rounds = rounds.map(|round| {
        let pitches: Vec<&Pitch> = round
            .pitches
            .iter()
            .filter(|pitch| pitch.withdrawn.is_none())
            .collect();
        let rules = RULES.map(|(rule, name)| {
            let mut left = RECORDED_HOURS;
            let order = order(rule, &pitches, &Forecasts::default(), &mut random);
            let funded = order.into_iter().filter(|at| {
                let fits = pitches[*at].cost.hours <= left;
                left -= if fits { pitches[*at].cost.hours } else { 0.0 };
                fits
            });
            let funded: Vec<&str> = funded.map(|at| pitches[at].name.as_str()).collect();
            json!({ "rule": name, "funded": funded, "hours-left": left })
        });
        json!({ "round": round.file().name, "rules": rules })
    });
    rounds.collect()
}

fn main() {
    let tournaments: u64 = std::env::args()
        .nth(1)
        .map_or(2000, |count| count.parse().unwrap());
    let mut gains: BTreeMap<Rule, Vec<f64>> = BTreeMap::new();
    for seed in 0..tournaments {
        for (rule, _) in RULES {
            let (reached, spent) = played(rule, seed);
            gains.entry(rule).or_default().push(100.0 * reached / spent);
        }
    }
    let credit = &gains[&Rule::Credit];
    let rules = RULES.map(|(rule, name)| {
        let own = &gains[&rule];
        let over: Vec<f64> = credit.iter().zip(own).map(|(credit, own)| credit - own).collect();
        json!({ "rule": name, "per-hour": summary(own), "credit-gains-over-it": summary(&over) })
    });
    let result = json!({
        "what": "hundredths of log speed-up reached per working hour, means over tournaments with intervals of 95 %",
        "tournaments": tournaments, "rounds": ROUNDS, "hours-a-round": HOURS,
        "contestants": CHARACTERS.iter().map(|one| one.name).collect::<Vec<_>>(), "of-each": OF_EACH,
        "rules": rules,
        "recorded-rounds": recorded(),
    });
    println!("{}", serde_json::to_string_pretty(&result).unwrap());
}
