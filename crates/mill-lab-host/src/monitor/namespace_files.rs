//! A side's host, and the files there that describe its network.

use super::network::{self, Traffic};
use super::tcp::{self, Tcp};
use crate::host::{Host, Line};
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::process::Stdio;

/// Open files of one namespace. An open file below /proc/net keeps reading the namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct NamespaceFiles {
    dev: File,
    snmp: File,
    netstat: File,
    sockstat: File,
    /// Every socket of IPv4 and IPv6.
    tables: Vec<File>,
    /// First and last of ip_local_port_range.
    pub ports: Option<(u32, u32)>,
}

impl NamespaceFiles {
    /// Opens them on `host`.
    pub(crate) fn open(host: &Host) -> Result<Self, String> {
        if let Host::Remote(target) = host {
            return Err(format!(
                "{target} is another machine, whose /proc is not watched; run `sar -n DEV,ETCP 1` there"
            ));
        }
        let network = match host {
            Host::Namespace(name) => format!("namespace {name}"),
            _ => String::from("/proc/net"),
        };
        host.within(Self::here)
            .map_err(|error| format!("{network}: {error}"))
    }

    fn here() -> io::Result<Self> {
        let open = |name: &str| File::open(format!("/proc/thread-self/net/{name}"));
        let ports = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
        Ok(Self {
            dev: open("dev")?,
            snmp: open("snmp")?,
            netstat: open("netstat")?,
            sockstat: open("sockstat")?,
            tables: ["tcp", "tcp6"]
                .into_iter()
                .filter_map(|name| open(name).ok())
                .collect(),
            ports: ports.ok().and_then(|text| port_range(&text)),
        })
    }

    pub(crate) fn traffic(&mut self, interface: &str) -> Option<Traffic> {
        network::parse(&again(&mut self.dev).ok()?, interface)
    }

    /// See `tcp::waits_of_clients`. Costs a microsecond per socket, so it runs once, at the end.
    pub(crate) fn waits_of_clients(&mut self) -> f64 {
        let tables: Vec<String> = self
            .tables
            .iter_mut()
            .filter_map(|file| again(file).ok())
            .collect();
        tcp::waits_of_clients(&tables.concat())
    }

    pub(crate) fn tcp(&mut self) -> Tcp {
        let text = |file: &mut File| again(file).unwrap_or_default();
        Tcp::parse(
            &text(&mut self.snmp),
            &text(&mut self.netstat),
            &text(&mut self.sockstat),
        )
    }
}

/// Reads an open file of /proc from its beginning, which makes the kernel produce it anew.
pub(crate) fn again(file: &mut File) -> io::Result<String> {
    file.rewind()?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(text)
}

fn port_range(text: &str) -> Option<(u32, u32)> {
    let mut words = text.split_ascii_whitespace();
    let range = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    (range.0 <= range.1).then_some(range)
}

/// Speed of an interface in 10⁶ bits/s, as its driver reports; else why it has none.
pub(crate) fn speed(host: &Host, interface: &str) -> Result<f64, String> {
    if interface == "lo" {
        return Err(String::from("the loopback interface has no rate"));
    }
    let folder = format!("/sys/class/net/{interface}");
    // One process for both, because /sys shows a namespace's interfaces only to a process that has mounted it there.
    let line = Line::new([
        "sh",
        "-c",
        "readlink \"$1\"; cat \"$1/speed\"",
        "sh",
        folder.as_str(),
    ]);
    let output = host
        .command(&line)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .map_err(|error| format!("{folder}: {error}"))?;
    parse_speed(&String::from_utf8_lossy(&output.stdout), interface)
}

/// The output of the two commands.
fn parse_speed(text: &str, interface: &str) -> Result<f64, String> {
    let unknown = || {
        format!("the driver of {interface} tells no rate; give it as `link_mbit` under [monitors]")
    };
    let mut lines = text.lines();
    let device = lines.next().ok_or_else(unknown)?;
    // veth, macvlan on it, bridges: the speed they report is a constant of the driver and limits nothing.
    if device.contains("/virtual/") {
        return Err(format!(
            "{interface} is a virtual interface without a rate; set `rate_gbit` of the topology, or `link_mbit` under [monitors]"
        ));
    }
    let speed: f64 = lines
        .next()
        .and_then(|line| line.trim().parse().ok())
        .ok_or_else(unknown)?;
    // -1 is "unknown".
    if speed > 0.0 {
        Ok(speed)
    } else {
        Err(unknown())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_interface_has_the_rate_that_its_driver_reports() {
        let check = |text: &str, expected: Option<f64>| {
            assert_eq!(parse_speed(text, "eth0").ok(), expected, "{text:?}");
        };
        check(
            "../../devices/pci0000:00/0000:00:1f.6/net/eth0\n1000\n",
            Some(1000.0),
        );
        check("../../devices/pci0000:00/virtio1/net/eth0\n-1\n", None);
        check("../../devices/virtual/net/eth0\n10000\n", None);
        check("../../devices/pci0000:00/net/eth0\n", None);
        check("", None);
    }

    #[test]
    fn a_port_range_has_two_ends_in_order() {
        assert_eq!(port_range("32768\t60999\n"), Some((32768, 60999)));
        for text in ["", "1", "a b", "9 8"] {
            assert_eq!(port_range(text), None, "{text:?}");
        }
    }

    #[test]
    fn the_own_namespace_can_be_read_again_and_again() {
        let mut namespace_files = NamespaceFiles::open(&Host::Local).unwrap();
        let first = namespace_files.traffic("lo").unwrap();
        let second = namespace_files.traffic("lo").unwrap();
        assert!(second.rx_bytes >= first.rx_bytes);
        assert!(namespace_files.tcp().counters.contains_key("segments_out"));
        assert!(NamespaceFiles::open(&Host::Namespace(String::from("no such"))).is_err());
    }
}
