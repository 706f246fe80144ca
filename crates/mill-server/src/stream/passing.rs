//! Trying servers until one can be reached, and what its session becomes.

use super::SessionStatus;
use super::connecting::{Connecting, Unreached, securing};
use super::relay::{End, Relay};
use super::session::{Session, taken};
use super::target::{self, Target};
use crate::local::Local;
use crate::upstreams::queue::Freed;
use mill_config::config::{LogLevel, PassTarget};
use mill_runtime::address::Address;
use mill_runtime::engine::Engine;
use mill_runtime::stream::Stream;
use mill_runtime::time::Instant;
use mill_tls::transport::TransportOf;
use mill_upstream::select::{NoPeer, Outcome, Selected, Selection, Tried};
use std::future::poll_fn;

/// A connection to a server while a session uses it.
pub(super) struct Far<E: Engine> {
    pub(super) stream: TransportOf<E>,
    /// Bytes of the header of the PROXY protocol, which went first.
    header: u64,
    selected: Selected,
    /// Dropped after `selected`.
    _freed: Freed,
}

/// `proxy_pass`.
pub(super) async fn pass<E: Engine>(
    pass: &PassTarget,
    session: &mut Session,
    near: &TransportOf<E>,
    local: &Local<E>,
) -> Result<SessionStatus, SessionStatus> {
    session.is_passed_on = true;
    let target = target::find(pass, session, local).await?;
    let mut far = reach(&target, session, local).await?;
    let mut relay = Relay::new(session, local);
    let end = poll_fn(|_| relay.poll(near, &far.stream, local)).await;
    near.shutdown();
    far.stream.shutdown();
    let now = local.scheduler.now();
    let carried = relay.carried();
    session.received = carried.from_client;
    session.sent = taken(near, carried.to_client);
    let first_byte = relay.first_byte();
    if let Some(last) = session.tries.last_mut() {
        last.sent = taken(&far.stream, far.header + carried.from_client);
        last.received = carried.to_client;
        last.first_byte_time = first_byte.map(|at| at.since(last.begun));
        far.selected
            .peer()
            .load()
            .count_bytes(last.sent, last.received);
    }
    far.selected.completed(now);
    session.end_try(now);
    log_end(end, session, local);
    Ok(SessionStatus::OK)
}

/// How a session ended, for the error log.
fn log_end<E: Engine>(end: End, session: &Session, local: &Local<E>) {
    if let End::TimedOut = end {
        let line = format_args!(
            "connection timed out (110: Connection timed out) while proxying connection"
        );
        session.log_error(LogLevel::Info, line, local);
        return;
    }
    if let Some((level, text)) = end.fault() {
        session.log_error(level, format_args!("{text}"), local);
    }
    let side = if end.is_of_server() {
        "upstream"
    } else {
        "client"
    };
    let tried = session.tries.last();
    let (far_received, far_sent) = tried.map_or((0, 0), |last| (last.received, last.sent));
    let line = format_args!(
        "{side} disconnected, bytes from/to client:{}/{}, bytes from/to upstream:{far_received}/{far_sent}",
        session.received, session.sent
    );
    session.log_bare(LogLevel::Info, line, local);
}

/// A connection to a server of the group.
async fn reach<E: Engine>(
    target: &Target<E>,
    session: &mut Session,
    local: &Local<E>,
) -> Result<Far<E>, SessionStatus> {
    let securing = securing(&target.host, session, local);
    let connecting = Connecting::of(session, securing, local);
    let mut tries_left = tries(target, session);
    let (mut tried, started) = (Tried::default(), local.scheduler.now());
    loop {
        let now = local.scheduler.now();
        let selected = choose(target, &tried, session, now);
        let Ok(mut selected) = selected else {
            let group = target.group.group.config();
            session.begin_try(&group.name, now);
            let line = format_args!("no live upstreams while connecting to upstream");
            session.log_error(LogLevel::Error, line, local);
            session.end_try(now);
            return Err(SessionStatus::BAD_GATEWAY);
        };
        tried.add(&selected);
        tries_left = tries_left.saturating_sub(1);
        session.begin_try(selected.peer().name.as_bytes(), now);
        match connecting.connect(&selected, local).await {
            Ok(stream) => {
                reached(&stream, &mut selected, session, local);
                return Ok(Far {
                    stream,
                    header: connecting.header_len(),
                    selected,
                    _freed: target.group.freed(),
                });
            }
            Err(unreached) => {
                give_up(&unreached, selected, target, session, local);
                let is_own_fault = matches!(unreached, Unreached::NotBound(_));
                let is_final = !may_try_another(session, tries_left, started, local);
                if is_own_fault || is_final {
                    return Err(match unreached {
                        Unreached::NotBound(_) => SessionStatus::INTERNAL,
                        _ => SessionStatus::BAD_GATEWAY,
                    });
                }
            }
        }
    }
}

/// How many servers may be tried.
fn tries<E: Engine>(target: &Target<E>, session: &Session) -> u64 {
    let all = u64::from(target.group.selector.borrow_mut().tries());
    match session.server.settings.stream.next_upstream_tries {
        0 => all,
        most => all.min(most),
    }
}

fn choose<E: Engine>(
    target: &Target<E>,
    tried: &Tried,
    session: &Session,
    now: Instant,
) -> Result<Selected, NoPeer> {
    let selection = Selection {
        key: &target.key,
        client: match session.client() {
            Address::Ip(address) => Some(address.ip()),
            Address::Unix(_) => None,
        },
        session: &[],
        tried,
        now,
    };
    target.group.selector.borrow_mut().select(&selection)
}

/// `proxy_next_upstream` and its like.
fn may_try_another<E: Engine>(
    session: &Session,
    tries_left: u64,
    started: Instant,
    local: &Local<E>,
) -> bool {
    let settings = &session.server.settings.stream;
    let timeout = settings.next_upstream_timeout;
    let is_in_time = timeout.is_zero() || local.scheduler.now().since(started) < timeout;
    settings.next_upstream && tries_left > 0 && is_in_time
}

fn reached<E: Engine>(
    stream: &TransportOf<E>,
    selected: &mut Selected,
    session: &mut Session,
    local: &Local<E>,
) {
    let now = local.scheduler.now();
    selected.connected(now);
    if let Some(last) = session.tries.last_mut() {
        last.connect_time = Some(now.since(last.begun));
    }
    let logs = &session.server.settings.log.error_logs;
    if logs.iter().any(|log| LogLevel::Info <= log.level) {
        let (from, to) = (stream.local(), &selected.peer().name);
        let line = format_args!("proxy {from} connected to {}", crate::log::Text(to));
        session.log_bare(LogLevel::Info, line, local);
    }
}

/// Tells the group and the log that a server could not be reached.
fn give_up<E: Engine>(
    unreached: &Unreached,
    selected: Selected,
    target: &Target<E>,
    session: &mut Session,
    local: &Local<E>,
) {
    let now = local.scheduler.now();
    let text = unreached.text(selected.peer().name.as_bytes());
    session.log_error(unreached.level(), format_args!("{text}"), local);
    let outcome = match unreached {
        Unreached::NotBound(_) => Outcome::Unknown,
        _ => Outcome::Failed,
    };
    let freed = target.group.freed();
    if selected.report(outcome, now) {
        let line =
            format_args!("upstream server temporarily disabled while connecting to upstream");
        session.log_error(LogLevel::Warn, line, local);
    }
    drop(freed);
    session.end_try(now);
}
