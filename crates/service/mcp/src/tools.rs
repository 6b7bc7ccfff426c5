//! The tools.

mod judging;
mod looking;

use std::sync::Arc;

use gauntlet_queue::Queue;
use http::request::Parts;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{
    CallToolResult, Implementation, ListResourceTemplatesResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ResourceContents, ResourceTemplate,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, tool, tool_handler, tool_router};

use crate::Setup;
use crate::answer::{Answer, address, ticket_of};
use crate::arguments::{Check, Compare, GetTask, Judge, OfTask, OfTicket, Pitch, Verdict};

/// What an agent is told first.
const INSTRUCTIONS: &str = "Judges GPU and CPU kernels. The loop: get_task, write a kernel, check (is it right?), judge (is it \
    faster? answers with a ticket), verdict(ticket), explain or next, and again. A kernel is FILE:FUNCTION in the server's folder; its \
    files are copied when you ask, so go on editing. Tries are counted, and faster is a win only after a second comparison on \
    fresh inputs, which follows by itself.";

type Context = RequestContext<RoleServer>;

/// Who asks, in the extensions of a request of HTTP.
#[derive(Debug, Clone)]
pub struct ClientName(pub String);

/// The tools, and what all their calls share.
#[derive(Clone)]
pub struct Tools {
    queue: Arc<Queue>,
    setup: Arc<Setup>,
    router: ToolRouter<Self>,
}

impl Tools {
    /// The tools on a queue.
    pub(crate) fn new(queue: Arc<Queue>, setup: Setup) -> Self {
        Self {
            queue,
            setup: Arc::new(setup),
            router: Self::tool_router(),
        }
    }

    /// Who asks.
    fn client(&self, context: &Context) -> String {
        let request = context.extensions.get::<Parts>();
        let known = request.and_then(|request| request.extensions.get::<ClientName>());
        let known = known
            .map(|client| client.0.clone())
            .or_else(|| self.setup.client.clone());
        let named = || context.client_info().map(|client| client.name);
        let name = known.or_else(named).unwrap_or_default();
        let name: String = name
            .chars()
            .filter(|letter| !letter.is_control())
            .take(80)
            .collect();
        if name.is_empty() {
            "an agent without a name".to_owned()
        } else {
            name
        }
    }

    /// Does what may take a second without holding up other calls.
    async fn aside(&self, work: impl FnOnce(&Self) -> Answer + Send + 'static) -> CallToolResult {
        let tools = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&tools)).await;
        done.unwrap_or_else(|error| Answer::refusal(format!("the server failed: {error}; ask again")))
            .into()
    }
}

#[tool_router(router = tool_router)]
impl Tools {
    /// Tasks that kernels can be judged on.
    #[tool]
    async fn list_tasks(&self) -> CallToolResult {
        self.aside(|_| looking::list_tasks()).await
    }

    /// What a task asks for: its cases and notes.
    #[tool]
    async fn get_task(&self, Parameters(asked): Parameters<GetTask>) -> CallToolResult {
        self.aside(move |tools| tools.task(&asked.task)).await
    }

    /// Is a kernel right? Nothing is timed. Answers within 30 s, or with a ticket.
    #[tool]
    async fn check(&self, Parameters(asked): Parameters<Check>, context: Context) -> CallToolResult {
        self.checked(asked, &context).await
    }

    /// Which of two kernels is faster? Answers with a ticket.
    #[tool]
    async fn compare(&self, Parameters(asked): Parameters<Compare>, context: Context) -> CallToolResult {
        self.compared(asked, &context).await
    }

    /// Is a kernel right, and faster than the baseline, by all gates? Answers with a ticket.
    #[tool]
    async fn judge(&self, Parameters(asked): Parameters<Judge>, context: Context) -> CallToolResult {
        self.judged(asked, &context).await
    }

    /// What a ticket came to; waits for it.
    #[tool]
    async fn verdict(&self, Parameters(asked): Parameters<Verdict>, context: Context) -> CallToolResult {
        self.waited(&asked.ticket, asked.wait, &context).await
    }

    /// Your tickets, newest first.
    #[tool]
    async fn history(&self, Parameters(asked): Parameters<OfTask>, context: Context) -> CallToolResult {
        let client = self.client(&context);
        self.aside(move |tools| tools.history_of(&client, asked.task.as_deref()))
            .await
    }

    /// Why a ticket ended so: gates, notes, where the time goes.
    #[tool]
    async fn explain(&self, Parameters(asked): Parameters<OfTicket>) -> CallToolResult {
        self.aside(move |tools| tools.explained(&asked.ticket)).await
    }

    /// What to do next.
    #[tool]
    async fn next(&self, Parameters(asked): Parameters<OfTask>, context: Context) -> CallToolResult {
        let client = self.client(&context);
        self.aside(move |tools| tools.what_next(&client, asked.task.as_deref()))
            .await
    }

    /// Pitch a change into an open round of the arena.
    #[tool]
    async fn pitch(&self, Parameters(asked): Parameters<Pitch>) -> CallToolResult {
        self.aside(move |tools| tools.pitched(&asked)).await
    }

    /// Give a ticket up.
    #[tool]
    async fn cancel(&self, Parameters(asked): Parameters<OfTicket>) -> CallToolResult {
        self.aside(move |tools| tools.cancelled(&asked.ticket)).await
    }
}

#[tool_handler(router = self.router)]
impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("gauntlet", self.setup.version.clone()))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = ResourceTemplate::new(address("{ticket}"), "the whole result of a ticket");
        Ok(ListResourceTemplatesResult::with_all_items(vec![
            template.with_mime_type("application/json"),
        ]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let missing =
            || ErrorData::resource_not_found(format!("there is no result at {}", request.uri), None);
        let status = ticket_of(&request.uri).and_then(|ticket| self.queue.status(ticket).ok());
        let result = status.and_then(|status| status.result).ok_or_else(missing)?;
        let text = serde_json::to_string(&result)
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let contents = ResourceContents::text(text, request.uri).with_mime_type("application/json");
        Ok(ReadResourceResult::new(vec![contents]).into())
    }
}
