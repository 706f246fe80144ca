//! Certificates from authorities (ACME): what is known of them, for all workers.
//!
//! Read this first: `keeping.rs`, the task of one worker which orders certificates and replaces them in time. What an
//! authority is asked, and in which order, says mill-acme.

/// A request to an authority.
mod asking;
/// What authorities are answered with when they look whether a name is ours.
pub(crate) mod challenges;
/// The task of an issuer.
mod keeping;
/// The configuration in the words of mill-acme.
mod settings;
/// Files.
mod state;

pub(crate) use keeping::start;

use crate::tls::load_pair;
use challenges::Challenges;
use mill_acme::account_key::AccountKey;
use mill_acme::chain::Validity;
use mill_acme::client::Failure;
use mill_acme::renewal::pause;
use mill_config::Text;
use mill_config::config::acme::{AccountKey as ConfiguredKey, AcmeIssuer, AcmeOrder};
use mill_config::config::settings::TlsFile;
use mill_config::config::{Config, LogLevel};
use mill_config::diagnostic::Diagnostic;
use mill_tls::certificate_slot::CertificateSlot;
use mill_tls::client_context::{ClientContext, ClientSettings};
use mill_tls::server_check::Trusted;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The issuers of a configuration.
#[derive(Clone, Debug, Default)]
pub struct AcmeSite {
    issuers: Vec<Arc<Issuer>>,
    /// The same for all configurations.
    challenges: Arc<Challenges>,
}

/// An authority, and what is wanted of it.
#[derive(Debug)]
pub(crate) struct Issuer {
    pub(crate) config: Arc<AcmeIssuer>,
    /// Known once it was read or made; kept over reloads.
    account_key: Mutex<Option<Arc<AccountKey>>>,
    context: ClientContext,
    pub(crate) certificates: Vec<Arc<IssuedCertificate>>,
}

/// A certificate that is there, or will be.
#[derive(Debug)]
pub struct IssuedCertificate {
    pub order: Arc<AcmeOrder>,
    pub(crate) slot: CertificateSlot,
    state: Mutex<State>,
}

/// What is known of it.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// The chain (PEM); empty if there is none yet.
    pub pem: Text,
    pub(crate) validity: Option<Validity>,
    /// Orders that have failed since the last one that did not.
    failures: u32,
    /// When the next one begins, in seconds since 1970; the past: now.
    next: i64,
    /// Only another configuration can help.
    is_given_up: bool,
}

/// What comes of a certificate that was ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Issue {
    Unusable,
    /// It is over two thirds of its life already: a clock is wrong, or it is no good.
    DueAtOnce,
    /// After as many seconds the next one is ordered.
    Next(i64),
}

impl AcmeSite {
    /// What was issued under another configuration is still there. The error says what cannot be used.
    pub(crate) fn following(
        previous: Option<&Self>,
        config: &Config,
    ) -> Result<Self, Box<Diagnostic>> {
        let issuers = config.http.iter().flat_map(|http| &http.acme_issuers);
        let issuers = issuers.map(|config| Issuer::following(previous, config).map(Arc::new));
        let challenges = previous.map(|previous| Arc::clone(&previous.challenges));
        Ok(Self {
            issuers: issuers.collect::<Result<_, _>>()?,
            challenges: challenges.unwrap_or_default(),
        })
    }

    /// The certificate of an order.
    pub(crate) fn of(&self, order: &AcmeOrder) -> Option<&Arc<IssuedCertificate>> {
        let mut issuers = self.issuers.iter();
        let issuer = issuers.find(|issuer| issuer.config.name == order.issuer)?;
        issuer.of(order)
    }

    /// All of them.
    pub(crate) fn certificates(&self) -> impl Iterator<Item = &Arc<IssuedCertificate>> {
        self.issuers.iter().flat_map(|issuer| &issuer.certificates)
    }

    pub(crate) fn challenges(&self) -> &Challenges {
        &self.challenges
    }
}

