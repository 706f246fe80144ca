//! The bridge's command line: EAL's arguments, then those of testpmd.

use crate::specification::Specification;
use crate::specification::port::{Port, PortKind, TAKEN};
use std::path::Path;

/// What the command line is made from.
#[derive(Debug)]
pub(super) struct Invocation<'a> {
    pub(super) port: &'a Port,
    pub(super) specification: &'a Specification,
    /// Where the process may run if its cores are not named.
    pub(super) cpus: Vec<u16>,
    pub(super) has_hugepages: bool,
}

impl Invocation<'_> {
    /// Its arguments for a memif at this socket.
    pub(super) fn arguments(&self, socket: &Path) -> Vec<String> {
        let mut all = self.environment();
        let socket = socket.display();
        let ring = self.specification.memif.ring_size.ilog2();
        all.push(format!(
            "--vdev={TAKEN},role=server,socket={socket},socket-abstract=no,zero-copy=no,rsize={ring}"
        ));
        all.extend(self.specification.dpdk.arguments.iter().cloned());
        all.push(String::from("--"));
        all.extend(self.forwarding());
        all
    }

    /// MiB of packet memory.
    pub(super) fn memory_mib(&self) -> u64 {
        let bytes = self.buffers() * BUFFER_BYTES;
        BASE_MIB + (bytes >> 20) + 1
    }

    fn environment(&self) -> Vec<String> {
        let mut all = vec![
            format!("--lcores={}", self.threads()),
            String::from("--no-telemetry"),
            format!("-m{}", self.memory_mib()),
        ];
        match self.has_hugepages {
            true => all.push(String::from("--in-memory")),
            false => all.extend(["--no-huge", "--no-shconf"].map(String::from)),
        }
        let port = self.port.description();
        match self.port.kind {
            PortKind::Card => all.push(format!("--allow={port}")),
            PortKind::Virtual => {
                all.push(String::from("--no-pci"));
                all.push(format!("--vdev={port}"));
            }
        }
        all
    }

    fn forwarding(&self) -> Vec<String> {
        let (pairs, buffers) = (self.specification.dpdk.bridge_pairs(), self.buffers());
        let mut all = [
            // Both ports have to be there: without this testpmd goes on with one of them.
            "--nb-ports=2",
            "--port-topology=paired",
            "--forward-mode=io",
            "--auto-start",
        ]
        .map(String::from)
        .to_vec();
        all.push(format!("--nb-cores={}", self.workers()));
        all.push(format!("--rxq={pairs}"));
        all.push(format!("--txq={pairs}"));
        all.push(format!("--total-num-mbufs={buffers}"));
        all
    }

    /// Thread 0 waits for the end; the others forward, one on each core that is named, or one anywhere.
    fn threads(&self) -> String {
        let named = &self.specification.dpdk.cores;
        let anywhere: Vec<u32> = self.cpus.iter().copied().map(u32::from).collect();
        let all = match named.is_empty() {
            true => &anywhere,
            false => named,
        };
        let set = |cores: &[u32]| {
            let cores: Vec<String> = cores.iter().map(u32::to_string).collect();
            format!("({})", cores.join(","))
        };
        let mut threads = format!("0@{}", set(all));
        if named.is_empty() {
            threads.push_str(&format!(",1@{}", set(all)));
        }
        for (core, thread) in named.iter().zip(1_u32..) {
            threads.push_str(&format!(",{thread}@({core})"));
        }
        threads
    }

    /// Threads that forward: no more than there are queues to receive from, at both ports.
    fn workers(&self) -> usize {
        let queues = usize::try_from(2 * self.specification.dpdk.bridge_pairs()).unwrap_or(1);
        self.specification.dpdk.cores.len().clamp(1, queues)
    }

    fn buffers(&self) -> u64 {
        BUFFERS + BUFFERS_OF_A_PAIR * u64::from(self.specification.dpdk.bridge_pairs())
    }
}

/// Buffers: a card's queue has 1024 descriptors and more, in each direction, and so have rings.
const BUFFERS: u64 = 4096;
const BUFFERS_OF_A_PAIR: u64 = 8192;

/// Bytes of a buffer, with what DPDK keeps beside the frame (RTE_MBUF_DEFAULT_BUF_SIZE is 2176) and the rounding of addresses.
const BUFFER_BYTES: u64 = 2560;

/// What DPDK takes for all else, in MiB.
const BASE_MIB: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::specification::device::Device;

    fn line(text: &str, has_hugepages: bool) -> String {
        let specification = Specification::parse(text).unwrap();
        let Device::Dpdk { port } = &specification.device else {
            panic!("{text}");
        };
        let invocation = Invocation {
            port,
            specification: &specification,
            cpus: vec![0, 2],
            has_hugepages,
        };
        invocation.arguments(Path::new("/x/memif")).join(" ")
    }

    fn check(text: &str, has_hugepages: bool, expected: &[&str]) {
        let text = format!("{text},bridge=on,address=10.0.0.1/24");
        let line = format!("{} ", line(&text, has_hugepages));
        for words in expected {
            assert!(
                line.contains(&format!("{words} ")),
                "{text}: {words}: {line}"
            );
        }
    }

    #[test]
    fn a_virtual_device_goes_without_the_bus_and_has_its_arguments() {
        check(
            "dpdk:vdev=net_af_packet0,iface=eth1,qpairs=2,queue-pairs=2",
            false,
            &[
                "--no-huge --no-shconf --no-pci --vdev=net_af_packet0,iface=eth1,qpairs=2",
                "role=server,socket=/x/memif,socket-abstract=no,zero-copy=no,rsize=10 --",
                "--rxq=2 --txq=2 --total-num-mbufs=20480",
                "--lcores=0@(0,2),1@(0,2)",
                "--nb-cores=1",
            ],
        );
    }

    #[test]
    fn a_card_is_the_only_one_that_is_opened() {
        let text =
            "dpdk:03:00.0,txq_inline_max=0,eal=--iova-mode=va,eal=--log-level=8,ring-size=512";
        check(
            text,
            true,
            &[
                "--in-memory --allow=0000:03:00.0,txq_inline_max=0",
                "rsize=9 --iova-mode=va --log-level=8 --",
            ],
        );
        assert!(!line(&format!("{text},address=10.0.0.1/24"), true).contains("--no-pci"));
    }

    #[test]
    fn named_cores_get_a_thread_each_as_far_as_there_are_queues() {
        check(
            "dpdk:03:00.0,core=3",
            true,
            &["--lcores=0@(3),1@(3)", "--nb-cores=1"],
        );
        check(
            "dpdk:03:00.0,core=3,core=5",
            true,
            &["--lcores=0@(3,5),1@(3),2@(5)", "--nb-cores=2"],
        );
        check("dpdk:03:00.0,core=3-5", true, &["--nb-cores=2"]);
        check(
            "dpdk:03:00.0,core=3-5,queue-pairs=2",
            true,
            &["--nb-cores=3"],
        );
    }
}
