//! From a [`Site`] to statements of nginx's language.
//!
//! One server stands for all sockets of one protocol. Where all requests go one way, its `location /` is that way; else
//! `location /` hands them to the named location whose name the maps of [`routing`] have found, by the only means of
//! nginx's language that takes a variable there: an `error_page` for a status that nothing else gives.

mod cache;
mod challenge;
mod content;
mod fields;
mod front;
mod groups;
mod limits;

use super::lexer::Term;
use super::notes::Notes;
use super::routing::{self, Routes};
use super::site::Site;
use super::writing::{DOLLAR, Phrase, Writer, literal};
use crate::lexer::Token;
use crate::load::Options;
use crate::resolve::Applied;
use crate::resolve::draft::Origin;

/// Open connections of a worker, and files: Tempesta FW has no limit of its own, and is started by root.
const CONNECTIONS: &str = "worker_connections 65536";
const FILES: &str = "worker_rlimit_nofile 262144";

/// The same for others, whose limit of files stays as it is.
const CONNECTIONS_UNPRIVILEGED: &str = "worker_connections 512";

/// Requests of one connection: Tempesta FW has no limit.
const KEEPALIVE_REQUESTS: &str = "keepalive_requests 1000000000";

/// Longest content of a request in bytes where nothing is written (fw/vhost.c).
const CONTENT_BYTES_DEFAULT: u64 = 1 << 30;

/// The state of one translation.
struct Translator<'a> {
    site: &'a Site,
    routes: Routes,
    notes: &'a mut Notes,
    writer: Writer,
    groups: groups::Groups,
    fields: fields::Fields,
    cache: cache::Policies,
}

