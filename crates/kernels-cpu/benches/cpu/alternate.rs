//! Contenders that take turns.

use std::error::Error;
use std::fmt;
use std::time::Instant;

use serde_json::{Value, json};

/// Rounds that are not counted.
const WARM_UP: usize = 2;

type Turn<'a> = Box<dyn FnMut(usize) -> Result<f64, Box<dyn Error>> + 'a>;

/// Someone who takes a turn, and says how long it took.
pub struct Contender<'a> {
    pub name: String,
    /// Called with the number of the turn, all contenders' counted, so that nobody finds what the one before has just read;
    /// returns seconds.
    pub turn: Turn<'a>,
}

impl<'a> Contender<'a> {
    /// One whose whole call is timed.
    pub fn timed(
        name: impl Into<String>,
        mut call: impl FnMut(usize) -> Result<(), Box<dyn Error>> + 'a,
    ) -> Self {
        Self {
            name: name.into(),
            turn: Box::new(move |turn| {
                let start = Instant::now();
                call(turn)?;
                Ok(start.elapsed().as_secs_f64())
            }),
        }
    }
}

/// The turns of one contender, in seconds.
#[derive(Debug, Clone)]
pub struct Times {
    pub name: String,
    pub seconds: Vec<f64>,
}

/// The middle and the quartiles.
#[derive(Debug, Clone, Copy)]
pub struct Spread {
    pub low: f64,
    pub middle: f64,
    pub high: f64,
}

impl Spread {
    /// Of at least one value.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
        Self {
            low: at(0.25),
            middle: at(0.5),
            high: at(0.75),
        }
    }

    /// As JSON: quartile, median, quartile.
    pub fn json(self) -> Value {
        json!([self.low, self.middle, self.high])
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { low, middle, high } = self;
        write!(formatter, "{middle:.2} [{low:.2} … {high:.2}]")
    }
}

impl Times {
    /// Of its seconds.
    pub fn spread(&self) -> Spread {
        Spread::of(self.seconds.clone())
    }

    /// How many times as fast as `other`: of each round, as neighbours in time share what disturbs them.
    pub fn speed_over(&self, other: &Self) -> Spread {
        let ratio = |(own, other): (&f64, &f64)| other / own;
        Spread::of(self.seconds.iter().zip(&other.seconds).map(ratio).collect())
    }

    /// As JSON, every turn included.
    pub fn json(&self) -> Value {
        json!({ "name": self.name, "seconds": self.seconds, "median": self.spread().middle })
    }
}

/// Gives each contender one turn a round, nobody always behind the same one.
pub fn alternate(rounds: usize, contenders: &mut [Contender<'_>]) -> Result<Vec<Times>, Box<dyn Error>> {
    let count = contenders.len();
    let mut times: Vec<Times> = contenders
        .iter()
        .map(|contender| Times {
            name: contender.name.clone(),
            seconds: Vec::with_capacity(rounds),
        })
        .collect();
    let mut turns = 0..;
    for round in 0..WARM_UP + rounds {
        for place in 0..count {
            let at = if round % 2 == 0 {
                (round / 2 + place) % count
            } else {
                (round / 2 + count - place) % count
            };
            let seconds = (contenders[at].turn)(turns.next().unwrap_or_default())?;
            if round >= WARM_UP {
                times[at].seconds.push(seconds);
            }
        }
    }
    Ok(times)
}