impl Issuer {
    fn following(
        previous: Option<&AcmeSite>,
        config: &Arc<AcmeIssuer>,
    ) -> Result<Self, Box<Diagnostic>> {
        let mut known = previous.into_iter().flat_map(|previous| &previous.issuers);
        let known =
            known.find(|known| known.config.name == config.name && known.config.uri == config.uri);
        let certificates = config.orders.iter().map(|order| {
            let known = known.and_then(|known| known.of(order));
            Arc::new(IssuedCertificate::following(known, order))
        });
        let key = match &config.account_key {
            ConfiguredKey::File(file) => Some(Arc::new(account_key_of(file)?)),
            kind @ ConfiguredKey::Kind(_) => {
                let known = known.filter(|known| known.config.account_key == *kind);
                known.and_then(|known| known.account_key().clone())
            }
        };
        settings::check(config)?;
        Ok(Self {
            certificates: certificates.collect(),
            account_key: Mutex::new(key),
            context: context(config)?,
            config: Arc::clone(config),
        })
    }

    fn of(&self, order: &AcmeOrder) -> Option<&Arc<IssuedCertificate>> {
        let mut all = self.certificates.iter();
        all.find(|known| known.order.id == order.id)
    }

    fn account_key(&self) -> MutexGuard<'_, Option<Arc<AccountKey>>> {
        self.account_key
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn account_key_of(file: &TlsFile) -> Result<AccountKey, Box<Diagnostic>> {
    let pem = String::from_utf8_lossy(&file.pem);
    AccountKey::from_pem(&pem).map_err(|error| {
        let name = file.name.display();
        let message = format!("cannot load account key \"{name}\": {error}");
        Box::new(Diagnostic::new(
            LogLevel::Emerg,
            message,
            file.position.clone(),
        ))
    })
}

/// How handshakes with the authority are begun.
fn context(config: &AcmeIssuer) -> Result<ClientContext, Box<Diagnostic>> {
    let trusted = config.trusted.as_ref();
    let settings = ClientSettings {
        tls12: true,
        tls13: true,
        ciphers: None,
        groups: None,
        trusted: trusted.map(|file| Trusted {
            roots: &file.pem,
            revocation_lists: None,
            depth: usize::MAX,
        }),
        certified: None,
        sends_name: true,
        resumes: true,
        keeps_many: false,
        early_data: false,
        key_log: None,
    };
    ClientContext::new(settings).map_err(|error| {
        let name = trusted.map(|file| file.name.display().into_owned());
        let message = format!(
            "cannot load certificate \"{}\": {error}",
            name.unwrap_or_default()
        );
        Box::new(Diagnostic::new(
            LogLevel::Emerg,
            message,
            config.position.clone(),
        ))
    })
}

impl IssuedCertificate {
    fn following(known: Option<&Arc<Self>>, order: &Arc<AcmeOrder>) -> Self {
        let certificate = Self {
            order: Arc::clone(order),
            slot: known.map_or_else(CertificateSlot::default, |known| known.slot.clone()),
            state: Mutex::default(),
        };
        if let Some(known) = known.filter(|known| known.state().validity.is_some()) {
            // Another configuration may help: what failed is tried again at once.
            let state = known.state().clone();
            *certificate.state() = State {
                next: state.validity.map_or(0, |validity| validity.renewal()),
                failures: 0,
                is_given_up: false,
                ..state
            };
        }
        if let Some((chain, key)) = &order.saved {
            certificate.take(chain, key);
        }
        certificate
    }

    /// Takes a certificate that was kept, unless there is one that ends later. False if it cannot be used.
    pub(crate) fn take(&self, chain: &[u8], key: &[u8]) -> bool {
        self.set(chain, key, |known, kept| kept.not_after > known.not_after)
    }

    /// Takes a certificate that was ordered now, in seconds since 1970.
    fn on_issued(&self, chain: &[u8], key: &[u8], now: i64) -> Issue {
        let failures = self.state().failures;
        if !self.set(chain, key, |_, _| true) {
            return Issue::Unusable;
        }
        let mut state = self.state();
        if state.next > now {
            return Issue::Next(state.next - now);
        }
        // Another one would be ordered at once, and then another.
        state.failures = failures;
        Issue::DueAtOnce
    }

    /// False if it cannot be used; `wins` says whether it takes the place of what is there.
    fn set(&self, chain: &[u8], key: &[u8], wins: fn(Validity, Validity) -> bool) -> bool {
        let (Ok(certified), Some(validity)) = (load_pair(chain, key), Validity::of_pem(chain))
        else {
            return false;
        };
        let mut state = self.state();
        if state.validity.is_some_and(|known| !wins(known, validity)) {
            return true;
        }
        self.slot.set(certified);
        *state = State {
            pem: Text::from(chain),
            validity: Some(validity),
            next: validity.renewal(),
            failures: 0,
            is_given_up: false,
        };
        true
    }

