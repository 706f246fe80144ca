//! What is reported when an interface changes, in network namespaces of the tests.

use super::super::tests::{in_namespace, ip, prefix, text_of, wire};
use super::*;
use mill_sys::epoll::{Epoll, Event, Interest};
use mill_sys::namespace;
use std::fs::File;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

mod neighbors;

const OTHER_MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 9]);

/// A monitor, with an epoll instance that waits for it.
struct Following {
    monitor: NetlinkMonitor,
    epoll: Epoll,
}

impl Following {
    /// Follows an interface once it has settled.
    fn of(name: &str) -> Self {
        let monitor = NetlinkMonitor::of(name).unwrap();
        let epoll = Epoll::new().unwrap();
        let interest = Interest {
            readable: true,
            writable: false,
            edge: false,
            exclusive: false,
        };
        epoll.add(monitor.as_fd(), interest, 0).unwrap();
        Self { monitor, epoll }
    }

    /// Collects changes until one satisfies the predicate; returns all of them.
    fn until(&mut self, is_wanted: impl Fn(&Change) -> bool) -> Vec<Change> {
        let mut changes = Vec::new();
        loop {
            self.monitor.changes(&mut changes).unwrap();
            if changes.iter().any(&is_wanted) {
                return changes;
            }
            let mut events = [Event::EMPTY];
            let events = self.epoll.wait(&mut events, Some(TIMEOUT)).unwrap();
            assert!(!events.is_empty(), "only these changes: {changes:?}");
        }
    }

    /// Returns the pending changes.
    fn now(&mut self) -> Vec<Change> {
        let mut changes = Vec::new();
        self.monitor.changes(&mut changes).unwrap();
        changes
    }

    fn agrees_with_the_kernel(&mut self) {
        self.now();
        let name = self.monitor.network().link.name.clone();
        assert_eq!(self.monitor.network(), &Network::of(&name).unwrap());
    }

    fn has_address(&self, text: &str) -> bool {
        self.monitor.network().addresses.contains(&prefix(text))
    }
}

/// The kernel needs milliseconds for most changes, and three seconds for a neighbour that does not answer.
const TIMEOUT: Duration = Duration::from_secs(10);

fn of_neighbor(text: &str, mac: Option<MacAddress>) -> impl Fn(&Change) -> bool {
    let address = text.parse().unwrap();
    move |change| *change == Change::Neighbor { address, mac }
}

#[test]
fn addresses_that_come_and_go_are_reported_with_their_routes() {
    in_namespace(|| {
        wire();
        let mut following = Following::of("mill0");
        for (address, route) in [
            ("10.80.0.1/24", "10.80.0.0/24"),
            ("fd00:8::1/64", "fd00:8::/64"),
        ] {
            let has_route = |following: &Following| {
                text_of(following.monitor.network()).contains(&String::from(route))
            };
            ip(&[&format!("address add {address} dev mill0 nodad")]);
            following.until(|change| matches!(change, Change::Addresses(_)));
            assert!(following.has_address(address) && has_route(&following));
            ip(&[&format!("address delete {address} dev mill0")]);
            following.until(|change| matches!(change, Change::Addresses(_)));
            assert!(!following.has_address(address) && !has_route(&following));
        }
        // Addresses of other interfaces do not count.
        ip(&["address add 10.81.0.1/32 dev mill1"]);
        let changes = following.now();
        let of_ours = changes
            .iter()
            .any(|change| matches!(change, Change::Addresses(_)));
        assert!(!of_ours, "{changes:?}");
        following.agrees_with_the_kernel();
    });
}

#[test]
fn an_address_is_used_once_duplicate_detection_has_passed() {
    in_namespace(|| {
        wire();
        let mut following = Following::of("mill0");
        ip(&["address add fd00:9::1/64 dev mill0"]);
        following.now();
        assert!(!following.has_address("fd00:9::1/64"));
        let wanted = prefix("fd00:9::1/64");
        following.until(|change| match change {
            Change::Addresses(addresses) => addresses.contains(&wanted),
            _ => false,
        });
    });
}

#[test]
fn a_route_that_is_replaced_is_another_one() {
    in_namespace(|| {
        wire();
        ip(&["route add default via 10.77.0.254 dev mill0"]);
        let mut following = Following::of("mill0");
        let is_routes = |change: &Change| matches!(change, Change::Routes { .. });
        let first = |following: &Following| text_of(following.monitor.network())[0].clone();
        for (change, expected) in [
            (
                "route replace default via 10.77.0.253 dev mill0",
                "0.0.0.0/0 via 10.77.0.253",
            ),
            ("route delete default", "10.77.0.0/24"),
            ("nexthop add id 7 via 10.77.0.7 dev mill0", "10.77.0.0/24"),
            ("route add default nhid 7", "0.0.0.0/0 via 10.77.0.7"),
            (
                "nexthop replace id 7 via 10.77.0.8 dev mill0",
                "0.0.0.0/0 via 10.77.0.8",
            ),
        ] {
            ip(&[change]);
            if !change.starts_with("nexthop add") {
                following.until(is_routes);
            }
            assert_eq!(first(&following), expected, "{change}");
        }
        ip(&["route add 10.95.0.0/16 via 10.77.0.250 dev mill0 table 100"]);
        assert_eq!(following.now(), [], "another table");
        following.agrees_with_the_kernel();
    });
}

