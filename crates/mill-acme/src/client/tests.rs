//! An authority in a few lines, without signatures: what the client asks of it, and what it makes of the answers.

use super::{Client, Failure, Issued, Profile, Request, Settings, Step, Wanted};
use crate::account_key::AccountKey;
use crate::answer::Answer;
use crate::base64url;
use crate::certificate_request::KeyKind;
use crate::identifier::Identifier;
use rcgen::{CertificateParams, DnType, Issuer, KeyPair};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// What the authority does otherwise than most do.
#[derive(Default)]
struct Ways {
    /// It refuses this many nonces.
    bad_nonces: u32,
    /// It has answered this many requests with 503.
    outages: u32,
    /// It looks at a proof, or issues, only when it is asked this many times more.
    slowness: u32,
    /// It refuses the proof.
    refuses: bool,
    /// The directory's `meta`.
    meta: Option<Value>,
    /// An answer to each request for an account.
    account: Option<(u16, Value, Option<u64>)>,
}

struct Authority {
    ways: Ways,
    is_authorized: bool,
    is_finalized: bool,
    log: Vec<String>,
    waited: Duration,
    offers: u32,
}

const NAME: &str = "a.example";

impl Authority {
    fn new(ways: Ways) -> Self {
        Self {
            ways,
            is_authorized: false,
            is_finalized: false,
            log: Vec::new(),
            waited: Duration::ZERO,
            offers: 0,
        }
    }

    fn serve(&mut self, client: &mut Client) -> Result<Issued, Failure> {
        for _ in 0..1000 {
            match client.next_step() {
                Step::Send(request) => {
                    let answer = self.answer(&request);
                    client.on_answer(answer);
                }
                Step::Offer(offer) => {
                    assert!(offer.key_authorization.starts_with("tok-1."));
                    assert_eq!(offer.identifier.value, NAME);
                    self.offers += 1;
                }
                Step::Wait(time) => self.waited += time,
                Step::Ended(ended) => return ended,
            }
        }
        panic!("the client asks without an end: {:?}", self.log);
    }

    fn answer(&mut self, request: &Request) -> Answer {
        let path = request.url.strip_prefix("https://ca").unwrap();
        self.log.push(format!("{} {path}", request.method));
        if self.ways.outages > 0 {
            self.ways.outages -= 1;
            return Answer::new(503);
        }
        let payload = request.content.as_ref().map(|content| {
            let message: Value = serde_json::from_str(content).unwrap();
            base64url::parse(message["payload"].as_str().unwrap()).unwrap()
        });
        if payload.is_some() && self.ways.bad_nonces > 0 {
            self.ways.bad_nonces -= 1;
            return problem(400, "badNonce");
        }
        let payload = payload.and_then(|payload| serde_json::from_slice(&payload).ok());
        self.route(path, &payload.unwrap_or(Value::Null))
    }

    fn route(&mut self, path: &str, payload: &Value) -> Answer {
        match path {
            "/dir" => without_nonce(json_answer(&json!({
                "newNonce": "https://ca/nonce",
                "newAccount": "https://ca/account",
                "newOrder": "https://ca/order",
                "meta": self.ways.meta.clone().unwrap_or(json!({})),
            }))),
            "/nonce" => with_nonce(Answer::new(200)),
            "/account" => match self.ways.account.clone() {
                None => located("/account/1", &json!({"status": "valid"})),
                Some((status, content, retry_after)) => {
                    let mut answer = json_answer(&content);
                    answer.status = status;
                    answer.retry_after = retry_after.map(Duration::from_secs);
                    answer
                }
            },
            "/order" => {
                assert_eq!(payload["identifiers"][0]["value"], NAME);
                located("/order/1", &self.order())
            }
            "/authz/1" => self.authorization(),
            "/challenge/1" => {
                assert_eq!(payload, &json!({}));
                self.is_authorized = true;
                json_answer(&json!({"type": "http-01", "url": "", "status": "processing"}))
            }
            "/order/1" => {
                let slow = self.is_finalized && self.is_slow();
                let mut order = self.order();
                if slow {
                    order["status"] = "processing".into();
                }
                json_answer(&order)
            }
            "/finalize/1" => {
                assert!(payload["csr"].is_string());
                self.is_finalized = true;
                json_answer(&self.order())
            }
            "/cert/1" | "/cert/2" => {
                let mut answer = with_nonce(Answer::new(200));
                let number = &path[6..];
                answer.content = chain(&format!("Root {number}")).into_bytes();
                answer.on_field(b"Link", b"</cert/2>;rel=\"alternate\"", 0);
                answer
            }
            _ => panic!("{path}"),
        }
    }

    fn is_slow(&mut self) -> bool {
        let is_slow = self.ways.slowness > 0;
        self.ways.slowness = self.ways.slowness.saturating_sub(1);
        is_slow
    }

