//! Answers of OCSP that go with certificates (`ssl_stapling`): fetched by one worker for all, ahead of time. No handshake
//! waits for them; without an answer there is none in it.

use crate::local::Local;
use crate::own_request::OwnRequest;
use crate::site::Site;
use mill_config::Text;
use mill_config::config::settings::{ResolverSettings, TlsFile, TlsSettings};
use mill_config::config::{LogLevel, NameServers};
use mill_runtime::engine::Engine;
use mill_runtime::spawned::Purpose;
use mill_runtime::sync::semaphore::Semaphore;
use mill_runtime::tasks::TaskId;
use mill_runtime::time::Duration;
use mill_tls::certificate::Certified;
use mill_tls::ocsp::{OcspQuestion, Status};
use mill_tls::staple_slot::StapleSlot;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The certificates of a configuration whose answers are fetched.
#[derive(Debug, Default)]
pub(super) struct Staples {
    all: Vec<Arc<Staple>>,
    /// Why others have none, for the log.
    ignored: Vec<String>,
}

/// One of them.
#[derive(Debug)]
struct Staple {
    /// The certificate's.
    file: Text,
    question: OcspQuestion,
    /// Its URL.
    responder: String,
    /// With `ssl_stapling_verify`: what the certificate has to lead to (PEM).
    trusted: Option<Text>,
    name_servers: Option<Arc<NameServers>>,
    resolver_timeout: Duration,
    slot: StapleSlot,
    state: Mutex<State>,
}

/// What was fetched; times are in seconds since 1970.
#[derive(Clone, Debug, Default)]
struct State {
    /// Empty: there is none.
    answer: Vec<u8>,
    /// Until when it is shown.
    until: Option<i64>,
    /// When it is asked for next.
    next: i64,
}

impl Staples {
    /// Adds a certificate, and returns it with what is known of it from another configuration.
    pub(super) fn add(
        &mut self,
        certified: Certified,
        file: &TlsFile,
        settings: &TlsSettings,
        resolver: &ResolverSettings,
        previous: Option<&Self>,
    ) -> Certified {
        let trusted = [&settings.trusted, &settings.client_authorities];
        let trusted = trusted.into_iter().flatten().map(|file| &*file.pem);
        let ignored = match OcspQuestion::new(&file.pem, trusted) {
            Err(reason) => reason.to_string(),
            Ok(question) => {
                let of_certificate = question.responder().map(str::to_owned);
                match settings.stapling_responder.clone().or(of_certificate) {
                    None => String::from("no OCSP responder URL in the certificate"),
                    Some(url) if !url.starts_with("http://") => {
                        format!("invalid URL prefix in OCSP responder \"{url}\" in the certificate")
                    }
                    Some(responder) => {
                        let (certified, slot) = certified.with_staple_slot();
                        let staple = Staple {
                            file: file.name.clone(),
                            question,
                            responder,
                            trusted: settings.stapling_verify.then(|| trusted_text(settings)),
                            name_servers: resolver.name_servers.clone(),
                            resolver_timeout: resolver.timeout,
                            slot,
                            state: Mutex::default(),
                        };
                        staple.adopt(previous);
                        self.all.push(Arc::new(staple));
                        return certified;
                    }
                }
            }
        };
        let name = file.name.display();
        let line = format!("\"ssl_stapling\" ignored, {ignored} \"{name}\"");
        self.ignored.push(line);
        certified
    }

    /// Starts the tasks of a site, and says which certificates have none. The caller ends them when another site is in force.
    pub(super) fn start<E: Engine>(&self, local: &Rc<Local<E>>, site: &Arc<Site>) -> Vec<TaskId> {
        for line in &self.ignored {
            local.log_error(None, LogLevel::Warn, format_args!("{line}"));
        }
        let permits = Semaphore::new(&local.scheduler, FETCHED_AT_ONCE_MAX, usize::MAX);
        let mut tasks = Vec::new();
        for staple in &self.all {
            let fetching = Fetching {
                local: Rc::clone(local),
                site: Arc::clone(site),
                staple: Arc::clone(staple),
                permits: Rc::clone(&permits),
            };
            match local.scheduler.spawn(Purpose::Background, fetching.run()) {
                Ok(task) => tasks.push(task),
                Err(_) => {
                    let text = format_args!("no task is left for OCSP");
                    local.log_error(None, LogLevel::Error, text);
                }
            }
        }
        tasks
    }
}

