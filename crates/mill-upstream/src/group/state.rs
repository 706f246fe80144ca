//! The lines of a `state` file: `server` directives, as they are read again.

use super::Group;
use crate::peer::Peer;
use mill_config::config::upstream::{UpstreamServer, UpstreamTarget};
use std::time::Duration;

impl Group {
    /// A line for each server; for those that are followed by name, one for the name.
    pub(super) fn state(&self) -> String {
        let peers = self.peers();
        let known = peers.all().filter(|peer| !peer.settings.resolve);
        let mut text: String = known
            .map(|peer| line(&name(peer), &peer.settings))
            .collect();
        let names = self.names();
        let names = names.iter().map(|name| &name.settings);
        text.extend(names.map(|server| line(&server.name.display(), server)));
        text
    }
}

/// As it is written, unless that stands for several peers.
fn name(peer: &Peer) -> String {
    match &peer.settings.target {
        UpstreamTarget::Addresses(addresses) if addresses.len() > 1 => peer.address.to_string(),
        _ => peer.settings.name.display().into_owned(),
    }
}

/// The directive, without parameters that have their defaults.
fn line(name: &str, server: &UpstreamServer) -> String {
    let default = UpstreamServer::new(server.name.clone(), server.target.clone());
    let mut words = vec![String::from("server"), quoted(name)];
    let mut add = |is_other: bool, word: String| {
        if is_other {
            words.push(quoted(&word));
        }
    };
    let numbers = [
        ("weight", server.weight, default.weight),
        ("max_conns", server.max_conns, default.max_conns),
        ("max_fails", server.max_fails, default.max_fails),
    ];
    for (name, number, default) in numbers {
        add(number != default, format!("{name}={number}"));
    }
    let times = [
        ("fail_timeout", server.fail_timeout, default.fail_timeout),
        ("slow_start", server.slow_start, default.slow_start),
    ];
    for (name, duration, default) in times {
        add(duration != default, format!("{name}={}", time(duration)));
    }
    for (name, text) in [("route", &server.route), ("service", &server.service)] {
        if let Some(text) = text {
            add(true, format!("{name}={}", text.display()));
        }
    }
    let flags = [
        ("backup", server.backup),
        ("down", server.down),
        ("drain", server.drain),
        ("resolve", server.resolve),
    ];
    for (name, is_set) in flags {
        add(is_set, String::from(name));
    }
    words.join(" ") + ";\n"
}

fn time(time: Duration) -> String {
    match time.subsec_millis() {
        0 => format!("{}s", time.as_secs()),
        _ => format!("{}ms", time.as_millis()),
    }
}

/// A word of nginx's language.
fn quoted(word: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "-._:/=[]".contains(char);
    if word.chars().all(is_plain) {
        return word.to_owned();
    }
    let escaped = word.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use mill_config::{Memory, Options, Text, load};

    #[test]
    fn what_is_written_is_read_again() {
        let lines = [
            "server 10.0.0.1;",
            "server [::1]:81 weight=2 max_conns=3 max_fails=0 fail_timeout=4s slow_start=1500ms \
             \"route=a \\\"b\\\\;\" backup down drain;",
            "server unix:/run/a.sock;",
            "server some.example.com service=http resolve;",
            "",
        ];
        let conf = "events {} http { resolver 127.0.0.1; upstream a { state /state; } }";
        let options = Options::default();
        let source = Memory::new().with(&*options.conf_file(), conf);
        let source = source.with("/state", lines.join("\n"));
        let loaded = load(&source, &options).expect("it is valid");
        let http = loaded.config.http.expect("there is one");
        let upstream = &http.upstreams[0];
        assert_eq!(upstream.servers[1].route, Some(Text::from("a \"b\\;")));
        let group = Group::new(upstream, None);
        // Backups follow the others, names come last.
        let expected = [lines[0], lines[2], lines[1], lines[3], ""].join("\n");
        let saved = group.save(|text| String::from_utf8_lossy(text).into_owned());
        assert_eq!(saved, expected);
    }
}
