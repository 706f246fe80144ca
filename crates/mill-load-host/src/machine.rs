//! What the kernel reports about the measured period.

use crate::proc::device::Traffic;
use crate::proc::{counters, cpu, device};
use crate::run::now;
use crate::server::{Server, ServerLook};
use mill_load::plan::Plan;
use mill_load::platform::{LinkUse, Machine, ProgramsCpu};
use mill_load::target::Endpoint;
use mill_runtime::time::Instant;
use mill_sys::interface;
use std::fs;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

/// Reads the kernel's counters when the measured period begins, and again at its end.
#[derive(Debug, Default)]
pub(crate) struct Observer {
    /// The plan asks for it.
    looks: bool,
    begun: bool,
    interface: Option<Interface>,
    server: Server,
    /// The target is an address of this machine.
    is_here: bool,
    before: Option<Look>,
}

/// The interface towards the target.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Interface {
    name: String,
    speed_bits: Option<u64>,
}

/// The counters at one moment; those that the kernel does not report are `None`.
#[derive(Clone, Debug)]
struct Look {
    at: Instant,
    listen_drops: Option<u64>,
    retransmitted: Option<u64>,
    sent: Option<u64>,
    cpu: Option<cpu::CpuTimes>,
    traffic: Option<Traffic>,
    server: ServerLook,
}

impl Observer {
    /// Finds out which counters to read, if the plan asks for it.
    pub(crate) fn new(plan: &Plan) -> Self {
        if !plan.observe {
            return Self::default();
        }
        let target = plan.endpoint(0, 0).and_then(|endpoint| match endpoint {
            Endpoint::Ip(address) => Some(*address),
            Endpoint::Unix(_) => None,
        });
        let source = target.and_then(source_towards);
        let is_here = target.zip(source).is_some_and(stays_here);
        let server = match (plan.server_pid, target) {
            (Some(process), _) => Server::of_process(process),
            (None, Some(target)) if is_here => Server::listening_at(target),
            (None, _) => Server::default(),
        };
        let leaves = source.filter(|_| !is_here);
        Self {
            looks: true,
            begun: false,
            interface: leaves.and_then(Interface::with_address),
            server,
            is_here,
            before: None,
        }
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.begun
    }

    /// The measured period begins.
    pub(crate) fn begin(&mut self) {
        self.begun = true;
        self.before = self.looks.then(|| self.look());
    }

    /// The differences since `begin`.
    pub(crate) fn end(self) -> Machine {
        let Some(before) = &self.before else {
            return Machine::default();
        };
        let machine = self.look().since(before, self.interface.as_ref());
        if self.is_here && machine.server.is_none() {
            Machine {
                programs: None,
                ..machine
            }
        } else {
            machine
        }
    }

    fn look(&self) -> Look {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let extended = read("/proc/net/netstat");
        let snmp = read("/proc/net/snmp");
        let interface = self.interface.as_ref();
        Look {
            at: now(),
            listen_drops: counters::value(&extended, "TcpExt", "ListenDrops"),
            retransmitted: counters::value(&snmp, "Tcp", "RetransSegs"),
            sent: counters::value(&snmp, "Tcp", "OutSegs"),
            cpu: cpu::parse(&read("/proc/stat")),
            traffic: interface
                .and_then(|interface| device::traffic(&read("/proc/net/dev"), &interface.name)),
            server: self.server.look(),
        }
    }
}

impl Look {
    fn since(&self, before: &Self, interface: Option<&Interface>) -> Machine {
        let elapsed = self.at.since(before.at);
        let traffic = self.traffic.zip(before.traffic);
        Machine {
            threads: Vec::new(),
            // The kernel counts a full queue's overflow among the drops too.
            listen_overflows: difference(self.listen_drops, before.listen_drops),
            retransmitted_segments: difference(self.retransmitted, before.retransmitted),
            sent_segments: difference(self.sent, before.sent),
            link_use: interface
                .zip(traffic)
                .and_then(|(interface, (now, before))| interface.used(now, before, elapsed)),
            steal: self.cpu.zip(before.cpu).and_then(steal),
            programs: self.cpu.zip(before.cpu).map(programs),
            server: self.server.since(&before.server, elapsed),
        }
    }
}

impl Interface {
    fn with_address(address: IpAddr) -> Option<Self> {
        let addresses = interface::addresses().ok()?;
        let name = addresses
            .into_iter()
            .find(|one| one.address == address)?
            .interface;
        let speed = fs::read_to_string(format!("/sys/class/net/{name}/speed"));
        Some(Self {
            speed_bits: device::speed_bits(&speed.unwrap_or_default()),
            name,
        })
    }

