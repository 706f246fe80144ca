//! What is asked, step by step: directory, nonce, account, order, authorizations with their challenges, the request to be
//! signed, the chain (RFC 8555 7).

/// What an answer leads to.
mod answering;
/// Whether and when something is asked again.
mod patience;
/// Tests.
#[cfg(test)]
mod tests;

use crate::account_key::AccountKey;
use crate::answer::Answer;
use crate::base64url;
use crate::certificate_request::{self, KeyKind, generate};
use crate::challenge::{ChallengeKind, Offer};
use crate::directory::Directory;
use crate::identifier::Identifier;
pub use crate::jws::ExternalKey;
use crate::jws::{Signed, external_binding, request};
use crate::order::{Authorization, Order};
use patience::Patience;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// What is asked of an authority, and how.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Where its directory is.
    pub directory: String,
    /// URLs by which the authority reaches those that run this server.
    pub contacts: Vec<String>,
    pub accepts_terms: bool,
    pub external_key: Option<ExternalKey>,
    pub challenge: ChallengeKind,
    /// The chain with this common name at its top is taken, if there is one.
    pub preferred_chain: Option<String>,
    pub profile: Option<Profile>,
    /// Certificates have a subject.
    pub has_common_name: bool,
}

/// The kind of certificate that is asked for, in the authority's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    pub name: String,
    /// Without it, nothing is ordered.
    pub is_required: bool,
}

/// What is ordered.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub identifiers: Vec<Identifier>,
    pub key: KeyKind,
}

/// What is to be done next.
#[derive(Debug)]
pub enum Step {
    /// Send this; then comes [`Client::on_answer`] or [`Client::on_no_answer`].
    Send(Request),
    /// Answer the authority with this from now on, until the order has ended.
    Offer(Offer),
    /// Do nothing for this time.
    Wait(Duration),
    /// It is over.
    Ended(Result<Issued, Failure>),
}

/// A request of HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub method: &'static str,
    pub url: String,
    /// Of type `application/jose+json`.
    pub content: Option<String>,
}

/// A certificate.
#[derive(Clone, PartialEq, Eq)]
pub struct Issued {
    /// The certificate and those that lead from it to a root (PEM).
    pub chain: String,
    /// Its key (PEM).
    pub key: String,
}

impl std::fmt::Debug for Issued {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Issued({})", self.chain)
    }
}

/// Why there is no certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// In words.
    pub words: String,
    /// Before that, the authority answers the same.
    pub retry_after: Option<Duration>,
    /// Only another configuration can help.
    pub is_final: bool,
}

/// The conversation with an authority, for one order after the other.
#[derive(Debug)]
pub struct Client {
    settings: Settings,
    key: Arc<AccountKey>,
    directory: Option<Directory>,
    /// Its URL.
    account: Option<String>,
    nonces: Vec<String>,
    /// What is asked last was a nonce.
    awaits_nonce: bool,
    pause: Option<Duration>,
    patience: Patience,
    ended: Option<Result<Issued, Failure>>,
    stage: Stage,
    wanted: Wanted,
    certificate_key: Option<rcgen::KeyPair>,
    order_url: String,
    order: Option<Order>,
    /// Index into those of the order.
    authorization_at: usize,
    authorization: Option<Authorization>,
    /// The chain that is taken if there is no preferred one.
    chain: Option<String>,
    alternates: Vec<String>,
}

/// What is asked next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Directory,
    Account,
    NewOrder,
    Authorization,
    /// Nothing: the proof is laid out.
    Offer,
    Challenge,
    AuthorizationResult,
    Order,
    Finalize,
    Chain,
    Alternate,
    Ended,
}

/// A request before it is signed: its URL, and its payload if it has to be signed.
type Unsigned = (String, Option<String>);

