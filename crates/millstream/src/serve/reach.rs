//! The addresses and URLs of a served directory.

use super::directory::Directory;
use mill_device::specification::Specification;
use mill_device::specification::device::Device;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The addresses to listen at: the requested ones, else loopback; and those of a stack of our own. `machine` is the
/// addresses of this machine.
pub(super) fn listeners(
    directory: &Directory,
    stack: Option<&Specification>,
    machine: &[IpAddr],
) -> Vec<SocketAddr> {
    let at = |address| SocketAddr::new(address, directory.port);
    let mut listeners: Vec<SocketAddr> = Vec::new();
    let own = stack.iter().flat_map(|stack| &stack.addresses);
    listeners.extend(own.map(|own| at(own.address)));
    if !directory.listen.is_empty() {
        listeners.extend(&directory.listen);
        return listeners;
    }
    let is_there = |address: &IpAddr| machine.contains(address);
    // The addresses of an interface are the kernel's, and may change: all of them.
    if stack.is_some_and(|stack| matches!(stack.device, Device::AfXdp { .. })) {
        listeners.push(at(Ipv4Addr::UNSPECIFIED.into()));
        if machine.iter().any(IpAddr::is_ipv6) {
            listeners.push(at(Ipv6Addr::UNSPECIFIED.into()));
        }
        return listeners;
    }
    let loopback: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    listeners.extend(loopback.into_iter().filter(is_there).map(at));
    if listeners.is_empty() {
        // An error is reported when it is opened.
        listeners.push(at(Ipv4Addr::LOCALHOST.into()));
    }
    listeners
}

/// The URLs by which the listeners can be reached, each once, the nearest first.
pub(super) fn urls(listeners: &[SocketAddr], machine: &[IpAddr]) -> Vec<String> {
    let mut urls: Vec<String> = Vec::new();
    let mut add = |url: String| {
        if !urls.contains(&url) {
            urls.push(url);
        }
    };
    let is_at = |listener: &SocketAddr, address: IpAddr| {
        let any = listener.ip().is_unspecified() && listener.is_ipv4() == address.is_ipv4();
        any || listener.ip() == address
    };
    for listener in listeners {
        let port = listener.port();
        if is_at(listener, Ipv4Addr::LOCALHOST.into()) {
            add(format!("http://localhost:{port}/"));
        } else if !listener.ip().is_unspecified() && !is_named(listener, listeners) {
            add(format!("http://{listener}/"));
        }
    }
    for listener in listeners.iter().filter(|one| one.ip().is_unspecified()) {
        let reachable = machine.iter().filter(|address| {
            is_at(listener, **address) && !address.is_loopback() && !is_link_local(address)
        });
        for address in reachable {
            add(format!(
                "http://{}/",
                SocketAddr::new(*address, listener.port())
            ));
        }
    }
    urls
}

/// Whether `localhost` works for a listener at the IPv6 loopback address, since it stands for the IPv4 one.
fn is_named(listener: &SocketAddr, listeners: &[SocketAddr]) -> bool {
    let ipv4 = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), listener.port());
    listener.ip() == Ipv6Addr::LOCALHOST && listeners.contains(&ipv4)
}

/// Such an address needs the name of an interface, which browsers do not accept.
fn is_link_local(address: &IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: [&str; 5] = ["127.0.0.1", "::1", "192.0.2.7", "2001:db8::7", "fe80::7"];

    fn check(
        listen: &[&str],
        stack: Option<&str>,
        machine: &[&str],
        at: &[&str],
        expected: &[&str],
    ) {
        let listen = listen.iter().map(|address| address.parse().unwrap());
        let directory = Directory {
            path: Vec::new(),
            port: 8080,
            listen: listen.collect(),
            dot_files: false,
        };
        let machine: Vec<IpAddr> = machine.iter().map(|one| one.parse().unwrap()).collect();
        let stack = stack.map(|text| Specification::parse(text).unwrap());
        let listeners = listeners(&directory, stack.as_ref(), &machine);
        let shown: Vec<String> = listeners.iter().map(SocketAddr::to_string).collect();
        assert_eq!(shown, at, "{directory:?} {stack:?}");
        assert_eq!(
            urls(&listeners, &machine),
            expected,
            "{directory:?} {stack:?}"
        );
    }

    #[test]
    fn without_an_address_it_is_this_machine_alone() {
        let local = "http://localhost:8080/";
        check(
            &[],
            None,
            &MACHINE,
            &["127.0.0.1:8080", "[::1]:8080"],
            &[local],
        );
        check(
            &[],
            None,
            &["127.0.0.1", "192.0.2.7"],
            &["127.0.0.1:8080"],
            &[local],
        );
        check(
            &[],
            None,
            &["::1"],
            &["[::1]:8080"],
            &["http://[::1]:8080/"],
        );
        check(&[], None, &[], &["127.0.0.1:8080"], &[local]);
    }

    #[test]
    fn every_url_that_works_is_told() {
        let local = "http://localhost:8080/";
        check(
            &["0.0.0.0:8080", "[::]:8080"],
            None,
            &MACHINE,
            &["0.0.0.0:8080", "[::]:8080"],
            &[
                local,
                "http://192.0.2.7:8080/",
                "http://[2001:db8::7]:8080/",
            ],
        );
        check(
            &["192.0.2.7:81"],
            None,
            &MACHINE,
            &["192.0.2.7:81"],
            &["http://192.0.2.7:81/"],
        );
        check(
            &["[::1]:81", "127.0.0.1:82"],
            None,
            &MACHINE,
            &["[::1]:81", "127.0.0.1:82"],
            &["http://[::1]:81/", "http://localhost:82/"],
        );
    }

    #[test]
    fn a_stack_has_addresses_of_its_own() {
        let tap = Some("tap:ms0,address=10.77.0.2/24,address=fd00::2/64,host=10.77.0.1/24");
        check(
            &[],
            tap,
            &["127.0.0.1"],
            &["10.77.0.2:8080", "[fd00::2]:8080", "127.0.0.1:8080"],
            &[
                "http://10.77.0.2:8080/",
                "http://[fd00::2]:8080/",
                "http://localhost:8080/",
            ],
        );
        // A namespace whose loopback is down.
        check(
            &[],
            tap,
            &[],
            &["10.77.0.2:8080", "[fd00::2]:8080"],
            &["http://10.77.0.2:8080/", "http://[fd00::2]:8080/"],
        );
        let af_xdp = Some("af_xdp:eth0");
        check(
            &[],
            af_xdp,
            &["127.0.0.1", "192.0.2.7"],
            &["0.0.0.0:8080"],
            &["http://localhost:8080/", "http://192.0.2.7:8080/"],
        );
        check(
            &["192.0.2.7:8080"],
            af_xdp,
            &MACHINE,
            &["192.0.2.7:8080"],
            &["http://192.0.2.7:8080/"],
        );
    }
}
