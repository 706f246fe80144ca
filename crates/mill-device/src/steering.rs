//! Which frames of an interface are ours: a program in the kernel, and the table that it goes by.
//!
//! The program looks at each frame before the kernel does. What is for an address and port that is served it
//! gives to the AF_XDP socket of the queue; all else, ssh first, goes on to the kernel as ever. It is attached by a
//! descriptor: with the process that holds it the program is gone.
//!
//! Attaching takes rights. Saying what is served takes none, and no system call: `Table`.

use mill_sys::bpf::BpfError;
use mill_sys::bpf::link::{self, Mode};
use mill_sys::bpf::map::Map;
use mill_sys::bpf::program::{Outcome, Program, Trial};
use mill_sys::random;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// What is served.
pub mod table;

/// What became of the frames.
pub mod counters;

/// Which worker a flow comes to.
pub mod flow;

/// What lies where in the shared memory.
pub mod layout;

/// Why nothing is steered.
pub mod error;

mod assembler;
mod attached;
mod program;

pub use counters::SteeringCounters;
pub use error::SteeringError;
pub use table::Table;

use layout::{COUNTERS_BYTES, TABLE_BYTES, WORKERS_MAX};

/// How an interface's program is to be attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WantedMode {
    /// In the driver if it can, or else in the kernel's stack: [`Steering::fallback`] says why.
    Fastest,
    Only(Mode),
}

/// A program at an interface. Dropping it, or the end of the process, gives all frames back to the kernel.
#[derive(Debug)]
pub struct Steering {
    rules: Rules,
    link: OwnedFd,
    mode: Mode,
    fallback: Option<BpfError>,
}

/// A program with its maps, attached to nothing.
#[derive(Debug)]
pub struct Rules {
    table: Map,
    counters: Map,
    sockets: Map,
    program: Program,
    queues: u32,
}

impl Steering {
    /// Steers an interface, by its number in the caller's network namespace, with so many receive queues. Nothing is served
    /// yet, so that nothing changes for anybody.
    pub fn attach(interface: u32, queues: u32, wanted: WantedMode) -> Result<Self, SteeringError> {
        Rules::load(queues)?.attach(interface, wanted)
    }

    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// In which way the program is attached.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What the driver answered if it could not have the program; to be said aloud, as every frame costs more now.
    pub fn fallback(&self) -> Option<&BpfError> {
        self.fallback.as_ref()
    }

    /// What holds the program at the interface: whoever gets a copy holds it too.
    pub fn link(&self) -> BorrowedFd<'_> {
        self.link.as_fd()
    }
}

impl Rules {
    /// Makes the maps and loads the program.
    pub fn load(queues: u32) -> Result<Self, SteeringError> {
        let refused = SteeringError::loading;
        let sockets = queues.max(1).saturating_mul(WORKERS_MAX);
        let table = Map::array("mill_served", bytes(TABLE_BYTES)).map_err(refused)?;
        let counters = Map::array("mill_counters", bytes(COUNTERS_BYTES)).map_err(refused)?;
        let sockets = Map::sockets("mill_sockets", sockets).map_err(refused)?;
        let maps = program::Maps {
            table: table.as_fd(),
            counters: counters.as_fd(),
            sockets: sockets.as_fd(),
        };
        let instructions = program::assemble(maps).expect("the program's labels are there, once");
        let program = Program::load("mill_steering", &instructions).map_err(refused)?;
        let rules = Self {
            table,
            counters,
            sockets,
            program,
            queues: queues.max(1),
        };
        let seed = random::seed().map_err(SteeringError::Memory)?;
        rules.table().map_err(SteeringError::Memory)?.begin(seed);
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

    /// From now on a worker's frames of a queue go to this AF_XDP socket, which has to be bound to that queue of the
    /// interface. The socket leaves by itself when it is closed.
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

    /// What [`Table::open`] takes, in another process.
    pub fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.table.as_fd(), self.counters.as_fd()]
    }

    /// The table in this process, from which everything that was served is cleared.
    pub fn table(&self) -> io::Result<Table> {
        let [table, counters] = self.descriptors();
        Table::open([table.try_clone_to_owned()?, counters.try_clone_to_owned()?])
    }

    /// What becomes of a frame that nobody has sent.
    pub fn try_out(&self, trial: Trial<'_>) -> Result<Outcome, BpfError> {
        self.program.try_out(trial)
    }
}

/// Whatever a driver can't may still be possible without it; but not what rights or another program forbid.
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
