//! Nodes on which jobs die, whatever their tickets are.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long a death counts against its node.
const MEMORY: Duration = Duration::from_secs(600);

/// A node is shunned once the jobs of this many tickets have died on it: one ticket alone may be at fault itself.
const TICKETS: usize = 2;

/// When the jobs of tickets died, by node.
#[derive(Debug, Default)]
pub struct Shunned(BTreeMap<String, BTreeMap<String, Instant>>);

impl Shunned {
    /// Notes that a ticket's job died on a node. The number of tickets if the node is shunned from now on.
    pub fn died(&mut self, node: &str, ticket: &str, now: Instant) -> Option<usize> {
        let was_shunned = self.now(now).iter().any(|other| other == node);
        let tickets = self.0.entry(node.to_owned()).or_default();
        tickets.insert(ticket.to_owned(), now);
        (tickets.len() >= TICKETS && !was_shunned).then_some(tickets.len())
    }

    /// The nodes that are shunned.
    pub fn now(&mut self, now: Instant) -> Vec<String> {
        for tickets in self.0.values_mut() {
            tickets.retain(|_, died| now.duration_since(*died) < MEMORY);
        }
        self.0.retain(|_, tickets| !tickets.is_empty());
        let shunned = self.0.iter().filter(|(_, tickets)| tickets.len() >= TICKETS);
        shunned.map(|(node, _)| node.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_shunned_when_several_tickets_died_there_and_not_for_ever() {
        let (mut shunned, begun) = (Shunned::default(), Instant::now());
        assert_eq!(shunned.died("n1", "a", begun), None);
        assert_eq!(shunned.died("n1", "a", begun), None, "the ticket may be at fault");
        assert_eq!(shunned.died("n2", "a", begun), None);
        assert_eq!(shunned.died("n1", "b", begun), Some(2));
        assert_eq!(shunned.died("n1", "c", begun), None, "it is told once");
        assert_eq!(shunned.now(begun), ["n1"]);
        assert_eq!(shunned.now(begun + MEMORY), Vec::<String>::new());
    }
}
