//! Where a provider's interface is, and the key for it, which only the environment knows.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::attempt::{self, Fault};
use super::provider::{Provider, Reply, Tokens};
use crate::engine::Engine;

/// Reads a variable of the environment.
type Variable = dyn Fn(&str) -> Option<String> + Send + Sync;

/// How requests are made on this machine.
#[derive(Clone)]
pub(crate) struct Surroundings {
    /// Where keys come from.
    pub variable: Arc<Variable>,
    /// How often to try a request.
    pub tries: u32,
    /// How long to wait after the first failure; after each more, twice as long.
    pub pause: Duration,
    /// The longest wait that a server may ask for.
    pub max_pause: Duration,
    /// For how long a server may send nothing. A model that thinks may take minutes to its first word.
    pub silence: Duration,
}

impl Default for Surroundings {
    fn default() -> Self {
        Self {
            variable: Arc::new(|name| std::env::var(name).ok()),
            tries: 5,
            pause: Duration::from_secs(1),
            max_pause: Duration::from_mins(5),
            silence: Duration::from_mins(10),
        }
    }
}

impl fmt::Debug for Surroundings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Surroundings").finish_non_exhaustive()
    }
}

impl Surroundings {
    /// How long to wait after this many failed tries, if another one is worth it. `after` is what the server asks for.
    pub fn pause(&self, tries: u32, after: Option<Duration>) -> Option<Duration> {
        if tries >= self.tries || after.is_some_and(|after| after > self.max_pause) {
            return None;
        }
        let pause = self.pause.saturating_mul(1 << (tries - 1).min(16));
        // Participants that failed together do not come back together.
        let pause = pause.mul_f64(rand::random_range(0.5..=1.0));
        Some(pause.max(after.unwrap_or_default()))
    }
}

/// A key. It is shown nowhere.
pub(crate) struct Key(String);

impl Key {
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// A text of a server without the key, which some repeat.
    pub fn remove_from(&self, text: &str) -> String {
        text.replace(&self.0, "(key)")
    }
}

/// A server that speaks a provider's interface.
pub(crate) struct Server {
    pub url: String,
    pub key: Option<Key>,
    /// What to say about a key that is missing or refused.
    pub about_key: String,
    pub agent: ureq::Agent,
    name: &'static str,
}

impl Server {
    /// The server for an engine. A key is sent only to the provider itself, or where the environment says: a file may come from
    /// someone else.
    pub fn of(provider: &dyn Provider, engine: &Engine, surroundings: &Surroundings) -> Result<Self, String> {
        let [key_variable, address_variable] = provider.variables();
        let variable = |name| (surroundings.variable)(name).filter(|value| !value.trim().is_empty());
        let trusted = variable(address_variable).unwrap_or_else(|| provider.home().to_owned());
        let address = engine.address.clone().unwrap_or_else(|| trusted.clone());
        let same = |one: &str, other: &str| one.trim_end_matches('/') == other.trim_end_matches('/');
        let is_trusted = same(&address, &trusted) || same(&address, provider.home());
        let key = match variable(key_variable).filter(|_| is_trusted) {
            Some(key) => Some(checked(key_variable, key.trim())?),
            None => None,
        };
        if key.is_none() && same(&address, provider.home()) {
            return Err(format!(
                "there is no key for {}: set {key_variable} in the environment",
                provider.name()
            ));
        }
        let about_key = match &key {
            Some(_) => format!("the key comes from {key_variable}"),
            None if is_trusted => format!("no key was sent: {key_variable} is not set"),
            None => format!(
                "no key was sent: set {address_variable} to this address, and {key_variable} to the key"
            ),
        };
        Ok(Self {
            url: format!("{}{}", address.trim_end_matches('/'), provider.path()),
            key,
            about_key,
            agent: attempt::agent(&address, surroundings.silence),
            name: provider.name(),
        })
    }

    /// Makes a request and hears the answer, and the tokens that were told until its end or its fault.
    pub fn attempt(
        &self,
        provider: &dyn Provider,
        body: &str,
        time_left: Duration,
    ) -> (Result<Reply, Fault>, Tokens) {
        let mut hearing = provider.hearing();
        let heard = attempt::attempt(self, provider, body, time_left, hearing.as_mut());
        let tokens = hearing.tokens();
        let told = |why: String| {
            let why = format!("{} at {}: {why}", self.name, self.url);
            match &self.key {
                Some(key) => key.remove_from(&why),
                None => why,
            }
        };
        let reply = heard.map(|()| hearing.reply()).map_err(|fault| fault.told(told));
        (reply, tokens)
    }
}

fn checked(variable: &str, key: &str) -> Result<Key, String> {
    match key.chars().all(|letter| letter.is_ascii_graphic()) {
        true => Ok(Key(key.to_owned())),
        false => Err(format!(
            "{variable} holds characters that are in no key: set it anew"
        )),
    }
}
