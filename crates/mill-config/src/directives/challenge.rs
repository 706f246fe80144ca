//! `challenge_cookie`, `challenge_secret`, `challenge_script`.

use std::sync::Arc;

use crate::Text;
use crate::config::challenge::{self, ChallengeCookie, ChallengeScript};
use crate::config::settings::group;
use crate::diagnostic::Diagnostic;
use crate::directive::{ANY_LEVEL, Apply, Arity, Directive, once};
use crate::lexer::{Statement, Word};
use crate::resolve::{Applied, Resolver, join};
use crate::value;

group! {
    /// What clients show before they are served.
    ChallengeSettings {
        /// `challenge_cookie`; `None` serves all.
        cookie: Option<Arc<ChallengeCookie>> = None,
        /// `challenge_secret`; `None` is one that the server draws.
        secret: Option<Text> = None,
        /// `challenge_script`; `None` redirects.
        script: Option<Arc<ChallengeScript>> = None,
    }
}

pub(crate) const DIRECTIVES: &[Directive] = &[
    once(
        "challenge_cookie",
        ANY_LEVEL,
        Arity::AtLeast(1),
        "off",
        Apply::With(cookie),
        "Serves only requests with this cookie, and redirects others to where it is set: NAME, max_misses=, lifetime=, attribute=; or off.",
    ),
    once(
        "challenge_secret",
        ANY_LEVEL,
        Arity::Exactly(1),
        "",
        Apply::With(secret),
        "What cookies of challenge_cookie are signed with, for several servers; without it, something random.",
    ),
    once(
        "challenge_script",
        ANY_LEVEL,
        Arity::AtLeast(1),
        "off",
        Apply::With(script),
        "A page in the place of the redirect, whose script asks again after a delay: delay_min=, delay_range=, status=, page=; or off.",
    ),
];

/// Requests without the cookie where nothing is written, as in Tempesta FW.
const MISSES_DEFAULT: u32 = 1;

/// Status of the page where nothing is written.
const STATUS_DEFAULT: u16 = 503;

/// Longest delay: a day.
const DELAY_MS_MAX: u64 = 86_400_000;

fn is_off(statement: &Statement) -> bool {
    matches!(statement.args(), [word] if word.bytes == b"off")
}

fn cookie(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    if is_off(statement) {
        resolver.level.settings.challenge.cookie = Some(None);
        return Ok(());
    }
    let name = statement.arg(1);
    let is_token = |byte: &u8| byte.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?={}".contains(byte);
    if name.bytes.is_empty() || !name.bytes.iter().all(is_token) {
        let message = format!("invalid name of a cookie \"{}\"", name.display());
        return Err(resolver.emerg(statement, name, message));
    }
    let mut cookie = ChallengeCookie {
        name: Text::from(name.bytes.as_slice()),
        attributes: Text::default(),
        misses_max: MISSES_DEFAULT,
        lifetime_s: 0,
    };
    let mut attributes = Vec::new();
    let mut seen = Vec::new();
    for word in statement.args().iter().skip(1) {
        let (name, text) = parameter(word);
        let invalid = || invalid(resolver, statement, word);
        if name != b"attribute=" {
            refuse_duplicate(&mut seen, (name, word), resolver, statement)?;
        }
        match name {
            b"max_misses=" => cookie.misses_max = number(text).ok_or_else(invalid)?,
            b"lifetime=" => {
                let time = value::seconds(text).ok_or_else(invalid)?;
                cookie.lifetime_s = time.as_secs();
            }
            b"attribute=" if is_attribute(text) => {
                attributes.extend_from_slice(b"; ");
                attributes.extend_from_slice(text);
            }
            _ => return Err(invalid()),
        }
    }
    complete(&mut attributes, cookie.lifetime_s);
    cookie.attributes = Text::from(&*attributes);
    resolver.level.settings.challenge.cookie = Some(Some(Arc::new(cookie)));
    Ok(())
}

/// The cookie is for all paths, and does not outlive what it is good for, where nothing else is said.
fn complete(attributes: &mut Vec<u8>, lifetime_s: u64) {
    let has = |attributes: &[u8], name: &[u8]| {
        let mut parts = attributes
            .split(|&byte| byte == b';')
            .map(<[u8]>::trim_ascii_start);
        parts.any(|part| {
            let end = part.iter().position(|&byte| byte == b'=');
            part.get(..end.unwrap_or(part.len()))
                .is_some_and(|found| found.eq_ignore_ascii_case(name))
        })
    };
    if !has(attributes, b"path") {
        attributes.extend_from_slice(b"; Path=/");
    }
    if lifetime_s > 0 && !has(attributes, b"max-age") && !has(attributes, b"expires") {
        attributes.extend_from_slice(format!("; Max-Age={lifetime_s}").as_bytes());
    }
}

