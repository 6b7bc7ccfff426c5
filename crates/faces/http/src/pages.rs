//! The pages of the ledger, made when they are asked for.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::header::CONTENT_SECURITY_POLICY;
use axum::response::{Html, IntoResponse, Redirect, Response};

use crate::refusal::Refusal;
use crate::service::{Service, named};

/// How many verdicts the first page lists.
const NEWEST: usize = 200;

/// What a page may do: show itself. It has its style within, and no script.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; base-uri 'none'; \
    form-action 'none'";

/// Leads to the first page.
pub async fn first() -> Redirect {
    Redirect::to("/pages/index.html")
}

/// Makes a page. One at a time, since it takes a processor.
pub async fn page(
    State(service): State<Arc<Service>>,
    file: Result<Path<String>, PathRejection>,
) -> Result<Response, Refusal> {
    let file = named(file)?;
    let _turn = service.rendering.acquire().await;
    let made = service.aside(move |service| {
        if !service.ledger.exists() {
            return Err(Refusal::unknown(
                "nothing was judged yet, so that there are no pages",
            ));
        }
        gauntlet_pages::page(&service.ledger, &file, NEWEST).map_err(|error| Refusal::broken(&error))
    });
    let page = made
        .await?
        .ok_or_else(|| Refusal::unknown("there is no such page"))?;
    Ok(([(CONTENT_SECURITY_POLICY, POLICY)], Html(page)).into_response())
}
