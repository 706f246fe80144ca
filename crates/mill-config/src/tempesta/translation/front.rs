//! Servers: the sockets of one protocol, certificates, pages of errors, and locations.

use std::collections::BTreeMap;

use super::groups::upstream_name;
use super::{Translator, name_of};
use crate::resolve::Applied;
use crate::resolve::draft::Origin;
use crate::tempesta::lexer::Term;
use crate::tempesta::routing::{Goal, Target};
use crate::tempesta::site::{Listen, Protocol, Site, Tls};
use crate::tempesta::writing::Phrase;

/// The status that hands a request to the location which a variable names: no answer has it (RFC 9110 15.5.19).
const HANDED_ON: u16 = 418;

/// Statuses of errors, without the one above.
const PAGE_STATUSES: [u16; 35] = [
    400, 401, 402, 403, 404, 405, 406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 416, 417, 421,
    422, 423, 424, 426, 428, 429, 431, 451, 500, 501, 502, 503, 504, 505, 506, 507,
];

/// A socket for each worker, and the queue that Tempesta FW's start script sets for all sockets.
const SOCKET_OPTIONS: &str = "reuseport backlog=131072";

/// How a location is written in a map: its name, or the variable that has it.
pub(super) fn value_of(site: &Site, target: &Target) -> Vec<u8> {
    match target {
        Target::Goal(goal) => place(site, goal).into_bytes(),
        Target::Variable(variable) => variable.clone().into_bytes(),
    }
}

/// The name of the location of a goal.
fn place(site: &Site, goal: &Goal) -> String {
    match *goal {
        Goal::Drop => String::from("@drop"),
        Goal::Block => String::from("@block"),
        Goal::Redirect(chain, rule) => format!("@redirect.{}.{}", chain + 1, rule + 1),
        Goal::Pass {
            vhost: index,
            location,
            state,
            once,
        } => {
            let vhost = site.vhosts.get(index);
            let mut name = vhost.map_or_else(String::new, |vhost| name_of(&vhost.name, index));
            name.insert_str(0, "@vhost.");
            if let Some(location) = location {
                name.push_str(&format!(".{}", location + 1));
            }
            if state.no_cache {
                name.push_str("+uncached");
            }
            if let Some(ttl) = state.ttl {
                name.push_str(&format!("+ttl={ttl}"));
            }
            if once {
                name.push_str("+once");
            }
            name
        }
    }
}

