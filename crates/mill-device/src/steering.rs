//! Which frames of an interface go to the stack: an XDP program in the kernel, and the table that it reads.
//!
//! The program sees each frame before the kernel's stack does. A frame for an address and port that is served goes to
//! the AF_XDP socket of its queue; all other frames pass to the kernel unchanged. The program is attached by a BPF
//! link: when the process that holds the link's descriptor ends, it is detached.
//!
//! Attaching takes privileges. Changing what is served takes none, and no system call: see `Table`.
//!
//! The queues may be in partitions, each of which another process has: then each has a table of its own.

use crate::vlan::Vlan;
use mill_sys::bpf::BpfError;
use mill_sys::bpf::link::{self, Mode};
use mill_sys::bpf::map::Map;
use mill_sys::bpf::program::{Outcome, Program, Trial};
use mill_sys::random;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The table of what is served.
pub mod table;

/// Counters of frames by their fate.
pub mod counters;

/// The worker that a flow belongs to.
pub mod flow;

/// Layout of the shared memory.
pub mod layout;

/// Why a program could not be attached.
pub mod error;

mod assembler;
mod attached;
mod program;

pub use counters::SteeringCounters;
pub use error::SteeringError;
pub use table::Table;

use layout::{COUNTERS_BYTES, TABLE_BYTES, WORKERS_MAX};

/// How to attach the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WantedMode {
    /// In the driver if that is possible, else in the kernel's stack (generic XDP); [`Steering::fallback`] says why.
    Fastest,
    Only(Mode),
}

/// A program that is attached to an interface. Dropping it, or the end of the process, gives all frames back to the
/// kernel.
#[derive(Debug)]
pub struct Steering {
    rules: Rules,
    link: OwnedFd,
    mode: Mode,
    fallback: Option<BpfError>,
}

/// A program with its maps, not attached yet.
#[derive(Debug)]
pub struct Rules {
    partitions: Vec<PartitionMaps>,
    sockets: Map,
    program: Program,
    queues: u32,
}

/// The maps of a partition.
#[derive(Debug)]
struct PartitionMaps {
    table: Map,
    counters: Map,
}

impl Steering {
    /// Attaches a program to an interface, given by its index in the caller's network namespace, with this many receive
    /// queues. Nothing is served yet, so all frames still pass to the kernel.
    pub fn attach(interface: u32, queues: u32, wanted: WantedMode) -> Result<Self, SteeringError> {
        Rules::load(queues)?.attach(interface, wanted)
    }

    /// As [`Self::attach`], with partitions as for [`Rules::load_partitions`].
    pub fn attach_partitions(
        interface: u32,
        queues: u32,
        (partitions, vlan): (&[Vec<u32>], Option<Vlan>),
        wanted: WantedMode,
    ) -> Result<Self, SteeringError> {
        Rules::load_partitions(queues, partitions, vlan)?.attach(interface, wanted)
    }

    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// How the program is attached.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The driver's error if it refused the program. Worth a notice, as every frame costs more now.
    pub fn fallback(&self) -> Option<&BpfError> {
        self.fallback.as_ref()
    }

    /// The descriptor of the link; each duplicate of it keeps the program attached.
    pub fn link(&self) -> BorrowedFd<'_> {
        self.link.as_fd()
    }
}

impl Rules {
    /// Makes the maps and loads the program, with all queues in one partition, for frames without a tag.
    pub fn load(queues: u32) -> Result<Self, SteeringError> {
        Self::load_partitions(queues, &[Vec::new()], None)
    }

