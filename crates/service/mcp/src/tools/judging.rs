//! The tools that judge: they queue a ticket, and wait for it.

use std::time::{Duration, Instant};

use gauntlet_queue::{Judgement, JudgementKind, State, Status};
use rmcp::model::{CallToolResult, ProgressNotificationParam};
use tokio::time::sleep;

use super::{Context, Tools};
use crate::answer::Answer;
use crate::arguments::{Check, Compare, Judge};
use crate::submission::submission;
use crate::words;

/// How long `check` waits for its result.
const CHECK_WAIT: Duration = Duration::from_secs(30);

/// How long `verdict` waits at most: clients give up after a minute, some whatever the progress.
const MAX_WAIT: u64 = 45;

/// How often to look.
const PAUSE: Duration = Duration::from_millis(200);

/// How often the client hears of progress.
const PROGRESS: Duration = Duration::from_secs(1);

impl Tools {
    pub(super) async fn checked(&self, asked: Check, context: &Context) -> CallToolResult {
        let judgement = Judgement::new(JudgementKind::Check, &asked.task, &[&asked.kernel]);
        match self.queued(judgement, context).await {
            Ok(status) => self.until(&status.id, CHECK_WAIT, context).await,
            Err(refused) => refused,
        }
    }

    pub(super) async fn compared(&self, asked: Compare, context: &Context) -> CallToolResult {
        let judgement = Judgement {
            cases: asked.cases,
            budget: asked.budget,
            quick: asked.quick,
            ..Judgement::compare(&asked.task, &asked.baseline, &asked.candidate)
        };
        self.ticket(on_device(judgement, asked.device), context).await
    }

    pub(super) async fn judged(&self, asked: Judge, context: &Context) -> CallToolResult {
        let kernels: Vec<&str> = std::iter::once(asked.candidate.as_str())
            .chain(asked.baseline.as_deref())
            .collect();
        let judgement = Judgement {
            cases: asked.cases,
            budget: asked.budget,
            ..Judgement::new(JudgementKind::Judge, &asked.task, &kernels)
        };
        self.ticket(on_device(judgement, asked.device), context).await
    }

    pub(super) async fn waited(&self, ticket: &str, wait: Option<u64>, context: &Context) -> CallToolResult {
        let wait = Duration::from_secs(wait.unwrap_or(MAX_WAIT).min(MAX_WAIT));
        self.until(ticket, wait, context).await
    }

    /// Queues a judgement and answers with its ticket.
    async fn ticket(&self, judgement: Judgement, context: &Context) -> CallToolResult {
        match self.queued(judgement, context).await {
            Ok(status) => Answer::new(format!(
                "{}\n\nComparison {} of this task by {}.",
                words::of_status(&status),
                status.tries,
                status.client
            ))
            .into(),
            Err(refused) => refused,
        }
    }

    /// Queues a judgement of the files as they are now, unless a name in it is wrong.
    async fn queued(&self, judgement: Judgement, context: &Context) -> Result<Status, CallToolResult> {
        let (tools, client) = (self.clone(), self.client(context));
        let queued = tokio::task::spawn_blocking(move || tools.queue_now(judgement, client)).await;
        let queued = queued.unwrap_or_else(|error| Err(format!("the server failed: {error}; ask again")));
        queued.map_err(|why| Answer::refusal(why).into())
    }

    fn queue_now(&self, judgement: Judgement, client: String) -> Result<Status, String> {
        let submission = submission(&self.setup.program, &client, judgement)?;
        let ticket = self
            .queue
            .submit(&submission)
            .map_err(|error| error.to_string())?;
        self.queue.status(&ticket.id).map_err(|error| error.to_string())
    }

    /// Waits for a ticket and says what it came to, or where it stands; tells the client of progress meanwhile.
    async fn until(&self, ticket: &str, wait: Duration, context: &Context) -> CallToolResult {
        let began = Instant::now();
        let mut told = 0;
        loop {
            let status = match self.queue.status(ticket) {
                Ok(status) => status,
                Err(error) => return Answer::refusal(error.to_string()).into(),
            };
            let waited = began.elapsed();
            if status.is_over() || waited >= wait {
                return said(&status);
            }
            let seconds = waited.as_secs() / PROGRESS.as_secs();
            if seconds > told || (told == 0 && waited < PAUSE) {
                told = seconds;
                progress(context, waited, wait, &status).await;
            }
            sleep(PAUSE.min(wait.saturating_sub(waited))).await;
        }
    }

    pub(super) fn cancelled(&self, ticket: &str) -> Answer {
        match self.queue.cancel(ticket) {
            Ok(true) => Answer::new(format!("Ticket `{ticket}` is cancelled.")),
            Ok(false) => Answer::new(format!(
                "Ticket `{ticket}` has ended already; `verdict` says how."
            )),
            Err(error) => Answer::refusal(error.to_string()),
        }
    }
}

fn on_device(judgement: Judgement, device: Option<String>) -> Judgement {
    Judgement {
        executor: device.as_ref().map(|_| "cuda".to_owned()),
        device,
        ..judgement
    }
}

/// Where a ticket stands, as an answer.
fn said(status: &Status) -> CallToolResult {
    let text = words::of_status(status);
    let answer = if status.state == State::Failed {
        Answer::refusal(text)
    } else {
        Answer::new(text)
    };
    match status.result {
        Some(_) => answer.with_result_of(&status.id),
        None => answer,
    }
    .into()
}

async fn progress(context: &Context, waited: Duration, wait: Duration, status: &Status) {
    let Some(token) = context.meta.get_progress_token() else {
        return;
    };
    let message = match status.state {
        State::Queued => format!("queued, {} before it", status.ahead),
        State::Running => format!("running, {}", words::since(status)),
        _ => "compared once more on fresh inputs".to_owned(),
    };
    let told = ProgressNotificationParam::new(token, waited.as_secs_f64())
        .with_total(wait.as_secs_f64())
        .with_message(message);
    // A client that does not listen still gets its answer.
    let _heard = context.peer.notify_progress(told).await;
}
