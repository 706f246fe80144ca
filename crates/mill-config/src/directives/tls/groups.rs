//! `ssl_ecdh_curve`: groups for the exchange of keys.

use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver};

/// A group by OpenSSL's name, with its other names.
const GROUPS: [(&str, &[&str]); 5] = [
    ("X25519MLKEM768", &[]),
    ("SecP256r1MLKEM768", &[]),
    ("X25519", &["x25519"]),
    ("prime256v1", &["P-256", "secp256r1"]),
    ("secp384r1", &["P-384"]),
];

/// The groups of a text; `Err`: no one is there. With those that are not there.
pub(super) fn select(text: &str) -> (Vec<&'static str>, Vec<String>) {
    let (mut found, mut absent) = (Vec::new(), Vec::new());
    for word in text.split([':', '/']).filter(|word| !word.is_empty()) {
        // OpenSSL 3.5: `*` sends a share for it at once, `?` and `-` are about groups that may be unknown.
        let word = word.trim_start_matches(['*', '?']);
        let is_it = |name: &str, others: &[&str]| {
            name.eq_ignore_ascii_case(word)
                || others.iter().any(|other| other.eq_ignore_ascii_case(word))
        };
        match GROUPS.iter().find(|(name, others)| is_it(name, others)) {
            Some((name, _)) => found.push(*name),
            None => absent.push(word.to_owned()),
        }
    }
    (found, absent)
}

/// `None`: `auto`.
pub(crate) fn groups(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
) -> Applied<Option<Vec<&'static str>>> {
    let word = statement.arg(1);
    if word.bytes == b"auto" {
        return Ok(None);
    }
    let (found, absent) = select(&word.display());
    let help = "there are X25519MLKEM768, SecP256r1MLKEM768, X25519, prime256v1 and secp384r1";
    if found.is_empty() {
        let message = format!("no group of \"{}\" is there", word.display());
        let mut refused = resolver.emerg(statement, word, message);
        refused.help = Some(help.to_owned());
        return Err(refused);
    }
    if let Some(first) = absent.first() {
        let message = format!("the group \"{first}\" is not there");
        resolver.notice(statement, word, message, help);
    }
    Ok(Some(found))
}
