//! The tools of agents, as `gauntlet mcp` has them.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use gauntlet_mcp::ClientName;

use crate::refusal::Refusal;
use crate::service::Service;
use crate::tokens::Token;

/// Answers an agent, whose tries are counted to its token's name.
pub async fn mcp(
    State(service): State<Arc<Service>>,
    Extension(token): Extension<Token>,
    mut request: Request,
) -> Result<Response, Refusal> {
    let tools = service.tools.as_ref().ok_or_else(|| {
        Refusal::unknown("this server has no folder of tasks and kernels for agents")
            .with_remedy("POST to /judgements, or have whoever runs the server name a folder by --folder")
    })?;
    request.extensions_mut().insert(ClientName(token.name));
    Ok(tools.handle(request).await.map(Body::new))
}
