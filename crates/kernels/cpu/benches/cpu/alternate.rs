//! Runs the compared programs in turns.

use std::error::Error;
use std::fmt;
use std::time::Instant;

use serde_json::{Value, json};

/// Warm-up rounds, which do not count.
const WARM_UP: usize = 2;

type Turn<'a> = Box<dyn FnMut(usize) -> Result<f64, Box<dyn Error>> + 'a>;

/// A program that takes turns and reports its time.
pub struct Contender<'a> {
    pub name: String,
    /// Called with the number of the turn, counted over all contenders, so that no contender reads operands that the
    /// previous one has just cached; returns seconds.
    pub turn: Turn<'a>,
}

impl<'a> Contender<'a> {
    /// A contender whose whole call is timed.
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

/// The times of one contender, in seconds.
#[derive(Debug, Clone)]
pub struct Times {
    pub name: String,
    pub seconds: Vec<f64>,
}

/// The median and the quartiles.
#[derive(Debug, Clone, Copy)]
pub struct Spread {
    pub low: f64,
    pub middle: f64,
    pub high: f64,
}

impl Spread {
    /// The spread of at least one value.
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
    /// The spread of the times.
    pub fn spread(&self) -> Spread {
        Spread::of(self.seconds.clone())
    }

    /// The speed relative to `other`, computed per round, because neighbouring turns share disturbances.
    pub fn speed_over(&self, other: &Self) -> Spread {
        let ratio = |(own, other): (&f64, &f64)| other / own;
        Spread::of(self.seconds.iter().zip(&other.seconds).map(ratio).collect())
    }

    /// As JSON, every turn included.
    pub fn json(&self) -> Value {
        json!({ "name": self.name, "seconds": self.seconds, "median": self.spread().middle })
    }
}

/// Gives each contender one turn per round, in varying order.
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