    #[expect(clippy::cast_precision_loss, reason = "a rate needs no 53 bits")]
    fn used(&self, now: Traffic, before: Traffic, elapsed: Duration) -> Option<LinkUse> {
        if elapsed.is_zero() {
            return None;
        }
        let received = now.received_bytes.saturating_sub(before.received_bytes);
        let sent = now.sent_bytes.saturating_sub(before.sent_bytes);
        let bits_per_second = received.max(sent) as f64 * 8.0 / elapsed.as_secs_f64();
        Some(LinkUse {
            interface: self.name.clone(),
            bits_per_second,
            share: self.speed_bits.map(|speed| bits_per_second / speed as f64),
        })
    }
}

/// The source address of packets to `target`. A datagram socket is connected to find it; nothing is sent.
fn source_towards(target: SocketAddr) -> Option<IpAddr> {
    let any = if target.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(target).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// Whether packets from this source to this target stay on this machine: Linux sends them from the target's own
/// address, or from loopback's first.
fn stays_here((target, source): (SocketAddr, IpAddr)) -> bool {
    source == target.ip() || source.is_loopback()
}

fn difference(now: Option<u64>, before: Option<u64>) -> Option<u64> {
    Some(now?.saturating_sub(before?))
}

#[expect(clippy::cast_precision_loss, reason = "a share needs no 53 bits")]
fn steal((now, before): (cpu::CpuTimes, cpu::CpuTimes)) -> Option<f64> {
    let total = now.total.saturating_sub(before.total);
    let steal = now.steal.saturating_sub(before.steal);
    (total > 0).then(|| steal as f64 / total as f64)
}

fn programs((now, before): (cpu::CpuTimes, cpu::CpuTimes)) -> ProgramsCpu {
    let ticks = |now: u64, before: u64| Duration::from_millis(now.saturating_sub(before) * TICK_MS);
    ProgramsCpu {
        used: ticks(now.programs, before.programs),
        available: ticks(now.total, before.total),
    }
}

/// The unit of CPU time in /proc: hundredths of a second (`USER_HZ`, the same on every Linux).
const TICK_MS: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn look(at_s: u64, factor: u64) -> Look {
        Look {
            at: Instant::from_nanos(at_s * 1_000_000_000),
            listen_drops: Some(factor),
            retransmitted: Some(10 * factor),
            sent: Some(1000 * factor),
            cpu: Some(cpu::CpuTimes {
                total: 100 * factor,
                programs: 60 * factor,
                steal: 25 * factor,
            }),
            traffic: Some(Traffic {
                received_bytes: 1000 * factor,
                sent_bytes: 2000 * factor,
            }),
            server: ServerLook::default(),
        }
    }

    #[test]
    fn figures_are_the_difference_of_two_readings() {
        let interface = Interface {
            name: String::from("eth0"),
            speed_bits: Some(64_000),
        };
        let machine = look(14, 5).since(&look(10, 3), Some(&interface));
        assert_eq!(machine.listen_overflows, Some(2));
        assert_eq!(machine.retransmitted_segments, Some(20));
        assert_eq!(machine.sent_segments, Some(2000));
        assert_eq!(machine.steal, Some(0.25));
        let link = machine.link_use.unwrap();
        // 4000 bytes in four seconds.
        assert_eq!((link.bits_per_second, link.share), (8000.0, Some(0.125)));
        assert_eq!(machine.server, None);
    }

    #[test]
    fn unavailable_figures_stay_unknown() {
        let mut before = look(1, 1);
        (before.listen_drops, before.traffic, before.cpu) = (None, None, None);
        let machine = look(2, 2).since(&before, None);
        assert_eq!(machine.listen_overflows, None);
        assert_eq!((machine.link_use, machine.steal), (None, None));
        assert_eq!(machine.sent_segments, Some(1000));
    }

    #[test]
    fn loopback_stays_on_this_machine() {
        for target in ["127.0.0.1:80", "127.0.0.9:80"] {
            let target: SocketAddr = target.parse().unwrap();
            let source = source_towards(target).unwrap();
            assert!(stays_here((target, source)), "{source}");
        }
        let (target, source) = ("192.0.2.1:80", "192.0.2.7");
        assert!(!stays_here((
            target.parse().unwrap(),
            source.parse().unwrap()
        )));
    }

    #[test]
    fn this_machine_can_be_looked_at() {
        let target = Endpoint::Ip("127.0.0.1:1".parse().unwrap());
        let mut plan = Plan::new(target);
        let observe = |plan: &Plan| {
            let mut observer = Observer::new(plan);
            assert!(!observer.has_begun());
            observer.begin();
            assert!(observer.has_begun());
            observer.end()
        };
        assert_eq!(observe(&plan), Machine::default(), "not requested");
        plan.observe = true;
        let machine = observe(&plan);
        assert!(machine.sent_segments.is_some());
        assert_eq!(machine.link_use, None, "loopback has none");
        assert_eq!(
            machine.programs, None,
            "the server that is here was not found"
        );
    }
}
