//! How commands reach another machine: ssh(1) with the user's own configuration, or the network namespace of a guest that the
//! lab has started.

use crate::host::{Host, quoted};
use crate::journal::errand;
use std::path::Path;

/// A guest of this machine, as a target: `guest:NAMESPACE:PORT:KEY`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GuestTarget<'a> {
    /// Where QEMU runs.
    pub(crate) namespace: &'a str,
    /// The port of 127.0.0.1 there that leads to the guest's ssh.
    pub(crate) port: &'a str,
    /// A file with the private key.
    pub(crate) key: &'a str,
}

impl<'a> GuestTarget<'a> {
    pub(crate) fn of(target: &'a str) -> Option<Self> {
        let (namespace, rest) = target.strip_prefix("guest:")?.split_once(':')?;
        let (port, key) = rest.split_once(':')?;
        Some(Self {
            namespace,
            port,
            key,
        })
    }

    /// Whether its QEMU, which listens at the port, is there. What cannot be found out counts as yes.
    pub(crate) fn is_running(&self) -> bool {
        let wire = Host::Namespace(String::from(self.namespace));
        let Ok(port) = self.port.parse() else {
            return true;
        };
        errand::run(&wire, &["cat", "/proc/net/tcp"], None)
            .map_or(true, |table| has_listener(&table, port))
    }
}

/// Whether a table of proc_net_tcp(5) has a listening socket with this port.
fn has_listener(table: &str, port: u16) -> bool {
    let own = format!(":{port:04X}");
    table.lines().any(|line| {
        let mut words = line.split_whitespace().skip(1);
        let local = words.next().unwrap_or_default();
        local.ends_with(&own) && words.nth(1) == Some(LISTEN)
    })
}

/// TCP_LISTEN, as the table has it.
const LISTEN: &str = "0A";

/// The target of a guest.
pub(crate) fn guest(namespace: &str, port: u16, key: &Path) -> String {
    format!("guest:{namespace}:{port}:{}", key.display())
}

/// The words before the command: `options` of ssh(1), and the target.
pub(crate) fn words(options: &[&str], target: &str) -> Vec<String> {
    let mut words: Vec<&str> = Vec::new();
    let Some(guest) = GuestTarget::of(target) else {
        words.push("ssh");
        words.extend(options);
        words.push(target);
        return words.into_iter().map(String::from).collect();
    };
    words.extend(["ip", "netns", "exec", guest.namespace, "ssh"]);
    // Of an option that is there twice ssh(1) takes the first.
    words.extend(GUEST_OPTIONS);
    words.extend(options);
    words.extend(["-i", guest.key, "-p", guest.port, "root@127.0.0.1"]);
    words.into_iter().map(String::from).collect()
}

/// A command for the far shell that ends with its terminal. A hang-up alone does not do it: servers take it for the wish to
/// read their configuration again.
pub(crate) fn ending_with_terminal(command: &str) -> String {
    let script = format!(
        "trap 'kill $!' HUP INT TERM; {command} & wait $!; s=$?; kill -0 $! 2>/dev/null && wait $!; exit $s"
    );
    // The far shell may be another one.
    format!("exec sh -c {}", quoted(&script))
}

/// Nothing of the user's: neither configuration nor known hosts, and no connection that others share.
const GUEST_OPTIONS: [&str; 14] = [
    "-F",
    "none",
    "-S",
    "none",
    "-o",
    "IdentitiesOnly=yes",
    "-o",
    "StrictHostKeyChecking=no",
    "-o",
    "UserKnownHostsFile=/dev/null",
    "-o",
    "LogLevel=ERROR",
    "-o",
    "ConnectTimeout=20",
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_machine_is_reached_as_the_user_would() {
        let words = words(&["-tt", "-o", "BatchMode=yes"], "ada@far");
        assert_eq!(words.join(" "), "ssh -tt -o BatchMode=yes ada@far");
    }

    #[test]
    fn a_guest_is_reached_from_the_namespace_of_its_qemu() {
        let target = guest("ms7-v", 2201, Path::new("/run/x/key"));
        let text = words(&["-tt"], &target).join(" ");
        assert!(
            text.starts_with("ip netns exec ms7-v ssh -F none -S none"),
            "{text}"
        );
        assert!(
            text.ends_with(" -tt -i /run/x/key -p 2201 root@127.0.0.1"),
            "{text}"
        );
    }

    #[test]
    fn a_guest_runs_as_long_as_its_port_is_listened_at() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue\n   \
             0: 0100007F:0899 00000000:0000 0A 00000000:00000000 00:00000000\n   \
             1: 0100007F:089A 0100007F:C001 01 00000000:00000000 00:00000000\n";
        assert!(has_listener(table, 2201));
        assert!(!has_listener(table, 2202), "a connection is no listener");
        assert!(!has_listener("", 2201));
    }

    #[test]
    fn a_command_has_its_own_status_and_ends_with_its_terminal() {
        let run = |command: &str| {
            let line = ending_with_terminal(command);
            let mut shell = Command::new("sh");
            shell.args(["-c", &line]).stdin(Stdio::null());
            shell
        };
        assert_eq!(run("sh -c 'exit 7'").status().unwrap().code(), Some(7));
        // The command sends what the end of the terminal sends; by itself it would not take notice of it.
        let deaf = "sh -c 'trap \"\" HUP; kill -HUP $PPID; exec sleep 60'";
        let status = run(deaf).status().unwrap().code();
        // 128 and SIGHUP or SIGTERM, depending on whether the shell waits already.
        assert!(matches!(status, Some(129 | 143)), "{status:?}");
    }
}
