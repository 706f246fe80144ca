//! Whether a client's certificate is revoked (`ssl_ocsp`): its issuer is asked, unless the cache knows.

use crate::local::Local;
use crate::own_request::OwnRequest;
use crate::site::Site;
use mill_config::config::LogLevel;
use mill_config::config::settings::{ClientOcsp, ResolverSettings, TlsSettings};
use mill_runtime::engine::Engine;
use mill_tls::facts::{Revocation, TlsFacts};
use mill_tls::ocsp::{OcspQuestion, Status};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// As nginx says it; `None`: all is well.
pub(crate) const fn words(found: Revocation) -> Option<&'static str> {
    match found {
        Revocation::Good => None,
        Revocation::Revoked => Some("certificate revoked"),
        Revocation::Unknown => Some("certificate status unknown"),
        Revocation::NoAnswer => Some("certificate status request failed"),
    }
}

/// What issuers are asked for: a request or a session.
pub(crate) struct Asking<'a> {
    pub(crate) site: &'a Site,
    pub(crate) settings: &'a TlsSettings,
    pub(crate) resolver: &'a ResolverSettings,
    /// Writes to its error log.
    pub(crate) log: &'a dyn Fn(LogLevel, fmt::Arguments<'_>),
}

impl Asking<'_> {
    /// Whether one of the client's certificates is revoked; kept in `facts` for the connection.
    pub(crate) async fn about<E: Engine>(&self, facts: &TlsFacts, local: &Local<E>) -> Revocation {
        let found = self.about_chain(facts, local).await;
        facts.revocation.set(Some(found));
        found
    }

    async fn about_chain<E: Engine>(&self, facts: &TlsFacts, local: &Local<E>) -> Revocation {
        let settings = self.settings;
        let path = facts.path.iter();
        let path = path.filter_map(|at| facts.peer_certificates.get(*at));
        let mut path: Vec<_> = path.cloned().collect();
        let count = match settings.ocsp {
            ClientOcsp::On => path.len(),
            ClientOcsp::Off | ClientOcsp::Leaf => path.len().min(1),
        };
        for _ in 0..count {
            let trusted = [&settings.trusted, &settings.client_authorities];
            let trusted = trusted.into_iter().flatten().map(|file| &*file.pem);
            let found = match OcspQuestion::about(&path, trusted) {
                Ok(question) => self.about_certificate(&question, local).await,
                Err(reason) => Err(reason.to_string()),
            };
            match found {
                Ok(Status::Good) => {}
                Ok(Status::Revoked) => return Revocation::Revoked,
                Ok(Status::Unknown) => return Revocation::Unknown,
                Err(reason) => {
                    let text = format_args!("{reason} while requesting certificate status");
                    (self.log)(LogLevel::Error, text);
                    return Revocation::NoAnswer;
                }
            }
            path.remove(0);
        }
        Revocation::Good
    }

    async fn about_certificate<E: Engine>(
        &self,
        question: &OcspQuestion,
        local: &Local<E>,
    ) -> Result<Status, String> {
        let settings = self.settings;
        let zone = settings.ocsp_zone.as_ref();
        let cache = zone.and_then(|zone| self.site.tls.ocsp_answers(&zone.name));
        let now = local.scheduler.wall_clock().seconds;
        if let Some(status) = cache.and_then(|cache| cache.find(question.request(), now)) {
            return Ok(status);
        }
        let of_certificate = question.responder();
        let responder = settings.ocsp_responder.as_deref().or(of_certificate);
        let responder =
            responder.ok_or("no OCSP responder URL in the certificate of the client")?;
        let resolver = self.resolver;
        let own = OwnRequest {
            method: "POST",
            url: responder,
            content: Some(("application/ocsp-request", question.request())),
            context: None,
            name_servers: resolver.name_servers.as_ref(),
            resolver_timeout: resolver.timeout,
        };
        let reply = own.send(self.site, local).await;
        let reply = reply.map_err(|reason| format!("{reason}, responder: {responder}"))?;
        let judged = match reply.status {
            200 => question.judge(&reply.content, now),
            status => {
                return Err(format!(
                    "OCSP responder {responder} answers with status {status}"
                ));
            }
        };
        let judged = judged.map_err(|fault| format!("{fault}, responder: {responder}"))?;
        if let Some(cache) = cache {
            let latest = now.saturating_add(CACHED_SECONDS_MAX);
            let until = judged.next_update.map_or(latest, |next| next.min(latest));
            cache.keep(question.request(), judged.status, until, now);
        }
        Ok(judged.status)
    }
}

/// Answers for all workers (`ssl_ocsp_cache`).
#[derive(Debug)]
pub(crate) struct OcspAnswers {
    entries_max: usize,
    /// By what was asked: the answer, and until when it counts, in seconds since 1970.
    entries: Mutex<BTreeMap<Vec<u8>, (Status, i64)>>,
}

impl OcspAnswers {
    pub(crate) fn new(bytes: u64) -> Self {
        let entries_max = usize::try_from(bytes / ENTRY_BYTES).unwrap_or(usize::MAX);
        Self {
            entries_max,
            entries: Mutex::default(),
        }
    }

    fn find(&self, asked: &[u8], now: i64) -> Option<Status> {
        let (status, until) = *self.entries().get(asked)?;
        (until > now).then_some(status)
    }

    /// Where there is no room, what is out of date goes, and then any other.
    fn keep(&self, asked: &[u8], status: Status, until: i64, now: i64) {
        let mut entries = self.entries();
        if entries.len() >= self.entries_max {
            entries.retain(|_, (_, until)| *until > now);
        }
        if entries.len() >= self.entries_max {
            entries.pop_first();
        }
        entries.insert(asked.to_vec(), (status, until));
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<Vec<u8>, (Status, i64)>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What an entry takes: a request of about 80 bytes, and its place in a tree.
const ENTRY_BYTES: u64 = 256;
const CACHED_SECONDS_MAX: i64 = 3600;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_known_until_they_end_and_make_room_for_others() {
        let answers = OcspAnswers::new(2 * ENTRY_BYTES);
        answers.keep(b"1", Status::Good, 100, 0);
        assert_eq!(answers.find(b"1", 99), Some(Status::Good));
        assert_eq!(answers.find(b"1", 100), None);
        assert_eq!(answers.find(b"2", 0), None);
        answers.keep(b"2", Status::Revoked, 200, 0);
        answers.keep(b"3", Status::Unknown, 200, 150);
        assert_eq!(answers.find(b"2", 150), Some(Status::Revoked));
        assert_eq!(answers.find(b"3", 150), Some(Status::Unknown));
        answers.keep(b"4", Status::Good, 200, 150);
        assert_eq!(answers.entries().len(), 2);
        assert_eq!(answers.find(b"4", 150), Some(Status::Good));
    }
}
