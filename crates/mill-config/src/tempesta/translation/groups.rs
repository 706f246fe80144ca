//! Groups of servers to `upstream`s: one for each way in which a group is used.

use super::{Translator, name_of};
use crate::tempesta::checking::balancing;
use crate::tempesta::policies;
use crate::tempesta::routing::{Goal, Routes};
use crate::tempesta::site::{Balancing, Group, Server, Site, Sticky};
use crate::tempesta::writing::Phrase;

/// Requests that wait for one connection where nothing is written (fw/sock_srv.c).
const QUEUE_DEFAULT: u64 = 1000;

/// Seconds that a request may wait where nothing is written.
const FORWARD_TIMEOUT_DEFAULT: u64 = 60;

/// Weight of a server where others of the group have one.
const WEIGHT_DEFAULT: u64 = 50;

/// Memory for learnt sessions.
const SESSIONS: &str = "8m";

/// Seconds that a learnt session stays where it has no limit: memory is what limits it.
const SESSION_SECONDS_MAX: u64 = 365 * 86400;

/// A group with another one behind it, and with the sessions of a vhost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Use {
    pub(super) group: usize,
    backup: Option<usize>,
    /// The vhost whose cookies pin requests.
    sticky: Option<usize>,
}

/// All uses, each once.
pub(super) struct Groups {
    pub(super) uses: Vec<Use>,
}

impl Groups {
    /// Those of all ways of requests.
    pub(super) fn of(site: &Site, routes: &Routes) -> Self {
        let mut uses = Vec::new();
        for goal in &routes.goals {
            let found = use_of(site, goal);
            uses.extend(found.filter(|found| !uses.contains(found)));
        }
        Self { uses }
    }
}

/// The use of a goal that passes requests.
pub(super) fn use_of(site: &Site, goal: &Goal) -> Option<Use> {
    let Goal::Pass {
        vhost: index,
        location,
        ..
    } = goal
    else {
        return None;
    };
    let vhost = site.vhosts.get(*index)?;
    let pass = policies::of(site, vhost, *location).pass()?;
    let pins = vhost.sticky.as_ref().is_some_and(is_pinning);
    Some(Use {
        group: pass.group,
        backup: pass.backup,
        sticky: pins.then_some(*index),
    })
}

/// Whether requests of a session go to one server.
fn is_pinning(sticky: &Sticky) -> bool {
    sticky.pins && sticky.cookie.is_some()
}

/// The name of an upstream.
pub(super) fn upstream_name(site: &Site, found: Use) -> String {
    let group = |index: usize| match site.groups.get(index) {
        Some(group) => name_of(&group.name, index),
        None => String::new(),
    };
    let mut name = group(found.group);
    if let Some(backup) = found.backup {
        name = format!("{name}.backup.{}", group(backup));
    }
    if let Some(index) = found.sticky
        && let Some(vhost) = site.vhosts.get(index)
    {
        name = format!("{name}.sticky.{}", name_of(&vhost.name, index));
    }
    name
}

