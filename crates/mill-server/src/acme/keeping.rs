//! The task of an issuer, at one worker for all: it orders the certificates that are missing, and replaces each in time.

use super::challenges::LaidOut;
use super::{Issue, IssuedCertificate, Issuer, asking, settings, state};
use crate::local::Local;
use crate::site::Site;
use mill_acme::account_key::AccountKey;
use mill_acme::client::{Client, Failure, Issued, Step};
use mill_config::config::LogLevel;
use mill_config::config::acme::AccountKey as ConfiguredKey;
use mill_runtime::engine::Engine;
use mill_runtime::spawned::Purpose;
use mill_runtime::tasks::TaskId;
use mill_runtime::time::Duration;
use std::rc::Rc;
use std::sync::Arc;

/// Starts the tasks for a site. The caller ends them when another site is in force.
pub(crate) fn start<E: Engine>(local: &Rc<Local<E>>, site: &Arc<Site>) -> Vec<TaskId> {
    let issuers = site.tls.acme().issuers.iter();
    let issuers = issuers.filter(|issuer| !issuer.certificates.is_empty());
    let mut tasks = Vec::new();
    for issuer in issuers {
        let keeper = Keeper {
            local: Rc::clone(local),
            site: Arc::clone(site),
            issuer: Arc::clone(issuer),
        };
        match local.scheduler.spawn(Purpose::Background, keeper.run()) {
            Ok(task) => tasks.push(task),
            Err(_) => {
                let text = format_args!("no task is left for acme issuers");
                local.log_error(None, LogLevel::Error, text);
            }
        }
    }
    tasks
}

struct Keeper<E: Engine> {
    local: Rc<Local<E>>,
    site: Arc<Site>,
    issuer: Arc<Issuer>,
}

impl<E: Engine> Keeper<E> {
    async fn run(self) {
        state::take_up(&self.issuer, &self.local).await;
        let Some(key) = self.account_key().await else {
            return;
        };
        let settings = settings::of_issuer(&self.issuer.config);
        loop {
            // What was known of the authority may be out of date when the next certificate is due.
            let mut client = Client::new(settings.clone(), Arc::clone(&key));
            for certificate in &self.issuer.certificates {
                if certificate.is_due(self.now()) {
                    self.obtain(&mut client, certificate).await;
                }
            }
            self.local.scheduler.sleep(self.until_next()).await;
        }
    }

    /// In seconds since 1970.
    fn now(&self) -> i64 {
        self.local.scheduler.wall_clock().seconds
    }

    /// Until the first certificate is due. The wall clock may be set meanwhile, so that it is looked at now and then.
    fn until_next(&self) -> Duration {
        let certificates = self.issuer.certificates.iter();
        let next = certificates.filter_map(|certificate| {
            let state = certificate.state();
            (!state.is_given_up).then_some(state.next)
        });
        let seconds = next
            .min()
            .map_or(i64::MAX, |next| next.saturating_sub(self.now()));
        let seconds = u64::try_from(seconds.max(1)).unwrap_or(1);
        Duration::from_secs(seconds).min(LOOKING_PERIOD)
    }

    /// The account's key: of the configuration, of the state path, or a new one.
    async fn account_key(&self) -> Option<Arc<AccountKey>> {
        if let Some(key) = self.issuer.account_key().clone() {
            return Some(key);
        }
        let ConfiguredKey::Kind(kind) = self.issuer.config.account_key else {
            return None;
        };
        let path = self.issuer.config.state_path.as_ref();
        let saved = match path {
            Some(path) => state::account_key(path, &self.local).await,
            None => None,
        };
        let saved = saved.and_then(|pem| match AccountKey::from_pem(&pem) {
            Ok(key) => Some(key),
            Err(error) => {
                self.log(
                    LogLevel::Error,
                    format_args!("cannot load its account key: {error}"),
                );
                None
            }
        });
        let key = match saved {
            Some(key) => key,
            None => match AccountKey::generate(settings::key_kind(kind)) {
                Ok(key) => {
                    if let Some(path) = path {
                        state::keep_account_key(path, key.pem(), &self.local);
                    }
                    key
                }
                Err(error) => {
                    self.log(
                        LogLevel::Error,
                        format_args!("cannot make an account key: {error}"),
                    );
                    return None;
                }
            },
        };
        let key = Arc::new(key);
        *self.issuer.account_key() = Some(Arc::clone(&key));
        Some(key)
    }

    async fn obtain(&self, client: &mut Client, certificate: &IssuedCertificate) {
        let id = &certificate.order.id;
        self.log(
            LogLevel::Notice,
            format_args!("ordering certificate \"{id}\""),
        );
        client.order(settings::of_order(&certificate.order));
        match self.carry_out(client).await {
            Ok(issued) => self.take(certificate, &issued),
            Err(failure) => self.on_failure(certificate, &failure),
        }
    }

    /// Does what the order asks for until it has ended.
    async fn carry_out(&self, client: &mut Client) -> Result<Issued, Failure> {
        let mut laid_out: Vec<LaidOut> = Vec::new();
        loop {
            match client.next_step() {
                Step::Send(request) => {
                    let answer = asking::ask(&self.issuer, &request, &self.site, &self.local);
                    match answer.await {
                        Ok(answer) => client.on_answer(answer),
                        Err(reason) => {
                            self.log(LogLevel::Warn, format_args!("{reason}"));
                            client.on_no_answer(&reason);
                        }
                    }
                }
                Step::Offer(offer) => {
                    let challenges = &self.site.tls.acme().challenges;
                    match challenges.lay_out(offer) {
                        Ok(answer) => laid_out.push(answer),
                        Err(words) => return Err(Failure::new(&words)),
                    }
                }
                Step::Wait(time) => self.local.scheduler.sleep(time).await,
                Step::Ended(ended) => return ended,
            }
        }
    }

    fn take(&self, certificate: &IssuedCertificate, issued: &Issued) {
        let id = &certificate.order.id;
        let (chain, key) = (issued.chain.as_bytes(), issued.key.as_bytes());
        let fault = match certificate.on_issued(chain, key, self.now()) {
            Issue::Next(seconds) => {
                state::keep(&self.issuer, certificate, issued, &self.local);
                let text = format_args!(
                    "certificate \"{id}\" is issued; the next one is ordered in {seconds} s"
                );
                return self.log(LogLevel::Notice, text);
            }
            Issue::DueAtOnce => {
                state::keep(&self.issuer, certificate, issued, &self.local);
                "it has ended, or is about to; is the clock right?"
            }
            Issue::Unusable => "the certificate and its key cannot be used",
        };
        self.on_failure(certificate, &Failure::new(fault));
    }

    fn on_failure(&self, certificate: &IssuedCertificate, failure: &Failure) {
        let (id, words) = (&certificate.order.id, &failure.words);
        let seconds = certificate.on_failure(failure, self.now());
        let text = match failure.is_final {
            true => format!("{words}; another configuration is waited for"),
            false => format!("{words}; tried again in {seconds} s"),
        };
        self.log(
            LogLevel::Error,
            format_args!("certificate \"{id}\" is not issued: {text}"),
        );
    }

    fn log(&self, level: LogLevel, text: std::fmt::Arguments<'_>) {
        let name = self.issuer.config.name.display();
        self.local
            .log_error(None, level, format_args!("acme issuer \"{name}\": {text}"));
    }
}

/// How often the wall clock is looked at.
const LOOKING_PERIOD: Duration = Duration::from_secs(600);