impl Client {
    pub fn new(settings: Settings, key: Arc<AccountKey>) -> Self {
        Self {
            settings,
            key,
            directory: None,
            account: None,
            nonces: Vec::new(),
            awaits_nonce: false,
            pause: None,
            patience: Patience::default(),
            ended: None,
            stage: Stage::Ended,
            wanted: Wanted {
                identifiers: Vec::new(),
                key: KeyKind::Ecdsa256,
            },
            certificate_key: None,
            order_url: String::new(),
            order: None,
            authorization_at: 0,
            authorization: None,
            chain: None,
            alternates: Vec::new(),
        }
    }

    /// Begins an order; what is known of the authority and the account is used again.
    pub fn order(&mut self, wanted: Wanted) {
        self.stage = match (&self.directory, &self.account) {
            (None, _) => Stage::Directory,
            (Some(_), None) => Stage::Account,
            (Some(_), Some(_)) => Stage::NewOrder,
        };
        self.wanted = wanted;
        self.patience = Patience::default();
        (self.ended, self.pause, self.awaits_nonce) = (None, None, false);
        (self.certificate_key, self.order) = (None, None);
        (self.authorization_at, self.authorization) = (0, None);
        self.chain = None;
        self.alternates.clear();
    }

    /// What is to be done next.
    pub fn next_step(&mut self) -> Step {
        if let Some(pause) = self.pause.take() {
            return Step::Wait(pause);
        }
        if let Some(ended) = self.ended.take() {
            self.stage = Stage::Ended;
            return Step::Ended(ended);
        }
        self.prepare().unwrap_or_else(|failure| {
            self.stage = Stage::Ended;
            Step::Ended(Err(failure))
        })
    }

    fn prepare(&mut self) -> Result<Step, Failure> {
        if self.stage == Stage::Offer {
            self.stage = Stage::Challenge;
            return self.offer().map(Step::Offer);
        }
        let (url, payload) = self.unsigned()?;
        let Some(payload) = payload else {
            return Ok(Step::Send(Request {
                method: "GET",
                url,
                content: None,
            }));
        };
        let Some(nonce) = self.nonces.pop() else {
            self.awaits_nonce = true;
            return Ok(Step::Send(Request {
                method: "HEAD",
                url: self.directory()?.new_nonce.clone(),
                content: None,
            }));
        };
        let by = match &self.account {
            Some(account) => Signed::Account(account),
            None => Signed::Key,
        };
        let content = request(&self.key, by, &nonce, &url, &payload);
        let content = content.ok_or_else(|| Failure::new("the request cannot be signed"))?;
        Ok(Step::Send(Request {
            method: "POST",
            url,
            content: Some(content),
        }))
    }

    /// What is asked in this stage.
    fn unsigned(&mut self) -> Result<Unsigned, Failure> {
        let nothing = Some(String::new());
        Ok(match self.stage {
            Stage::Directory => (self.settings.directory.clone(), None),
            Stage::Account => (self.directory()?.new_account.clone(), Some(self.account()?)),
            Stage::NewOrder => {
                let payload = self.order_payload()?;
                (self.directory()?.new_order.clone(), Some(payload))
            }
            Stage::Authorization | Stage::AuthorizationResult => {
                (self.authorization_url()?.to_owned(), nothing)
            }
            Stage::Challenge => (self.challenge_url()?, Some(String::from("{}"))),
            Stage::Order => (self.order_url.clone(), nothing),
            Stage::Finalize => {
                let payload = self.certificate_request()?;
                (self.known_order()?.finalize.clone(), Some(payload))
            }
            Stage::Chain => {
                let url = self.known_order()?.certificate.clone();
                let missing = || Failure::new("the order is valid and has no certificate");
                (url.ok_or_else(missing)?, nothing)
            }
            Stage::Alternate => (self.alternates.last().cloned().unwrap_or_default(), nothing),
            Stage::Offer | Stage::Ended => return Err(Failure::new("nothing is ordered")),
        })
    }

