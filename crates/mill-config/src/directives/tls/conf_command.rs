//! `ssl_conf_command`: settings in the words of OpenSSL's own configuration (SSL_CONF_cmd(3)).

use super::ciphers::ciphers_13;
use super::{TlsProtocols, groups};
use crate::lexer::{Statement, Word};
use crate::resolve::{Applied, Resolver};

pub(super) fn apply(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let (command, word) = (statement.arg(1).clone(), statement.arg(2).clone());
    let text = word.display().to_string();
    let name = command.display().to_string().to_ascii_lowercase();
    match name.as_str() {
        "ciphersuites" => {
            let found = ciphers_13(&text).map_err(|absent| {
                let message = format!("the cipher \"{absent}\" is not there");
                let mut refused = resolver.emerg(statement, &word, message);
                refused.help = Some(String::from(
                    "there are TLS_AES_256_GCM_SHA384, TLS_AES_128_GCM_SHA256 and TLS_CHACHA20_POLY1305_SHA256",
                ));
                refused
            })?;
            resolver.level.settings.tls.ciphers_13 = Some(Some(found));
        }
        "curves" | "groups" => {
            let (found, _) = groups::select(&text);
            if found.is_empty() {
                let message = format!("no group of \"{text}\" is there");
                return Err(resolver.emerg(statement, &word, message));
            }
            resolver.level.settings.tls.groups = Some(Some(found));
        }
        "minprotocol" | "maxprotocol" => {
            let is_least = name == "minprotocol";
            limit_protocols(resolver, statement, &word, is_least)?;
        }
        "options" => options(resolver, statement, &word, &text),
        _ => {
            let message = format!("\"{}\" has no effect", command.display());
            let help = "Ciphersuites, Groups, MinProtocol, MaxProtocol and some Options are taken";
            resolver.notice(statement, &command, message, help);
        }
    }
    Ok(())
}

fn limit_protocols(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    word: &Word,
    is_least: bool,
) -> Applied {
    let mut protocols = resolver.level.settings.tls.protocols.unwrap_or_default();
    let limited = match (word.bytes.as_slice(), is_least) {
        (b"TLSv1.3", true) => TlsProtocols {
            tls12: false,
            ..protocols
        },
        (b"TLSv1.2", false) => TlsProtocols {
            tls13: false,
            ..protocols
        },
        (b"TLSv1.3", false)
        | (b"TLSv1" | b"TLSv1.1" | b"TLSv1.2" | b"None", true)
        | (b"None", false) => protocols,
        _ => {
            let message = format!("\"{}\" leaves no version of TLS", word.display());
            let mut refused = resolver.emerg(statement, word, message);
            refused.help = Some(String::from("there are TLSv1.2 and TLSv1.3"));
            return Err(refused);
        }
    };
    protocols = limited;
    resolver.level.settings.tls.protocols = Some(protocols);
    Ok(())
}

/// Of OpenSSL's options, those that mean something here.
fn options(resolver: &mut Resolver<'_>, statement: &Statement, word: &Word, text: &str) {
    for option in text.split(',') {
        let (is_on, option) = match option.split_at_checked(1) {
            Some(("-", rest)) => (false, rest),
            Some(("+", rest)) => (true, rest),
            _ => (true, option),
        };
        let tls = &mut resolver.level.settings.tls;
        match option.to_ascii_lowercase().as_str() {
            "serverpreference" => tls.prefer_server_ciphers = Some(is_on),
            "sessionticket" => tls.session_tickets = Some(is_on),
            // Ciphers are the client's choice unless the server's order counts.
            "prioritizechacha" => {}
            _ => {
                let message = format!("the option \"{option}\" has no effect");
                resolver.notice(
                    statement,
                    word,
                    message,
                    "ServerPreference and SessionTicket are taken",
                );
            }
        }
    }
}
