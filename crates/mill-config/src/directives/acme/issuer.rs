//! `acme_issuer { … }`.

use crate::Text;
use crate::config::acme::{AccountKey, AcmeChallenge, AcmeIssuer, AcmeKey};
use crate::config::settings::{ResolverSettings, TlsFile};
use crate::diagnostic::Diagnostic;
use crate::directives::tls::tls_file;
use crate::lexer::{Statement, Word};
use crate::resolve::draft::Origin;
use crate::resolve::{Applied, Resolver, join};
use std::sync::Arc;

/// An issuer that is not finished.
pub(crate) struct IssuerDraft {
    pub(crate) name: Text,
    pub(crate) origin: Origin,
    uri: Option<String>,
    account_key: Option<AccountKey>,
    challenge: Option<AcmeChallenge>,
    common_name_in_csr: Option<bool>,
    contacts: Vec<String>,
    external_key: Option<(String, String)>,
    preferred_chain: Option<String>,
    profile: Option<(String, bool)>,
    trusted: Option<TlsFile>,
    verify: Option<bool>,
    /// `Some(None)`: `off`.
    state_path: Option<Option<Text>>,
    accepts_terms: Option<bool>,
}

pub(super) fn block(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let name = statement.arg(1);
    let known = resolver.http.iter().flat_map(|http| &http.acme_issuers);
    if known.into_iter().any(|known| *known.name == *name.bytes) {
        let message = format!("duplicate acme_issuer \"{}\"", name.display());
        return Err(resolver.emerg(statement, name, message));
    }
    if name.bytes.is_empty() || name.bytes.contains(&b'/') {
        let message = format!("invalid name \"{}\"", name.display());
        return Err(resolver.emerg(statement, name, message));
    }
    let draft = IssuerDraft {
        name: Text::from(name.bytes.as_slice()),
        origin: Origin::of(statement, name),
        uri: None,
        account_key: None,
        challenge: None,
        common_name_in_csr: None,
        contacts: Vec::new(),
        external_key: None,
        preferred_chain: None,
        profile: None,
        trusted: None,
        verify: None,
        state_path: None,
        accepts_terms: None,
    };
    if let Some(http) = &mut resolver.http {
        http.acme_issuers.push(draft);
    }
    resolver.entries(statement, entry)?;
    let uri = open(resolver).map(|draft| draft.uri.is_some());
    if uri == Some(false) {
        let message = format!("\"uri\" is missing in acme_issuer \"{}\"", name.display());
        return Err(resolver.emerg(statement, name, message));
    }
    system_authorities(resolver, statement)
}

/// The issuer whose block is open.
fn open<'a>(resolver: &'a mut Resolver<'_>) -> Option<&'a mut IssuerDraft> {
    resolver.http.as_mut()?.acme_issuers.last_mut()
}

/// Sets what may be set once.
fn set<T>(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    slot: fn(&mut IssuerDraft) -> &mut Option<T>,
    value: T,
) -> Applied {
    let before = open(resolver).and_then(|draft| slot(draft).replace(value));
    match before {
        Some(_) => Err(resolver.refused(statement, "is duplicate")),
        None => Ok(()),
    }
}

fn entry(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let (name, count) = (statement.name(), statement.args().len());
    let expected = match name.bytes.as_slice() {
        b"accept_terms_of_service" => 0..=0,
        b"external_account_key" => 2..=2,
        b"profile" => 1..=2,
        _ => 1..=1,
    };
    if KNOWN.contains(&name.display().as_ref()) && !expected.contains(&count) {
        let message = format!("invalid number of arguments in \"{}\"", name.display());
        return Err(resolver.emerg(statement, name, message));
    }
    match name.bytes.as_slice() {
        b"uri" => {
            let uri = uri(resolver, statement)?;
            set(resolver, statement, |draft| &mut draft.uri, uri)
        }
        b"account_key" => {
            let key = account_key(resolver, statement)?;
            set(resolver, statement, |draft| &mut draft.account_key, key)
        }
        b"challenge" => {
            let challenge = challenge(resolver, statement)?;
            set(resolver, statement, |draft| &mut draft.challenge, challenge)
        }
        b"contact" => {
            let contact = contact(resolver, statement)?;
            if let Some(draft) = open(resolver) {
                draft.contacts.push(contact);
            }
            Ok(())
        }
        b"external_account_key" => {
            let key = external_key(resolver, statement)?;
            set(resolver, statement, |draft| &mut draft.external_key, key)
        }
        b"preferred_chain" => {
            let chain = text(resolver, statement, statement.arg(1))?;
            set(
                resolver,
                statement,
                |draft| &mut draft.preferred_chain,
                chain,
            )
        }
        b"profile" => {
            let profile = profile(resolver, statement)?;
            set(resolver, statement, |draft| &mut draft.profile, profile)
        }
        b"ssl_trusted_certificate" => {
            let file = tls_file(resolver, statement, "certificate")?;
            set(resolver, statement, |draft| &mut draft.trusted, file)
        }
        b"ssl_verify" => {
            let verify = resolver.flag(statement)?;
            set(resolver, statement, |draft| &mut draft.verify, verify)
        }
        b"common_name_in_csr" => {
            let is_on = resolver.flag(statement)?;
            set(
                resolver,
                statement,
                |draft| &mut draft.common_name_in_csr,
                is_on,
            )
        }
        b"state_path" => {
            let word = statement.arg(1);
            let path = (word.bytes != b"off").then(|| full_path(resolver, &word.bytes));
            set(resolver, statement, |draft| &mut draft.state_path, path)
        }
        b"accept_terms_of_service" => {
            set(resolver, statement, |draft| &mut draft.accepts_terms, true)
        }
        _ => {
            let message = format!("unknown directive \"{}\"", name.display());
            let mut error = resolver.emerg(statement, name, message);
            error.help = Some(format!("one of: {}", KNOWN.join(", ")));
            Err(error)
        }
    }
}

