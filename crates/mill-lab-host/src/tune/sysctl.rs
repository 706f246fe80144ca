//! Keys of sysctl(8): `net.*` in the namespaces of the sides, where they exist there; all others on the machine.

use super::{Fate, Tuner, sides, value};
use crate::host::Host;
use crate::topology::Testbed;
use mill_lab::recipe::Tune;
use std::collections::BTreeMap;

pub(super) fn apply(tuner: &mut Tuner<'_>, tune: &Tune, testbed: &Testbed) {
    let mut pass = Pass {
        tuner,
        testbed,
        machine_wide: Vec::new(),
    };
    let is_shared = testbed.clients.first() == Some(&testbed.server);
    let (mut both, mut server, mut client) = (
        tune.sysctl.clone(),
        tune.server_sysctl.clone(),
        tune.client_sysctl.clone(),
    );
    let is_net = |key: &String| is_net(key);
    // The values of one side come before those of both.
    both.retain(|key, _| !(server.contains_key(key) && client.contains_key(key)));
    let mut server_only: Keys = both.clone();
    server_only.append(&mut server);
    let mut client_only: Keys = both.clone();
    client_only.append(&mut client);
    for (key, wanted) in &server_only {
        let label = if is_shared || !is_net(key) {
            ""
        } else {
            " (server)"
        };
        pass.one(key, wanted, &testbed.server, label);
    }
    for (key, wanted) in &client_only {
        if is_shared {
            pass.of_shared(key, wanted, server_only.get(key));
        } else if is_net(key) {
            pass.clients(key, wanted);
        } else {
            pass.machine_of_clients(key, wanted, server_only.get(key));
        }
    }
}

type Keys = BTreeMap<String, toml::Value>;

struct Pass<'a, 'j> {
    tuner: &'a mut Tuner<'j>,
    testbed: &'a Testbed,
    /// Keys that exist once per machine, and the value set for the first side.
    machine_wide: Vec<(Host, String, String)>,
}

impl Pass<'_, '_> {
    fn one(&mut self, key: &str, wanted: &toml::Value, host: &Host, label: &str) {
        let host = if is_net(key) {
            host.clone()
        } else {
            sides::machine(host)
        };
        let Some((path, wanted)) = self.understood(key, wanted, label) else {
            return;
        };
        let fate = self.tuner.fate_of(&host, &path, &wanted);
        if self.is_machine_wide(&host, &path, &fate) {
            self.on_machine(key, &host, &path, &wanted);
        } else {
            self.tuner.say(format!("{key}{label}"), &wanted, fate);
        }
    }

    /// All clients; those with the same result share a line.
    fn clients(&mut self, key: &str, wanted: &toml::Value) {
        let Some((path, wanted)) = self.understood(key, wanted, " (client)") else {
            return;
        };
        let hosts = &self.testbed.clients;
        let mut fates = Vec::new();
        for host in hosts {
            let fate = self.tuner.fate_of(host, &path, &wanted);
            if self.is_machine_wide(host, &path, &fate) {
                // A key that one namespace lacks is missing in the others too.
                self.on_machine(key, host, &path, &wanted);
                return;
            }
            fates.push(fate);
        }
        let alike = fates.windows(2).all(|pair| pair[0] == pair[1]);
        let count = fates.len();
        let said = if alike { 1 } else { count };
        for (index, fate) in fates.into_iter().take(said).enumerate() {
            let label = sides::client_label(index, count, alike);
            self.tuner.say(format!("{key}{label}"), &wanted, fate);
        }
    }

    /// The clients share the server's namespace: a different value is impossible.
    fn of_shared(&mut self, key: &str, wanted: &toml::Value, servers: Option<&toml::Value>) {
        match servers {
            None => self.one(key, wanted, &self.testbed.server.clone(), ""),
            Some(servers) if servers == wanted => {}
            Some(servers) => self.conflict(key, wanted, servers),
        }
    }

