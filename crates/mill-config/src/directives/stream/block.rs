//! `stream`, `server` in it, and what answers there without passing on.

use super::HandlerDraft;
use crate::Text;
use crate::config::{StreamHandler, Variable};
use crate::directive::Contexts;
use crate::lexer::Statement;
use crate::resolve::draft::{HttpDraft, Origin, ServerDraft};
use crate::resolve::{Applied, Resolver};

pub(super) fn stream(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    if resolver.stream.is_some() {
        return Err(resolver.refused(statement, "is duplicate"));
    }
    resolver.stream = Some(HttpDraft::default());
    exchange(resolver);
    let main = std::mem::take(&mut resolver.level);
    resolver.server = ServerDraft::default();
    let parsed = resolver.block(statement, Contexts::STREAM);
    let level = std::mem::replace(&mut resolver.level, main);
    exchange(resolver);
    if let Some(stream) = &mut resolver.stream {
        stream.level = level;
    }
    parsed
}

/// Puts the stream block and its variables in the places of those of http, or back.
fn exchange(resolver: &mut Resolver<'_>) {
    std::mem::swap(&mut resolver.http, &mut resolver.stream);
    std::mem::swap(&mut resolver.variables, &mut resolver.stream_variables);
}

pub(super) fn server(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let index = resolver.http.as_ref().map_or(0, |open| open.servers.len());
    // The index in the list is reserved at once: `listen` refers to servers by index.
    if let Some(open) = &mut resolver.http {
        open.servers.push(ServerDraft::default());
    }
    let mut draft = ServerDraft {
        index,
        ..ServerDraft::default()
    };
    draft.stream.origin = Some(Origin::of(statement, statement.name()));
    let outer_server = std::mem::replace(&mut resolver.server, draft);
    let outer_level = std::mem::take(&mut resolver.level);
    let parsed = resolver.block(statement, Contexts::STREAM_SERVER);
    let level = std::mem::replace(&mut resolver.level, outer_level);
    let mut draft = std::mem::replace(&mut resolver.server, outer_server);
    parsed?;
    let missing = match (&draft.stream.handler, draft.has_listen) {
        (Some(_), true) => None,
        (_, false) => Some("no \"listen\" is defined for server"),
        (None, true) => Some("no handler for server"),
    };
    if let Some(missing) = missing {
        return Err(resolver.emerg(statement, statement.name(), missing));
    }
    draft.level = level;
    let servers = resolver.http.as_mut().map(|open| &mut open.servers);
    if let Some(place) = servers.and_then(|servers| servers.get_mut(index)) {
        *place = draft;
    }
    Ok(())
}

/// `return`.
pub(super) fn text(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let word = statement.arg(1);
    let text = resolver.template(&word.bytes, statement, word)?;
    let handler = HandlerDraft::Ready(StreamHandler::Return(text));
    resolver.server.stream.handler = Some(handler);
    Ok(())
}

/// `set`.
pub(super) fn set(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let (target, value) = (statement.arg(1), statement.arg(2));
    let Some(name) = target.bytes.strip_prefix(b"$") else {
        let message = format!("invalid variable name \"{}\"", target.display());
        return Err(resolver.emerg(statement, target, message));
    };
    let variable = resolver.define(name, statement, target)?;
    let value = resolver.template(&value.bytes, statement, value)?;
    if let Variable::User(index) = variable {
        resolver.server.stream.assignments.push((index, value));
    }
    Ok(())
}

/// `ssl_alpn`.
pub(super) fn alpn(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let mut protocols = Vec::new();
    for word in statement.args() {
        if word.bytes.is_empty() || word.bytes.len() > ALPN_LEN_MAX {
            return Err(resolver.emerg(statement, word, "protocol too long"));
        }
        protocols.push(Text::from(word.bytes.as_slice()));
    }
    resolver.level.settings.stream.alpn = Some(protocols);
    Ok(())
}

/// Longest name of a protocol (RFC 7301 3.1).
const ALPN_LEN_MAX: usize = 255;