const KNOWN: [&str; 12] = [
    "uri",
    "account_key",
    "challenge",
    "common_name_in_csr",
    "contact",
    "external_account_key",
    "preferred_chain",
    "profile",
    "ssl_trusted_certificate",
    "ssl_verify",
    "state_path",
    "accept_terms_of_service",
];

/// A word that goes into messages of ACME, which are JSON.
fn text(resolver: &Resolver<'_>, statement: &Statement, word: &Word) -> Applied<String> {
    match String::from_utf8(word.bytes.clone()) {
        Ok(text) if !text.is_empty() => Ok(text),
        _ => Err(invalid(resolver, statement, word)),
    }
}

fn invalid(resolver: &Resolver<'_>, statement: &Statement, word: &Word) -> Box<Diagnostic> {
    let message = format!("invalid value \"{}\"", word.display());
    resolver.emerg(statement, word, message)
}

fn uri(resolver: &Resolver<'_>, statement: &Statement) -> Applied<String> {
    let word = statement.arg(1);
    let uri = text(resolver, statement, word)?;
    let rest = uri.strip_prefix("https://").unwrap_or_default();
    if rest.is_empty()
        || rest.starts_with(['/', '?', '#'])
        || !uri.bytes().all(|b| b.is_ascii_graphic())
    {
        let message = format!("invalid uri \"{}\"", word.display());
        let mut error = resolver.emerg(statement, word, message);
        error.help = Some(String::from(
            "it is https://HOST[:PORT]/PATH: ACME is spoken over TLS alone (RFC 8555 6.1)",
        ));
        return Err(error);
    }
    Ok(uri)
}

fn account_key(resolver: &Resolver<'_>, statement: &Statement) -> Applied<AccountKey> {
    let word = statement.arg(1);
    if let Some(kind) = AcmeKey::parse(&word.bytes) {
        return Ok(AccountKey::Kind(kind));
    }
    if word.bytes.starts_with(b"ecdsa:") || word.bytes.starts_with(b"rsa:") {
        return Err(unknown_key(resolver, statement, word));
    }
    tls_file(resolver, statement, "account key").map(AccountKey::File)
}

pub(super) fn unknown_key(
    resolver: &Resolver<'_>,
    statement: &Statement,
    word: &Word,
) -> Box<Diagnostic> {
    let message = format!("unsupported key \"{}\"", word.display());
    let mut error = resolver.emerg(statement, word, message);
    error.help = Some(String::from(
        "one of: ecdsa:256, ecdsa:384, ecdsa:521, rsa:2048, rsa:3072, rsa:4096",
    ));
    error
}

fn challenge(resolver: &Resolver<'_>, statement: &Statement) -> Applied<AcmeChallenge> {
    let word = statement.arg(1);
    match word.bytes.as_slice() {
        b"http" | b"http-01" => Ok(AcmeChallenge::Http01),
        b"tls-alpn" | b"tls-alpn-01" => Ok(AcmeChallenge::TlsAlpn01),
        _ => {
            let message = format!("unsupported challenge: {}", word.display());
            let mut error = resolver.emerg(statement, word, message);
            error.help = Some(String::from("one of: http-01, tls-alpn-01"));
            Err(error)
        }
    }
}

/// A URL; an address of mail without a scheme.
fn contact(resolver: &Resolver<'_>, statement: &Statement) -> Applied<String> {
    let contact = text(resolver, statement, statement.arg(1))?;
    let scheme = contact.split_once(':').map(|(scheme, _)| scheme);
    let is_scheme = |scheme: &str| {
        let is_letter = |b: u8| b.is_ascii_alphanumeric() || b"+-.".contains(&b);
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.bytes().all(is_letter)
    };
    Ok(match scheme.is_some_and(is_scheme) {
        true => contact,
        false => format!("mailto:{contact}"),
    })
}

