//! How many requests of each client are under way, so that none of them leaves nothing for the others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most requests of one client at a time, those that wait among them.
const MOST: usize = 24;

/// The requests that are under way.
#[derive(Debug, Clone, Default)]
pub struct Turns {
    taken: Arc<Mutex<HashMap<String, usize>>>,
}

impl Turns {
    /// A turn of a client; none if too many of its requests are under way.
    pub fn take(&self, client: &str) -> Option<Turn> {
        let mut taken = lock(&self.taken);
        let count = taken.entry(client.to_owned()).or_default();
        if *count >= MOST {
            return None;
        }
        *count += 1;
        Some(Turn {
            turns: self.clone(),
            client: client.to_owned(),
        })
    }
}

/// A request that is under way, until this is dropped.
#[derive(Debug)]
pub struct Turn {
    turns: Turns,
    client: String,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut taken = lock(&self.turns.taken);
        if let Some(count) = taken.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.client);
            }
        }
    }
}

fn lock(taken: &Mutex<HashMap<String, usize>>) -> MutexGuard<'_, HashMap<String, usize>> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_takes_no_turns_of_others() {
        let turns = Turns::default();
        let mut held: Vec<_> = (0..MOST).map(|_| turns.take("a").unwrap()).collect();
        assert!(turns.take("a").is_none());
        assert!(turns.take("b").is_some());
        held.pop();
        assert!(turns.take("a").is_some());
        held.clear();
        assert!(turns.taken.lock().unwrap().is_empty());
    }
}
