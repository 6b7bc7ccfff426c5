//! What becomes of a ticket, as it happens.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::stream::{Stream, unfold};
use gauntlet_queue::Status;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::sleep;

use crate::refusal::Refusal;
use crate::service::{Service, named};

/// How long a client is told of a ticket before it has to ask again.
const LONGEST: Duration = Duration::from_mins(10);

/// How long a client that was cut off waits before it asks again.
const RETRY: Duration = Duration::from_secs(5);

/// Where a ticket stands, in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Progress {
    /// The ticket.
    pub id: String,
    /// Where it stands.
    pub state: gauntlet_queue::State,
    /// Tickets that were queued before and are not done.
    pub ahead: usize,
    /// The number of the present attempt, or of the last one.
    pub attempt: Option<u32>,
    /// What was found, such as `adopt`.
    pub verdict: Option<String>,
    /// The second comparison, if there is one.
    pub second: Option<gauntlet_queue::State>,
}

impl From<&Status> for Progress {
    fn from(status: &Status) -> Self {
        Self {
            id: status.id.clone(),
            state: status.state,
            ahead: status.ahead,
            attempt: status.attempts.last().map(|attempt| attempt.number),
            verdict: status.result.as_ref().and_then(|result| result.verdict.clone()),
            second: status.confirmation.as_ref().map(|second| second.state),
        }
    }
}

/// Tells of a ticket: an event `progress` for each change, and `over` at the end.
pub async fn events(
    State(service): State<Arc<Service>>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Refusal> {
    let id = named(id)?;
    let first = look(&service, &id).await?;
    let told = Told {
        service,
        id,
        next: Some(first),
        last: None,
        began: Instant::now(),
    };
    let alive = KeepAlive::new().interval(Duration::from_secs(15));
    Ok(Sse::new(unfold(told, Told::next)).keep_alive(alive))
}

async fn look(service: &Arc<Service>, id: &str) -> Result<Status, Refusal> {
    let id = id.to_owned();
    service.aside(move |service| Ok(service.queue.status(&id)?)).await
}

/// What a client was told, and what it will be told next.
struct Told {
    service: Arc<Service>,
    id: String,
    next: Option<Status>,
    last: Option<Progress>,
    began: Instant,
}

impl Told {
    /// The next event, when there is one; none at the end.
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        loop {
            let status = self.next.take()?;
            let progress = Progress::from(&status);
            let is_over = status.is_over();
            if self.last.as_ref() != Some(&progress) {
                let name = if is_over { "over" } else { "progress" };
                let data = serde_json::to_string(&progress).unwrap_or_default();
                let event = Event::default().event(name).retry(RETRY).data(data);
                self.last = Some(progress);
                self.next = (!is_over).then_some(status);
                return Some((Ok(event), self));
            }
            if self.service.is_stopping() || self.began.elapsed() > LONGEST {
                return None;
            }
            sleep(self.service.pause(status.state)).await;
            self.next = look(&self.service, &self.id).await.ok();
        }
    }
}
