//! Whether a socket listens: read from the kernel's table, because a connection would already be load.

use crate::host::{Host, Line};

/// Whether a TCP socket listens on `port` on the server's host. A process of a namespace shows that namespace's
/// table.
pub(super) fn listens(host: &Host, process: u32, port: u16) -> bool {
    if let Host::Remote(_) = host {
        let line = Line::new(["ss", "-Hltn", "sport", "=", &format!(":{port}")]);
        let output = host.command(&line).output();
        return output
            .is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("LISTEN"));
    }
    // Until `ip netns exec` has entered the namespace, the process' table is this one's.
    let namespace = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/net")).ok();
    if matches!(host, Host::Namespace(_)) && namespace(&process.to_string()) == namespace("self") {
        return false;
    }
    let read = |table| std::fs::read_to_string(format!("/proc/{process}/net/{table}"));
    ["tcp", "tcp6"]
        .iter()
        .any(|table| read(table).is_ok_and(|text| has_listener(&text, port)))
}

/// Parses proc_net_tcp(5): `sl local_address rem_address st …`, the port in hexadecimal after the colon.
fn has_listener(table: &str, port: u16) -> bool {
    let wanted = format!("{port:04X}");
    table.lines().skip(1).any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let local = fields.next().and_then(|address| address.rsplit_once(':'));
        let state = fields.nth(1);
        local.is_some_and(|(_, port)| port == wanted) && state == Some(LISTEN)
    })
}

/// TCP_LISTEN of the kernel.
const LISTEN: &str = "0A";

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "  sl  local_address rem_address   st tx_queue rx_queue\n   \
        0: 00000000:1F90 00000000:0000 0A 00000000:00000000\n   \
        1: 0100007F:0050 0100007F:C350 01 00000000:00000000\n";

    #[test]
    fn only_a_listening_socket_on_the_port_counts() {
        assert!(has_listener(TABLE, 8080));
        assert!(!has_listener(TABLE, 80));
        assert!(!has_listener("", 80));
    }
}