/// Statements for all of a site. `given` are names of directives of the main context that the command line has set.
pub(super) fn translate(
    site: &Site,
    notes: &mut Notes,
    options: &Options,
    given: &[&'static str],
) -> Applied<Vec<Token>> {
    let routes = routing::routes(site)?;
    let mut translator = Translator {
        groups: groups::Groups::of(site, &routes),
        fields: fields::Fields::default(),
        cache: cache::Policies::default(),
        site,
        routes,
        notes,
        writer: Writer::default(),
    };
    // What is written first needs what servers need: tables of fields, for example. So servers are made first.
    translator.servers()?;
    let servers = std::mem::take(&mut translator.writer).into_tokens();
    translator.http_level();
    translator.tables();
    translator.upstreams();
    let level = std::mem::take(&mut translator.writer).into_tokens();
    let mut tokens = head(site, options, given);
    if level.iter().chain(&servers).any(has_dollar) {
        let mut writer = Writer::default();
        writer.open(Phrase::new(&site.origin, "geo").word(DOLLAR));
        writer.end(Phrase::new(&site.origin, "default").word("$"));
        writer.close();
        tokens.extend(writer.into_tokens());
    }
    tokens.extend(level);
    tokens.extend(servers);
    tokens.push(Token::BlockEnd);
    tokens.push(Token::End);
    Ok(tokens)
}

/// The main context up to the beginning of the http block.
fn head(site: &Site, options: &Options, given: &[&'static str]) -> Vec<Token> {
    let origin = &site.origin;
    let mut writer = Writer::default();
    let files = options.is_privileged.then_some(FILES);
    for words in ["worker_processes auto"].into_iter().chain(files) {
        let name = words.split(' ').next().unwrap_or_default();
        if !given.contains(&name) {
            writer.say(origin, words);
        }
    }
    writer.open(Phrase::new(origin, "events"));
    let connections = match options.is_privileged {
        true => CONNECTIONS,
        false => CONNECTIONS_UNPRIVILEGED,
    };
    writer.say(origin, connections);
    writer.close();
    writer.open(Phrase::new(origin, "http"));
    writer.into_tokens()
}

/// Whether a statement needs the variable of a dollar sign.
fn has_dollar(token: &Token) -> bool {
    let Token::Statement(statement) = token else {
        return false;
    };
    let sign = &literal(b"$")[..];
    let mut words = statement.words.iter();
    words.any(|word| word.bytes.windows(sign.len()).any(|part| part == sign))
}

impl Translator<'_> {
    /// What all servers have.
    fn http_level(&mut self) {
        let site = self.site;
        let origin = &site.origin;
        self.access_logs(None);
        self.client_level();
        self.limits();
        let writer = &mut self.writer;
        writer.say(origin, "proxy_http_version 1.1");
        writer.say(origin, "proxy_next_upstream_tries 6");
        writer.say(origin, "proxy_next_upstream_timeout 60s");
        self.base_fields();
        self.cache_level();
    }

    /// The access logs of what belongs to a vhost, or to none.
    fn access_logs(&mut self, vhost: Option<&Term>) {
        let site = self.site;
        let origin = &site.origin;
        if let Some((word, path)) = &site.logger {
            let target = [&b"clickhouse:"[..], path].concat();
            let phrase = Phrase::new(&word.origin, "access_log").at(target, word);
            let name = vhost.map_or(&b""[..], |vhost| &vhost.bytes);
            let name = literal(name);
            self.writer.end(phrase.word([b"vhost=", &*name].concat()));
        }
        if site.logs_to_kernel {
            self.writer.say(origin, "access_log /dev/kmsg");
        } else if site.logger.is_none() {
            self.writer.say(origin, "access_log off");
        }
    }

    fn client_level(&mut self) {
        let site = self.site;
        let client = &site.client;
        let writer = &mut self.writer;
        if let Some(given) = &client.keepalive_timeout {
            let words = format!("keepalive_timeout {}s", given.value);
            writer.say(&given.origin, &words);
        }
        writer.say(&site.origin, KEEPALIVE_REQUESTS);
        let bytes = match site.has_limits {
            // What is longer is an attack.
            true => 0,
            false => CONTENT_BYTES_DEFAULT,
        };
        writer.say(&site.origin, &format!("client_max_body_size {bytes}"));
        let timeouts = [
            ("client_header_timeout", &client.head_timeout),
            ("client_body_timeout", &client.content_timeout),
            ("proxy_tunnel_timeout", &client.tunnel_timeout),
        ];
        for (name, given) in timeouts {
            // 0 is no limit there; ours stays.
            if let Some(given) = given
                && given.value > 0
            {
                writer.say(&given.origin, &format!("{name} {}s", given.value));
            }
        }
        if let Some(given) = &client.head
            && given.value > 0
        {
            let words = format!("large_client_header_buffers 1 {}", given.value);
            writer.say(&given.origin, &words);
        }
        if let Some(given) = &client.streams {
            let words = format!("http2_max_concurrent_streams {}", given.value);
            writer.say(&given.origin, &words);
        }
    }

    /// The maps of the routes.
    fn tables(&mut self) {
        let site = self.site;
        if let Some(origin) = &site.cache.purge {
            let writer = &mut self.writer;
            writer.open(Phrase::new(origin, "geo").word(routing::PURGER));
            writer.say(origin, "default 0");
            for (network, term) in &site.cache.purge_acl {
                writer.end(
                    Phrase::new(&term.origin, "")
                        .word(network.as_str())
                        .word("1"),
                );
            }
            writer.close();
        }
        for table in &self.routes.tables {
            let head = Phrase::new(&table.origin, "map").word(table.source.clone());
            self.writer.open(head.word(table.variable.as_str()));
            for (key, target, origin) in &table.rows {
                let row = Phrase::new(origin, "").word(key.clone());
                self.writer.end(row.word(front::value_of(site, target)));
            }
            let default = front::value_of(site, &table.default);
            self.writer
                .end(Phrase::new(&table.origin, "default").word(default));
            self.writer.close();
        }
    }
}

/// A name of nginx's language for one of Tempesta FW's, which may have any byte; the number tells changed names apart.
fn name_of(term: &Term, number: usize) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    if !term.bytes.is_empty() && term.bytes.iter().all(is_plain) {
        return term.display();
    }
    let plain = term.bytes.iter().filter(|byte| is_plain(byte));
    let plain: Vec<u8> = plain.copied().collect();
    format!("{}_{number}", String::from_utf8_lossy(&plain))
}

/// `NAME SECONDSs`
fn seconds(origin: &Origin, name: &str, seconds: u64) -> Phrase {
    Phrase::new(origin, name).word(format!("{seconds}s"))
}
