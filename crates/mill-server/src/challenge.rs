//! `challenge_cookie`: a client is served once it has shown that it keeps a cookie, or runs the script of a page, with the
//! meaning of Tempesta FW's `cookie enforce` and `js_challenge`.
//!
//! Nothing is remembered of clients: the cookie holds when it was made, and is signed together with the client's address and
//! `User-Agent`. Only how often a connection has asked without it is counted, in the connection.

/// The cookie's value.
mod cookie;
/// What cookies are signed with.
mod secret;

pub(crate) use secret::ChallengeSecret;

use crate::answer::Answer;
use crate::exchange::Exchange;
use crate::frang::limit::FrangLimit;
use crate::frang::refusal;
use crate::frang::window::Window;
use crate::local::{AnswerOf, FileOf, Local};
use crate::request::arrival::ip;
use crate::request::{Phase, Request};
use crate::response::{FieldLine, Response};
use crate::variables;
use cookie::Subject;
use mill_config::config::challenge::{ChallengeCookie, ChallengeScript, PagePart};
use mill_config::config::frang::FrangAction;
use mill_config::config::settings::ChallengeSettings;
use mill_config::config::{LogLevel, Variable};
use mill_http::field::KnownField;
use mill_http::method::Method;
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use std::cell::RefCell;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

/// How often a connection has asked without its cookie.
#[derive(Clone, Debug, Default)]
pub struct Misses(RefCell<Option<Box<Window>>>);

/// What has become of a request at a location that asks for a cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Challenged {
    /// Nothing.
    No,
    /// It has none, and no page can answer it: only a cache may.
    OnlyKept,
    /// It is answered with a cookie.
    Answered,
}

/// The time frame in which misses are counted, as in Tempesta FW.
const MISSES_FRAME_S: u16 = 1;

/// Lets the request pass if it has the cookie that its location asks for; else answers it with the cookie.
pub(crate) fn check<X: Exchange>(
    exchange: &mut X,
    request: &mut Request,
    local: &Local<X::Engine>,
) -> Phase<FileOf<X::Engine>> {
    let settings = &request.location.challenge;
    let Some(cookie) = settings.cookie.as_ref() else {
        return ControlFlow::Continue(());
    };
    let (settings, cookie) = (Arc::clone(settings), Arc::clone(cookie));
    // The same answer is not for others.
    request.pure = false;
    if request.broke_limit || is_free(request) {
        return ControlFlow::Continue(());
    }
    let now_ms = now_ms(local);
    let subject = subject(&settings, &cookie, request, local);
    let variable = Variable::Cookie(cookie.name.clone());
    let value = variables::value(&variable, request, local);
    let made_ms = value.and_then(|value| subject.made_ms(&value));
    if made_ms.is_some_and(|made_ms| is_in_time(&settings, &cookie, made_ms, now_ms)) {
        return ControlFlow::Continue(());
    }
    if settings.script.is_some() && !runs_scripts(request) {
        return without_script(request, local);
    }
    ControlFlow::Break(miss(
        exchange,
        (&settings, &cookie, &subject, now_ms),
        request,
        local,
    ))
}

/// Whether the client has no limits.
fn is_free(request: &Request) -> bool {
    request.site.frang.is_some() && refusal::limits_of(request).is_none()
}

fn now_ms<E: Engine>(local: &Local<E>) -> u64 {
    let now = local.scheduler.wall_clock();
    let seconds = u64::try_from(now.seconds).unwrap_or(0);
    seconds * 1000 + u64::from(now.nanos / 1_000_000)
}

/// Whose cookie it is.
fn subject<E: Engine>(
    settings: &ChallengeSettings,
    cookie: &ChallengeCookie,
    request: &mut Request,
    local: &Local<E>,
) -> Subject {
    let client = ip(request.client()).map(|client| client.to_canonical());
    let agent = owned(&Variable::Http("user_agent".into()), request, local);
    let secret = match &settings.secret {
        Some(secret) => secret.as_bytes(),
        None => request.site.challenge_secret.bytes(),
    };
    Subject::new(secret, cookie.name.as_bytes(), client, &agent)
}

fn owned<E: Engine>(variable: &Variable, request: &mut Request, local: &Local<E>) -> Vec<u8> {
    let value = variables::value(variable, request, local);
    value.map_or_else(Vec::new, |value| value.into_owned())
}

/// Whether a cookie that was made then is neither too old nor back too early.
fn is_in_time(
    settings: &ChallengeSettings,
    cookie: &ChallengeCookie,
    made_ms: u64,
    now_ms: u64,
) -> bool {
    // The clock may go back, and another server's may be ahead.
    let age_ms = now_ms.saturating_sub(made_ms);
    let is_over = cookie.lifetime_s > 0 && age_ms / 1000 >= cookie.lifetime_s;
    let script = settings.script.as_ref();
    let is_early = script.is_some_and(|script| age_ms < script.delay_ms(made_ms));
    !is_over && !is_early
}

/// Whether a browser would run the script of an answer: it asks for a page, not for an image.
fn runs_scripts(request: &Request) -> bool {
    let message = &request.message;
    let mut accepted = message.head.known(KnownField::Accept);
    request.method == Method::Get
        && accepted.any(|field| {
            let mut types = field.of(&message.bytes).split(|&byte| byte == b',');
            types.any(|kind| {
                let name = kind.split(|&byte| byte == b';').next().unwrap_or_default();
                name.trim_ascii().eq_ignore_ascii_case(b"text/html")
            })
        })
}

