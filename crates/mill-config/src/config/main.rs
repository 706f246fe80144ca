//! Process-wide settings: the main context.

use std::time::Duration;

use super::{ErrorLog, NetworkStack};
use crate::Text;
use crate::diagnostic::Spot;

/// The settings outside all blocks.
#[derive(Debug, Clone)]
pub struct Main {
    /// The prefix (`-p`) that relative paths are joined to, with a slash at its end.
    pub prefix: Text,
    /// `user`: names, resolved by the master; `None` when absent (nginx's default account then
    /// applies). Only meaningful when the master runs with super-user privileges.
    pub user: Option<User>,
    /// `worker_processes`: the number of worker threads.
    pub worker_processes: WorkerCount,
    /// `worker_cpu_affinity`; `None` leaves threads unpinned.
    pub worker_cpu_affinity: Option<CpuAffinity>,
    /// `worker_rlimit_nofile`: RLIMIT_NOFILE of the worker process, in descriptors.
    pub worker_rlimit_nofile: Option<u64>,
    /// `worker_rlimit_core`: RLIMIT_CORE of the worker process, in bytes.
    pub worker_rlimit_core: Option<u64>,
    /// `worker_priority`: the nice value, -20 to 20; 0 leaves it alone.
    pub worker_priority: i32,
    /// `worker_shutdown_timeout`: how long a graceful shutdown may take; `None` is unlimited.
    pub worker_shutdown_timeout: Option<Duration>,
    /// `pid`: absolute path of the pid file.
    pub pid: Text,
    /// `lock_file`: absolute path; parsed as in nginx, but not used.
    pub lock_file: Text,
    /// `daemon`: go to the background.
    pub daemon: bool,
    /// `master_process`: run a master and a worker process, not one process.
    pub master_process: bool,
    /// `working_directory` of the worker process.
    pub working_directory: Option<Text>,
    /// `timer_resolution`; `None` reads the clock each turn.
    pub timer_resolution: Option<Duration>,
    /// `env` lines in their order. `TZ` is always kept, as in nginx.
    pub env: Vec<EnvironmentVariable>,
    /// `thread_pool default`: the threads of each worker that wait for disks.
    pub thread_pool: ThreadPool,
    /// `network_stack`: the stack of our own; `None` uses the kernel's only.
    pub network_stack: Option<NetworkStack>,
    /// `error_log` of the main context; the default path with level `error` when absent.
    /// Never empty.
    pub error_log: Vec<ErrorLog>,
}

/// `thread_pool NAME threads=COUNT [max_queue=COUNT]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadPool {
    pub threads: u32,
    /// Tasks that may wait for a thread.
    pub max_queue: u32,
}

impl Default for ThreadPool {
    fn default() -> Self {
        Self {
            threads: 32,
            max_queue: 65_536,
        }
    }
}

/// `user NAME [GROUP]`.
#[derive(Debug, Clone)]
pub struct User {
    /// Account name.
    pub name: Text,
    /// Group name; `None` means the group with the same name as the user.
    pub group: Option<Text>,
    /// Where the account's name is written.
    pub name_spot: Spot,
    /// Where the group's name is written; without one, the account's place.
    pub group_spot: Spot,
}

/// Equal names are equal, wherever they are written.
impl PartialEq for User {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.group) == (&other.name, &other.group)
    }
}

impl Eq for User {}

/// `worker_processes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerCount {
    /// That many, at least one.
    Count(u32),
    /// One per CPU that the process may run on.
    Auto,
}

/// `worker_cpu_affinity`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CpuAffinity {
    /// `auto [MASK]`: worker n takes the n-th CPU (cyclically) of those in the mask.
    Auto {
        /// CPUs to choose from; `None` is all.
        mask: Option<CpuMask>,
    },
    /// One mask per worker; workers beyond the list take the last mask.
    Masks(Vec<CpuMask>),
}

/// A set of CPUs, written as binary digits, lowest CPU rightmost.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuMask {
    /// CPU numbers in ascending order.
    pub cpus: Vec<u16>,
}

/// `env NAME` or `env NAME=VALUE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvironmentVariable {
    /// Name of the variable.
    pub name: Text,
    /// Its new value; `None` inherits the one of the process.
    pub value: Option<Text>,
}