/// RFC 6265 4.1.1: no control bytes, and no `;`.
pub(crate) fn is_attribute(text: &[u8]) -> bool {
    let is_allowed = |byte: &u8| (b' '..=b'~').contains(byte) && *byte != b';';
    !text.is_empty() && text.iter().all(is_allowed)
}

fn secret(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let word = statement.arg(1);
    if word.bytes.is_empty() {
        return Err(resolver.refused_at(statement, word, "empty secret"));
    }
    let secret = Text::from(word.bytes.as_slice());
    resolver.level.settings.challenge.secret = Some(Some(secret));
    Ok(())
}

fn script(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    if is_off(statement) {
        resolver.level.settings.challenge.script = Some(None);
        return Ok(());
    }
    let mut script = ChallengeScript {
        page: Vec::new(),
        delay_min_ms: 0,
        delay_range_ms: 0,
        status: STATUS_DEFAULT,
    };
    let mut template = None;
    let mut seen = Vec::new();
    for word in statement.args() {
        let (name, text) = parameter(word);
        refuse_duplicate(&mut seen, (name, word), resolver, statement)?;
        let invalid = || invalid(resolver, statement, word);
        match name {
            b"delay_min=" => script.delay_min_ms = delay(text).ok_or_else(invalid)?,
            b"delay_range=" => script.delay_range_ms = delay(text).ok_or_else(invalid)?,
            b"status=" => {
                let status = number(text).and_then(|status| u16::try_from(status).ok());
                let status = status.filter(|status| (200..=599).contains(status));
                script.status = status.ok_or_else(invalid)?;
            }
            b"page=" if !text.is_empty() => {
                template = Some(read_page(resolver, statement, word, text)?);
            }
            _ => return Err(invalid()),
        }
    }
    for (value, name) in [
        (script.delay_min_ms, "delay_min"),
        (script.delay_range_ms, "delay_range"),
    ] {
        if value == 0 {
            let what = format!("\"{name}\" parameter is not specified");
            return Err(resolver.refused(statement, &what));
        }
    }
    let template = template.as_deref().unwrap_or(challenge::PAGE_DEFAULT);
    script.page = challenge::page(template);
    resolver.level.settings.challenge.script = Some(Some(Arc::new(script)));
    Ok(())
}

fn read_page(
    resolver: &Resolver<'_>,
    statement: &Statement,
    word: &Word,
    path: &[u8],
) -> Applied<Vec<u8>> {
    let path = join(&resolver.options.conf_prefix(), path);
    resolver.source.read_secret(&path).map_err(|error| {
        let message = format!(
            "open() \"{}\" failed ({}: {})",
            path.display(),
            error.code,
            error.text
        );
        resolver.emerg(statement, word, message)
    })
}

/// The name of a parameter with its `=`, and its value.
fn parameter(word: &Word) -> (&[u8], &[u8]) {
    match word.bytes.iter().position(|&byte| byte == b'=') {
        Some(at) => word.bytes.split_at(at + 1),
        None => (word.bytes.as_slice(), &[]),
    }
}

fn refuse_duplicate<'a>(
    seen: &mut Vec<&'a [u8]>,
    (name, word): (&'a [u8], &Word),
    resolver: &Resolver<'_>,
    statement: &Statement,
) -> Applied {
    if seen.contains(&name) {
        let name = String::from_utf8_lossy(name.strip_suffix(b"=").unwrap_or(name));
        let what = format!("parameter \"{name}\" is duplicate");
        return Err(resolver.refused_at(statement, word, &what));
    }
    seen.push(name);
    Ok(())
}

fn invalid(resolver: &Resolver<'_>, statement: &Statement, word: &Word) -> Box<Diagnostic> {
    let message = format!("invalid parameter \"{}\"", word.display());
    resolver.emerg(statement, word, message)
}

fn number(text: &[u8]) -> Option<u32> {
    value::number(text).and_then(|number| u32::try_from(number).ok())
}

fn delay(text: &[u8]) -> Option<u32> {
    let time = u64::try_from(value::milliseconds(text)?.as_millis()).ok()?;
    let time = Some(time).filter(|time| (1..=DELAY_MS_MAX).contains(time))?;
    u32::try_from(time).ok()
}
