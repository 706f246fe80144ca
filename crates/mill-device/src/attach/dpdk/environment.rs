//! DPDK's environment (EAL) in this process, as a port needs it.

use super::output::Output;
use super::{card, hugepages};
use crate::specification::Specification;
use crate::specification::port::{Port, PortKind};
use mill_sys::affinity;
use mill_sys::dpdk::environment::{Environment, EnvironmentError};
use mill_sys::dpdk::layout::ABI;
use std::path::Path;

/// The memory that a port's frames take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    pub(super) frames: u32,
    pub(super) frame_bytes: u16,
}

impl Memory {
    /// MiB, with what DPDK takes for all else.
    fn mib(self) -> u64 {
        let bytes = u64::from(self.frames) * (u64::from(self.frame_bytes) + BESIDE_FRAME);
        BASE_MIB + (bytes >> 20) + 1
    }
}

/// Initialises it, or finds it as an earlier port of this process has left it. Beside it are what it says, and notices.
pub(super) fn start(
    port: &Port,
    specification: &Specification,
    memory: Memory,
) -> Result<(Environment, Output, Vec<String>), String> {
    if port.kind == PortKind::Card {
        card::check(&port.name, Path::new("/sys"))?;
    }
    let (has_hugepages, notice) =
        hugepages::choose(port.kind, specification.dpdk.hugepages, memory.mib())?;
    let log = Output::new().map_err(|error| format!("a memfd can't be made: {error}"))?;
    let writer = log
        .writer()
        .map_err(|error| format!("a memfd can't be had twice: {error}"))?;
    let cpus = affinity::allowed_cpus().unwrap_or_else(|_| vec![0]);
    let arguments = arguments(port, specification, &cpus, has_hugepages);
    // Small pages are taken when they are used, so there may be more than are needed now; huge ones can be had later.
    let mib = if has_hugepages {
        memory.mib()
    } else {
        memory.mib().max(SMALL_PAGES_MIB)
    };
    let started = Environment::start(&arguments, mib, writer);
    let environment = started.map_err(|error| match error {
        EnvironmentError::Library(_) => format!("{error}; {}", remedy()),
        EnvironmentError::Refused => format!("{error}: {}", log.summary()),
        EnvironmentError::Settled => error.to_string(),
    })?;
    Ok((environment, log, notice.into_iter().collect()))
}

/// What to do without the libraries.
fn remedy() -> String {
    format!(
        "Debian 12 has DPDK 22.11, whose ABI that is, in the packages librte-ethdev{ABI} and librte-meta-net; \
         any other DPDK with its program dpdk-testpmd works with \"bridge=on\""
    )
}

/// Arguments of EAL: no thread of its own works, and none is kept to a processor.
fn arguments(
    port: &Port,
    specification: &Specification,
    cpus: &[u16],
    has_hugepages: bool,
) -> Vec<String> {
    let cpus: Vec<String> = cpus.iter().map(u16::to_string).collect();
    let mut all = vec![
        format!("--lcores=0@({})", cpus.join(",")),
        String::from("--no-telemetry"),
    ];
    match has_hugepages {
        true => all.push(String::from("--in-memory")),
        false => all.extend(["--no-huge", "--no-shconf"].map(String::from)),
    }
    match port.kind {
        PortKind::Card => all.push(format!("--allow={}", port.description())),
        PortKind::Virtual => all.push(String::from("--no-pci")),
    }
    all.extend(specification.dpdk.arguments.iter().cloned());
    all
}

/// What DPDK keeps beside a frame: headroom, the mbuf, the mempool's header, the rounding of addresses.
const BESIDE_FRAME: u64 = 128 + 128 + 64 + 64;

/// What DPDK takes for all else, in MiB.
const BASE_MIB: u64 = 64;

/// Small pages for 16 workers, in MiB: a load generator opens its port again for its threads, in the same environment.
const SMALL_PAGES_MIB: u64 = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::specification::device::Device;

    fn line(text: &str, has_hugepages: bool) -> String {
        let specification = Specification::parse(text).unwrap();
        let Device::Dpdk { port } = &specification.device else {
            panic!("a port of DPDK");
        };
        arguments(port, &specification, &[0, 3], has_hugepages).join(" ")
    }

    #[test]
    fn no_thread_of_the_environment_is_kept_to_a_processor() {
        let vdev = "dpdk:vdev=net_tap0,iface=mill2,address=10.0.0.1/24,eal=--iova-mode=va";
        assert_eq!(
            line(vdev, false),
            "--lcores=0@(0,3) --no-telemetry --no-huge --no-shconf --no-pci --iova-mode=va"
        );
        assert_eq!(
            line("dpdk:03:00.0,address=10.0.0.1/24", true),
            "--lcores=0@(0,3) --no-telemetry --in-memory --allow=0000:03:00.0"
        );
    }
}
