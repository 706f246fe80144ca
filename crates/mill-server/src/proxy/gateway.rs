//! FastCGI, uwsgi, SCGI and memcached towards an upstream server: the request's spelling.

use super::caching::Question;
use super::fault::Fault;
use super::http::ContentFraming;
use crate::local::Local;
use crate::request::Request;
use crate::variables;
use mill_config::config::settings::PassParam;
use mill_config::config::{LogLevel, PassProtocol, Variable};
use mill_runtime::engine::Engine;
use mill_upstream::params::ParamName;
use mill_upstream::{fastcgi, memcached, scgi, uwsgi};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Appends the request's head in a protocol that is not HTTP. Returns where the key of a lookup in memcached is in it.
pub(super) fn emit_request<E: Engine>(
    protocol: PassProtocol,
    framing: ContentFraming,
    question: Option<&Question>,
    request: &mut Request,
    local: &Local<E>,
    out: &mut Vec<u8>,
) -> Result<Range<usize>, Fault> {
    if protocol == PassProtocol::Memcached {
        return emit_lookup(request, local, out);
    }
    let mut params = local.take_buffer();
    let emitted = emit_params(protocol, question, request, local, &mut params)
        .and_then(|()| emit_head(protocol, framing, &params, request, local, out));
    local.put_buffer(params);
    emitted.map(|()| 0..0)
}

/// What carries the parameters.
fn emit_head<E: Engine>(
    protocol: PassProtocol,
    framing: ContentFraming,
    params: &[u8],
    request: &Request,
    local: &Local<E>,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let location = &request.location;
    match protocol {
        PassProtocol::Fastcgi => {
            fastcgi::emit_head(location.fastcgi_params.keep_conn, params, out);
            if framing == ContentFraming::None {
                out.extend_from_slice(&fastcgi::STDIN_END);
            }
        }
        PassProtocol::Scgi => scgi::emit_head(framing.len(), params, out),
        _ => {
            let settings = &location.uwsgi_params;
            let modifiers = uwsgi::Modifiers {
                first: settings.modifier1,
                second: settings.modifier2,
            };
            let emitted = if settings.string.is_empty() {
                uwsgi::emit_head(modifiers, params, out)
            } else {
                uwsgi::emit_head(modifiers, &[params, &settings.string].concat(), out)
            };
            return emitted.map_err(|too_big| refuse(&too_big, request, local));
        }
    }
    Ok(())
}

/// The parameters of directives, then the client's fields that none of them names.
fn emit_params<E: Engine>(
    protocol: PassProtocol,
    question: Option<&Question>,
    request: &mut Request,
    local: &Local<E>,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let location = Arc::clone(&request.location);
    let params = match protocol {
        PassProtocol::Fastcgi => &location.fastcgi_params.params,
        PassProtocol::Scgi => &location.scgi_params.params,
        _ => &location.uwsgi_params.params,
    };
    let mut value = local.take_buffer();
    for param in params {
        value.clear();
        variables::append(&param.value, request, local, &mut value);
        if param.if_not_empty && value.is_empty() {
            continue;
        }
        let name = ParamName::Literal(&param.name);
        emit_param(protocol, name, &value, out).map_err(|nul| refuse(&nul, request, local))?;
    }
    local.put_buffer(value);
    if location.pass_settings(protocol).pass_request_headers {
        let emitted = emit_fields(protocol, params, question, request, out);
        emitted.map_err(|nul| refuse(&nul, request, local))?;
    }
    if let Some(question) = question {
        question.emit_conditions(|name, value| {
            // A validator was a field's value, which has no NUL.
            let _ = emit_param(protocol, ParamName::Field(name), value, out);
        });
    }
    Ok(())
}

fn emit_fields(
    protocol: PassProtocol,
    params: &[PassParam],
    question: Option<&Question>,
    request: &Request,
    out: &mut Vec<u8>,
) -> Result<(), scgi::HasNul> {
    let message = &request.message;
    let is_hidden = |known| question.is_some_and(|question| question.hides(known));
    let fields = message.head.fields.iter();
    for field in fields.filter(|field| !field.ignored && !is_hidden(field.known)) {
        let name = ParamName::Field(field.name.of(&message.bytes));
        if !params.iter().any(|param| name.is(&param.name)) {
            emit_param(protocol, name, field.value.of(&message.bytes), out)?;
        }
    }
    Ok(())
}

/// Only SCGI has values that it cannot carry.
fn emit_param(
    protocol: PassProtocol,
    name: ParamName<'_>,
    value: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), scgi::HasNul> {
    match protocol {
        PassProtocol::Fastcgi => fastcgi::emit_param(name, value, out),
        PassProtocol::Scgi => return scgi::emit_param(name, value, out),
        _ => uwsgi::emit_param(name, value, out),
    }
    Ok(())
}

fn emit_lookup<E: Engine>(
    request: &mut Request,
    local: &Local<E>,
    out: &mut Vec<u8>,
) -> Result<Range<usize>, Fault> {
    let pass = request.location.pass.clone();
    let variable: Option<&Variable> = pass.as_ref().and_then(|pass| pass.memcached_key.as_ref());
    let key = variable.and_then(|variable| variables::value(variable, request, local));
    match key.filter(|key| !key.is_empty()) {
        Some(key) => Ok(memcached::emit_get(&key, out)),
        None => {
            let message = format_args!("the \"$memcached_key\" variable is not set");
            local.log_error(Some(request), LogLevel::Error, message);
            Err(Fault::NotSpelled)
        }
    }
}

/// The request cannot be said in the protocol: 500, as in nginx.
fn refuse<E: Engine>(reason: &dyn fmt::Display, request: &Request, local: &Local<E>) -> Fault {
    local.log_error(Some(request), LogLevel::Alert, format_args!("{reason}"));
    Fault::NotSpelled
}
