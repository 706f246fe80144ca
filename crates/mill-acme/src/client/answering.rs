//! What an answer leads to.

use super::{Client, Failure, Issued, Stage};
use crate::answer::{Answer, resolve};
use crate::chain;
use crate::directory::Directory;
use crate::order::{Account, Authorization, AuthorizationStatus, Order, OrderStatus};
use crate::problem::Problem;
use serde::de::DeserializeOwned;

impl Client {
    pub(super) fn take(&mut self, mut answer: Answer) -> Result<(), Failure> {
        let nonce = answer
            .nonce
            .take()
            .filter(|nonce| nonce.len() <= NONCE_BYTES_MAX);
        self.nonces.extend(nonce);
        if std::mem::take(&mut self.awaits_nonce) {
            return match (self.nonces.is_empty(), answer.is_success()) {
                (false, _) => Ok(()),
                (true, true) => Err(Failure::new("the authority gives out no nonce")),
                (true, false) => self.on_error(&answer),
            };
        }
        if answer.is_redirect() && self.stage == Stage::Directory {
            return self.follow(&answer);
        }
        if !answer.is_success() {
            return self.on_error(&answer);
        }
        match self.stage {
            Stage::Directory => self.on_directory(&answer),
            Stage::Account => self.on_account(&answer),
            Stage::NewOrder => self.on_new_order(&answer),
            Stage::Authorization => self.on_authorization(&answer),
            Stage::Challenge => {
                self.stage = Stage::AuthorizationResult;
                self.patience.begin();
                self.wait(&answer)
            }
            Stage::AuthorizationResult => self.on_authorization_result(&answer),
            Stage::Order | Stage::Finalize => self.on_order(&answer),
            Stage::Chain => self.on_chain(answer),
            Stage::Alternate => self.on_alternate(answer),
            Stage::Offer | Stage::Ended => Ok(()),
        }
    }

    fn follow(&mut self, answer: &Answer) -> Result<(), Failure> {
        let location = answer.location.as_deref();
        let target = location.and_then(|location| resolve(&self.settings.directory, location));
        let target = target.ok_or_else(|| Failure::new("the directory is moved to nowhere"))?;
        // A loop ends with the tries of the order.
        let pause = self.patience.after_error(None);
        self.pause = Some(pause.ok_or_else(|| Failure::new("the directory is moved in a loop"))?);
        self.settings.directory = target;
        Ok(())
    }

    fn on_error(&mut self, answer: &Answer) -> Result<(), Failure> {
        let problem: Option<Problem> = serde_json::from_slice(&answer.content).ok();
        let kind = problem.as_ref().map_or("", Problem::kind);
        let may_pass = matches!(answer.status, 500..=599) || kind == "rateLimited";
        if kind == "badNonce" && self.patience.may_take_another_nonce() {
            return Ok(());
        }
        if may_pass && let Some(pause) = self.patience.after_error(answer.retry_after) {
            self.pause = Some(pause);
            return Ok(());
        }
        // An account that the authority has lost is made anew by the next order.
        if kind == "accountDoesNotExist" {
            self.account = None;
        }
        let mut words = match &problem {
            Some(problem) => problem.to_string(),
            None => format!("the authority answers with status {}", answer.status),
        };
        let terms = self.directory.as_ref();
        let terms = terms.and_then(|directory| directory.meta.terms_of_service.as_deref());
        if let Some(terms) = terms
            && self.stage == Stage::Account
            && !self.settings.accepts_terms
        {
            words += "; \"accept_terms_of_service\" accepts ";
            words += terms;
        }
        Err(Failure {
            words,
            retry_after: answer.retry_after,
            is_final: problem.is_some_and(|problem| problem.is_of_configuration()),
        })
    }

    fn on_directory(&mut self, answer: &Answer) -> Result<(), Failure> {
        let directory: Directory = parse(answer, "directory")?;
        if let Some(profile) = &self.settings.profile
            && profile.is_required
            && !directory.meta.profiles.contains_key(&profile.name)
        {
            let words = format!("the authority has no profile \"{}\"", profile.name);
            return Err(Failure::new(&words));
        }
        self.directory = Some(directory);
        self.stage = Stage::Account;
        Ok(())
    }

    fn on_account(&mut self, answer: &Answer) -> Result<(), Failure> {
        let account: Account = parse(answer, "account")?;
        if account.status != "valid" {
            let words = format!("the account is {}", Problem::cut(&account.status));
            return Err(Failure::new(&words));
        }
        let missing = || Failure::new("the authority does not say where the account is");
        self.account = Some(answer.location.clone().ok_or_else(missing)?);
        self.stage = Stage::NewOrder;
        Ok(())
    }

    fn on_new_order(&mut self, answer: &Answer) -> Result<(), Failure> {
        let missing = || Failure::new("the authority does not say where the order is");
        self.order_url = answer.location.clone().ok_or_else(missing)?;
        let order: Order = parse(answer, "order")?;
        if order.authorizations.len() > AUTHORIZATIONS_MAX {
            return Err(Failure::new("the order has too many authorizations"));
        }
        self.order = Some(order);
        self.authorization_at = 0;
        self.on_authorized();
        Ok(())
    }