    fn order(&self) -> Value {
        let status = match (self.is_authorized, self.is_finalized) {
            (false, _) => "pending",
            (true, false) => "ready",
            (true, true) => "valid",
        };
        json!({
            "status": status,
            "authorizations": ["https://ca/authz/1"],
            "finalize": "https://ca/finalize/1",
            "certificate": self.is_finalized.then_some("https://ca/cert/1"),
        })
    }

    fn authorization(&mut self) -> Answer {
        let is_done = self.is_authorized && !self.is_slow();
        let status = match (is_done, self.ways.refuses) {
            (false, _) => "pending",
            (true, false) => "valid",
            (true, true) => "invalid",
        };
        let error = json!({"type": "urn:ietf:params:acme:error:connection", "detail": "refused"});
        json_answer(&json!({
            "identifier": {"type": "dns", "value": NAME},
            "status": status,
            "challenges": [
                {"type": "dns-01", "url": "https://ca/challenge/2", "token": "tok-2"},
                {"type": "http-01", "url": "https://ca/challenge/1", "token": "tok-1",
                    "error": (status == "invalid").then_some(error)},
            ],
        }))
    }
}

fn with_nonce(mut answer: Answer) -> Answer {
    answer.on_field(b"Replay-Nonce", b"nonce", 0);
    answer
}

fn without_nonce(mut answer: Answer) -> Answer {
    answer.nonce = None;
    answer
}

fn json_answer(content: &Value) -> Answer {
    let mut answer = with_nonce(Answer::new(200));
    answer.content = content.to_string().into_bytes();
    answer
}

fn located(path: &str, content: &Value) -> Answer {
    let mut answer = json_answer(content);
    answer.on_field(b"Location", format!("https://ca{path}").as_bytes(), 0);
    answer
}

fn problem(status: u16, kind: &str) -> Answer {
    let kind = format!("urn:ietf:params:acme:error:{kind}");
    let mut answer = json_answer(&json!({"type": kind, "detail": "why"}));
    answer.status = status;
    answer
}

fn chain(root: &str) -> String {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, root);
    let issuer = Issuer::new(params, KeyPair::generate().unwrap());
    let leaf = CertificateParams::new(vec![NAME.to_owned()]).unwrap();
    leaf.signed_by(&KeyPair::generate().unwrap(), &issuer)
        .unwrap()
        .pem()
}

fn client(settings: Settings) -> Client {
    let key = AccountKey::generate(KeyKind::Ecdsa256).unwrap();
    let settings = Settings {
        directory: String::from("https://ca/dir"),
        ..settings
    };
    let mut client = Client::new(settings, Arc::new(key));
    client.order(wanted());
    client
}

fn wanted() -> Wanted {
    Wanted {
        identifiers: vec![Identifier::new(NAME)],
        key: KeyKind::Ecdsa256,
    }
}

fn order(ways: Ways, settings: Settings) -> (Result<Issued, Failure>, Authority) {
    let mut authority = Authority::new(ways);
    let ended = authority.serve(&mut client(settings));
    (ended, authority)
}

fn failure(ways: Ways, settings: Settings) -> Failure {
    order(ways, settings).0.unwrap_err()
}

#[test]
fn a_certificate_is_ordered_proved_finalized_and_taken() {
    let (ended, authority) = order(Ways::default(), Settings::default());
    let issued = ended.unwrap();
    assert!(issued.chain.contains("BEGIN CERTIFICATE"));
    assert!(issued.key.contains("PRIVATE KEY"));
    let expected = [
        "GET /dir",
        "HEAD /nonce",
        "POST /account",
        "POST /order",
        "POST /authz/1",
        "POST /challenge/1",
        "POST /authz/1",
        "POST /order/1",
        "POST /finalize/1",
        "POST /cert/1",
    ];
    assert_eq!(authority.log, expected);
    assert_eq!(
        (authority.offers, authority.waited),
        (1, Duration::from_secs(1))
    );
}

#[test]
fn the_next_order_uses_what_is_known_and_needs_no_proof_that_is_valid() {
    let mut authority = Authority::new(Ways::default());
    let mut client = client(Settings::default());
    authority.serve(&mut client).unwrap();
    authority.log.clear();
    authority.is_finalized = false;
    client.order(wanted());
    authority.serve(&mut client).unwrap();
    let expected = [
        "POST /order",
        "POST /authz/1",
        "POST /order/1",
        "POST /finalize/1",
        "POST /cert/1",
    ];
    assert_eq!(authority.log, expected);
}

#[test]
fn refused_nonces_are_replaced_but_not_for_ever() {
    let refusing = |bad_nonces| Ways {
        bad_nonces,
        ..Ways::default()
    };
    assert!(order(refusing(32), Settings::default()).0.is_ok());
    let failure = failure(refusing(33), Settings::default());
    assert_eq!(failure.words, "badNonce: why");
}