fn trusted_text(settings: &TlsSettings) -> Text {
    let trusted = settings.trusted.as_ref();
    trusted.map_or_else(Text::default, |file| file.pem.clone())
}

/// The task of a certificate.
struct Fetching<E: Engine> {
    local: Rc<Local<E>>,
    site: Arc<Site>,
    staple: Arc<Staple>,
    /// For requests that are under way.
    permits: Rc<Semaphore>,
}

impl<E: Engine> Fetching<E> {
    async fn run(self) {
        let scheduler = &self.local.scheduler;
        loop {
            let now = scheduler.wall_clock().seconds;
            self.staple.forget_if_old(now);
            if self.staple.state().next <= now {
                let Ok(_permit) = self.permits.acquire().await else {
                    return;
                };
                self.fetch(now).await;
            }
            let wait = self
                .staple
                .state()
                .next
                .saturating_sub(now)
                .clamp(1, LOOKING_SECONDS);
            let wait = u64::try_from(wait).unwrap_or(1);
            scheduler.sleep(Duration::from_secs(wait)).await;
        }
    }

    async fn fetch(&self, now: i64) {
        let staple = &self.staple;
        let request = OwnRequest {
            method: "POST",
            url: &staple.responder,
            content: Some(("application/ocsp-request", staple.question.request())),
            context: None,
            name_servers: staple.name_servers.as_ref(),
            resolver_timeout: staple.resolver_timeout,
        };
        let reply = request.send(&self.site, &self.local).await;
        let taken = match reply {
            Ok(reply) if reply.status == 200 => staple.take(reply.content, now),
            Ok(reply) => Err(format!(
                "OCSP responder answers with status {}",
                reply.status
            )),
            Err(reason) => Err(reason),
        };
        if let Err(reason) = taken {
            staple.state().next = now.saturating_add(REFRESH_SECONDS_MIN);
            let (responder, file) = (&staple.responder, staple.file.display());
            let text = format_args!(
                "{reason} while requesting certificate status, responder: {responder}, certificate: \"{file}\""
            );
            self.local.log_error(None, LogLevel::Error, text);
        }
    }
}

impl Staple {
    /// Takes what another configuration has fetched for the same certificate.
    fn adopt(&self, previous: Option<&Staples>) {
        let mut known = previous.into_iter().flat_map(|previous| &previous.all);
        let is_same = |known: &&Arc<Self>| {
            known.question == self.question
                && known.responder == self.responder
                && known.trusted == self.trusted
        };
        if let Some(known) = known.find(is_same) {
            let state = known.state().clone();
            if !state.answer.is_empty() {
                self.slot.set(Some(&state.answer));
                *self.state() = state;
            }
        }
    }

    /// Takes an answer that says that the certificate is good. The error says what is wrong with it.
    fn take(&self, answer: Vec<u8>, now: i64) -> Result<(), String> {
        let judged = self.question.judge(&answer, now);
        let judged = judged.map_err(|fault| fault.to_string())?;
        let status = match judged.status {
            Status::Good => None,
            Status::Revoked => Some("revoked"),
            Status::Unknown => Some("unknown"),
        };
        if let Some(status) = status {
            return Err(format!(
                "certificate status \"{status}\" in the OCSP response"
            ));
        }
        if let Some(trusted) = &self.trusted {
            let checked = self.question.check_issuer(trusted, now);
            checked.map_err(|fault| fault.to_string())?;
        }
        self.slot.set(Some(&answer));
        let latest = now.saturating_add(REFRESH_SECONDS_MAX);
        let before_end = judged
            .next_update
            .unwrap_or(i64::MAX)
            .saturating_sub(REFRESH_SECONDS_MIN);
        *self.state() = State {
            answer,
            until: judged.next_update,
            next: before_end
                .min(latest)
                .max(now.saturating_add(REFRESH_SECONDS_MIN)),
        };
        Ok(())
    }

    /// Shows no answer that clients would refuse.
    fn forget_if_old(&self, now: i64) {
        let mut state = self.state();
        if state.until.is_some_and(|until| until < now) {
            self.slot.set(None);
            (state.until, state.answer) = (None, Vec::new());
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As nginx: an answer is fetched again within the hour, five minutes before it ends, and no sooner than in five minutes.
const REFRESH_SECONDS_MIN: i64 = 300;
const REFRESH_SECONDS_MAX: i64 = 3600;
/// How often the wall clock is looked at.
const LOOKING_SECONDS: i64 = 60;
const FETCHED_AT_ONCE_MAX: u32 = 8;
