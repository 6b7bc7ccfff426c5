//! The words of a judgement.

use std::ffi::OsString;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::QueueError;

/// Which command judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum JudgementKind {
    /// `gauntlet check`: is one kernel right?
    Check,
    /// `gauntlet compare`: are two right, and which is faster?
    Compare,
    /// `gauntlet judge`: one kernel by all gates.
    Judge,
    /// `gauntlet tune`: the fastest parameters of each case.
    Tune,
    /// `gauntlet errand`: one candidate of a round. Only `gauntlet run` queues it.
    Errand,
}

impl JudgementKind {
    /// The command's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Compare => "compare",
            Self::Judge => "judge",
            Self::Tune => "tune",
            Self::Errand => "errand",
        }
    }

    /// Whether it says of a kernel whether it is faster, so that repeating it picks the luckiest.
    pub fn is_a_try(self) -> bool {
        matches!(self, Self::Compare | Self::Judge)
    }
}

/// The file of a ticket that holds an errand.
pub const ERRAND: &str = "errand.json";

/// What is to be judged, in the words of the command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Judgement {
    /// The command.
    pub command: JudgementKind,
    /// The task, by name or file.
    pub task: String,
    /// The kernels as `gauntlet compare` takes them: of `compare` the baseline and the candidate, of `judge` the candidate and,
    /// if it is named, the baseline, of `check` the kernel, of `tune` none or the kernel, of `errand` the candidate's name.
    #[serde(default)]
    pub kernels: Vec<String>,
    /// Only these benchmark cases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cases: Vec<String>,
    /// Time for it, such as `60s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<String>,
    /// At most this many pairs of processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs: Option<usize>,
    /// Whether two kernels of one's own are compared in seconds, not watched for cheats.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub quick: bool,
    /// `cpu` or `cuda`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<String>,
    /// The GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
}

impl Judgement {
    /// A judgement of these kernels with the defaults of its command.
    pub fn new(command: JudgementKind, task: &str, kernels: &[&str]) -> Self {
        Self {
            command,
            task: task.to_owned(),
            kernels: kernels.iter().map(|&kernel| kernel.to_owned()).collect(),
            cases: Vec::new(),
            budget: None,
            pairs: None,
            quick: false,
            executor: None,
            device: None,
        }
    }

    /// A comparison of two kernels.
    pub fn compare(task: &str, baseline: &str, candidate: &str) -> Self {
        Self::new(JudgementKind::Compare, task, &[baseline, candidate])
    }

    /// The arguments of the command that judges. What a ticket names is never taken for an option.
    ///
    /// # Errors
    /// If it has too few or too many kernels, or an option that its command has not.
    pub fn arguments(&self) -> Result<Vec<OsString>, QueueError> {
        use JudgementKind::{Check, Compare, Errand, Judge, Tune};
        let (least, most) = match self.command {
            Check | Errand => (1, 1),
            Compare => (2, 2),
            Judge => (1, 2),
            Tune => (0, 1),
        };
        let name = self.command.name();
        if !(least..=most).contains(&self.kernels.len()) {
            return Err(QueueError::Judgement(format!(
                "`{name}` takes {} kernels, and {} are given",
                if least == most {
                    least.to_string()
                } else {
                    format!("{least} or {most}")
                },
                self.kernels.len()
            )));
        }
        if self.command == Errand {
            return Ok([name, ERRAND].map(OsString::from).into());
        }
        let mut words = vec![name.to_owned()];
        let mut say = |option: &str, value: &str| words.push(format!("--{option}={value}"));
        say(if self.command == Tune { "suite" } else { "task" }, &self.task);
        let is_timed = self.command != Check;
        let given = [
            ("case", is_timed || self.cases.is_empty()),
            ("budget", is_timed || self.budget.is_none()),
            ("executor", is_timed || self.executor.is_none()),
            ("pairs", self.command.is_a_try() || self.pairs.is_none()),
        ];
        if let Some((option, _)) = given.iter().find(|(_, allowed)| !allowed) {
            return Err(QueueError::Judgement(format!(
                "`{name}` takes no `{option}`; leave it out"
            )));
        }
        self.cases.iter().for_each(|case| say("case", case));
        let pairs = self.pairs.map(|pairs| pairs.to_string());
        for (option, value) in [
            ("budget", &self.budget),
            ("pairs", &pairs),
            ("executor", &self.executor),
            ("device", &self.device),
        ] {
            value.iter().for_each(|value| say(option, value));
        }
        match (self.command, self.kernels.as_slice()) {
            (Judge, [_, baseline]) => say("baseline", baseline),
            (Tune, [kernel]) => say("kernel", kernel),
            _ => {}
        }
        if self.quick {
            words.push("--quick".to_owned());
        }
        let named = match self.command {
            Tune => &[],
            Judge => &self.kernels[..1],
            Check | Compare | Errand => &self.kernels[..],
        };
        // What follows stands after `--`, where nothing is an option.
        if !named.is_empty() {
            words.push("--".to_owned());
            words.extend_from_slice(named);
        }
        Ok(words.into_iter().map(OsString::from).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(judgement: &Judgement) -> String {
        let words = judgement.arguments().unwrap();
        words
            .iter()
            .map(|word| word.to_str().unwrap())
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn a_judgement_becomes_the_words_of_its_command() {
        let compare = Judgement {
            cases: vec!["one".to_owned()],
            budget: Some("30s".to_owned()),
            pairs: Some(9),
            quick: true,
            ..Judgement::compare("t.py", "--json=/etc/x", "k.py:f")
        };
        assert_eq!(
            words(&compare),
            "compare --task=t.py --case=one --budget=30s --pairs=9 --quick -- --json=/etc/x k.py:f"
        );
        let judge = Judgement::new(JudgementKind::Judge, "t.py", &["k.py:f", "k.py:g"]);
        assert_eq!(words(&judge), "judge --task=t.py --baseline=k.py:g -- k.py:f");
        let tune = Judgement::new(JudgementKind::Tune, "rms-norm", &[]);
        assert_eq!(words(&tune), "tune --suite=rms-norm");
        let check = Judgement::new(JudgementKind::Check, "t.py", &["k.py:f"]);
        assert_eq!(words(&check), "check --task=t.py -- k.py:f");
    }

    #[test]
    fn a_judgement_that_its_command_does_not_take_is_refused() {
        let error = |judgement: Judgement| judgement.arguments().unwrap_err().to_string();
        let one = Judgement::new(JudgementKind::Compare, "t.py", &["k.py:f"]);
        assert!(error(one).contains("takes 2 kernels, and 1 are given"));
        let check = Judgement {
            budget: Some("3s".to_owned()),
            ..Judgement::new(JudgementKind::Check, "t.py", &["k.py:f"])
        };
        assert!(error(check).contains("takes no `budget`"));
    }
}
