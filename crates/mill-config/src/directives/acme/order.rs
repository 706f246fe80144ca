//! `acme_certificate`.

use super::issuer::{IssuerDraft, unknown_key};
use crate::Text;
use crate::config::ServerName;
use crate::config::acme::{AcmeIssuer, AcmeKey, AcmeOrder};
use crate::config::settings::ResolverSettings;
use crate::lexer::Statement;
use crate::resolve::draft::{Origin, ServerDraft};
use crate::resolve::{Applied, Resolver};
use std::sync::Arc;

/// What a server wants, before its names are known.
pub(crate) struct OrderDraft {
    issuer: Text,
    names: Vec<String>,
    key: AcmeKey,
    origin: Origin,
}

pub(super) fn certificate(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let issuer = statement.arg(1);
    if issuer.bytes.is_empty() {
        return Err(resolver.emerg(statement, issuer, "\"issuer\" is missing"));
    }
    let mut draft = OrderDraft {
        issuer: Text::from(issuer.bytes.as_slice()),
        names: Vec::new(),
        key: AcmeKey::default(),
        origin: Origin::of(statement, issuer),
    };
    for word in statement.args().iter().skip(1) {
        if let Some(key) = word.bytes.strip_prefix(b"key=") {
            let key = AcmeKey::parse(key);
            draft.key = key.ok_or_else(|| unknown_key(resolver, statement, word))?;
            continue;
        }
        let found = identifiers(&word.bytes);
        let found = found.map_err(|fault| resolver.emerg(statement, word, fault))?;
        draft.add(found);
    }
    resolver.server.acme = Some(draft);
    Ok(())
}

/// The names that a word means: `.a.example` is `www.a.example` too.
fn identifiers(word: &[u8]) -> Result<Vec<String>, String> {
    let shown = String::from_utf8_lossy(word);
    let fail = |fault: &str| Err(format!("invalid server name \"{shown}\": {fault}"));
    let address = shown.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = address.parse::<std::net::IpAddr>() {
        return Ok(vec![address.to_string()]);
    }
    if word.contains(&b'*') {
        return fail("neither http-01 nor tls-alpn-01 proves a wildcard");
    }
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    let host = word.strip_prefix(b".").unwrap_or(word);
    if host.is_empty() || host.len() > NAME_BYTES_MAX || !host.iter().all(is_letter) {
        return fail("it is no host name");
    }
    if host.split(|byte| *byte == b'.').any(<[u8]>::is_empty) {
        return fail("a label of it is empty");
    }
    let host = String::from_utf8_lossy(host).to_ascii_lowercase();
    Ok(match word.first() {
        Some(b'.') => vec![format!("www.{host}"), host],
        _ => vec![host],
    })
}

impl OrderDraft {
    fn add(&mut self, names: Vec<String>) {
        for name in names {
            if !self.names.contains(&name) {
                self.names.push(name);
            }
        }
    }

    /// Takes the names of the server where there are no others.
    fn add_server_names(&mut self, server: &ServerDraft) -> Applied {
        let texts = server.names.iter().zip(&server.name_texts);
        for ((name, text), origin) in texts.zip(&server.name_origins) {
            if matches!(name, ServerName::Pattern(_)) || text.is_empty() {
                continue;
            }
            match identifiers(text) {
                Ok(found) => self.add(found),
                Err(fault) => {
                    let origin = origin.as_ref().unwrap_or(&self.origin);
                    return Err(origin.error(format!("\"acme_certificate\": {fault}")));
                }
            }
        }
        if self.names.is_empty() {
            let message = "\"acme_certificate\": no identifiers found in \"server_name\"";
            return Err(self.origin.error(message));
        }
        Ok(())
    }
}

/// Makes the issuers with the orders of all servers. Each server has an index into the issuers, and one into the orders.
pub(crate) fn finish(
    resolver: &Resolver<'_>,
    drafts: Vec<IssuerDraft>,
    servers: &mut [ServerDraft],
    names: &ResolverSettings,
) -> Applied<Vec<Arc<AcmeIssuer>>> {
    let finished = drafts
        .into_iter()
        .map(|draft| draft.finish(resolver, names));
    let mut issuers: Vec<AcmeIssuer> = finished.collect::<Applied<_>>()?;
    for server in servers {
        let Some(mut draft) = server.acme.take() else {
            continue;
        };
        if draft.names.is_empty() {
            draft.add_server_names(server)?;
        }
        let mut known = issuers.iter_mut();
        let Some(issuer) = known.find(|known| known.name == draft.issuer) else {
            let message = format!("issuer \"{}\" is missing", draft.issuer.display());
            return Err(draft.origin.error(message));
        };
        let id = AcmeOrder::id_of(&draft.names, draft.key);
        let order = match issuer.orders.iter().find(|order| order.id == id) {
            Some(order) => Arc::clone(order),
            None => {
                let mut order = AcmeOrder {
                    issuer: draft.issuer.clone(),
                    names: draft.names,
                    key: draft.key,
                    id,
                    saved: None,
                };
                order.saved = issuer
                    .state_path
                    .as_ref()
                    .and_then(|path| saved(resolver, &order, path));
                let order = Arc::new(order);
                issuer.orders.push(Arc::clone(&order));
                order
            }
        };
        server.acme_order = Some(order);
    }
    Ok(issuers.into_iter().map(Arc::new).collect())
}

/// What stands in the state path; `None` if there is nothing yet.
fn saved(resolver: &Resolver<'_>, order: &AcmeOrder, path: &[u8]) -> Option<(Text, Text)> {
    let read = |path: Vec<u8>| {
        let content = resolver.source.read_secret(&path).ok()?;
        Some(Text::from(content.as_slice()))
    };
    Some((
        read(order.certificate_path(path))?,
        read(order.key_path(path))?,
    ))
}

/// Of a host name (RFC 1035 2.3.4).
const NAME_BYTES_MAX: usize = 253;
