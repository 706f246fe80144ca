//! `proxy_pass` of `stream`.

use super::HandlerDraft;
use crate::directives::pass::target::PassTargetDraft;
use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver, templates};

pub(super) fn proxy_pass(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let word = statement.arg(1);
    let target = if templates::has_variables(&word.bytes) {
        PassTargetDraft::Evaluated(resolver.template(&word.bytes, statement, word)?)
    } else {
        PassTargetDraft::Group(resolver.upstream_of(statement, &word.bytes, 0, false)?.0)
    };
    resolver.server.stream.handler = Some(HandlerDraft::Pass(target));
    Ok(())
}