#[test]
fn routes_by_other_interfaces_are_elsewhere_until_those_are_down() {
    in_namespace(|| {
        wire();
        ip(&[
            "route add default via 10.77.0.254 dev mill0",
            "link add mill2 type veth peer name mill3",
            "link set mill2 up",
            "link set mill3 up",
        ]);
        let mut following = Following::of("mill0");
        let elsewhere = |following: &Following| {
            let found = following.monitor.network().elsewhere.clone();
            found.contains(&prefix("192.168.9.0/24"))
        };
        ip(&["address add 192.168.9.1/24 dev mill2"]);
        following.now();
        assert!(elsewhere(&following));
        ip(&["link set mill2 down"]);
        following.now();
        assert!(!elsewhere(&following));
        following.agrees_with_the_kernel();
    });
}

#[test]
fn the_interface_is_followed_down_and_up_and_in_its_settings() {
    in_namespace(|| {
        wire();
        ip(&["route add default via 10.77.0.254 dev mill0"]);
        let mut following = Following::of("mill0");
        let until = |following: &mut Following, is_wanted: fn(&LinkState) -> bool| {
            following.until(|change| matches!(change, Change::Link(link) if is_wanted(link)));
        };
        ip(&["link set mill0 mtu 9000"]);
        until(&mut following, |link| link.mtu == 9000);
        ip(&["link set mill0 address 02:00:00:00:00:09"]);
        until(&mut following, |link| link.mac == OTHER_MAC);
        ip(&["link set mill1 down"]);
        until(&mut following, |link| link.is_up && !link.is_running);
        ip(&["link set mill1 up"]);
        until(&mut following, |link| link.is_running);
        ip(&["link set mill0 down"]);
        until(&mut following, |link| !link.is_up);
        assert_eq!(text_of(following.monitor.network()), [""; 0]);
        assert!(following.has_address("10.77.0.1/24"), "IPv4's stay");
        assert!(!following.has_address("fd00:7::1/64"), "IPv6's go");
        ip(&["link set mill0 up"]);
        until(&mut following, |link| link.is_running);
        let routes = text_of(following.monitor.network());
        assert_eq!(
            routes,
            ["10.77.0.0/24"],
            "those of gateways do not come back"
        );
        following.agrees_with_the_kernel();
    });
}

#[test]
fn an_interface_that_is_deleted_is_gone_once_and_for_all() {
    in_namespace(|| {
        wire();
        let mut following = Following::of("mill0");
        ip(&["link delete mill1"]);
        let changes = following.until(|change| *change == Change::Gone);
        assert_eq!(changes.last(), Some(&Change::Gone), "{changes:?}");
        wire();
        assert_eq!(following.now(), [], "another one of the same name");
    });
}

#[test]
fn an_interface_that_moves_to_another_namespace_is_gone() {
    in_namespace(|| {
        wire();
        let mut following = Following::of("mill0");
        let elsewhere = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                namespace::leave_network().unwrap();
                File::open("/proc/thread-self/ns/net").unwrap()
            });
            thread.join().unwrap()
        });
        let mut command = Command::new("ip");
        command.args(["link", "set", "mill0", "netns", "/proc/self/fd/0"]);
        let status = command.stdin(Stdio::from(elsewhere)).status().unwrap();
        assert!(status.success());
        following.until(|change| *change == Change::Gone);
    });
}

#[test]
fn after_a_burst_that_overflows_the_buffer_everything_is_read_again() {
    in_namespace(|| {
        wire();
        ip(&["neighbor add 10.77.0.2 lladdr 02:00:00:00:00:02 dev mill0"]);
        let mut following = Following::of("mill0");
        following
            .monitor
            .notifications
            .set_receive_buffer(1)
            .unwrap();
        let mut lines = String::from("neighbor delete 10.77.0.2 dev mill0\n");
        for last in 100..200 {
            lines += &format!("neighbor add 10.77.0.{last} lladdr {OTHER_MAC} dev mill0\n");
            lines += &format!("address add 10.78.0.{last}/32 dev mill0\n");
            lines += &format!("route add 10.79.{last}.0/24 via 10.77.0.9 dev mill0\n");
        }
        lines += "link set mill0 mtu 1400\n";
        let mut command = Command::new("ip");
        command.args(["-batch", "-"]).stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(lines.as_bytes()).unwrap();
        drop(input);
        assert!(child.wait().unwrap().success());
        let changes = following.now();
        assert!(following.monitor.overruns() > 0);
        let count = |is_counted: fn(&Change) -> bool| {
            changes.iter().filter(|change| is_counted(change)).count()
        };
        assert_eq!(count(|change| matches!(change, Change::Link(_))), 1);
        assert_eq!(count(|change| matches!(change, Change::Addresses(_))), 1);
        assert_eq!(count(|change| matches!(change, Change::Routes { .. })), 1);
        assert!(changes.iter().any(of_neighbor("10.77.0.2", None)));
        assert!(
            changes
                .iter()
                .any(of_neighbor("10.77.0.199", Some(OTHER_MAC)))
        );
        following.agrees_with_the_kernel();
    });
}
