//! Parameters of kernels: the properties of a kernel that can vary, and the values that a candidate sets.
//!
//! A [`Table`] declares the parameters of a kernel: name, accepted values, default and meaning. [`Parameters`] are
//! names with values, as stored in files, ledgers and the worker protocol; they can be read and written without a
//! table. Everything that depends on the table is a method of the table: [`check`](Table::check) names a wrong
//! parameter and the likely intended one, [`complete`](Table::complete) fills in defaults, [`changes`](Table::changes)
//! lists the differences, [`describe`](Table::describe) writes one line, and [`pairwise`] covers every pair of values
//! with few candidates.
//!
//! ```
//! use gauntlet_parameters::{Domain, Parameter, Parameters, Shown, Table, Value};
//!
//! let table = Table::new(
//!     "softmax",
//!     vec![
//!         Parameter::new("threads", Domain::number(1, 1024), Value::Number(128), "threads of a block"),
//!         Parameter::new("store", Domain::choice(["direct", "staged"]), "direct".into(), "how results are stored")
//!             .shown(Shown::Value),
//!     ],
//! );
//! let given: Parameters = toml::from_str("threads = 256")?;
//! table.check(&given)?;
//! assert_eq!(table.describe(&given), "threads 256 · direct");
//! assert_eq!(table.changes(&Parameters::new(), &given)[0].to_string(), "threads: 128 → 256");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod covering;
mod declared;
mod domain;
mod error;
mod named;
mod parameters;
mod table;
mod value;

pub use covering::{Space, pairwise};
pub use declared::{ParameterRow, ParameterTable};
pub use domain::{Domain, LARGEST};
pub use error::{ParameterError, did_you_mean, field_meant};
pub use parameters::Parameters;
pub use table::{Change, Parameter, Shown, Table};
pub use value::Value;