impl Translator<'_> {
    /// All servers.
    pub(super) fn servers(&mut self) -> Applied {
        let site = self.site;
        let mut protocols: Vec<Protocol> = Vec::new();
        for listen in &site.listens {
            if !protocols.contains(&listen.protocol) {
                protocols.push(listen.protocol);
            }
        }
        if protocols.is_empty() {
            protocols.push(Protocol::Http);
        }
        for (index, protocol) in protocols.into_iter().enumerate() {
            self.writer.open(Phrase::new(&site.origin, "server"));
            self.listens(protocol);
            if protocol != Protocol::Http {
                self.tls(protocol)?;
            }
            self.pages();
            self.locations()?;
            if index == 0 {
                // Probes are sent once, whatever the number of servers.
                self.probes();
            }
            self.writer.close();
        }
        Ok(())
    }

    fn listens(&mut self, protocol: Protocol) {
        let site = self.site;
        if site.listens.is_empty() {
            let phrase = Phrase::new(&site.origin, "listen 0.0.0.0:80");
            self.writer.end(phrase.word_list(SOCKET_OPTIONS));
        }
        let listens = site.listens.iter();
        for listen in listens.filter(|listen| listen.protocol == protocol) {
            let phrase = Phrase::new(&listen.term.origin, "listen");
            let mut phrase = phrase.at(listen.address.to_string(), &listen.term);
            if protocol != Protocol::Http {
                phrase = phrase.word("ssl");
            }
            self.writer.end(phrase.word_list(SOCKET_OPTIONS));
        }
    }

    fn tls(&mut self, protocol: Protocol) -> Applied {
        let site = self.site;
        let socket = site
            .listens
            .iter()
            .find(|listen| listen.protocol == protocol);
        let Some(socket): Option<&Listen> = socket else {
            return Ok(());
        };
        if protocol == Protocol::H2 {
            self.writer.say(&socket.term.origin, "http2 on");
        }
        let with = site.vhosts.iter().map(|vhost| &vhost.tls);
        let with: Vec<&Tls> = with.filter(|tls| !tls.certificates.is_empty()).collect();
        let Some(tls) = with.first() else {
            let mut error = socket.term.error("no \"tls_certificate\" for this socket");
            error.help = Some(String::from(
                "it stands outside of vhosts, or in the vhost whose names it has",
            ));
            return Err(error);
        };
        // Of all of them the one goes out whose name the client asks for.
        for (certificate, key) in with.iter().flat_map(|tls| &tls.certificates) {
            self.file("ssl_certificate", certificate);
            if let Some(key) = key {
                self.file("ssl_certificate_key", key);
            }
        }
        if let Some((is_on, lifetime, origin)) = &tls.tickets {
            let words = if *is_on {
                "ssl_session_tickets on"
            } else {
                "ssl_session_tickets off"
            };
            self.writer.say(origin, words);
            if let Some(secret) = &tls.ticket_secret {
                let phrase = Phrase::new(origin, "ssl_session_ticket_secret");
                self.writer.end(phrase.at(secret.bytes.clone(), secret));
            }
            if let Some(lifetime) = lifetime {
                self.writer
                    .say(origin, &format!("ssl_session_timeout {lifetime}s"));
            }
        }
        self.strict_names();
        Ok(())
    }

    /// Tempesta FW refuses handshakes for names that no certificate has.
    fn strict_names(&mut self) {
        let mut vhosts = self.site.vhosts.iter();
        let any_name = vhosts.any(|vhost| vhost.tls.any_name == Some(true));
        let said = self
            .notes
            .remarks
            .iter()
            .any(|remark| remark.message == ANY_NAME);
        let mut vhosts = self.site.vhosts.iter();
        if let Some((certificate, _)) = vhosts.find_map(|vhost| vhost.tls.certificates.first())
            && !any_name
            && !said
        {
            self.notes.notice(
                certificate,
                ANY_NAME,
                "as with \"tls_match_any_server_name\"; Tempesta FW would refuse the handshake",
            );
        }
    }

    fn file(&mut self, name: &str, path: &Term) {
        let phrase = Phrase::new(&path.origin, name);
        self.writer
            .end(phrase.at(crate::tempesta::writing::literal(&path.bytes), path));
    }

    /// Files in the place of our pages of errors.
    fn pages(&mut self) {
        let mut files: BTreeMap<u16, &Term> = BTreeMap::new();
        // A single status counts before its class, whatever the order.
        let (single, classes): (Vec<_>, Vec<_>) = self
            .site
            .bodies
            .iter()
            .partition(|body| body.first == body.last);
        for body in classes.iter().chain(&single) {
            let known = PAGE_STATUSES.iter();
            for &status in known.filter(|status| (body.first..=body.last).contains(status)) {
                files.insert(status, &body.path);
            }
        }
        let mut paths: Vec<&Term> = Vec::new();
        for path in files.values() {
            if !paths.iter().any(|known| known.bytes == path.bytes) {
                paths.push(path);
            }
        }
        for (index, path) in paths.iter().enumerate() {
            let name = format!("/.tempesta/{}", index + 1);
            let mut phrase = Phrase::new(&path.origin, "error_page");
            for (status, _) in files.iter().filter(|(_, file)| file.bytes == path.bytes) {
                phrase = phrase.word(status.to_string());
            }
            self.writer.end(phrase.word(name.as_str()));
            let head = Phrase::new(&path.origin, "location =");
            self.writer.open(head.word(name));
            self.writer.say(&path.origin, "internal");
            self.writer.say(&path.origin, "default_type text/html");
            self.file("alias", path);
            self.writer.close();
        }
    }

    fn locations(&mut self) -> Applied {
        let site = self.site;
        let origin = &site.origin;
        let variable = match self.routes.start.clone() {
            Target::Goal(goal) => {
                self.writer.open(Phrase::new(origin, "location /"));
                self.content(&goal)?;
                self.writer.close();
                return Ok(());
            }
            Target::Variable(variable) => variable,
        };
        let phrase = Phrase::new(origin, "error_page").word(HANDED_ON.to_string());
        self.writer.end(phrase.word("=").word(variable));
        // A page of an error in a location that was reached so is the second one.
        self.writer.say(origin, "recursive_error_pages on");
        self.writer.open(Phrase::new(origin, "location /"));
        self.no_limits();
        self.writer.say(origin, &format!("return {HANDED_ON}"));
        self.writer.close();
        for goal in self.routes.goals.clone() {
            let head = Phrase::new(self.origin_of(&goal), "location");
            self.writer.open(head.word(place(site, &goal)));
            self.content(&goal)?;
            self.writer.close();
        }
        Ok(())
    }

    /// Where a goal stands.
    fn origin_of(&self, goal: &Goal) -> &Origin {
        let site = self.site;
        let found = match *goal {
            Goal::Drop | Goal::Block => None,
            Goal::Redirect(chain, rule) => {
                let rules = site.chains.get(chain).map(|chain| &chain.rules);
                let rule = rules.and_then(|rules| rules.get(rule));
                rule.map(|rule| &rule.origin)
            }
            Goal::Pass {
                vhost, location, ..
            } => {
                let vhost = site.vhosts.get(vhost);
                let inner = location.and_then(|index| vhost?.locations.get(index));
                inner
                    .map(|location| &location.path.text.origin)
                    .or(vhost.map(|vhost| &vhost.name.origin))
            }
        };
        found.unwrap_or(&site.origin)
    }

    /// A location for each group whose servers are probed.
    fn probes(&mut self) {
        let site = self.site;
        for found in self.groups.uses.clone() {
            let health = site
                .groups
                .get(found.group)
                .and_then(|group| group.options.health.as_ref());
            let Some(health) = health else {
                continue;
            };
            let mut checks = site.checks.iter();
            let Some(check) = checks.find(|check| check.name.is(&health.display())) else {
                continue;
            };
            let name = format!("@health.{}", upstream_name(site, found));
            let head = Phrase::new(&health.origin, "location");
            self.writer.open(head.word(name));
            self.pass_to(found, &health.origin);
            for (name, value) in &check.fields {
                let phrase = Phrase::new(&health.origin, "proxy_set_header");
                let value = crate::tempesta::writing::literal(value);
                self.writer.end(phrase.word(name.clone()).word(value));
            }
            let phrase = Phrase::new(&health.origin, "health_check")
                .word(format!("interval={}", check.interval))
                .word([&b"uri="[..], &check.path].concat())
                .word(format!("match=tempesta_{}", check.name.display()));
            let phrase = match &check.method {
                Some((method, term)) => phrase.at([b"method=", &**method].concat(), term),
                None => phrase,
            };
            let phrase = site
                .failovers
                .iter()
                .fold(phrase, |phrase, failover| phrase.word(failover.clone()));
            self.writer.end(phrase);
            self.writer.close();
        }
    }
}

/// Said once.
const ANY_NAME: &str = "clients that ask for another name get this certificate too";
