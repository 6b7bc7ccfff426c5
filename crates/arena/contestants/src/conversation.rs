//! What conversations with programs and with models share: budgets, tools, and answers that are refused.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::engine::{Budget, Price};
use crate::misconduct::{Misconduct, Resource};
use crate::tools::{Tool, Tools};
use crate::used::Used;

/// An answer that is refused may be given again this often.
const REPEATS: usize = 2;

/// The tools that count as checks.
const CHECKS: [&str; 2] = ["check", "quick"];

/// The conversation about one question.
pub(crate) struct Conversation<'a> {
    budget: Budget,
    tools: Option<&'a mut dyn Tools>,
    accepts: &'a dyn Fn(&Value) -> Result<(), String>,
    begun: Instant,
    /// Time since then that does not count.
    paused: Duration,
    /// For how long its program was ready to go on and had no processor.
    starved: Duration,
    used: Used,
    /// What was wrong with the answers so far.
    refused: Vec<String>,
}

impl<'a> Conversation<'a> {
    /// Begins a conversation that may use this budget.
    pub fn new(
        budget: Budget,
        tools: Option<&'a mut dyn Tools>,
        accepts: &'a dyn Fn(&Value) -> Result<(), String>,
    ) -> Result<Self, Misconduct> {
        let conversation = Self {
            budget,
            tools,
            accepts,
            begun: Instant::now(),
            paused: Duration::ZERO,
            starved: Duration::ZERO,
            used: Used::default(),
            refused: Vec::new(),
        };
        conversation.turns_left()?;
        match conversation.time_left() {
            Duration::ZERO => Err(spent(Resource::Wall)),
            _ => Ok(conversation),
        }
    }

    /// The part of the budget that this conversation has not used.
    pub fn left(&self) -> Budget {
        self.budget.without(&self.used)
    }

    pub fn tools(&self) -> Vec<Tool> {
        self.tools.as_ref().map(|tools| tools.list()).unwrap_or_default()
    }

    /// For how long an answer was awaited.
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed().saturating_sub(self.paused + self.starved)
    }

    /// For how long an answer may still be awaited.
    pub fn time_left(&self) -> Duration {
        let budget = Duration::try_from(self.budget.wall).unwrap_or_default();
        budget.saturating_sub(self.elapsed())
    }

    /// The time is up.
    pub fn silent(&self) -> Misconduct {
        Misconduct::Silent {
            seconds: self.elapsed().as_secs_f64(),
            stderr: String::new(),
        }
    }

    /// Does something for which the participant is not to blame, so that its time does not count.
    pub fn pause<T>(&mut self, other: impl FnOnce(&mut Self) -> T) -> T {
        let begun = Instant::now();
        let done = other(self);
        self.forgive(begun);
        done
    }

    /// The time since then does not count.
    pub fn forgive(&mut self, since: Instant) {
        self.paused += since.elapsed();
    }

    /// For how long its program has had no processor so far though it was ready to go on: a busy machine is no fault of the
    /// participant's. No more than its budget is given once more, since a program may keep the machine busy itself.
    pub fn starved(&mut self, in_all: Duration) {
        let most = Duration::try_from(self.budget.wall).unwrap_or_default();
        self.starved = self.starved.max(in_all.min(most));
    }

    /// The tokens that are left.
    pub fn tokens_left(&self) -> Result<u64, Misconduct> {
        match self.left().tokens {
            0 => Err(spent(Resource::Tokens)),
            tokens => Ok(tokens),
        }
    }

    /// Counts tokens.
    pub fn charge(&mut self, read: u64, written: u64, price: Option<Price>) {
        self.used.add(&Used {
            tokens_in: read,
            tokens_out: written,
            money: price.map(|price| (read as f64 * price.input + written as f64 * price.output) / 1e6),
            ..Used::default()
        });
    }

    fn turns_left(&self) -> Result<u32, Misconduct> {
        match self.left().turns {
            0 => Err(spent(Resource::Turns)),
            turns => Ok(turns),
        }
    }

    /// Counts a turn.
    pub fn turn(&mut self) -> Result<(), Misconduct> {
        self.turns_left()?;
        self.used.turns += 1;
        Ok(())
    }

    /// Uses a tool; the error is what the participant is told.
    pub fn call(&mut self, name: &str, arguments: &Value) -> Result<Value, String> {
        if self.tools.is_some() && CHECKS.contains(&name) {
            if self.left().checks == 0 {
                return Err(format!("no check is left of {}", self.budget.checks));
            }
            self.used.checks += 1;
        }
        self.pause(|conversation| match &mut conversation.tools {
            Some(tools) => tools.call(name, arguments),
            None => Err("there are no tools for this question".to_owned()),
        })
    }

    /// Whether an answer has the right form. To examine it may take long, for which the participant is not to blame.
    pub fn accepts(&mut self, answer: &Value) -> Result<(), String> {
        self.pause(|conversation| (conversation.accepts)(answer))
    }

    /// Refuses an answer; the participant may answer again unless this was its last try.
    pub fn refuse(&mut self, why: String) -> Result<(), Misconduct> {
        self.note(&why).ok_or(Misconduct::Malformed {
            why,
            stderr: String::new(),
        })
    }

    /// The participant declined; it may answer after all unless this was its last try.
    pub fn decline(&mut self, why: String) -> Result<(), Misconduct> {
        self.note(&format!("it declined: {why}"))
            .ok_or(Misconduct::Refused { why })
    }

    /// Notes what was wrong with an answer; none if there is no other try.
    fn note(&mut self, why: &str) -> Option<()> {
        self.refused.push(why.to_owned());
        (self.refused.len() <= REPEATS).then_some(())
    }

    /// Ends it: what it has cost, and what was wrong with the answers that were refused.
    pub fn end(mut self) -> (Used, Vec<String>) {
        self.used.wall = self.elapsed().as_secs_f64();
        (self.used, self.refused)
    }
}

fn spent(resource: Resource) -> Misconduct {
    Misconduct::Spent { resource }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    #[test]
    fn a_program_that_had_no_processor_has_its_time_once_more_at_most() {
        let wall = Duration::from_mins(10);
        let budget = Budget {
            wall: SignedDuration::try_from(wall).unwrap(),
            ..Budget::default()
        };
        let accepts = |_: &Value| Ok(());
        let mut conversation = Conversation::new(budget, None, &accepts).unwrap();
        // As if all of its time had passed.
        conversation.begun -= wall;
        assert_eq!(conversation.time_left(), Duration::ZERO);
        let nine = Duration::from_mins(9);
        conversation.starved(nine);
        assert!(conversation.time_left() > Duration::from_mins(8));
        conversation.starved(Duration::from_mins(3));
        assert!(conversation.time_left() > Duration::from_mins(8), "it is a sum");
        conversation.begun -= wall;
        conversation.starved(nine * 9);
        assert_eq!(conversation.time_left(), Duration::ZERO);
    }
}
