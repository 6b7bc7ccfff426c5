//! The time of a call with almost no work: the pool's overhead in every call.

use std::error::Error;
use std::time::Duration;

use gauntlet_families::operations::generate;
use gauntlet_problems::{Form, Schedule};
use gauntlet_task::InputKind;
use serde_json::{Value, json};

use crate::Setting;
use crate::alternate::{Contender, Spread, Times, alternate};
use crate::operands::{Calls, problem, schedule};
use crate::table::{heading, row};

/// Calls per turn; the median counts, because single calls vary too much.
const CALLS: usize = 50;

/// A pause after which all threads sleep.
const NAP: Duration = Duration::from_micros(300);

pub fn measure(setting: &Setting) -> Result<Value, Box<dyn Error>> {
    heading("a call of 1×64×64", &["µs", "", "× one thread's speed"]);
    let shape = [1, 64, 64];
    let problem = problem(shape, Form::Plain);
    let copies = [generate(&problem, InputKind::Wide, 1)];
    let mut contenders = Vec::new();
    for threads in [1, setting.threads] {
        let engine = setting.engine(threads)?;
        for (passes, split_k) in [("two passes", 1), ("three passes", 2)] {
            for (pause, nap) in [("at once", Duration::ZERO), ("after a pause", NAP)] {
                let schedule = Schedule {
                    tile: [16, 16, 32].into(),
                    split_k,
                    ..schedule(&engine, &problem, setting)
                };
                let mut calls = Calls::new(&engine, &problem, &schedule, &copies)?;
                let mut call = Contender::timed("", move |turn| calls.call(turn));
                contenders.push(Contender {
                    name: format!("{threads}, {passes}, {pause}"),
                    turn: Box::new(move |turn| {
                        let mut seconds = Vec::with_capacity(CALLS);
                        for _ in 0..CALLS {
                            if !nap.is_zero() {
                                std::thread::sleep(nap);
                            }
                            seconds.push((call.turn)(turn)?);
                        }
                        Ok(Spread::of(seconds).middle)
                    }),
                });
            }
        }
    }
    let times = alternate(setting.rounds, &mut contenders)?;
    for (index, own) in times.iter().enumerate() {
        let over = own.speed_over(&times[index % 4]);
        let cells = [
            format!("{:.1}", own.spread().middle * 1e6),
            String::new(),
            over.to_string(),
        ];
        row(&own.name, &cells);
    }
    Ok(json!(times.iter().map(Times::json).collect::<Vec<_>>()))
}