#[test]
fn an_outage_is_waited_for_three_times() {
    let out = |outages| Ways {
        outages,
        ..Ways::default()
    };
    let (ended, authority) = order(out(3), Settings::default());
    assert!(ended.is_ok());
    assert_eq!(authority.waited, Duration::from_secs(4));
    let failure = failure(out(4), Settings::default());
    assert_eq!(failure.words, "the authority answers with status 503");
    assert!(!failure.is_final);
}

#[test]
fn no_answer_is_borne_three_times() {
    let mut client = client(Settings::default());
    for _ in 0..3 {
        assert!(matches!(client.next_step(), Step::Send(_)));
        client.on_no_answer("connect() failed");
        assert!(matches!(client.next_step(), Step::Wait(_)));
    }
    assert!(matches!(client.next_step(), Step::Send(_)));
    client.on_no_answer("connect() failed");
    let ended = client.next_step();
    assert!(matches!(ended, Step::Ended(Err(failure)) if failure.words == "connect() failed"));
}

#[test]
fn what_takes_time_is_looked_at_less_and_less_often_for_a_minute() {
    let slow = |slowness| Ways {
        slowness,
        ..Ways::default()
    };
    let (ended, authority) = order(slow(4), Settings::default());
    assert!(ended.is_ok());
    assert_eq!(authority.waited, Duration::from_secs(1 + 2 + 4 + 8 + 8));
    let failure = failure(slow(100), Settings::default());
    assert_eq!(
        failure.words,
        "the authority takes too long to look at a challenge"
    );
}

#[test]
fn a_refused_proof_ends_the_order_with_the_authoritys_reason() {
    let ways = Ways {
        refuses: true,
        ..Ways::default()
    };
    let expected = "\"a.example\" is not authorized (connection: refused)";
    assert_eq!(failure(ways, Settings::default()).words, expected);
}

#[test]
fn a_preferred_chain_is_looked_for_among_the_others() {
    let check = |preferred: &str, expected: &[&str]| {
        let settings = Settings {
            preferred_chain: Some(preferred.to_owned()),
            ..Settings::default()
        };
        let (ended, authority) = order(Ways::default(), settings);
        assert!(ended.is_ok());
        assert_eq!(
            authority.log.get(9..),
            Some(
                &expected
                    .iter()
                    .map(|one| (*one).to_owned())
                    .collect::<Vec<_>>()[..]
            )
        );
    };
    check("Root 1", &["POST /cert/1"]);
    check("Root 2", &["POST /cert/1", "POST /cert/2"]);
    check("Root 3", &["POST /cert/1", "POST /cert/2"]);
}

#[test]
fn an_authority_that_limits_says_when_to_come_again() {
    let content = json!({"type": "urn:ietf:params:acme:error:rateLimited", "detail": "enough"});
    let ways = Ways {
        account: Some((429, content, Some(3600))),
        ..Ways::default()
    };
    let failure = failure(ways, Settings::default());
    assert_eq!(failure.words, "rateLimited: enough");
    assert_eq!(failure.retry_after, Some(Duration::from_secs(3600)));
}

#[test]
fn what_only_another_configuration_can_help_is_said_to_be_so() {
    let meta = json!({"externalAccountRequired": true});
    let ways = Ways {
        meta: Some(meta),
        ..Ways::default()
    };
    let refused = failure(ways, Settings::default());
    assert_eq!(
        refused.words,
        "the authority wants an \"external_account_key\""
    );
    assert!(refused.is_final);
    let content =
        json!({"type": "urn:ietf:params:acme:error:userActionRequired", "detail": "agree"});
    let ways = Ways {
        meta: Some(json!({"termsOfService": "https://ca/terms"})),
        account: Some((403, content, None)),
        ..Ways::default()
    };
    let refused = failure(ways, Settings::default());
    let expected =
        "userActionRequired: agree; \"accept_terms_of_service\" accepts https://ca/terms";
    assert_eq!(refused.words, expected);
    assert!(refused.is_final);
}

#[test]
fn a_required_profile_must_be_there() {
    let settings = |is_required| Settings {
        profile: Some(Profile {
            name: String::from("short"),
            is_required,
        }),
        ..Settings::default()
    };
    let refused = failure(Ways::default(), settings(true));
    assert_eq!(refused.words, "the authority has no profile \"short\"");
    assert!(order(Ways::default(), settings(false)).0.is_ok());
}

#[test]
fn broken_answers_end_the_order() {
    let ways = Ways {
        account: Some((200, json!([1]), None)),
        ..Ways::default()
    };
    let refused = failure(ways, Settings::default());
    assert!(
        refused
            .words
            .starts_with("the authority's account cannot be read"),
        "{}",
        refused.words
    );
}
