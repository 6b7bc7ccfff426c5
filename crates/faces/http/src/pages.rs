//! The pages of the ledger and of the queue, made when they are asked for, and what people say on them.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::rejection::{FormRejection, PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use axum::response::sse::{Event, KeepAlive};
use axum::response::{Html, IntoResponse, Redirect, Response, Sse};
use axum::{Extension, Form};
use futures_util::stream::{Stream, unfold};
use gauntlet_pages::{Act, MAX_NOTE, Made, Note, PageError, Served, Site};
use jiff::Timestamp;
use serde::Deserialize;
use tokio::time::sleep;

use crate::refusal::Refusal;
use crate::service::{Service, asked, named};
use crate::tokens::{Scope, Token};

/// How many verdicts the first page lists.
const NEWEST: usize = 200;

/// What a page may do: show itself, and send its forms to this server. It has its style within, and no script.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; base-uri 'none'; \
    form-action 'self'";

/// The same of a page that follows what is under way, by this server's script.
const LIVE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; base-uri 'none'; \
    form-action 'self'; script-src 'self'; connect-src 'self'";

/// The script of those pages.
const SCRIPT: &str = include_str!("live.js");

/// How often the server makes a page anew while a browser follows it. Making it takes time from what is measured on this machine.
const PAUSE: Duration = Duration::from_secs(2);

/// How long a page is followed before the browser has to ask again.
const LONGEST: Duration = Duration::from_mins(10);

/// Where forms send notes.
pub const NOTES: &str = "/pages/notes";

/// Leads to the first page.
pub async fn first() -> Redirect {
    Redirect::to("/pages/index.html")
}

/// What of a page is asked for, after the question mark of its address.
type Asked = BTreeMap<String, String>;

/// Makes a page.
pub async fn page(
    State(service): State<Arc<Service>>,
    Extension(token): Extension<Token>,
    file: Result<Path<String>, PathRejection>,
    query: Result<Query<Asked>, QueryRejection>,
) -> Result<Response, Refusal> {
    let made = made(&service, token, named(file)?, asked(query)?).await?;
    let policy = if made.is_live { LIVE_POLICY } else { POLICY };
    let headers = [
        (CONTENT_SECURITY_POLICY, policy),
        // Without it a browser does not say that a form comes from a page of this server.
        (REFERRER_POLICY, "same-origin"),
    ];
    Ok((headers, Html(made.text)).into_response())
}

/// Makes a page. One at a time, since it takes a processor.
async fn made(service: &Arc<Service>, token: Token, file: String, asked: Asked) -> Result<Made, Refusal> {
    let _turn = service.rendering.acquire().await;
    let made = service.aside(move |service| {
        let resting = service.rest()?;
        let served = Served {
            proof: (token.scope >= Scope::Submit).then(|| service.proof(&token)),
            queue: service.queue.clone(),
            works: service.works_here,
            resting: resting.map(|rest| {
                let until = rest.until.strftime("%H:%M UTC");
                format!(
                    "It rests until {until}: {} attempts died one after another ({})",
                    rest.deaths, rest.reason
                )
            }),
        };
        let site = Site {
            ledger: &service.ledger,
            newest: NEWEST,
            repository: Some(FilePath::new(".")),
            served: Some(&served),
        };
        match gauntlet_pages::page(&site, &file, &asked) {
            Ok(made) => Ok(made),
            Err(_) if !service.ledger.exists() => Ok(None),
            Err(error) => Err(Refusal::broken(&error)),
        }
    });
    made.await?.ok_or_else(|| {
        Refusal::unknown("there is no such page; without a verdict there is none but now.html")
    })
}

/// The script by which a page follows what is under way.
pub async fn script() -> Response {
    ([(CONTENT_TYPE, "text/javascript; charset=utf-8")], SCRIPT).into_response()
}

/// Tells of a page that shows something under way: an event with the page for each change.
pub async fn live(
    State(service): State<Arc<Service>>,
    Extension(token): Extension<Token>,
    file: Result<Path<String>, PathRejection>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Refusal> {
    let file = named(file)?;
    let first = made(&service, token.clone(), file.clone(), Asked::new()).await?;
    let followed = Followed {
        service,
        token,
        file,
        next: Some(first),
        last: String::new(),
        began: Instant::now(),
    };
    let alive = KeepAlive::new().interval(Duration::from_secs(15));
    Ok(Sse::new(unfold(followed, Followed::next)).keep_alive(alive))
}

/// A page that a browser follows.
struct Followed {
    service: Arc<Service>,
    token: Token,
    file: String,
    next: Option<Made>,
    last: String,
    began: Instant,
}

impl Followed {
    /// The page as soon as it is another one; none when there is nothing more to follow.
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        loop {
            let page = self.next.take()?;
            if page.text != self.last {
                self.last.clone_from(&page.text);
                let event = Event::default().event(if page.is_live { "page" } else { "last" });
                self.next = page.is_live.then(|| page.clone());
                return Some((Ok(event.data(page.text)), self));
            }
            if self.service.is_stopping() || self.began.elapsed() > LONGEST {
                return None;
            }
            sleep(PAUSE).await;
            let again = made(&self.service, self.token.clone(), self.file.clone(), Asked::new());
            self.next = again.await.ok();
        }
    }
}

/// What a form says of a verdict.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Said {
    run: String,
    act: Act,
    #[serde(default)]
    text: String,
    proof: String,
}

/// Keeps what a form says of a verdict, and leads back to it.
pub async fn note(
    State(service): State<Arc<Service>>,
    Extension(token): Extension<Token>,
    form: Result<Form<Said>, FormRejection>,
) -> Result<Redirect, Refusal> {
    let Form(said) = form.map_err(|error| Refusal::unreadable(error.body_text()))?;
    if said.proof != service.proof(&token) {
        return Err(Refusal::new(
            StatusCode::FORBIDDEN,
            "this form is of no page that this server made for you since it began",
            "load the page of the verdict again, and send the form from there",
        ));
    }
    let text = said.text.trim().replace('\r', "");
    if text.chars().count() > MAX_NOTE || (text.is_empty() && said.act == Act::Annotate) {
        return Err(Refusal::unreadable(format!("a note has 1 to {MAX_NOTE} letters")));
    }
    let place = format!("/pages/verdicts/{}.html", said.run);
    service
        .aside(move |service| {
            let note = Note {
                run: said.run,
                act: said.act,
                text,
                by: token.name,
                at: Timestamp::now(),
            };
            gauntlet_pages::annotate(&service.ledger, &note).map_err(|error| match error {
                PageError::Unknown(what) => Refusal::unknown(what),
                error => Refusal::broken(&error),
            })
        })
        .await?;
    Ok(Redirect::to(&place))
}