    /// Makes the maps and loads the program, with the queues in partitions, at least one; queues that none has are of the first.
    /// Served are frames of the virtual network, if there is one, else those without a tag or with one of priority only.
    pub fn load_partitions(
        queues: u32,
        partitions: &[Vec<u32>],
        vlan: Option<Vlan>,
    ) -> Result<Self, SteeringError> {
        let refused = SteeringError::loading;
        let sockets = queues.max(1).saturating_mul(WORKERS_MAX);
        let sockets = Map::sockets("mill_sockets", sockets).map_err(refused)?;
        let made = partitions.iter().map(|_| PartitionMaps::new());
        let made: Vec<PartitionMaps> = made.collect::<Result<_, _>>().map_err(refused)?;
        let parts: Vec<_> = made
            .iter()
            .zip(partitions)
            .map(|(made, queues)| (made.with(&sockets), queues.as_slice()))
            .collect();
        let instructions =
            program::assemble(&parts, vlan).expect("the program's labels are there, once");
        let program = Program::load("mill_steering", &instructions).map_err(refused)?;
        let rules = Self {
            partitions: made,
            sockets,
            program,
            queues: queues.max(1),
        };
        let seed = random::seed().map_err(SteeringError::Memory)?;
        for partition in 0..partitions.len() {
            let table = rules.table_of(partition).map_err(SteeringError::Memory)?;
            table.begin(seed);
        }
        Ok(rules)
    }

    /// Attaches the program.
    pub fn attach(self, interface: u32, wanted: WantedMode) -> Result<Steering, SteeringError> {
        let first = match wanted {
            WantedMode::Fastest => Mode::Native,
            WantedMode::Only(mode) => mode,
        };
        let (link, mode, fallback) = match link::attach(&self.program, interface, first) {
            Ok(link) => (link, first, None),
            Err(refused) if wanted != WantedMode::Fastest || !may_fall_back(&refused) => {
                return Err(SteeringError::attaching(refused, interface));
            }
            Err(refused) => {
                let link = link::attach(&self.program, interface, Mode::Generic)
                    .map_err(|refused| SteeringError::attaching(refused, interface))?;
                (link, Mode::Generic, Some(refused))
            }
        };
        Ok(Steering {
            rules: self,
            link,
            mode,
            fallback,
        })
    }

    /// Sends a worker's frames of a queue to this AF_XDP socket, which has to be bound to that queue of the interface.
    /// The kernel removes the socket from the map when it is closed.
    pub fn set_socket(
        &self,
        queue: u32,
        worker: u32,
        socket: BorrowedFd<'_>,
    ) -> Result<(), SteeringError> {
        debug_assert!(queue < self.queues && worker < WORKERS_MAX);
        let key = queue.saturating_mul(WORKERS_MAX).saturating_add(worker);
        self.sockets
            .set_socket(key, socket)
            .map_err(SteeringError::Socket)
    }

    /// The descriptors that [`Table::open`] takes in another process: those of a partition, of the first for all that there are
    /// not.
    pub fn descriptors(&self, partition: usize) -> [BorrowedFd<'_>; 2] {
        let found = self.partitions.get(partition);
        let maps = found.unwrap_or(&self.partitions[0]);
        [maps.table.as_fd(), maps.counters.as_fd()]
    }

    /// Opens the first partition's table in this process, and clears it.
    pub fn table(&self) -> io::Result<Table> {
        self.table_of(0)
    }

    fn table_of(&self, partition: usize) -> io::Result<Table> {
        let [table, counters] = self.descriptors(partition);
        Table::open([table.try_clone_to_owned()?, counters.try_clone_to_owned()?])
    }

    /// Runs the program on a frame that was not received (BPF_PROG_TEST_RUN).
    pub fn try_out(&self, trial: Trial<'_>) -> Result<Outcome, BpfError> {
        self.program.try_out(trial)
    }
}

impl PartitionMaps {
    fn new() -> Result<Self, BpfError> {
        Ok(Self {
            table: Map::array("mill_served", bytes(TABLE_BYTES))?,
            counters: Map::array("mill_counters", bytes(COUNTERS_BYTES))?,
        })
    }

    fn with<'maps>(&'maps self, sockets: &'maps Map) -> program::Maps<'maps> {
        program::Maps {
            table: self.table.as_fd(),
            counters: self.counters.as_fd(),
            sockets: sockets.as_fd(),
        }
    }
}

/// Whether generic XDP may work where the driver failed: not if privileges are missing or another program is attached.
fn may_fall_back(refused: &BpfError) -> bool {
    !matches!(
        refused.error.kind(),
        io::ErrorKind::ResourceBusy
            | io::ErrorKind::AlreadyExists
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::InvalidInput
    )
}

fn bytes(len: usize) -> u32 {
    u32::try_from(len).expect("the tables are short")
}

#[cfg(test)]
mod tests;
