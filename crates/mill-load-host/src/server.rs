//! The server's processes, and their CPU time.

use crate::proc::process::{self, ProcessTimes};
use crate::proc::sockets;
use mill_load::platform::ServerCpu;
use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The processes of a server; with nginx the master and its workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Server {
    processes: Vec<u32>,
}

/// Their CPU time at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServerLook {
    processes: BTreeMap<u32, ProcessTimes>,
    /// By process and thread.
    threads: BTreeMap<(u32, u32), Duration>,
}

impl Server {
    pub(crate) fn of_process(process: u32) -> Self {
        Self {
            processes: vec![process],
        }
    }

    /// The processes that listen at `target` on this machine, as far as their descriptors may be read. Costs some
    /// milliseconds: every descriptor of every process is examined.
    pub(crate) fn listening_at(target: SocketAddr) -> Self {
        let inodes: Vec<PathBuf> = ["/proc/net/tcp", "/proc/net/tcp6"]
            .into_iter()
            .filter_map(|path| fs::read_to_string(path).ok())
            .flat_map(|text| sockets::listening(&text, target))
            .map(|inode| PathBuf::from(format!("socket:[{inode}]")))
            .collect();
        if inodes.is_empty() {
            return Self::default();
        }
        // This process generates the load: its CPU time can't be told apart from a server's.
        let others = numbers(Path::new("/proc")).filter(|process| *process != std::process::id());
        let processes = others.filter(|process| holds(*process, &inodes)).collect();
        Self { processes }
    }

    /// Reads the CPU times: a file per process and per thread.
    pub(crate) fn look(&self) -> ServerLook {
        let mut look = ServerLook::default();
        for process in &self.processes {
            let folder = PathBuf::from(format!("/proc/{process}"));
            if let Some(times) = times(&folder) {
                look.processes.insert(*process, times);
            }
            let tasks = folder.join("task");
            for thread in numbers(&tasks) {
                if let Some(times) = times(&tasks.join(thread.to_string())) {
                    let used = times.user + times.system;
                    look.threads.insert((*process, thread), used);
                }
            }
        }
        look
    }
}

impl ServerLook {
    /// The CPU time since `earlier`, `elapsed` ago. `None` if no process existed at both times.
    pub(crate) fn since(&self, earlier: &Self, elapsed: Duration) -> Option<ServerCpu> {
        let mut sum = ServerCpu::default();
        let mut most = None;
        for (process, now) in &self.processes {
            let Some(before) = earlier.processes.get(process) else {
                continue;
            };
            let user = now.user.saturating_sub(before.user);
            let system = now.system.saturating_sub(before.system);
            sum.user += user;
            sum.system += system;
            // The busiest one gives the name.
            if most.is_none_or(|most| user + system > most) {
                most = Some(user + system);
                sum.process = *process;
                sum.command.clone_from(&now.command);
            }
        }
        most?;
        let used = self.threads.iter().map(|(thread, now)| {
            // A thread that is new has used all its time since.
            let before = earlier.threads.get(thread).copied().unwrap_or_default();
            now.saturating_sub(before)
        });
        let busiest = used.max().unwrap_or_default();
        if !elapsed.is_zero() {
            // Ticks are coarse: in a short run they may exceed its time.
            sum.busiest_thread = (busiest.as_secs_f64() / elapsed.as_secs_f64()).min(1.0);
        }
        Some(sum)
    }
}

fn times(folder: &Path) -> Option<ProcessTimes> {
    process::parse(&fs::read_to_string(folder.join("stat")).ok()?)
}

/// Whether one of the sockets is in a descriptor table of the process; threads may have tables of their own.
fn holds(process: u32, sockets: &[PathBuf]) -> bool {
    let folder = PathBuf::from(format!("/proc/{process}"));
    if table_has(&folder.join("fd"), sockets) {
        return true;
    }
    let tasks = folder.join("task");
    let mut threads = numbers(&tasks).filter(|thread| *thread != process);
    threads.any(|thread| table_has(&tasks.join(format!("{thread}/fd")), sockets))
}

fn table_has(table: &Path, sockets: &[PathBuf]) -> bool {
    let entries = fs::read_dir(table).into_iter().flatten().flatten();
    let mut links = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
    links.any(|link| sockets.contains(&link))
}

/// The entries of a folder that are numbers.
fn numbers(folder: &Path) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn look(processes: &[(u32, &str, u32, u32)], threads: &[(u32, u32, u32)]) -> ServerLook {
        let processes = processes.iter().map(|(process, command, user, system)| {
            let times = ProcessTimes {
                command: String::from(*command),
                user: SECOND * *user,
                system: SECOND * *system,
            };
            (*process, times)
        });
        let threads = threads
            .iter()
            .map(|(process, thread, used)| ((*process, *thread), SECOND * *used));
        ServerLook {
            processes: processes.collect(),
            threads: threads.collect(),
        }
    }

    #[test]
    fn all_processes_count_and_the_busiest_gives_the_name() {
        let before = look(
            &[
                (1, "master", 5, 5),
                (2, "worker", 1, 1),
                (3, "worker", 0, 0),
            ],
            &[(1, 1, 10), (2, 2, 2), (3, 3, 0)],
        );
        let after = look(
            &[
                (1, "master", 5, 5),
                (2, "worker", 2, 3),
                (3, "worker", 4, 4),
                (4, "new", 9, 9),
            ],
            &[(1, 1, 10), (2, 2, 5), (3, 3, 5), (3, 4, 3)],
        );
        let used = after.since(&before, SECOND * 10).unwrap();
        assert_eq!((used.process, used.command.as_str()), (3, "worker"));
        assert_eq!((used.user, used.system), (SECOND * 5, SECOND * 6));
        assert!((used.busiest_thread - 0.5).abs() < 1e-9, "{used:?}");
    }

    #[test]
    fn a_server_that_is_gone_has_used_nothing_that_we_know() {
        let before = look(&[(1, "a", 5, 5)], &[]);
        assert_eq!(look(&[], &[]).since(&before, SECOND), None);
        assert_eq!(look(&[(2, "b", 5, 5)], &[]).since(&before, SECOND), None);
    }

    #[test]
    fn a_process_that_is_there_can_be_looked_at() {
        let own = std::process::id();
        let look = Server::of_process(own).look();
        assert!(look.processes.contains_key(&own));
        assert!(look.threads.keys().all(|(process, _)| *process == own));
        assert!(!look.threads.is_empty());
    }

    #[test]
    fn a_listener_of_our_own_is_not_the_server() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Server::listening_at(listener.local_addr().unwrap());
        assert_eq!(server, Server::default());
    }

    #[test]
    fn another_process_with_the_listening_socket_is_the_server() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .stdin(std::os::fd::OwnedFd::from(listener))
            .spawn()
            .unwrap();
        let server = Server::listening_at(address);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(server, Server::of_process(child.id()));
    }
}
