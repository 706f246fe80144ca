//! Upstream servers: what they answered, and where the request went.

use super::{connection, field};
use crate::proxy::trace::{Try, emit_seconds};
use crate::request::Request;
use mill_config::config::Variable;
use mill_config::config::variable::names_field;
use mill_http::decimal::emit_decimal;
use std::borrow::Cow;

/// The variables of `ngx_http_upstream` and `ngx_http_proxy_module`; `None` where nothing was passed on.
pub(super) fn value<'a>(variable: &Variable, request: &'a Request) -> Option<Cow<'a, [u8]>> {
    let pass = || request.location.pass.as_deref();
    Some(match variable {
        Variable::UpstreamAddr => {
            of_tries(request, |one, out| out.extend_from_slice(one.server()))?
        }
        Variable::UpstreamStatus => of_tries(request, |one, out| match one.status {
            0 => out.push(b'-'),
            status => emit_decimal(status.into(), out),
        })?,
        Variable::UpstreamQueueTime => {
            of_tries(request, |one, out| emit_seconds(one.queue_time, out))?
        }
        Variable::UpstreamConnectTime => {
            of_tries(request, |one, out| emit_seconds(one.connect_time, out))?
        }
        Variable::UpstreamHeaderTime => {
            of_tries(request, |one, out| emit_seconds(one.header_time, out))?
        }
        Variable::UpstreamResponseTime => {
            of_tries(request, |one, out| emit_seconds(one.response_time, out))?
        }
        Variable::UpstreamResponseLength => {
            of_tries(request, |one, out| emit_decimal(one.response_length, out))?
        }
        Variable::UpstreamBytesReceived => {
            of_tries(request, |one, out| emit_decimal(one.received, out))?
        }
        Variable::UpstreamBytesSent => of_tries(request, |one, out| emit_decimal(one.sent, out))?,
        Variable::UpstreamHttp(name) => {
            let trace = request.upstream.as_ref()?;
            trace.field(|known| names_field(name, known))?.into()
        }
        Variable::UpstreamTrailer(name) => {
            let trace = request.upstream.as_ref()?;
            trace.trailer(|known| names_field(name, known))?.into()
        }
        Variable::UpstreamCookie(name) => {
            let trace = request.upstream.as_ref()?;
            trace.cookie(name)?.into()
        }
        Variable::ProxyHost => match evaluated_host(request) {
            Some((host, _)) => Cow::Owned(host),
            None => Cow::Borrowed(super::filled(&pass()?.host)?),
        },
        Variable::ProxyPort => match evaluated_host(request) {
            Some((_, port)) => Cow::Owned(port),
            None => Cow::Borrowed(super::filled(&pass()?.port)?),
        },
        Variable::ProxyAddXForwardedFor => forwarded_for(request).into(),
        _ => return None,
    })
}

fn evaluated_host(request: &Request) -> Option<(Vec<u8>, Vec<u8>)> {
    request.upstream.as_ref()?.host()
}

fn of_tries(request: &Request, emit: impl FnMut(&Try, &mut Vec<u8>)) -> Option<Cow<'static, [u8]>> {
    Some(request.upstream.as_ref()?.join(emit)?.into())
}

/// `$proxy_add_x_forwarded_for`: the client's address behind those that it has sent.
fn forwarded_for(request: &Request) -> Vec<u8> {
    let mut all = Vec::new();
    emit_forwarded_for(request, &mut all);
    all
}

/// Appends the same.
pub(super) fn emit_forwarded_for(request: &Request, out: &mut Vec<u8>) {
    let sent = field::request_field(b"x_forwarded_for", request).unwrap_or_default();
    if !sent.is_empty() {
        out.extend_from_slice(&sent);
        out.extend_from_slice(b", ");
    }
    connection::emit_host(request.client(), out);
}
