//! Two network namespaces without a name, one for the server and one for the client, each with an interface whose other end the
//! emulator holds. The kernel removes them with the last thread and process in them, however those end.

use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::Arc;

use mill_sys::tap::{self, Offload};
use mill_sys::{interface, namespace};

use super::emulator::Ends;

#[derive(Debug)]
pub(super) struct Testbed {
    pub(super) ends: Arc<Ends>,
    /// The client's namespace.
    client: File,
}

/// Of the interface in either namespace.
pub(super) const INTERFACE: &str = "path0";

/// Seldom used elsewhere; and they are in namespaces of their own.
pub(super) const SERVER: Ipv4Addr = Ipv4Addr::new(10, 214, 0, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 214, 0, 2);

impl Testbed {
    /// The calling thread is in the server's namespace from now on, with what it starts.
    pub(super) fn raise() -> io::Result<Self> {
        namespace::leave_network()?;
        let (server, server_hardware) = end(SERVER)?;
        let made = std::thread::scope(|scope| {
            let client = scope.spawn(|| {
                namespace::leave_network()?;
                let (end, hardware) = end(CLIENT)?;
                know(SERVER, server_hardware)?;
                Ok((end, hardware, File::open("/proc/thread-self/ns/net")?))
            });
            let panicked = |_| Err(io::Error::other("the client's thread panicked"));
            client.join().unwrap_or_else(panicked)
        });
        let (end, hardware, client) = made?;
        know(CLIENT, hardware)?;
        let ends = Ends {
            server,
            client: end,
        };
        Ok(Self {
            ends: Arc::new(ends),
            client,
        })
    }

    /// Runs something in the client's namespace, on a thread that begins now.
    pub(super) fn at_client<'scope, T: Send + 'scope>(
        &'scope self,
        scope: &'scope std::thread::Scope<'scope, '_>,
        act: impl FnOnce() -> io::Result<T> + Send + 'scope,
    ) -> std::thread::ScopedJoinHandle<'scope, io::Result<T>> {
        scope.spawn(move || {
            namespace::enter_network(&self.client)?;
            act()
        })
    }

    /// The kernel's algorithm for connections that are accepted from now on: that of their route, since the setting for all takes, in a
    /// namespace, only what the machine allows to every user.
    pub(super) fn set_congestion(name: &str) -> io::Result<()> {
        let client = format!("{CLIENT}/32");
        ip(&[
            "route", "replace", &client, "dev", INTERFACE, "congctl", name,
        ])
    }

    /// Segments that the kernel's TCP has sent at the server.
    pub(super) fn kernel_segments() -> io::Result<u64> {
        let text = fs::read_to_string("/proc/thread-self/net/snmp")?;
        out_segments(&text).ok_or_else(|| io::Error::other("/proc/net/snmp has no OutSegs"))
    }
}

/// Whether the kernel has it for those that ask.
pub(super) fn has_congestion(name: &str) -> bool {
    let known = fs::read_to_string(setting("ipv4/tcp_available_congestion_control"));
    known.is_ok_and(|known| known.split_whitespace().any(|word| word == name))
}

fn setting(name: &str) -> String {
    format!("/proc/sys/net/{name}")
}

/// Makes the interface in the namespace of the calling thread; the descriptor of its other end, and its Ethernet address.
fn end(address: Ipv4Addr) -> io::Result<(OwnedEnd, [u8; 6])> {
    fs::write(setting("ipv6/conf/all/disable_ipv6"), "1").or_else(|error| {
        if error.kind() == io::ErrorKind::NotFound {
            Ok(())
        } else {
            Err(error)
        }
    })?;
    // What one connection has learned of the path must not help the next.
    fs::write(setting("ipv4/tcp_no_metrics_save"), "1")?;
    let failed = |error: tap::TapError| {
        io::Error::new(
            error.error.kind(),
            format!("{}: {}", error.call, error.error),
        )
    };
    // Nothing is left to the reader: frames are no longer than the MTU, and have their checksums.
    let end = tap::create(INTERFACE, Offload::Nothing).map_err(failed)?;
    ip(&["addr", "add", &format!("{address}/24"), "dev", INTERFACE])?;
    ip(&["link", "set", "lo", "up"])?;
    ip(&["link", "set", INTERFACE, "up"])?;
    Ok((end, interface::hardware_address(INTERFACE)?))
}

type OwnedEnd = std::os::fd::OwnedFd;

/// The other end needs no ARP.
fn know(address: Ipv4Addr, hardware: [u8; 6]) -> io::Result<()> {
    let hardware = hardware.map(|byte| format!("{byte:02x}")).join(":");
    let address = address.to_string();
    ip(&[
        "neigh",
        "replace",
        &address,
        "lladdr",
        &hardware,
        "dev",
        INTERFACE,
        "nud",
        "permanent",
    ])
}

fn ip(words: &[&str]) -> io::Result<()> {
    let output = Command::new("ip").args(words).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!(
        "ip {}: {}",
        words.join(" "),
        said.trim()
    )))
}

/// Of the two lines about TCP, the first names what the second counts.
fn out_segments(snmp: &str) -> Option<u64> {
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let names = lines.next()?;
    let place = names
        .split_whitespace()
        .position(|name| name == "OutSegs")?;
    lines.next()?.split_whitespace().nth(place)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::out_segments;

    #[test]
    fn segments_are_counted_in_the_column_of_their_name() {
        let text = "Ip: Forwarding OutSegs\nIp: 1 9\nTcp: InSegs OutSegs RetransSegs\nTcp: 5 7 1\nUdp: OutSegs\nUdp: 3\n";
        assert_eq!(out_segments(text), Some(7));
        assert_eq!(out_segments("Tcp: InSegs\nTcp: 5\n"), None);
        assert_eq!(out_segments(""), None);
    }
}