impl Translator<'_> {
    pub(super) fn upstreams(&mut self) {
        for check in &self.site.checks {
            let origin = &check.name.origin;
            let name = format!("tempesta_{}", check.name.display());
            self.writer.open(Phrase::new(origin, "match").word(name));
            let mut status = Phrase::new(origin, "status");
            for (first, last) in &check.statuses {
                status = status.word(if first == last {
                    first.to_string()
                } else {
                    format!("{first}-{last}")
                });
            }
            if !check.statuses.is_empty() {
                self.writer.end(status);
            }
            if let Some(sum) = &check.checksum {
                self.writer.say(origin, &format!("crc32 {sum}"));
            }
            self.writer.close();
        }
        for found in self.groups.uses.clone() {
            self.upstream(found);
        }
    }

    fn upstream(&mut self, found: Use) {
        let site = self.site;
        let Some(group) = site.groups.get(found.group) else {
            return;
        };
        let name = upstream_name(site, found);
        let head = Phrase::new(&group.name.origin, "upstream");
        self.writer.open(head.at(name.as_str(), &group.name));
        self.method(group);
        for server in &group.servers {
            let phrase = server_phrase(group, server);
            self.writer.end(phrase);
        }
        let mut connections: u64 = group.servers.iter().map(|server| server.connections).sum();
        if let Some(backup) = found.backup.and_then(|index| site.groups.get(index)) {
            for server in &backup.servers {
                let phrase = server_phrase(backup, server).word("backup");
                self.writer.end(phrase);
                connections += server.connections;
            }
        }
        let queue = group.options.queue.unwrap_or(QUEUE_DEFAULT);
        let waiting = queue.saturating_mul(connections).min(u64::from(u32::MAX));
        if waiting > 0 {
            let timeout = group.options.forward_timeout.unwrap_or(0);
            let timeout = if timeout == 0 {
                FORWARD_TIMEOUT_DEFAULT
            } else {
                timeout
            };
            let phrase = Phrase::new(&group.name.origin, "queue").word(waiting.to_string());
            self.writer.end(phrase.word(format!("timeout={timeout}s")));
        }
        if let Some(index) = found.sticky {
            self.sticky(&name, index);
        }
        let phrase = Phrase::new(&group.name.origin, "keepalive");
        self.writer.end(phrase.word(connections.to_string()));
        self.writer.close();
    }

    fn method(&mut self, group: &Group) {
        let (balancing, origin) = balancing(group);
        let words = match balancing {
            Balancing::Ratio => return,
            Balancing::Dynamic => "least_time last_byte",
            // What is under way tells of the times to come.
            Balancing::Predict => "least_time last_byte inflight",
            Balancing::Hash => "hash $host$request_uri consistent",
        };
        self.writer.say(origin, words);
    }

    fn sticky(&mut self, upstream: &str, vhost: usize) {
        let site = self.site;
        let sticky = site
            .vhosts
            .get(vhost)
            .and_then(|vhost| vhost.sticky.as_ref());
        let Some(sticky) = sticky else {
            return;
        };
        let Some((name, is_ours, origin)) = &sticky.cookie else {
            return;
        };
        if !is_ours || sticky.misses.is_some() {
            // A cookie that all clients must have names the session.
            self.learn(upstream, sticky);
            return;
        }
        let mut phrase = Phrase::new(origin, "sticky cookie").word(name.clone());
        let mut has_path = false;
        for (key, value) in &sticky.options {
            let text = value.as_ref().map(|value| value.display());
            let text = text.unwrap_or_default();
            let word = match key.display().to_ascii_lowercase().as_str() {
                "path" => {
                    has_path = true;
                    format!("path={text}")
                }
                "max-age" => format!("expires={text}s"),
                "domain" => format!("domain={text}"),
                "samesite" => format!("samesite={}", text.to_ascii_lowercase()),
                "secure" => String::from("secure"),
                "httponly" => String::from("httponly"),
                // Others are sent as they are written.
                _ => match value {
                    Some(_) => format!("attribute={}={text}", key.display()),
                    None => format!("attribute={}", key.display()),
                },
            };
            phrase = phrase.at(word, key);
        }
        if !has_path {
            phrase = phrase.word("path=/");
        }
        self.writer.end(phrase);
    }

    fn learn(&mut self, upstream: &str, sticky: &Sticky) {
        let Some((name, is_ours, origin)) = &sticky.cookie else {
            return;
        };
        let name = String::from_utf8_lossy(name);
        let made_by = if *is_ours {
            "cookie"
        } else {
            "upstream_cookie"
        };
        let seconds = match sticky.lifetime {
            0 => SESSION_SECONDS_MAX,
            seconds => seconds,
        };
        let phrase = Phrase::new(origin, "sticky learn")
            .word(format!("create=${made_by}_{name}"))
            .word(format!("lookup=$cookie_{name}"))
            .word(format!("zone={upstream}:{SESSIONS}"))
            .word(format!("timeout={seconds}s"));
        self.writer.end(phrase);
    }
}

fn server_phrase(group: &Group, server: &Server) -> Phrase {
    let term = &server.term;
    let phrase = Phrase::new(&term.origin, "server");
    let mut phrase = phrase.at(server.address.to_string(), term);
    let is_weighted = group.servers.iter().any(|server| server.weight.is_some());
    if is_weighted {
        let weight = server.weight.unwrap_or(WEIGHT_DEFAULT);
        phrase = phrase.word(format!("weight={weight}"));
    }
    phrase = phrase.word(format!("max_conns={}", server.connections));
    match group.options.connect_retries {
        Some(retries) => phrase.word(format!("max_fails={retries}")),
        None => phrase,
    }
}
