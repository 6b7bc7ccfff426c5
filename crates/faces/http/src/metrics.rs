//! Figures for Prometheus, in its text format.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

use crate::refusal::Refusal;
use crate::service::Service;

/// What is counted of requests.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Answers by the first digit of their status.
    answers: [AtomicU64; 6],
    /// Connections that are open.
    pub connections: AtomicUsize,
}

impl Metrics {
    /// Counts an answer.
    pub fn count(&self, status: StatusCode) {
        let first = usize::from(status.as_u16() / 100);
        if let Some(count) = self.answers.get(first) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Writes the figures.
pub async fn metrics(State(service): State<Arc<Service>>) -> Result<Response, Refusal> {
    let counts = service.aside(|service| Ok(service.queue.counts()?)).await?;
    let mut text = String::from("# HELP gauntlet_tickets Tickets by state.\n# TYPE gauntlet_tickets gauge\n");
    for (state, count) in &counts {
        let _written = writeln!(text, "gauntlet_tickets{{state=\"{state}\"}} {count}");
    }
    text += "# HELP gauntlet_answers_total Answers by the first digit of their status.\n# TYPE gauntlet_answers_total counter\n";
    for (first, count) in service.metrics.answers.iter().enumerate().skip(2) {
        let count = count.load(Ordering::Relaxed);
        let _written = writeln!(text, "gauntlet_answers_total{{status=\"{first}xx\"}} {count}");
    }
    let open = service.metrics.connections.load(Ordering::Relaxed);
    let _written = writeln!(
        text,
        "# HELP gauntlet_connections Connections that are open.\n# TYPE gauntlet_connections gauge\ngauntlet_connections {open}"
    );
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}