fn external_key(resolver: &Resolver<'_>, statement: &Statement) -> Applied<(String, String)> {
    let id = text(resolver, statement, statement.arg(1))?;
    let word = statement.arg(2);
    let content = match word.bytes.strip_prefix(b"data:") {
        Some(key) => key.to_vec(),
        None => {
            let path = join(&resolver.options.conf_prefix(), &word.bytes);
            resolver.source.read_secret(&path).map_err(|error| {
                let (path, code, text) = (path.display(), error.code, error.text);
                let message = format!("open() \"{path}\" failed ({code}: {text})");
                resolver.emerg(statement, word, message)
            })?
        }
    };
    let key = content.trim_ascii().trim_ascii_end();
    let is_letter = |b: &u8| b.is_ascii_alphanumeric() || b"-_=".contains(b);
    match String::from_utf8(key.to_vec()) {
        Ok(key) if !key.is_empty() && key.as_bytes().iter().all(is_letter) => Ok((id, key)),
        _ => Err(resolver.emerg(statement, word, "invalid base64url encoded value")),
    }
}

fn profile(resolver: &Resolver<'_>, statement: &Statement) -> Applied<(String, bool)> {
    let name = text(resolver, statement, statement.arg(1))?;
    match statement.args().get(1) {
        None => Ok((name, false)),
        Some(word) if word.bytes == b"require" => Ok((name, true)),
        Some(word) => Err(invalid(resolver, statement, word)),
    }
}

/// Without `ssl_trusted_certificate`, those that the system trusts.
fn system_authorities(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let needs_them =
        open(resolver).is_some_and(|draft| draft.trusted.is_none() && draft.verify != Some(false));
    if !needs_them {
        return Ok(());
    }
    let found = SYSTEM_AUTHORITIES.iter().find_map(|path| {
        let pem = resolver.source.read_secret(path.as_bytes()).ok()?;
        Some((*path, pem))
    });
    let name = statement.arg(1);
    let Some((path, pem)) = found else {
        let message = format!(
            "no certificates to verify acme_issuer \"{}\" with",
            name.display()
        );
        let mut error = resolver.emerg(statement, name, message);
        error.help = Some(String::from(
            "write \"ssl_trusted_certificate\", or install ca-certificates",
        ));
        return Err(error);
    };
    let file = TlsFile {
        name: Text::from(path),
        pem: Text::from(pem.as_slice()),
        evaluated: None,
        position: Origin::of(statement, name).place(),
    };
    if let Some(draft) = open(resolver) {
        draft.trusted = Some(file);
    }
    Ok(())
}

/// Where systems keep them: Debian, Fedora, Alpine.
const SYSTEM_AUTHORITIES: [&str; 3] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
];

impl IssuerDraft {
    /// Where its files are.
    pub(super) fn state_path(&self, resolver: &Resolver<'_>) -> Option<Text> {
        let default = || Some(full_path(resolver, &[b"acme_", &*self.name].concat()));
        self.state_path.clone().unwrap_or_else(default)
    }

    /// With what the http block says.
    pub(super) fn finish(
        self,
        resolver: &Resolver<'_>,
        names: &ResolverSettings,
    ) -> Applied<AcmeIssuer> {
        let state_path = self.state_path(resolver);
        let uri = self.uri.unwrap_or_default();
        if names.name_servers.is_none() && !is_of_address(&uri) {
            let shown = self.name.display();
            let message = format!("acme_issuer \"{shown}\": \"resolver\" is not configured");
            let mut error = self.origin.error(message);
            error.help = Some(String::from(
                "name servers that know the authority are set by \"resolver\" in the http block",
            ));
            return Err(error);
        }
        let verify = self.verify.unwrap_or(true);
        Ok(AcmeIssuer {
            position: self.origin.place(),
            name: self.name,
            uri,
            account_key: self
                .account_key
                .unwrap_or(AccountKey::Kind(AcmeKey::default())),
            challenge: self.challenge.unwrap_or_default(),
            common_name_in_csr: self.common_name_in_csr.unwrap_or(false),
            contacts: self.contacts,
            external_key: self.external_key,
            preferred_chain: self.preferred_chain,
            profile: self.profile,
            trusted: self.trusted.filter(|_| verify),
            state_path,
            accepts_terms: self.accepts_terms.unwrap_or(false),
            name_servers: names.name_servers.as_ref().map(Arc::clone),
            resolver_timeout: names.timeout,
            orders: Vec::new(),
        })
    }
}

/// Relative to the prefix, as other paths of data.
fn full_path(resolver: &Resolver<'_>, path: &[u8]) -> Text {
    join(&resolver.options.paths.prefix, path)
}

/// Whether the host needs no name server.
fn is_of_address(uri: &str) -> bool {
    let authority = uri
        .strip_prefix("https://")
        .and_then(|rest| rest.split(['/', '?', '#']).next());
    let url = authority.map(|authority| crate::url::Url::parse(authority.as_bytes(), 443, false));
    url.is_some_and(|url| url.is_ok_and(|url| url.address.is_some()))
}