    /// Whether one is to be ordered now, in seconds since 1970.
    fn is_due(&self, now: i64) -> bool {
        let state = self.state();
        !state.is_given_up && state.next <= now
    }

    /// Returns after how many seconds the next one is ordered.
    fn on_failure(&self, failure: &Failure, now: i64) -> i64 {
        let mut state = self.state();
        state.failures = state.failures.saturating_add(1);
        state.is_given_up = failure.is_final;
        let time = pause(state.failures, failure.retry_after).as_secs();
        let time = i64::try_from(time).unwrap_or(i64::MAX);
        state.next = now.saturating_add(time);
        time
    }

    /// What is known of it.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mill_config::config::acme::AcmeKey;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    /// A certificate of the first ten days of this month of 2026, and its key.
    fn pair(month: u8) -> (String, String) {
        let mut params = CertificateParams::new(vec![String::from("a.example")]).unwrap();
        params.not_before = date_time_ymd(2026, month, 1);
        params.not_after = date_time_ymd(2026, month, 11);
        let key = KeyPair::generate().unwrap();
        (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
    }

    fn awaited(saved: Option<(&str, &str)>) -> IssuedCertificate {
        let order = AcmeOrder {
            issuer: Text::from("ca"),
            names: vec![String::from("a.example")],
            key: AcmeKey::Ecdsa256,
            id: String::from("a.example-1"),
            saved: saved.map(|(chain, key)| (Text::from(chain), Text::from(key))),
        };
        IssuedCertificate::following(None, &Arc::new(order))
    }

    const DAY: i64 = 86_400;
    /// The first of January 2026.
    const NEW_YEAR: i64 = 20_454 * DAY;

    #[test]
    fn a_kept_certificate_is_used_at_the_start_unless_it_has_another_key() {
        let (first, second) = (pair(1), pair(2));
        let kept = awaited(Some((&first.0, &first.1)));
        assert!(!kept.slot.is_empty());
        assert_eq!(kept.state().next, NEW_YEAR + 10 * DAY - 10 * DAY / 3);
        let mismatched = awaited(Some((&first.0, &second.1)));
        assert!(mismatched.slot.is_empty() && mismatched.state().next == 0);
        // What is read again later wins only if it ends later.
        assert!(kept.take(second.0.as_bytes(), second.1.as_bytes()));
        assert_eq!(&*kept.state().pem, second.0.as_bytes());
        assert!(kept.take(first.0.as_bytes(), first.1.as_bytes()));
        assert_eq!(&*kept.state().pem, second.0.as_bytes());
    }

    #[test]
    fn a_certificate_that_is_due_at_once_is_not_ordered_again_and_again() {
        let (certificate, (chain, key)) = (awaited(None), pair(1));
        let issue = |now| certificate.on_issued(chain.as_bytes(), key.as_bytes(), now);
        assert_eq!(issue(NEW_YEAR), Issue::Next(10 * DAY - 10 * DAY / 3));
        let late = NEW_YEAR + 20 * DAY;
        for seconds in [30, 60, 120] {
            assert_eq!(issue(late), Issue::DueAtOnce);
            assert_eq!(certificate.on_failure(&Failure::new("due"), late), seconds);
            assert_eq!(certificate.state().next, late + seconds);
        }
        assert_eq!(certificate.on_issued(b"", b"", late), Issue::Unusable);
    }

    #[test]
    fn a_reload_tries_at_once_what_has_failed_and_keeps_what_was_issued() {
        let failed = Arc::new(awaited(None));
        let failure = Failure {
            is_final: true,
            ..Failure::new("no")
        };
        failed.on_failure(&failure, NEW_YEAR);
        assert!(!failed.is_due(NEW_YEAR + DAY));
        let again = IssuedCertificate::following(Some(&failed), &failed.order);
        assert!(again.is_due(NEW_YEAR));
        let (chain, key) = pair(1);
        failed.on_issued(chain.as_bytes(), key.as_bytes(), NEW_YEAR);
        let again = IssuedCertificate::following(Some(&failed), &failed.order);
        assert!(!again.slot.is_empty() && !again.is_due(NEW_YEAR));
    }
}