    fn machine_of_clients(
        &mut self,
        key: &str,
        wanted: &toml::Value,
        servers: Option<&toml::Value>,
    ) {
        for (machine, label) in sides::machines(self.testbed) {
            if label == " (server)" {
                continue;
            }
            match servers {
                Some(servers) if label.is_empty() && servers == wanted => {}
                Some(servers) if label.is_empty() => self.conflict(key, wanted, servers),
                _ => self.one(key, wanted, &machine, label),
            }
        }
    }

    fn conflict(&mut self, key: &str, wanted: &toml::Value, servers: &toml::Value) {
        let (wanted, servers) = (value::text(wanted), value::text(servers));
        let problem = format!(
            "refused: server and client share it, and the server's {} holds",
            servers.unwrap_or_default()
        );
        let key = format!("{key} (client)");
        self.tuner.refuse(key, &wanted.unwrap_or_default(), problem);
    }

    /// A key that the namespace lacks, or may only read, and the machine has.
    fn is_machine_wide(&self, host: &Host, path: &str, fate: &Fate) -> bool {
        let here = self.tuner.path(&Host::Local, path);
        matches!(host, Host::Namespace(_))
            && fate.is_for_others()
            && std::path::Path::new(&here).exists()
    }

    fn on_machine(&mut self, key: &str, host: &Host, path: &str, wanted: &str) {
        let machine = sides::machine(host);
        let before = self
            .machine_wide
            .iter()
            .find(|(host, known, _)| *host == machine && known == path);
        let key = format!("{key} (machine)");
        match before {
            None => {
                self.machine_wide
                    .push((machine.clone(), String::from(path), String::from(wanted)));
                self.tuner.set(key, &machine, path, wanted);
            }
            Some((_, _, held)) if held == wanted => {}
            Some((_, _, held)) => {
                let problem =
                    format!("refused: the machine has it once, and the server's {held} holds");
                self.tuner.refuse(key, wanted, problem);
            }
        }
    }

    fn understood(
        &mut self,
        key: &str,
        wanted: &toml::Value,
        label: &str,
    ) -> Option<(String, String)> {
        let name = format!("{key}{label}");
        let Some(wanted) = value::text(wanted) else {
            self.tuner.refuse(name, "", value::NO_VALUE);
            return None;
        };
        let path = path_of(key);
        if path.is_none() {
            self.tuner
                .refuse(name, &wanted, "refused: no key of sysctl");
        }
        path.map(|path| (path, wanted))
    }
}

fn is_net(key: &str) -> bool {
    key.starts_with("net.") || key.starts_with("net/")
}

/// As sysctl(8) reads keys: dots are slashes, unless slashes are written, when dots stay dots (`net/ipv4/conf/eth0.1/forwarding`).
fn path_of(key: &str) -> Option<String> {
    let path = match key.find(['.', '/']) {
        Some(first) if key[first..].starts_with('/') => String::from(key),
        _ => {
            let swapped = |c| match c {
                '.' => '/',
                '/' => '.',
                other => other,
            };
            key.chars().map(swapped).collect()
        }
    };
    let is_plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    path.split('/')
        .all(is_plain)
        .then(|| format!("/proc/sys/{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_paths_as_sysctl_reads_them() {
        for (key, expected) in [
            ("net.ipv4.tcp_sack", Some("/proc/sys/net/ipv4/tcp_sack")),
            ("vm/nr_hugepages", Some("/proc/sys/vm/nr_hugepages")),
            (
                "net/ipv4/conf/eth0.1/forwarding",
                Some("/proc/sys/net/ipv4/conf/eth0.1/forwarding"),
            ),
            (
                "net.ipv4.conf.eth0/1.forwarding",
                Some("/proc/sys/net/ipv4/conf/eth0.1/forwarding"),
            ),
            ("net/../../etc/passwd", None),
            ("..", None),
            ("", None),
        ] {
            assert_eq!(path_of(key).as_deref(), expected, "{key}");
        }
    }
}