    /// Goes on with the next authorization, or with the order.
    fn on_authorized(&mut self) {
        let authorizations = self.order.as_ref().map(|order| order.authorizations.len());
        self.stage = match self.authorization_at < authorizations.unwrap_or(0) {
            true => Stage::Authorization,
            false => Stage::Order,
        };
        self.patience.begin();
    }

    fn on_authorization(&mut self, answer: &Answer) -> Result<(), Failure> {
        let authorization: Authorization = parse(answer, "authorization")?;
        match authorization.status {
            AuthorizationStatus::Valid => {
                self.authorization_at += 1;
                self.on_authorized();
            }
            AuthorizationStatus::Pending => {
                self.authorization = Some(authorization);
                self.stage = Stage::Offer;
            }
            _ => return Err(self.not_authorized(&authorization)),
        }
        Ok(())
    }

    fn on_authorization_result(&mut self, answer: &Answer) -> Result<(), Failure> {
        let authorization: Authorization = parse(answer, "authorization")?;
        match authorization.status {
            AuthorizationStatus::Valid => {
                self.authorization_at += 1;
                self.on_authorized();
                Ok(())
            }
            AuthorizationStatus::Pending => self.wait(answer),
            _ => Err(self.not_authorized(&authorization)),
        }
    }

    fn not_authorized(&self, authorization: &Authorization) -> Failure {
        let challenge = authorization.challenge(self.settings.challenge);
        let problem = challenge.and_then(|challenge| challenge.error.as_ref());
        let name = Problem::cut(&authorization.identifier.value);
        Failure::new(&match problem {
            Some(problem) => format!("\"{name}\" is not authorized ({problem})"),
            None => format!("\"{name}\" is not authorized"),
        })
    }

    fn on_order(&mut self, answer: &Answer) -> Result<(), Failure> {
        let order: Order = parse(answer, "order")?;
        let status = order.status;
        let error = order.error.clone();
        self.order = Some(order);
        match status {
            OrderStatus::Ready => {
                // Where the request was signed, the order may still be what it was.
                if self.stage == Stage::Finalize {
                    self.stage = Stage::Order;
                    return self.wait(answer);
                }
                self.stage = Stage::Finalize;
                Ok(())
            }
            OrderStatus::Valid if self.certificate_key.is_none() => {
                Err(Failure::new("the order was finished by another client"))
            }
            OrderStatus::Valid => {
                self.stage = Stage::Chain;
                Ok(())
            }
            OrderStatus::Pending | OrderStatus::Processing => {
                self.stage = Stage::Order;
                self.wait(answer)
            }
            OrderStatus::Invalid => Err(Failure::new(&match error {
                Some(problem) => format!("the order is invalid ({problem})"),
                None => String::from("the order is invalid"),
            })),
        }
    }

    fn on_chain(&mut self, mut answer: Answer) -> Result<(), Failure> {
        let alternates = std::mem::take(&mut answer.alternates);
        let chain = text(answer)?;
        match &self.settings.preferred_chain {
            Some(preferred) if !chain::is_issued_by(chain.as_bytes(), preferred) => {
                let base = self.known_order()?.certificate.clone().unwrap_or_default();
                let found = alternates.iter().rev();
                self.alternates = found.filter_map(|one| resolve(&base, one)).collect();
                self.chain = Some(chain);
                self.try_alternate()
            }
            _ => self.finish(chain),
        }
    }

    fn on_alternate(&mut self, answer: Answer) -> Result<(), Failure> {
        let chain = text(answer)?;
        let preferred = self.settings.preferred_chain.as_deref().unwrap_or_default();
        if chain::is_issued_by(chain.as_bytes(), preferred) {
            return self.finish(chain);
        }
        self.alternates.pop();
        self.try_alternate()
    }

    fn try_alternate(&mut self) -> Result<(), Failure> {
        self.stage = Stage::Alternate;
        if self.alternates.is_empty() {
            let chain = self.chain.take().unwrap_or_default();
            return self.finish(chain);
        }
        Ok(())
    }

    fn finish(&mut self, chain: String) -> Result<(), Failure> {
        let key = self.certificate_key.take();
        let key = key.ok_or_else(|| Failure::new("the certificate has no key of ours"))?;
        if chain::Validity::of_pem(chain.as_bytes()).is_none() {
            return Err(Failure::new("the authority's certificate cannot be read"));
        }
        self.ended = Some(Ok(Issued {
            chain,
            key: key.serialize_pem(),
        }));
        Ok(())
    }

    fn wait(&mut self, answer: &Answer) -> Result<(), Failure> {
        let pause = self.patience.pause(answer.retry_after);
        self.pause = Some(pause.ok_or_else(|| {
            Failure::new(match self.stage {
                Stage::AuthorizationResult => "the authority takes too long to look at a challenge",
                _ => "the authority takes too long to issue the certificate",
            })
        })?);
        Ok(())
    }
}

fn parse<T: DeserializeOwned>(answer: &Answer, what: &str) -> Result<T, Failure> {
    serde_json::from_slice(&answer.content)
        .map_err(|error| Failure::new(&format!("the authority's {what} cannot be read ({error})")))
}

fn text(answer: Answer) -> Result<String, Failure> {
    let text = String::from_utf8(answer.content);
    text.map_err(|_| Failure::new("the authority's certificate is no text"))
}

const NONCE_BYTES_MAX: usize = 1024;
/// Authorities allow a hundred names.
const AUTHORIZATIONS_MAX: usize = 256;
