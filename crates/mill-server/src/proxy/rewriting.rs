//! `proxy_redirect` and `proxy_cookie_…`: values of the answer that name the server, in the client's terms.

use crate::local::Local;
use crate::request::Request;
use crate::response::Response;
use crate::variables;
use mill_config::config::settings::{
    CookieFlags, CookieName, ProxyHttpSettings, ProxyRedirect, ProxyRewrite, RewritePattern,
};
use mill_runtime::engine::Engine;
use std::sync::Arc;

/// Changes `Location`, `Refresh` and `Set-Cookie`.
pub(super) fn apply<E: Engine, File>(
    response: &mut Response<File>,
    request: &mut Request,
    local: &Local<E>,
) {
    let location = Arc::clone(&request.location);
    let http = &*location.proxy_http;
    if let ProxyRedirect::Rules(rules) = &http.redirect {
        let mut lines = response.fields.iter();
        let redirect = lines.position(|line| line.name.eq_ignore_ascii_case(b"Location"));
        if let Some(line) = redirect.and_then(|at| response.fields.get_mut(at))
            && first_of(rules, line.value.to_mut(), request, local)
        {
            // As in nginx a rewritten one is made absolute, like those of this server's own.
            response.location = Some(std::mem::take(line.value.to_mut()));
            response
                .fields
                .retain(|line| !line.name.eq_ignore_ascii_case(b"Location"));
        }
        for line in &mut response.fields {
            if line.name.eq_ignore_ascii_case(b"Refresh") {
                refresh(rules, line.value.to_mut(), request, local);
            }
        }
    }
    let changes_cookies = !http.cookie_domain.is_empty()
        || !http.cookie_path.is_empty()
        || !http.cookie_flags.is_empty();
    if changes_cookies {
        for line in &mut response.fields {
            if line.name.eq_ignore_ascii_case(b"Set-Cookie") {
                cookie(http, line.value.to_mut(), request, local);
            }
        }
    }
}

/// The first rule that fits changes the value; returns whether one did.
fn first_of<E: Engine>(
    rules: &[ProxyRewrite],
    value: &mut Vec<u8>,
    request: &mut Request,
    local: &Local<E>,
) -> bool {
    let mut rules = rules.iter();
    rules.any(|rule| rewrite(rule, value, request, local))
}

fn rewrite<E: Engine>(
    rule: &ProxyRewrite,
    value: &mut Vec<u8>,
    request: &mut Request,
    local: &Local<E>,
) -> bool {
    let replaced = match &rule.pattern {
        RewritePattern::Prefix(prefix) => {
            let prefix = variables::evaluate(prefix, request, local);
            value.starts_with(&prefix).then_some(0..prefix.len())
        }
        RewritePattern::Domain(domain) => {
            let domain = variables::evaluate(domain, request, local);
            // A dot before the name stays.
            let start = usize::from(value.starts_with(b"."));
            let bare = value.get(start..).unwrap_or_default();
            let fits = bare.eq_ignore_ascii_case(&domain);
            fits.then_some(start..value.len())
        }
        RewritePattern::Pattern(pattern) => {
            let mut captures = Vec::new();
            let fits = pattern.captures(value, &mut captures);
            if fits {
                request.keep_captures(Some(pattern), value, captures);
            }
            fits.then_some(0..value.len())
        }
    };
    let Some(replaced) = replaced else {
        return false;
    };
    let replacement = variables::evaluate(&rule.replacement, request, local);
    value.splice(replaced, replacement);
    true
}

/// The URL in `Refresh: 5; url=…`.
fn refresh<E: Engine>(
    rules: &[ProxyRewrite],
    value: &mut Vec<u8>,
    request: &mut Request,
    local: &Local<E>,
) {
    let found = value
        .windows(URL.len())
        .position(|window| window.eq_ignore_ascii_case(URL));
    let Some(found) = found else { return };
    let mut url = value.split_off(found + URL.len());
    first_of(rules, &mut url, request, local);
    value.append(&mut url);
}

const URL: &[u8] = b"url=";

/// `name=value; attribute; attribute=value`: domain, path, and flags.
fn cookie<E: Engine>(
    http: &ProxyHttpSettings,
    value: &mut Vec<u8>,
    request: &mut Request,
    local: &Local<E>,
) {
    let mut attributes: Vec<Vec<u8>> = value
        .split(|byte| *byte == b';')
        .map(|part| part.trim_ascii().to_vec())
        .collect();
    let mut changed = false;
    for attribute in attributes.iter_mut().skip(1) {
        let rules = match name_of(attribute) {
            name if name.eq_ignore_ascii_case(b"domain") => &http.cookie_domain,
            name if name.eq_ignore_ascii_case(b"path") => &http.cookie_path,
            _ => continue,
        };
        if let Some(equals) = attribute.iter().position(|byte| *byte == b'=') {
            let mut text = attribute.split_off(equals + 1);
            changed |= first_of(rules, &mut text, request, local);
            attribute.append(&mut text);
        }
    }
    changed |= flags(&http.cookie_flags, &mut attributes, request, local);
    if changed {
        *value = attributes.join(&b"; "[..]);
    }
}

/// The first rule for this cookie adds and removes flags.
fn flags<E: Engine>(
    rules: &[CookieFlags],
    attributes: &mut Vec<Vec<u8>>,
    request: &mut Request,
    local: &Local<E>,
) -> bool {
    // nginx knows no cookie without a value.
    let named = attributes.first().filter(|cookie| cookie.contains(&b'='));
    let Some(cookie) = named else {
        return false;
    };
    let name = name_of(cookie).to_vec();
    let rule = rules.iter().find(|rule| match &rule.cookie {
        CookieName::Name(known) => {
            variables::evaluate(known, request, local).eq_ignore_ascii_case(&name)
        }
        CookieName::Pattern(pattern) => pattern.is_match(&name),
    });
    let Some(rule) = rule else { return false };
    for flag in &rule.flags {
        let flag = variables::evaluate(flag, request, local).to_ascii_lowercase();
        set_flag(&flag, attributes);
    }
    true
}

/// `secure`, `httponly`, `samesite=…`, or the same behind `no`.
fn set_flag(flag: &[u8], attributes: &mut Vec<Vec<u8>>) {
    let (name, spelled): (&[u8], Option<&[u8]>) = match flag {
        b"secure" => (b"secure", Some(b"Secure")),
        b"nosecure" => (b"secure", None),
        b"httponly" => (b"httponly", Some(b"HttpOnly")),
        b"nohttponly" => (b"httponly", None),
        b"samesite=strict" => (b"samesite", Some(b"SameSite=Strict")),
        b"samesite=lax" => (b"samesite", Some(b"SameSite=Lax")),
        b"samesite=none" => (b"samesite", Some(b"SameSite=None")),
        b"nosamesite" => (b"samesite", None),
        _ => return,
    };
    let mut position = 0;
    attributes.retain(|attribute| {
        position += 1;
        position == 1 || !name_of(attribute).eq_ignore_ascii_case(name)
    });
    attributes.extend(spelled.map(<[u8]>::to_vec));
}

fn name_of(attribute: &[u8]) -> &[u8] {
    let name = attribute.split(|byte| *byte == b'=').next();
    name.unwrap_or_default().trim_ascii()
}
