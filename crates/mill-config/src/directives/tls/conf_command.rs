//! `ssl_conf_command` and `…_ssl_conf_command`: settings in the words of OpenSSL's own configuration (SSL_CONF_cmd(3)).

use super::ciphers::ciphers_13;
use super::{TlsBounds, groups};
use crate::diagnostic::SourcePosition;
use crate::lexer::{Statement, Word};
use crate::resolve::{Applied, Resolver};

/// What a command sets.
pub(crate) enum Command {
    /// Ciphers of TLS 1.3.
    Ciphers13(Vec<&'static str>),
    Groups(Vec<&'static str>),
    Bound(Bound),
    /// Names, and whether they are switched on.
    Options(Vec<(String, bool)>),
    /// It has no effect, and a notice says so.
    Nothing,
}

/// `MinProtocol` or `MaxProtocol`.
pub(crate) struct Bound {
    is_least: bool,
    /// Only one of the two versions is left.
    is_strict: bool,
    position: SourcePosition,
}

impl Bound {
    /// Of several, the last counts, as with OpenSSL.
    pub(crate) fn set(self, bounds: &mut TlsBounds) {
        match self.is_least {
            true => bounds.is_from_13 = self.is_strict,
            false => bounds.is_to_12 = self.is_strict,
        }
        bounds.position = Some(self.position);
    }
}

pub(super) fn apply(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let command = command(resolver, statement)?;
    let tls = &mut resolver.level.settings.tls;
    // A block that has commands inherits none, as with nginx.
    let bounds = tls.bounds.get_or_insert_default();
    tls.ciphers_13.get_or_insert_default();
    match command {
        Command::Ciphers13(found) => tls.ciphers_13 = Some(Some(found)),
        Command::Groups(found) => tls.groups = Some(Some(found)),
        Command::Bound(bound) => bound.set(bounds),
        Command::Options(options) => set_options(resolver, statement, options),
        Command::Nothing => {}
    }
    Ok(())
}

/// The command of a statement.
pub(crate) fn command(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied<Command> {
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
            Ok(Command::Ciphers13(found))
        }
        "curves" | "groups" => {
            let (found, _) = groups::select(&text);
            if found.is_empty() {
                let message = format!("no group of \"{text}\" is there");
                return Err(resolver.emerg(statement, &word, message));
            }
            Ok(Command::Groups(found))
        }
        "minprotocol" | "maxprotocol" => {
            let is_least = name == "minprotocol";
            bound(resolver, statement, &word, is_least).map(Command::Bound)
        }
        "options" => Ok(Command::Options(options(&text))),
        _ => {
            let message = format!("\"{}\" has no effect", command.display());
            let help = "Ciphersuites, Groups, MinProtocol, MaxProtocol and some Options are taken";
            resolver.notice(statement, &command, message, help);
            Ok(Command::Nothing)
        }
    }
}

fn bound(
    resolver: &Resolver<'_>,
    statement: &Statement,
    word: &Word,
    is_least: bool,
) -> Applied<Bound> {
    let is_strict = match (word.bytes.as_slice(), is_least) {
        (b"TLSv1.3", true) | (b"TLSv1.2", false) => true,
        (b"TLSv1.3" | b"None", false) | (b"TLSv1" | b"TLSv1.1" | b"TLSv1.2" | b"None", true) => {
            false
        }
        _ => {
            let message = format!("\"{}\" leaves no version of TLS", word.display());
            let mut refused = resolver.emerg(statement, word, message);
            refused.help = Some(String::from("there are TLSv1.2 and TLSv1.3"));
            return Err(refused);
        }
    };
    Ok(Bound {
        is_least,
        is_strict,
        position: resolver.emerg(statement, word, "").place,
    })
}

fn options(text: &str) -> Vec<(String, bool)> {
    let all = text
        .split(',')
        .map(|option| match option.split_at_checked(1) {
            Some(("-", rest)) => (rest.to_owned(), false),
            Some(("+", rest)) => (rest.to_owned(), true),
            _ => (option.to_owned(), true),
        });
    all.collect()
}

/// Of OpenSSL's options, those that mean something here.
fn set_options(resolver: &mut Resolver<'_>, statement: &Statement, options: Vec<(String, bool)>) {
    for (option, is_on) in options {
        let tls = &mut resolver.level.settings.tls;
        match option.to_ascii_lowercase().as_str() {
            "serverpreference" => tls.prefer_server_ciphers = Some(is_on),
            "sessionticket" => tls.session_tickets = Some(is_on),
            // Ciphers are the client's choice unless the server's order counts.
            "prioritizechacha" => {}
            _ => {
                let help = "ServerPreference and SessionTicket are taken";
                without_effect(resolver, statement, &option, help);
            }
        }
    }
}

/// A notice about an option.
pub(crate) fn without_effect(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    option: &str,
    help: &'static str,
) {
    let message = format!("the option \"{option}\" has no effect");
    resolver.notice(statement, &statement.arg(2).clone(), message, help);
}