    fn account(&self) -> Result<String, Failure> {
        let directory = self.directory()?;
        let mut account = json!({});
        let object = account.as_object_mut().into_iter();
        for members in object {
            if self.settings.accepts_terms {
                members.insert(String::from("termsOfServiceAgreed"), true.into());
            }
            if !self.settings.contacts.is_empty() {
                let contacts = self.settings.contacts.clone();
                members.insert(String::from("contact"), contacts.into());
            }
            if let Some(external) = &self.settings.external_key {
                let binding = external_binding(&self.key, external, &directory.new_account);
                members.insert(String::from("externalAccountBinding"), binding);
            } else if directory.meta.external_account_required {
                return Err(Failure {
                    is_final: true,
                    ..Failure::new("the authority wants an \"external_account_key\"")
                });
            }
        }
        Ok(account.to_string())
    }

    fn order_payload(&self) -> Result<String, Failure> {
        let mut order = json!({"identifiers": self.wanted.identifiers});
        let Some(profile) = &self.settings.profile else {
            return Ok(order.to_string());
        };
        let is_known = self.directory()?.meta.profiles.contains_key(&profile.name);
        if is_known || profile.is_required {
            let members = order.as_object_mut();
            members.map(|members| {
                members.insert(String::from("profile"), profile.name.clone().into())
            });
        }
        Ok(order.to_string())
    }

    /// The payload with the request that is to be signed. The key is made once.
    fn certificate_request(&mut self) -> Result<String, Failure> {
        let key = match self.certificate_key.take() {
            Some(key) => key,
            None => generate(self.wanted.key).map_err(|error| Failure::new(&error.to_string()))?,
        };
        let der = certificate_request::emit(
            &self.wanted.identifiers,
            self.settings.has_common_name,
            &key,
        );
        self.certificate_key = Some(key);
        let der = der.map_err(|error| Failure::new(&error.to_string()))?;
        Ok(json!({"csr": base64url::emit(&der)}).to_string())
    }

    fn offer(&self) -> Result<Offer, Failure> {
        let (authorization, kind) = (self.known_authorization()?, self.settings.challenge);
        let challenge = authorization.challenge(kind).filter(|one| one.has_token());
        let token = match challenge {
            Some(challenge) => challenge.token.clone(),
            None => {
                let (name, kind) = (&authorization.identifier.value, kind.name());
                let words = format!("the authority offers no {kind} for \"{name}\"");
                return Err(Failure::new(&words));
            }
        };
        Ok(Offer {
            kind,
            identifier: authorization.identifier.clone(),
            key_authorization: format!("{token}.{}", self.key.thumbprint()),
            token,
        })
    }

    fn directory(&self) -> Result<&Directory, Failure> {
        let missing = || Failure::new("the authority's directory is not known");
        self.directory.as_ref().ok_or_else(missing)
    }

    fn known_order(&self) -> Result<&Order, Failure> {
        self.order
            .as_ref()
            .ok_or_else(|| Failure::new("there is no order"))
    }

    fn known_authorization(&self) -> Result<&Authorization, Failure> {
        let missing = || Failure::new("there is no authorization");
        self.authorization.as_ref().ok_or_else(missing)
    }

    fn authorization_url(&self) -> Result<&str, Failure> {
        let url = self
            .known_order()?
            .authorizations
            .get(self.authorization_at);
        url.map(String::as_str)
            .ok_or_else(|| Failure::new("there is no authorization"))
    }

    fn challenge_url(&self) -> Result<String, Failure> {
        let challenge = self
            .known_authorization()?
            .challenge(self.settings.challenge);
        let missing = || Failure::new("there is no challenge");
        challenge.map(|one| one.url.clone()).ok_or_else(missing)
    }

    /// Takes an answer to the request that was to be sent last.
    pub fn on_answer(&mut self, answer: Answer) {
        if let Err(failure) = self.take(answer) {
            self.ended = Some(Err(failure));
        }
    }

    /// There is no answer, for this reason.
    pub fn on_no_answer(&mut self, reason: &str) {
        self.awaits_nonce = false;
        match self.patience.after_error(None) {
            Some(pause) => self.pause = Some(pause),
            None => self.ended = Some(Err(Failure::new(reason))),
        }
    }
}

impl Failure {
    /// One that may pass.
    pub fn new(words: &str) -> Self {
        Self {
            words: words.to_owned(),
            retry_after: None,
            is_final: false,
        }
    }
}
