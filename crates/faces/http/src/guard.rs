//! What stands before every answer: who asks, from where, and how much of it is read.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper::body::{Frame, SizeHint};
use tokio::time::timeout;

use crate::pages::NOTES;
use crate::refusal::Refusal;
use crate::service::Service;
use crate::tokens::{Scope, Token};
use crate::turns::Turn;

/// The most bytes of a request that has no file as its body.
pub const MAX_BODY: usize = 8 << 20;

/// The most bytes of a file.
pub const MAX_FILE: usize = 16 << 20;

/// How long a client may take to send a body.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a request needs; none if anyone may ask it. Everything that is not a look may lead to code being run.
pub fn needed(method: &Method, path: &str) -> Option<Scope> {
    let looks = matches!(*method, Method::GET | Method::HEAD);
    match path {
        "/" | "/openapi.json" if looks => None,
        "/mcp" => Some(Scope::Submit),
        _ if looks => Some(Scope::Read),
        _ => Some(Scope::Submit),
    }
}

/// Answers a request unless it is refused, and counts it.
pub async fn guard(State(service): State<Arc<Service>>, request: Request, next: Next) -> Response {
    let response = match admit(&service, request).await {
        Ok((request, turn)) => {
            let response = next.run(request).await;
            // A client that reads slowly, or listens for events, is busy until it has read.
            response.map(|body| Body::new(Held { body, _turn: turn }))
        }
        Err(refusal) => refusal.into_response(),
    };
    service.metrics.count(response.status());
    harmless(response)
}

/// The request with its whole body and its client, and the client's turn.
async fn admit(service: &Service, request: Request) -> Result<(Request, Turn), Refusal> {
    let (mut parts, body) = request.into_parts();
    service.hosts.check(&parts)?;
    let mut client = String::new();
    if let Some(needed) = needed(&parts.method, parts.uri.path()) {
        let token = token(service, &parts)?;
        if token.scope < needed {
            return Err(Refusal::new(
                StatusCode::FORBIDDEN,
                format!(
                    "the token of {} allows to {} only",
                    token.name,
                    token.scope.name()
                ),
                format!(
                    "ask with a token of the scope {}; `gauntlet serve token add` makes one",
                    needed.name()
                ),
            ));
        }
        client.clone_from(&token.name);
        parts.extensions.insert(token);
    }
    let turn = service.turns.take(&client).ok_or_else(|| {
        Refusal::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too many requests of yours are under way",
            "wait for their answers",
        )
    })?;
    let most = if parts.uri.path().starts_with("/sources/") {
        MAX_FILE
    } else {
        MAX_BODY
    };
    let body = read(service, body, most).await?;
    Ok((Request::from_parts(parts, Body::from(body)), turn))
}

/// The token of a request.
fn token(service: &Service, request: &Parts) -> Result<Token, Refusal> {
    let missing = |error: &str| {
        let refusal = Refusal::new(
            StatusCode::UNAUTHORIZED,
            error,
            "send the header `Authorization: Bearer TOKEN`; `gauntlet serve token add` makes a token",
        );
        Refusal {
            asks_browser: is_page(request),
            ..refusal
        }
    };
    let given = request
        .headers
        .get(AUTHORIZATION)
        .ok_or_else(|| missing("this needs a token"))?;
    let given = given.to_str().unwrap_or_default();
    let given = match given.split_once(' ') {
        Some((kind, token)) if kind.eq_ignore_ascii_case("bearer") => Some(token.trim().to_owned()),
        Some((kind, pair)) if kind.eq_ignore_ascii_case("basic") && is_page(request) => password(pair.trim()),
        _ => None,
    };
    let found = given
        .map(|token| service.tokens.find(&token))
        .transpose()?
        .flatten();
    found.ok_or_else(|| missing("there is no such token"))
}

/// Whether a page is asked for, or one of its forms is sent. A browser keeps the password of a page and sends it along unasked, so that
/// it opens these alone: pages change nothing, and a form proves that it comes from a page of this server.
fn is_page(request: &Parts) -> bool {
    let path = request.uri.path();
    if path == NOTES {
        return request.method == Method::POST;
    }
    matches!(request.method, Method::GET | Method::HEAD) && (path == "/pages" || path.starts_with("/pages/"))
}

/// The password of the pair that a browser sends.
fn password(pair: &str) -> Option<String> {
    let pair = String::from_utf8(BASE64_STANDARD.decode(pair).ok()?).ok()?;
    pair.split_once(':').map(|(_, password)| password.to_owned())
}

/// A body, if it is not larger than allowed and comes in time. Few are read at once, since each is kept in memory.
async fn read(service: &Service, body: Body, most: usize) -> Result<Bytes, Refusal> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let too_large = || {
        Refusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the request holds more than {} MiB", most >> 20),
            "send fewer or smaller files, each by PUT /sources/DIGEST",
        )
    };
    if body.size_hint().lower() > most as u64 {
        return Err(too_large());
    }
    let all = async {
        let _place = service.bodies.acquire().await;
        to_bytes(body, most).await
    };
    match timeout(PATIENCE, all).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => Err(too_large()),
        Err(_) => Err(Refusal::new(
            StatusCode::REQUEST_TIMEOUT,
            format!("the request did not come within {} s", PATIENCE.as_secs()),
            "send it again",
        )),
    }
}

/// Tells browsers to take an answer as nothing but what it is, and to run and load nothing from it.
fn harmless(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
        (
            CONTENT_SECURITY_POLICY,
            "default-src 'none'; frame-ancestors 'none'",
        ),
    ] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// A body that keeps its client's turn until it is sent.
struct Held {
    body: Body,
    _turn: Turn,
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
