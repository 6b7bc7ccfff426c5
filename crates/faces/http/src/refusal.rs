//! What is answered in place of what was asked for.

use axum::Json;
use axum::http::header::{ALLOW, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use gauntlet_queue::QueueError;
use schemars::JsonSchema;
use serde::Serialize;

use crate::tokens::TokenError;

/// What is wrong, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Problem {
    /// What is wrong.
    pub error: String,
    /// What to do.
    pub remedy: String,
}

/// A refusal.
#[derive(Debug)]
pub struct Refusal {
    pub status: StatusCode,
    pub problem: Problem,
    /// Whether a browser is to ask its user for a token, as a password.
    pub asks_browser: bool,
}

impl Refusal {
    pub fn new(status: StatusCode, error: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            status,
            problem: Problem {
                error: error.into(),
                remedy: remedy.into(),
            },
            asks_browser: false,
        }
    }

    /// A request that cannot be read.
    pub fn unreadable(error: impl Into<String>) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            error,
            "/openapi.json describes what each address takes",
        )
    }

    /// A fault of the server's, told in full to whoever runs it and not to the client.
    pub fn broken(error: &dyn std::fmt::Display) -> Self {
        eprintln!("gauntlet serve: {error}");
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "the server cannot do this now",
            "ask again in a while; whoever runs the server sees why",
        )
    }

    /// The same with another remedy.
    pub fn with_remedy(mut self, remedy: &str) -> Self {
        remedy.clone_into(&mut self.problem.remedy);
        self
    }

    /// An address without anything.
    pub fn unknown(what: impl Into<String>) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            what,
            "/openapi.json lists the addresses, GET /judgements the tickets",
        )
    }
}

impl From<QueueError> for Refusal {
    fn from(error: QueueError) -> Self {
        let status = match &error {
            QueueError::UnknownTicket(id) => return Self::unknown(format!("there is no ticket `{id}`")),
            QueueError::Judgement(_) | QueueError::NoTicket { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            QueueError::NoBlob { digest, name, .. } => {
                return Self::new(
                    StatusCode::UNPROCESSABLE_ENTITY,
                    format!("the contents {digest} of {name} are not here"),
                    format!("PUT them to /sources/{digest} first"),
                );
            }
            QueueError::KeyTaken(_) => StatusCode::CONFLICT,
            QueueError::Full { .. } => StatusCode::TOO_MANY_REQUESTS,
            QueueError::Files { .. } | QueueError::Storage { .. } => return Self::broken(&error),
        };
        let text = error.to_string();
        let (what, remedy) = text
            .split_once("; ")
            .unwrap_or((&text, "/openapi.json describes a judgement"));
        Self::new(status, what, remedy)
    }
}

impl From<TokenError> for Refusal {
    fn from(error: TokenError) -> Self {
        Self::broken(&error)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let header = match self.status {
            StatusCode::UNAUTHORIZED if self.asks_browser => Some((
                WWW_AUTHENTICATE,
                "Basic realm=\"a token of gauntlet, as the password\"",
            )),
            StatusCode::UNAUTHORIZED => Some((WWW_AUTHENTICATE, "Bearer")),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => Some((RETRY_AFTER, "5")),
            StatusCode::METHOD_NOT_ALLOWED => Some((ALLOW, "GET, HEAD, POST, PUT, DELETE")),
            _ => None,
        };
        let mut response = (self.status, Json(self.problem)).into_response();
        if let Some((name, value)) = header {
            response
                .headers_mut()
                .insert(name, HeaderValue::from_static(value));
        }
        response
    }
}
