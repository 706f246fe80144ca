//! `proxy_redirect`, `proxy_cookie_domain`, `proxy_cookie_path`, `proxy_cookie_flags`.

use super::{CookieFlags, CookieName, ProxyRedirect, ProxyRewrite, RewritePattern};
use crate::directives::pass::target::PassTargetDraft;
use crate::lexer::{Statement, Word};
use crate::resolve::{Applied, Resolver};

pub(super) fn redirect(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let before = resolver.level.settings.proxy_http.redirect.take();
    let mut rules = match before {
        None | Some(ProxyRedirect::Default) => Vec::new(),
        Some(ProxyRedirect::Off) => return Err(resolver.refused(statement, "is duplicate")),
        Some(ProxyRedirect::Rules(rules)) => rules,
    };
    let word = statement.arg(1);
    let written = match (word.bytes.as_slice(), statement.args().len()) {
        (b"off", 1) if rules.is_empty() => ProxyRedirect::Off,
        (b"off", 1) => return Err(resolver.refused(statement, "is duplicate")),
        (b"default", 1) => {
            rules.push(default_redirect(resolver, statement)?);
            ProxyRedirect::Rules(rules)
        }
        (_, 1) => return Err(invalid(resolver, statement, word)),
        _ => {
            rules.push(path_rule(resolver, statement)?);
            ProxyRedirect::Rules(rules)
        }
    };
    resolver.level.settings.proxy_http.redirect = Some(written);
    Ok(())
}

/// The rule of `proxy_redirect default`, which the block's `proxy_pass` tells.
fn default_redirect(resolver: &Resolver<'_>, statement: &Statement) -> Applied<ProxyRewrite> {
    let refused = |message: &str| Err(resolver.emerg(statement, statement.arg(1), message));
    match &resolver.level.pass {
        Some(pass) if matches!(pass.target, PassTargetDraft::Evaluated(_)) => refused(
            "\"proxy_redirect default\" cannot be used with \"proxy_pass\" directive with variables",
        ),
        pass => match pass.as_ref().and_then(|pass| pass.default_redirect()) {
            Some(rule) => Ok(rule),
            None => refused(
                "\"proxy_redirect default\" should be placed after the \"proxy_pass\" directive",
            ),
        },
    }
}

pub(super) fn cookie_path(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let before = resolver.level.settings.proxy_http.cookie_path.take();
    let rules = rules(resolver, statement, before, path_rule)?;
    resolver.level.settings.proxy_http.cookie_path = Some(rules);
    Ok(())
}

pub(super) fn cookie_domain(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let before = resolver.level.settings.proxy_http.cookie_domain.take();
    let rules = rules(resolver, statement, before, domain_rule)?;
    resolver.level.settings.proxy_http.cookie_domain = Some(rules);
    Ok(())
}

pub(super) fn cookie_flags(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let before = resolver.level.settings.proxy_http.cookie_flags.take();
    let rules = rules(resolver, statement, before, flags_rule)?;
    resolver.level.settings.proxy_http.cookie_flags = Some(rules);
    Ok(())
}

/// Adds a rule to a block's list; `off` is an empty list, to which nothing can be added.
fn rules<T>(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    before: Option<Vec<T>>,
    rule: fn(&mut Resolver<'_>, &Statement) -> Applied<T>,
) -> Applied<Vec<T>> {
    let is_off = before.as_ref().is_some_and(Vec::is_empty);
    let word = statement.arg(1);
    if is_off {
        return Err(resolver.refused(statement, "is duplicate"));
    }
    if statement.args().len() == 1 {
        return match (word.bytes.as_slice(), before) {
            (b"off", None) => Ok(Vec::new()),
            (b"off", Some(_)) => Err(resolver.refused(statement, "is duplicate")),
            _ => Err(invalid(resolver, statement, word)),
        };
    }
    let mut rules = before.unwrap_or_default();
    rules.push(rule(resolver, statement)?);
    Ok(rules)
}

fn path_rule(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied<ProxyRewrite> {
    let (from, to) = (statement.arg(1), statement.arg(2));
    let pattern = match from.bytes.as_slice() {
        [b'~', b'*', source @ ..] => {
            RewritePattern::Pattern(resolver.shared_pattern(source, true, statement, from)?)
        }
        [b'~', source @ ..] => {
            RewritePattern::Pattern(resolver.shared_pattern(source, false, statement, from)?)
        }
        text => RewritePattern::Prefix(resolver.template(text, statement, from)?),
    };
    let replacement = resolver.template(&to.bytes, statement, to)?;
    Ok(ProxyRewrite {
        pattern,
        replacement,
    })
}

fn domain_rule(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied<ProxyRewrite> {
    let (from, to) = (statement.arg(1), statement.arg(2));
    let without_dot = |word: &Word| {
        let text = word.bytes.as_slice();
        text.strip_prefix(b".").unwrap_or(text).to_vec()
    };
    let (pattern, replacement) = match from.bytes.strip_prefix(b"~") {
        Some(source) => {
            let pattern = resolver.shared_pattern(source, true, statement, from)?;
            (RewritePattern::Pattern(pattern), to.bytes.clone())
        }
        None => {
            let domain = resolver.template(&without_dot(from), statement, from)?;
            (RewritePattern::Domain(domain), without_dot(to))
        }
    };
    let replacement = resolver.template(&replacement, statement, to)?;
    Ok(ProxyRewrite {
        pattern,
        replacement,
    })
}

fn flags_rule(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied<CookieFlags> {
    let name = statement.arg(1);
    let cookie = match name.bytes.strip_prefix(b"~") {
        Some(source) => {
            CookieName::Pattern(resolver.shared_pattern(source, true, statement, name)?)
        }
        None => CookieName::Name(resolver.template(&name.bytes, statement, name)?),
    };
    let words = statement.args().iter().skip(1);
    let flags = words
        .map(|word| resolver.template(&word.bytes, statement, word))
        .collect::<Applied<Vec<_>>>()?;
    Ok(CookieFlags { cookie, flags })
}

fn invalid(
    resolver: &Resolver<'_>,
    statement: &Statement,
    word: &Word,
) -> Box<crate::diagnostic::Diagnostic> {
    let message = format!("invalid parameter \"{}\"", word.display());
    resolver.emerg(statement, word, message)
}
