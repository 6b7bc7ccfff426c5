//! Tickets: asked for, looked at, listed, given up.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use gauntlet_queue::{Judgement, Status, Submission};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use crate::refusal::Refusal;
use crate::service::{Service, asked, named};
use crate::sources;
use crate::tokens::{Scope, Token};

/// The longest that an answer waits for the end of a ticket, in seconds: proxies and clients give up after a minute.
const MAX_WAIT: u64 = 45;

/// The most tickets in a list.
const MAX_LISTED: usize = 200;

/// The header by which a client names its request.
const KEY: &str = "idempotency-key";

/// What a client wants to be judged.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Asked {
    /// What is to be judged. Its names are built in, or files among `sources` and `stored`.
    pub judgement: Judgement,
    /// The texts of files, by path.
    #[serde(default)]
    pub sources: BTreeMap<String, String>,
    /// The SHA-256 digests of files, by path, whose contents were put to `/sources/DIGEST`.
    #[serde(default)]
    pub stored: BTreeMap<String, String>,
    /// The name of the folder that the files are put into, after which some tasks are called; `sources` unless given.
    #[serde(default)]
    pub folder: Option<String>,
}

/// A ticket in a list.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Listed {
    /// The ticket.
    pub id: String,
    /// Whose it is.
    pub client: String,
    /// What is to be judged.
    pub judgement: Judgement,
    /// Where it stands.
    pub state: gauntlet_queue::State,
    /// What was found, such as `adopt`.
    pub verdict: Option<String>,
    /// Whether two comparisons, on inputs of their own, found the candidate to be faster by the target.
    pub is_a_win: bool,
    /// When it was queued.
    pub created: Timestamp,
    /// When its state became final.
    pub ended: Option<Timestamp>,
}

impl From<Status> for Listed {
    fn from(status: Status) -> Self {
        Self {
            is_a_win: status.is_a_win(),
            verdict: status.result.and_then(|result| result.verdict),
            id: status.id,
            client: status.client,
            judgement: status.judgement,
            state: status.state,
            created: status.created,
            ended: status.ended,
        }
    }
}

/// Queues a judgement.
pub async fn submit(
    State(service): State<Arc<Service>>,
    Extension(token): Extension<Token>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Refusal> {
    let key = key(&headers)?;
    let status = service
        .aside(move |service| {
            let asked: Asked =
                serde_json::from_slice(&body).map_err(|error| Refusal::unreadable(error.to_string()))?;
            let files = sources::of(&service.queue, &asked)?;
            let ticket = service.queue.submit(&Submission {
                key,
                files,
                folder: asked.folder,
                ..Submission::new(&token.name, asked.judgement)
            })?;
            Ok(service.queue.status(&ticket.id)?)
        })
        .await?;
    let location = [(LOCATION, format!("/judgements/{}", status.id))];
    Ok((StatusCode::ACCEPTED, location, Json(status)).into_response())
}

fn key(headers: &HeaderMap) -> Result<Option<String>, Refusal> {
    let Some(key) = headers.get(KEY) else {
        return Ok(None);
    };
    match key.to_str() {
        Ok(key) if (1..=200).contains(&key.len()) => Ok(Some(key.to_owned())),
        _ => Err(Refusal::unreadable(
            "the header Idempotency-Key is no key of 1 to 200 letters",
        )),
    }
}

/// How a ticket is looked at.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wait {
    /// Seconds.
    #[serde(default)]
    wait: u64,
}

/// Says where a ticket stands, as soon as it is over or after the time that the client would wait.
pub async fn show(
    State(service): State<Arc<Service>>,
    id: Result<Path<String>, PathRejection>,
    query: Result<Query<Wait>, QueryRejection>,
) -> Result<Json<Status>, Refusal> {
    let id = named(id)?;
    let wait = Duration::from_secs(asked(query)?.wait.min(MAX_WAIT));
    let began = Instant::now();
    loop {
        let id = id.clone();
        let status = service
            .aside(move |service| Ok(service.queue.status(&id)?))
            .await?;
        let left = wait.saturating_sub(began.elapsed());
        if status.is_over() || left.is_zero() || service.is_stopping() {
            return Ok(Json(status));
        }
        sleep(service.pause(status.state).min(left)).await;
    }
}

/// Which tickets are listed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Which {
    client: Option<String>,
    task: Option<String>,
    #[serde(default = "usual")]
    last: usize,
}

fn usual() -> usize {
    50
}

/// Lists tickets, the newest first.
pub async fn list(
    State(service): State<Arc<Service>>,
    query: Result<Query<Which>, QueryRejection>,
) -> Result<Json<Vec<Listed>>, Refusal> {
    let which = asked(query)?;
    let most = which.last.min(MAX_LISTED);
    let found = service
        .aside(move |service| {
            let tickets = service
                .queue
                .history(which.client.as_deref(), which.task.as_deref(), most)?;
            Ok(tickets.into_iter().map(Listed::from).collect())
        })
        .await?;
    Ok(Json(found))
}

/// Gives a ticket up.
pub async fn cancel(
    State(service): State<Arc<Service>>,
    Extension(token): Extension<Token>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<Status>, Refusal> {
    let id = named(id)?;
    let status = service
        .aside(move |service| {
            let status = service.queue.status(&id)?;
            if status.client != token.name && token.scope < Scope::Admin {
                return Err(Refusal::new(
                    StatusCode::FORBIDDEN,
                    format!("the ticket is {}'s", status.client),
                    "ask whose it is, or with a token of the scope admin",
                ));
            }
            if !service.queue.cancel(&id)? {
                return Err(Refusal::new(
                    StatusCode::CONFLICT,
                    format!("the ticket is {} already", status.state),
                    format!("GET /judgements/{id} says what was found"),
                ));
            }
            Ok(service.queue.status(&id)?)
        })
        .await?;
    Ok(Json(status))
}
