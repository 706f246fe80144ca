//! Signed requests (RFC 7515; RFC 8555 6.2, 7.3.4).

use crate::account_key::AccountKey;
use crate::base64url;
use aws_lc_rs::hmac;
use serde_json::{Value, json};

/// By which account a request is signed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Signed<'a> {
    /// By none yet: the key goes along.
    Key,
    /// By this one.
    Account(&'a str),
}

/// The content of a request to `url`. `None`: it cannot be signed.
pub(crate) fn request(
    key: &AccountKey,
    by: Signed<'_>,
    nonce: &str,
    url: &str,
    payload: &str,
) -> Option<String> {
    let mut protected = json!({"alg": key.algorithm(), "nonce": nonce, "url": url});
    match by {
        Signed::Key => set(
            &mut protected,
            "jwk",
            serde_json::from_str(&key.jwk()).ok()?,
        ),
        Signed::Account(account) => set(&mut protected, "kid", account.into()),
    }
    let (protected, payload) = (protected.to_string(), payload);
    let protected = base64url::emit(protected.as_bytes());
    let payload = base64url::emit(payload.as_bytes());
    let signature = key.sign(format!("{protected}.{payload}").as_bytes())?;
    Some(message(&protected, &payload, &signature).to_string())
}

/// Binds an account to one that the authority knows otherwise, by a key that it has given out for that.
pub(crate) fn external_binding(key: &AccountKey, external: &ExternalKey, url: &str) -> Value {
    let protected = json!({"alg": "HS256", "kid": external.id, "url": url}).to_string();
    let protected = base64url::emit(protected.as_bytes());
    let payload = base64url::emit(key.jwk().as_bytes());
    let secret = hmac::Key::new(hmac::HMAC_SHA256, &external.secret);
    let signature = hmac::sign(&secret, format!("{protected}.{payload}").as_bytes());
    message(&protected, &payload, signature.as_ref())
}

/// What an authority has given out for new accounts (`external_account_key`).
#[derive(Clone, PartialEq, Eq)]
pub struct ExternalKey {
    id: String,
    secret: Vec<u8>,
}

impl ExternalKey {
    /// `None`: the secret is no text of base64url.
    pub fn new(id: &str, secret: &str) -> Option<Self> {
        let secret = base64url::parse(secret.trim())?;
        let id = id.to_owned();
        (!secret.is_empty()).then_some(Self { id, secret })
    }
}

impl std::fmt::Debug for ExternalKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "ExternalKey({})", self.id)
    }
}

fn set(object: &mut Value, name: &str, value: Value) {
    if let Value::Object(members) = object {
        members.insert(name.to_owned(), value);
    }
}

fn message(protected: &str, payload: &str, signature: &[u8]) -> Value {
    json!({
        "protected": protected,
        "payload": payload,
        "signature": base64url::emit(signature),
    })
}

#[cfg(test)]
mod tests {
    use super::{ExternalKey, Signed, external_binding, request};
    use crate::account_key::AccountKey;
    use crate::base64url;
    use crate::certificate_request::KeyKind;
    use aws_lc_rs::{hmac, signature};
    use serde_json::{Value, json};

    fn member(message: &Value, name: &str) -> Vec<u8> {
        base64url::parse(message[name].as_str().unwrap()).unwrap()
    }

    fn json_member(message: &Value, name: &str) -> Value {
        serde_json::from_slice(&member(message, name)).unwrap()
    }

    fn signed_part(message: &Value) -> String {
        let part = |name: &str| message[name].as_str().unwrap().to_owned();
        format!("{}.{}", part("protected"), part("payload"))
    }

    #[test]
    fn a_request_is_signed_by_the_key_in_it() {
        let key = AccountKey::generate(KeyKind::Ecdsa256).unwrap();
        let text = request(&key, Signed::Key, "n1", "https://ca/new", "{}").unwrap();
        let message: Value = serde_json::from_str(&text).unwrap();
        let protected = json_member(&message, "protected");
        assert_eq!(protected["alg"], "ES256");
        assert_eq!(protected["nonce"], "n1");
        assert_eq!(protected["url"], "https://ca/new");
        let mut point = vec![4];
        for name in ["x", "y"] {
            point.extend(base64url::parse(protected["jwk"][name].as_str().unwrap()).unwrap());
        }
        let public = signature::UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, point);
        let signature = member(&message, "signature");
        assert!(
            public
                .verify(signed_part(&message).as_bytes(), &signature)
                .is_ok()
        );
        assert_eq!(member(&message, "payload"), b"{}");
    }

    #[test]
    fn a_request_of_an_account_names_it_and_carries_no_key() {
        let key = AccountKey::generate(KeyKind::Ecdsa256).unwrap();
        let text = request(
            &key,
            Signed::Account("https://ca/1"),
            "n",
            "https://ca/o",
            "",
        );
        let message: Value = serde_json::from_str(&text.unwrap()).unwrap();
        let protected = json_member(&message, "protected");
        assert_eq!(protected["kid"], "https://ca/1");
        assert_eq!(protected["jwk"], Value::Null);
        assert_eq!(message["payload"], "");
    }

    #[test]
    fn an_external_account_is_bound_by_its_secret() {
        let key = AccountKey::generate(KeyKind::Ecdsa256).unwrap();
        let external = ExternalKey::new("kid-1", "c2VjcmV0\n").unwrap();
        let message = external_binding(&key, &external, "https://ca/new");
        let expected = json!({"alg": "HS256", "kid": "kid-1", "url": "https://ca/new"});
        assert_eq!(json_member(&message, "protected"), expected);
        assert_eq!(member(&message, "payload"), key.jwk().as_bytes());
        let secret = hmac::Key::new(hmac::HMAC_SHA256, b"secret");
        let signature = member(&message, "signature");
        assert!(hmac::verify(&secret, signed_part(&message).as_bytes(), &signature).is_ok());
        assert_eq!(ExternalKey::new("kid-1", "c2Vj+"), None);
    }
}
