//! What a handshake has agreed on, and the client's certificate.

use crate::tls::revocation;
use mill_config::config::ClientCertificatePart;
use mill_http::date::DateTime;
use mill_http::escape::{EscapeSet, escape_uri};
use mill_runtime::time::UnixTime;
use mill_tls::certificate_facts::{CertificateFacts, fingerprint, pem};
use mill_tls::cipher_names::offered_cipher_name;
use mill_tls::client_check::Verified;
use mill_tls::facts::TlsFacts;
use mill_tls::groups::group_name;
use mill_tls::signature::signature_name;

/// `$ssl_client_…`; `None` without a certificate.
pub(super) fn client_part(
    part: ClientCertificatePart,
    facts: &TlsFacts,
    now: UnixTime,
) -> Option<Vec<u8>> {
    use ClientCertificatePart as Part;
    if part == Part::Verify {
        return Some(verdict(facts));
    }
    let der = facts.peer_certificates.first()?;
    let text = match part {
        Part::Pem => pem(der),
        Part::Tabbed => pem(der).trim_end().replace('\n', "\n\t"),
        Part::Escaped => {
            let mut out = Vec::new();
            escape_uri(EscapeSet::Component, pem(der).as_bytes(), &mut out);
            return Some(out);
        }
        Part::Fingerprint => fingerprint(der),
        part => of_facts(part, &CertificateFacts::parse(der)?, now),
    };
    Some(text.into_bytes())
}

fn of_facts(part: ClientCertificatePart, facts: &CertificateFacts, now: UnixTime) -> String {
    use ClientCertificatePart as Part;
    match part {
        Part::Issuer => facts.issuer.clone(),
        Part::IssuerLegacy => facts.issuer_legacy.clone(),
        Part::Subject => facts.subject.clone(),
        Part::SubjectLegacy => facts.subject_legacy.clone(),
        Part::Serial => facts.serial.clone(),
        Part::Start => date(facts.not_before),
        Part::End => date(facts.not_after),
        Part::DaysLeft => {
            let left = facts.not_after.saturating_sub(now.seconds);
            left.div_euclid(24 * 3600).max(0).to_string()
        }
        Part::Tabbed | Part::Escaped | Part::Pem | Part::Fingerprint | Part::Verify => {
            String::new()
        }
    }
}

/// `$ssl_client_verify`.
fn verdict(facts: &TlsFacts) -> Vec<u8> {
    let revocation = facts.revocation.get();
    if let Some(words) = revocation.and_then(revocation::words) {
        return format!("FAILED:{words}").into_bytes();
    }
    match &facts.verified {
        Verified::None => b"NONE".to_vec(),
        Verified::Success => b"SUCCESS".to_vec(),
        Verified::Failed { reason, .. } => format!("FAILED:{reason}").into_bytes(),
    }
}

/// `$ssl_ciphers`: with the numbers of those that have no name here.
pub(super) fn offered_ciphers(facts: &TlsFacts) -> Vec<u8> {
    joined(&facts.offered_ciphers, offered_cipher_name)
}

/// `$ssl_curves`, likewise.
pub(super) fn offered_groups(facts: &TlsFacts) -> Vec<u8> {
    joined(&facts.offered_groups, group_name)
}

/// `$ssl_curve`.
pub(super) fn group(facts: &TlsFacts) -> Option<Vec<u8>> {
    Some(joined(&[facts.group?], group_name))
}

/// `$ssl_sigalg`, `$ssl_client_sigalg`.
pub(super) fn signature(number: Option<u16>) -> Option<Vec<u8>> {
    Some(joined(&[number?], signature_name))
}

/// `$ssl_session_id`.
pub(super) fn session_id(facts: &TlsFacts) -> Option<Vec<u8>> {
    let id = facts.session_id.iter();
    let text: String = id.map(|byte| format!("{byte:02x}")).collect();
    (!text.is_empty()).then(|| text.into_bytes())
}

fn joined(numbers: &[u16], name: impl Fn(u16) -> Option<&'static str>) -> Vec<u8> {
    let names = numbers
        .iter()
        .map(|number| name(*number).map_or_else(|| format!("0x{number:04x}"), str::to_owned));
    names.collect::<Vec<_>>().join(":").into_bytes()
}

/// As OpenSSL prints it: `Sep  1 12:00:00 2024 GMT`.
fn date(seconds: i64) -> String {
    let date = DateTime::at(seconds, 0);
    let month = str::from_utf8(date.month_name()).unwrap_or_default();
    format!(
        "{month} {:>2} {:02}:{:02}:{:02} {} GMT",
        date.day, date.hour, date.minute, date.second, date.year
    )
}
