//! Asks contestants and panellists: programs that talk in lines of JSON, and models behind a provider's interface.
//!
//! A [`Contestant`] is one participant over a tournament. Each [question](Contestant::ask) ends in an [answer](Asked) or in
//! [misconduct](Misconduct), and what it takes comes out of the participant's [`Budget`]. Questions, answers and results of
//! tools are JSON of which this crate knows nothing: rounds, pitches and verdicts are `gauntlet-tournament`'s.
//!
//! ```
//! use gauntlet_contestants::{Contestant, Engine, Form};
//! use serde_json::json;
//!
//! let engine = Engine {
//!     program: Some(["sh", "-c", r#"read question; echo '{"answer": {"accept": true}}'"#].map(Into::into).into()),
//!     ..Engine::default()
//! };
//! let mut contestant = Contestant::new("Tiles", engine, std::path::Path::new("."));
//! let form = Form {
//!     words: "Say whether you accept the terms.".to_owned(),
//!     schema: json!({"type": "object", "properties": {"accept": {"type": "boolean"}}, "required": ["accept"]}),
//! };
//! let accepts = |answer: &serde_json::Value| match answer["accept"].is_boolean() {
//!     true => Ok(()),
//!     false => Err("`accept` is neither true nor false".to_owned()),
//! };
//! let asked = contestant.ask(&json!({"phase": "deal"}), &form, None, &accepts)?;
//! assert_eq!(asked.answer, json!({"accept": true}));
//! assert_eq!(contestant.left().turns, 39);
//! # Ok::<(), gauntlet_contestants::Misconduct>(())
//! ```

mod contestant;
mod conversation;
mod engine;
mod misconduct;
mod model;
mod program;
mod tools;
mod used;

pub use contestant::{Asked, Contestant, Form};
pub use engine::{Budget, Engine, Price, ProviderName};
pub use misconduct::{Misconduct, Resource, Whose};
pub use tools::{Tool, Tools};
pub use used::Used;
