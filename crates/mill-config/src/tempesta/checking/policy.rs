//! What vhosts and locations have in common: caching by path, fields, and what is not idempotent.

use super::{Checker, first};
use crate::resolve::Applied;
use crate::tempesta::entry::Directive;
use crate::tempesta::lexer::Term;
use crate::tempesta::site::{CacheRule, FieldChange, Limit, Nonidempotent, PathTest, Policy, Test};
use crate::tempesta::value;

/// Methods that Tempesta FW knows, for `nonidempotent`; `unknown` stands for all others.
const METHODS: [&str; 16] = [
    "COPY",
    "DELETE",
    "GET",
    "HEAD",
    "LOCK",
    "MKCOL",
    "MOVE",
    "OPTIONS",
    "PATCH",
    "POST",
    "PROPFIND",
    "PROPPATCH",
    "PUT",
    "TRACE",
    "UNLOCK",
    "PURGE",
];

/// Directives of `Cache-Control` that may be ignored.
const CACHE_CONTROL: [&str; 9] = [
    "no-cache",
    "no-store",
    "no-transform",
    "max-age",
    "must-revalidate",
    "proxy-revalidate",
    "public",
    "private",
    "s-maxage",
];

/// Those of them that change what a cache does.
const CACHE_CONTROL_OF_CACHES: [&str; 5] =
    ["no-cache", "no-store", "max-age", "private", "s-maxage"];

impl Checker {
    pub(super) fn policy(
        &mut self,
        name: &'static str,
        directive: &Directive,
        policy: &mut Policy,
    ) -> Applied {
        match name {
            "cache_bypass" | "cache_fulfill" => {
                let Some((operator, texts)) = directive.values.split_first() else {
                    return Ok(());
                };
                for text in texts {
                    let path = path_test(operator, text)?;
                    let bypasses = name == "cache_bypass";
                    policy.cache.push(CacheRule { bypasses, path });
                }
            }
            "cache_use_stale" => policy.stale = stale(directive)?,
            "cache_control_ignore" => self.ignore(directive, policy),
            "cache_resp_hdr_del" => policy.hidden = directive.values.clone(),
            "nonidempotent" => policy.nonidempotent.push(nonidempotent(directive)?),
            "req_hdr_add" | "req_hdr_set" | "resp_hdr_add" | "resp_hdr_set" => {
                let change = FieldChange {
                    name: field_name(first(directive))?,
                    value: directive.values.get(1).cloned(),
                    appends: name.ends_with("add"),
                };
                if name.starts_with("req") {
                    policy.request.push(change);
                } else {
                    policy.response.push(change);
                }
            }
            "http_resp_code_block" => {
                let limit = super::limits::limit("http_resp_code_block", directive)?;
                policy.limits.set(limit);
                self.site.has_limits = true;
            }
            _ => policy.limits.set(Limit {
                name: "http_post_validate",
                words: vec![b"on".into()],
                origin: directive.name.origin.clone(),
            }),
        }
        Ok(())
    }

    /// `cache_control_ignore`
    fn ignore(&mut self, directive: &Directive, policy: &mut Policy) {
        for word in &directive.values {
            // As Tempesta FW: other words mean nothing.
            if !CACHE_CONTROL.iter().any(|known| word.is(known)) {
                let help = "it is none of the directives of Cache-Control that can be ignored";
                let message = format!("\"{}\" has no effect", word.display());
                self.notes.warn(word, message, help);
            }
        }
        let is_named = |name: &&str| directive.values.iter().any(|word| word.is(name));
        let named = CACHE_CONTROL_OF_CACHES.into_iter().filter(is_named);
        let named: Vec<&str> = named.collect();
        if named.is_empty() {
            return;
        }
        let origin = directive.name.origin.clone();
        let (_, known) = policy.ignores.get_or_insert_with(|| (origin, Vec::new()));
        let new = named.into_iter().filter(|name| !known.contains(name));
        let new: Vec<&str> = new.collect();
        known.extend(new);
    }
}

/// `eq`, `prefix`, `suffix`, `regex` or `*`, with its text.
pub(super) fn path_test(operator: &Term, text: &Term) -> Applied<PathTest> {
    let known = [
        ("eq", Test::Equal),
        ("prefix", Test::Prefix),
        ("suffix", Test::Suffix),
        ("regex", Test::Regex),
        ("*", Test::Any),
    ];
    let found = known.iter().find(|(name, _)| operator.is(name));
    let Some(&(_, test)) = found else {
        let mut error = operator.error(format!("unknown operator \"{}\"", operator.display()));
        error.help = Some(String::from("it is one of eq, prefix, suffix, regex, *"));
        return Err(error);
    };
    if test == Test::Any && text.bytes != b"*" {
        // Tempesta FW takes it, and it never matches.
        let mut error = text.error(format!("invalid value \"{}\"", text.display()));
        error.help = Some(String::from("the operator * has the value *"));
        return Err(error);
    }
    let text = text.clone();
    Ok(PathTest { test, text })
}

/// Statuses from 400 on, or the classes `4*` and `5*`, none twice.
fn stale(directive: &Directive) -> Applied<Vec<Term>> {
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    for word in &directive.values {
        let (first, last) = value::statuses(word)?;
        if first < 400 {
            let message = format!("invalid status \"{}\"", word.display());
            let mut error = word.error(message);
            error.help = Some(String::from("it is a status from 400 on, \"4*\" or \"5*\""));
            return Err(error);
        }
        if ranges
            .iter()
            .any(|range| range.0 <= last && first <= range.1)
        {
            let message = format!("status \"{}\" is duplicate", word.display());
            return Err(word.error(message));
        }
        ranges.push((first, last));
    }
    Ok(directive.values.clone())
}

fn nonidempotent(directive: &Directive) -> Applied<Nonidempotent> {
    let [method, operator, text] = directive.values.as_slice() else {
        unreachable!("the number of arguments has been checked");
    };
    let is_any = method.is("*");
    if !is_any && !method.is("unknown") && !METHODS.iter().any(|known| method.is(known)) {
        return Err(method.error(format!("unknown method \"{}\"", method.display())));
    }
    Ok(Nonidempotent {
        method: (!is_any).then(|| method.clone()),
        path: path_test(operator, text)?,
    })
}

/// A token of RFC 9110 5.6.2.
fn field_name(term: &Term) -> Applied<Term> {
    let is_token = |&byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if term.bytes.is_empty() || !term.bytes.iter().all(is_token) {
        return Err(term.error(format!("invalid name of a field \"{}\"", term.display())));
    }
    Ok(term.clone())
}
