//! What all answers share.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query};
use axum::routing::{any, get, post, put};
use axum::{Router, middleware};
use gauntlet_farm::Workplace;
use gauntlet_mcp::HttpTools;
use gauntlet_queue::{Queue, QueueError, Rest, State, digest, this_machine};
use jiff::Timestamp;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::guard::guard;
use crate::hosts::Hosts;
use crate::metrics::Metrics;
use crate::refusal::Refusal;
use crate::tokens::{Token, TokenError, Tokens, random};
use crate::turns::Turns;
use crate::{Setup, events, judgements, looking, mcp, metrics, openapi, pages, sources};

/// The most bodies that are read at a time.
const BODIES: usize = 8;

/// How often the server looks at a ticket whose client waits for its result.
const PAUSE: Duration = Duration::from_millis(200);

/// The same while it is judged on this machine, where looking takes time from what is measured.
const QUIET_PAUSE: Duration = Duration::from_secs(1);

/// What all answers share.
pub struct Service {
    pub queue: Arc<Queue>,
    /// Whether this server runs tickets on its own machine.
    pub works_here: bool,
    /// The ledger of the pages.
    pub ledger: PathBuf,
    /// The tools of agents; none without a folder.
    pub tools: Option<HttpTools>,
    pub tokens: Tokens,
    pub hosts: Hosts,
    pub turns: Turns,
    pub bodies: Semaphore,
    /// Held by who makes a page.
    pub rendering: Semaphore,
    pub metrics: Metrics,
    /// What only this server knows, by which it recognises the forms of its own pages.
    secret: String,
    /// Whether the server is about to end.
    pub stopping: AtomicBool,
}

impl Service {
    /// What is served at an address.
    ///
    /// # Errors
    /// If the system gives no random bits.
    pub fn new(queue: Arc<Queue>, address: SocketAddr, setup: &Setup) -> Result<Self, TokenError> {
        let secret = random()?;
        let tools = gauntlet_mcp::Setup {
            queue: setup.queue.clone(),
            rounds: Vec::new(),
            works: false,
            client: None,
            program: setup.program.clone(),
            version: setup.version.clone(),
            ledger: setup.ledger.clone(),
        };
        let tools = setup
            .serves_agents
            .then(|| gauntlet_mcp::over_http(queue.clone(), tools));
        Ok(Self {
            queue,
            works_here: matches!(setup.workplace, Some(Workplace::Here)),
            ledger: setup.ledger.clone(),
            tools,
            tokens: Tokens::in_folder(&setup.queue),
            hosts: Hosts::new(address, &setup.hosts),
            rendering: Semaphore::new(1),
            turns: Turns::default(),
            bodies: Semaphore::new(BODIES),
            metrics: Metrics::default(),
            secret,
            stopping: AtomicBool::new(false),
        })
    }

    /// Until when this machine gets no ticket because attempts died on it one after another; none if it runs none.
    pub fn rest(&self) -> Result<Option<Rest>, QueueError> {
        match self.works_here {
            true => self.queue.rest(&this_machine(), Timestamp::now()),
            false => Ok(None),
        }
    }

    /// What the forms on the pages of a token's holder carry. A page of another site cannot know it.
    pub fn proof(&self, token: &Token) -> String {
        digest(format!("{} {} {}", self.secret, token.name, token.created).as_bytes())
    }

    /// Does what may wait for the disk without holding up other answers.
    pub async fn aside<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let service = self.clone();
        spawn_blocking(move || work(&service))
            .await
            .unwrap_or_else(|error| Err(Refusal::broken(&error)))
    }

    /// How long to wait before a ticket in this state is looked at again.
    pub fn pause(&self, state: State) -> Duration {
        if self.works_here && state == State::Running {
            QUIET_PAUSE
        } else {
            PAUSE
        }
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }
}

/// The addresses.
pub fn router(service: Arc<Service>) -> Router {
    Router::new()
        .route("/judgements", post(judgements::submit).get(judgements::list))
        .route(
            "/judgements/{id}",
            get(judgements::show).delete(judgements::cancel),
        )
        .route("/judgements/{id}/events", get(events::events))
        .route("/sources/{digest}", put(sources::store))
        .route("/tasks", get(looking::tasks))
        .route("/devices", get(looking::devices))
        .route("/queue", get(looking::queue))
        .route("/metrics", get(metrics::metrics))
        .route("/openapi.json", get(openapi::openapi))
        .route("/mcp", any(mcp::mcp))
        .route("/", get(pages::first))
        .route("/pages", get(pages::first))
        .route(pages::NOTES, post(pages::note))
        .route("/pages/live.js", get(pages::script))
        .route("/pages/live/{*file}", get(pages::live))
        .route("/pages/{*file}", get(pages::page))
        .fallback(|| async { Refusal::unknown("there is nothing at this address") })
        .method_not_allowed_fallback(|| async {
            Refusal::new(
                axum::http::StatusCode::METHOD_NOT_ALLOWED,
                "this address does not take this method",
                "/openapi.json lists what each address takes",
            )
        })
        .layer(middleware::from_fn_with_state(service.clone(), guard))
        .with_state(service)
}

/// The part of an address that names something.
pub fn named(path: Result<Path<String>, PathRejection>) -> Result<String, Refusal> {
    path.map(|Path(name)| name)
        .map_err(|_| Refusal::unknown("there is nothing at this address"))
}

/// What stands after the question mark of an address.
pub fn asked<T>(query: Result<Query<T>, QueryRejection>) -> Result<T, Refusal> {
    query
        .map(|Query(asked)| asked)
        .map_err(|error| Refusal::unreadable(error.body_text()))
}
