//! Answers that were given before an interrupt, so that a search goes on where it stopped.

use serde::{Deserialize, Serialize};

use crate::search::{Answer, Comparer, Question};

/// A question with its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answered {
    /// The question.
    pub question: Question,
    /// The answer.
    pub answer: Answer,
}

/// A comparer that first gives the answers of before, as long as the same questions are asked in the same order.
#[derive(Debug)]
pub struct Recalled<C, K> {
    comparer: C,
    answers: Vec<Answered>,
    next: usize,
    keep: K,
}

impl<C, K> Recalled<C, K> {
    /// A comparer with the answers of before. `keep` is told all answers after each new one.
    pub fn new(comparer: C, answers: Vec<Answered>, keep: K) -> Self {
        Self {
            comparer,
            answers,
            next: 0,
            keep,
        }
    }

    /// The comparer.
    pub fn into_comparer(self) -> C {
        self.comparer
    }
}

impl<C: Comparer, K: FnMut(&[Answered]) -> Result<(), C::Error>> Comparer for Recalled<C, K> {
    type Error = C::Error;

    fn compare(&mut self, question: &Question) -> Result<Answer, C::Error> {
        match self.answers.get(self.next) {
            Some(before) if before.question == *question => {}
            _ => {
                let answer = self.comparer.compare(question)?;
                self.answers.truncate(self.next);
                self.answers.push(Answered {
                    question: *question,
                    answer,
                });
                (self.keep)(&self.answers)?;
            }
        }
        let answer = self.answers[self.next].answer.clone();
        self.next += 1;
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::{Outcome, Rules, Slowdown, search};

    /// Every commit from 5 on is slower; it breaks after so many answers.
    struct Breaking {
        left: usize,
    }

    impl Comparer for Breaking {
        type Error = &'static str;

        fn compare(&mut self, question: &Question) -> Result<Answer, &'static str> {
            self.left = self.left.checked_sub(1).ok_or("interrupted")?;
            let estimate = if question.base < 5 && question.commit >= 5 {
                0.1
            } else {
                0.0
            };
            Ok(Answer::Measured(Some(Slowdown {
                lower: estimate - 0.01,
                estimate,
                upper: estimate + 0.01,
            })))
        }
    }

    #[test]
    fn a_search_goes_on_where_it_was_interrupted() {
        let mut kept = Vec::new();
        let mut sessions = 0;
        let found = loop {
            sessions += 1;
            let before = kept.clone();
            let keep = |answers: &[Answered]| {
                kept = answers.to_vec();
                Ok(())
            };
            let mut comparer = Recalled::new(Breaking { left: 2 }, before, keep);
            match search(16, &Rules::default(), &mut comparer) {
                Ok(found) => break found,
                Err(_) => assert!(sessions < 10),
            }
        };
        assert!(matches!(found.outcome, Outcome::Culprit { commit: 5, .. }));
        assert_eq!(sessions, 3, "six comparisons, two in each session");
    }
}
