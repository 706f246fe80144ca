//! The configuration in the words of mill-acme.

use mill_acme::certificate_request::KeyKind;
use mill_acme::challenge::ChallengeKind;
use mill_acme::client::{ExternalKey, Profile, Settings, Wanted};
use mill_acme::identifier::Identifier;
use mill_config::config::LogLevel;
use mill_config::config::acme::{AcmeChallenge, AcmeIssuer, AcmeKey, AcmeOrder};
use mill_config::diagnostic::Diagnostic;

pub(super) fn of_issuer(config: &AcmeIssuer) -> Settings {
    Settings {
        directory: config.uri.clone(),
        contacts: config.contacts.clone(),
        accepts_terms: config.accepts_terms,
        external_key: external_key(config).flatten(),
        challenge: match config.challenge {
            AcmeChallenge::Http01 => ChallengeKind::Http01,
            AcmeChallenge::TlsAlpn01 => ChallengeKind::TlsAlpn01,
        },
        preferred_chain: config.preferred_chain.clone(),
        profile: config.profile.as_ref().map(|(name, is_required)| Profile {
            name: name.clone(),
            is_required: *is_required,
        }),
        has_common_name: config.common_name_in_csr,
    }
}

/// Refuses what could not be used later.
pub(super) fn check(config: &AcmeIssuer) -> Result<(), Box<Diagnostic>> {
    if external_key(config) == Some(None) {
        let message = format!(
            "invalid base64url encoded value in \"external_account_key\" of acme_issuer \"{}\"",
            config.name.display()
        );
        let position = config.position.clone();
        return Err(Box::new(Diagnostic::new(
            LogLevel::Emerg,
            message,
            position,
        )));
    }
    Ok(())
}

/// `Some(None)`: it is not well formed.
fn external_key(config: &AcmeIssuer) -> Option<Option<ExternalKey>> {
    let (id, key) = config.external_key.as_ref()?;
    Some(ExternalKey::new(id, key))
}

pub(super) fn of_order(order: &AcmeOrder) -> Wanted {
    let names = order.names.iter();
    Wanted {
        identifiers: names.map(|name| Identifier::new(name)).collect(),
        key: key_kind(order.key),
    }
}

pub(super) const fn key_kind(key: AcmeKey) -> KeyKind {
    match key {
        AcmeKey::Ecdsa256 => KeyKind::Ecdsa256,
        AcmeKey::Ecdsa384 => KeyKind::Ecdsa384,
        AcmeKey::Ecdsa521 => KeyKind::Ecdsa521,
        AcmeKey::Rsa2048 => KeyKind::Rsa2048,
        AcmeKey::Rsa3072 => KeyKind::Rsa3072,
        AcmeKey::Rsa4096 => KeyKind::Rsa4096,
    }
}
