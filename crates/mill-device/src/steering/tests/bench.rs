//! The program with a socket, run on frames that are not received from a device.

use super::frames::Frame;
use crate::af_xdp::setup;
use crate::steering::{Rules, SteeringCounters, SteeringError, Table};
use crate::vlan::Vlan;
use mill_stack::link::Service;
use mill_sys::bpf::program::{Trial, Verdict};
use mill_sys::memory::Pages;
use mill_sys::xsk::Copying;
use mill_sys::{interface, namespace};
use mill_wire::protocol::Protocol;
use std::os::fd::{AsFd, OwnedFd};

/// A program that is not attached, with a socket for the loopback's queue and its first worker.
#[derive(Debug)]
pub(in crate::steering) struct Bench {
    pub(in crate::steering) rules: Rules,
    pub(in crate::steering) table: Table,
    pub(in crate::steering) socket: OwnedFd,
}

impl Bench {
    /// `None`, with the reason printed, where privileges or kernel features are missing. Moves the calling thread into
    /// a network namespace of its own.
    pub(in crate::steering) fn new() -> Option<Self> {
        Self::new_in(None)
    }

    /// The same of a program for frames of a virtual network.
    fn new_in(vlan: Option<Vlan>) -> Option<Self> {
        let rules = match Rules::load_partitions(2, &[Vec::new()], vlan) {
            Ok(rules) => rules,
            Err(error @ SteeringError::Rights(_)) => {
                println!("not tested: {error}");
                return None;
            }
            Err(error) => panic!("{error}"),
        };
        if let Err(error) = namespace::leave_network() {
            println!("not tested: a network namespace of our own: {error}");
            return None;
        }
        interface::set_up("lo").unwrap();
        let options = setup::xsk_options(1500, Copying::AsDriverCan);
        let memory = setup::memory(&options, Pages::Huge).unwrap().memory;
        let index = interface::index("lo").unwrap();
        let socket = setup::socket(index, 0, &memory, &options).unwrap();
        rules.set_socket(0, 0, socket.as_fd()).unwrap();
        let table = rules.table().unwrap();
        Some(Self {
            rules,
            table,
            socket,
        })
    }

    /// Duplicates of the table's descriptors, as another process gets them.
    pub(in crate::steering) fn descriptors(&self) -> [OwnedFd; 2] {
        let maps = self.rules.descriptors(0);
        maps.map(|map| map.try_clone_to_owned().unwrap())
    }

    /// A bench that serves these TCP addresses, which are also set as the interface's.
    pub(in crate::steering) fn serving(services: &[&str]) -> Option<Self> {
        Self::serving_in(None, services)
    }

    /// The same for frames of a virtual network.
    pub(in crate::steering) fn serving_in(vlan: Option<Vlan>, services: &[&str]) -> Option<Self> {
        let bench = Self::new_in(vlan)?;
        let mut addresses = Vec::new();
        for service in services {
            let service = of_tcp(service);
            addresses.push(service.address.ip());
            bench.table.serve(service, true);
        }
        assert_eq!(bench.table.set_addresses(&addresses), 0);
        Some(bench)
    }

    /// The verdict, and the counters' differences.
    pub(in crate::steering) fn try_bytes(&self, frame: &[u8]) -> (Verdict, SteeringCounters) {
        let before = self.table.counters();
        let outcome = self.rules.try_out(Trial {
            frame,
            arrival: None,
            repeat: 1,
        });
        let after = self.table.counters();
        let grown = SteeringCounters {
            redirected: after.redirected - before.redirected,
            passed: after.passed - before.passed,
            kept: after.kept - before.kept,
            unclaimed: after.unclaimed - before.unclaimed,
            fragments: after.fragments - before.fragments,
            malformed: after.malformed - before.malformed,
            blocked: after.blocked - before.blocked,
            chains: after.chains - before.chains,
        };
        (outcome.unwrap().verdict, grown)
    }

    /// The fate of a frame.
    pub(in crate::steering) fn fate(&self, frame: &[u8]) -> Fate {
        let (verdict, grown) = self.try_bytes(frame);
        let of =
            |counter: u64, verdict: Verdict, fate: Fate| (counter == 1).then_some((verdict, fate));
        let fates = [
            of(grown.redirected, Verdict::Redirect, Fate::Ours),
            of(grown.passed, Verdict::Pass, Fate::Passed),
            of(grown.kept, Verdict::Pass, Fate::Kept),
            of(grown.unclaimed, Verdict::Pass, Fate::Unclaimed),
            of(grown.fragments, Verdict::Drop, Fate::Fragment),
            of(grown.malformed, Verdict::Pass, Fate::Malformed),
            of(grown.blocked, Verdict::Drop, Fate::Blocked),
            of(grown.chains, Verdict::Pass, Fate::Chain),
        ];
        let fates: Vec<_> = fates.into_iter().flatten().collect();
        let [(expected, fate)] = fates[..] else {
            panic!("not exactly one counter: {grown:?}");
        };
        assert_eq!(verdict, expected, "{fate:?}");
        fate
    }

    #[track_caller]
    pub(in crate::steering) fn check(&self, frame: Frame, expected: Fate) {
        assert_eq!(self.fate(&frame.bytes()), expected, "{frame:?}");
    }
}

/// A verdict with its counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::steering) enum Fate {
    Ours,
    Passed,
    Kept,
    Unclaimed,
    Fragment,
    Malformed,
    Blocked,
    Chain,
}

pub(in crate::steering) fn of_tcp(address: &str) -> Service {
    Service {
        address: address.parse().unwrap(),
        protocol: Protocol::TCP,
    }
}

pub(in crate::steering) fn of_udp(address: &str) -> Service {
    Service {
        protocol: Protocol::UDP,
        ..of_tcp(address)
    }
}