/// A request that no page can answer gets what a cache has, or 403.
fn without_script<E: Engine>(request: &mut Request, local: &Local<E>) -> Phase<FileOf<E>> {
    let is_read = matches!(request.method, Method::Get | Method::Head);
    if is_read && request.location.pass.is_some() {
        request.challenged = Challenged::OnlyKept;
        return ControlFlow::Continue(());
    }
    ControlFlow::Break(refuse(request, local))
}

/// The answer to a request without a cookie that no page can answer.
pub(crate) fn refuse<E: Engine>(request: &mut Request, local: &Local<E>) -> AnswerOf<E> {
    request.challenged = Challenged::No;
    local.counters.borrow_mut().challenges_refused += 1;
    let text = format_args!(
        "the request has no valid cookie of \"challenge_cookie\", and is none for a page"
    );
    local.log_error(Some(request), LogLevel::Info, text);
    Answer::Status(Status::FORBIDDEN)
}

/// Counts that the cookie is missing, and answers with one.
fn miss<X: Exchange>(
    exchange: &mut X,
    (settings, cookie, subject, now_ms): (&ChallengeSettings, &ChallengeCookie, &Subject, u64),
    request: &mut Request,
    local: &Local<X::Engine>,
) -> AnswerOf<X::Engine> {
    let count = request.connection.misses.add(local);
    if cookie.misses_max > 0 && count > cookie.misses_max {
        return exceed(count, cookie.misses_max, exchange, request, local);
    }
    local.counters.borrow_mut().challenges_sent += 1;
    request.challenged = Challenged::Answered;
    let set = [
        cookie.name.as_bytes(),
        b"=",
        &subject.value(now_ms),
        cookie.attributes.as_bytes(),
    ];
    request.carried_fields.push(FieldLine {
        name: "Set-Cookie".into(),
        value: set.concat().into(),
    });
    request.carried_fields.push(FieldLine {
        name: "Cache-Control".into(),
        value: b"no-store".to_vec().into(),
    });
    match &settings.script {
        Some(script) => show_page(script, cookie, now_ms, request, local),
        None => {
            request.redirect_target = Some(target(request, local).into());
            Answer::Status(Status::FOUND)
        }
    }
}

impl Misses {
    /// Counts one; how many there were in the last second.
    fn add<E: Engine>(&self, local: &Local<E>) -> u32 {
        let mut window = self.0.borrow_mut();
        let window = window.get_or_insert_default();
        window.add(local.scheduler.now(), MISSES_FRAME_S).total
    }
}

/// What becomes of a client that asks too often without its cookie: as of one that breaks a limit of `frang`.
fn exceed<X: Exchange>(
    count: u32,
    most: u32,
    exchange: &mut X,
    request: &mut Request,
    local: &Local<X::Engine>,
) -> AnswerOf<X::Engine> {
    let how = TooMany { count, most };
    let action = match request.site.frang {
        Some(_) => refusal::tell(FrangLimit::Misses, format_args!("{how}"), request, local),
        None => {
            FrangLimit::Misses.count(&mut local.counters.borrow_mut());
            local.log_error(Some(request), LogLevel::Warn, format_args!("{how}"));
            FrangAction::Reply
        }
    };
    refusal::end(action, exchange, request)
}

/// What is logged.
struct TooMany {
    count: u32,
    most: u32,
}

impl fmt::Display for TooMany {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { count, most } = self;
        write!(
            formatter,
            "limiting client by \"max_misses\" of challenge_cookie: {count} requests without the cookie, and {most} is the most"
        )
    }
}

/// The page whose script asks again.
fn show_page<E: Engine>(
    script: &ChallengeScript,
    cookie: &ChallengeCookie,
    made_ms: u64,
    request: &mut Request,
    local: &Local<E>,
) -> AnswerOf<E> {
    let mut page = Vec::new();
    for part in &script.page {
        match part {
            PagePart::Text(text) => page.extend_from_slice(text.as_bytes()),
            PagePart::CookieName => page.extend_from_slice(cookie.name.as_bytes()),
            PagePart::DelayMin => {
                page.extend_from_slice(script.delay_min_ms.to_string().as_bytes())
            }
            PagePart::DelayRange => {
                page.extend_from_slice(script.delay_range_ms.to_string().as_bytes());
            }
            PagePart::Delay => {
                page.extend_from_slice(script.delay_ms(made_ms).to_string().as_bytes())
            }
        }
    }
    let status = Status(script.status);
    // It is no page of an error that has led here.
    request.error_status = None;
    request.sent.status = status.0;
    if matches!(status.0, 301 | 302 | 303 | 307 | 308) {
        request.redirect_target = Some(target(request, local).into());
    }
    Answer::Response(Box::new(Response::with_bytes(status, b"text/html", page)))
}

/// Where the client asks again: what it has asked for, with scheme and host, lest a path that begins with `//` be taken for
/// a host.
fn target<E: Engine>(request: &mut Request, local: &Local<E>) -> Vec<u8> {
    let host = owned(&Variable::Http("host".into()), request, local);
    let uri = owned(&Variable::RequestUri, request, local);
    if host.is_empty() {
        let slashes = uri.iter().take_while(|byte| matches!(byte, b'/' | b'\\'));
        let rest = uri.get(slashes.count()..).unwrap_or_default();
        return [b"/", rest].concat();
    }
    let scheme = request.connection.scheme().as_bytes();
    [scheme, b"://", &host, &uri].concat()
}
