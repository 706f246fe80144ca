//! A request to an authority.

use super::Issuer;
use crate::local::Local;
use crate::own_request::OwnRequest;
use crate::site::Site;
use mill_acme::answer::Answer;
use mill_acme::client::Request;
use mill_runtime::engine::Engine;

/// Sends a request and reads its answer. The error says in words why there is none.
pub(super) async fn ask<E: Engine>(
    issuer: &Issuer,
    request: &Request,
    site: &Site,
    local: &Local<E>,
) -> Result<Answer, String> {
    let content = request.content.as_ref();
    let own = OwnRequest {
        method: request.method,
        url: &request.url,
        content: content.map(|content| ("application/jose+json", content.as_bytes())),
        context: Some(&issuer.context),
        name_servers: issuer.config.name_servers.as_ref(),
        resolver_timeout: issuer.config.resolver_timeout,
    };
    let reply = own.send(site, local).await?;
    let now = local.scheduler.wall_clock().seconds;
    let mut answer = Answer::new(reply.status);
    for (name, value) in &reply.fields {
        answer.on_field(name, value, now);
    }
    answer.content = reply.content;
    Ok(answer)
}
