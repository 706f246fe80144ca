//! Where the measurement happens: the temporary folder with its content, the CPUs, free ports.

use std::cell::Cell;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use mill_sys::affinity::allowed_cpus;
use mill_sys::rlimit::Resource;

use super::accounting::{SoftirqAccount, softirq_account};
use super::caretaker::Caretaker;
use super::configuration::FILE_NAME;
use super::failure::{Failure, Result};

#[derive(Debug)]
pub(super) struct Lab {
    pub(super) caretaker: Caretaker,
    folder: PathBuf,
    pub(super) server_cpu: u16,
    pub(super) client_cpu: u16,
    /// How this kernel accounts for what the network stack does between system calls.
    pub(super) softirq_account: SoftirqAccount,
    next_port: Cell<u16>,
}

impl Lab {
    pub(super) fn open() -> Result<Self> {
        let cpus = allowed_cpus().map_err(Failure::during("cannot ask for the CPUs"))?;
        let &[server_cpu, client_cpu, ..] = cpus.as_slice() else {
            let message = "two CPUs are needed, one for the server and one for the client";
            return Err(Failure(message.to_owned()));
        };
        raise_descriptor_limit()?;
        let folder = folder_base().join(format!("millstream-bench-{}", std::process::id()));
        fs::create_dir(&folder).map_err(Failure::during(folder.display()))?;
        // The worker of a server started by root is another user.
        let open_to_all = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&folder, open_to_all).map_err(Failure::during(folder.display()))?;
        let caretaker = Caretaker::start(&folder)?;
        Ok(Self {
            caretaker,
            folder,
            server_cpu,
            client_cpu,
            softirq_account: softirq_account(),
            next_port: Cell::new(FIRST_PORT),
        })
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A folder whose one file has `body_bytes` bytes; made once.
    pub(super) fn content(&self, body_bytes: usize) -> Result<PathBuf> {
        let folder = self.folder.join(format!("content-{body_bytes}"));
        if !folder.exists() {
            fs::create_dir(&folder).map_err(Failure::during(folder.display()))?;
            let file = folder.join(FILE_NAME);
            fs::write(&file, body(body_bytes)).map_err(Failure::during(file.display()))?;
        }
        Ok(folder)
    }

    /// An empty folder, for the files of one server.
    pub(super) fn empty_folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.folder.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(Failure::during(folder.display()))?;
        }
        fs::create_dir(&folder).map_err(Failure::during(folder.display()))?;
        Ok(folder)
    }

    /// A port that nobody listens on; another one each time, so that no block meets the waiting
    /// connections of the block before it.
    pub(super) fn free_port(&self) -> Result<u16> {
        for _ in FIRST_PORT..END_PORT {
            let port = self.next_port.get();
            self.next_port.set(if port + 1 < END_PORT {
                port + 1
            } else {
                FIRST_PORT
            });
            if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
                return Ok(port);
            }
        }
        Err(Failure(format!(
            "no port from {FIRST_PORT} to {END_PORT} is free"
        )))
    }
}

/// Below the ports that Linux gives to clients (ip_local_port_range begins at 32768), above those
/// that people choose.
const FIRST_PORT: u16 = 20_000;
const END_PORT: u16 = 32_000;

/// In memory if possible: the disk is not what is measured.
fn folder_base() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        memory.into()
    } else {
        std::env::temp_dir()
    }
}

/// Text that compresses about as well as a page does: words of a small vocabulary, in an order that
/// does not repeat.
pub(super) fn body(bytes: usize) -> Vec<u8> {
    const WORDS: [&str; 16] = [
        "<p>", "</p>\n", "mill ", "stream ", "wheel ", "water ", "stone ", "grain ", "flour ",
        "the ", "of ", "turns ", "<em>", "</em> ", "quick ", "river ",
    ];
    // Marsaglia's xorshift with a constant seed: every run serves the same bytes.
    let mut state: u32 = 2_463_534_242;
    let mut body = Vec::with_capacity(bytes + 16);
    while body.len() < bytes {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        let word = usize::try_from(state % 16)
            .ok()
            .and_then(|index| WORDS.get(index));
        body.extend_from_slice(word.copied().unwrap_or_default().as_bytes());
    }
    body.truncate(bytes);
    body
}

/// wrk and the idle connections need more descriptors than the usual soft limit.
fn raise_descriptor_limit() -> Result<()> {
    let failed = || Failure::during("cannot raise the limit of open files");
    let mut limit = Resource::Descriptors.limit().map_err(failed())?;
    limit.soft = limit.hard;
    Resource::Descriptors.set_limit(limit).map_err(failed())
}

#[cfg(test)]
mod tests {
    use super::body;

    #[test]
    fn a_body_has_its_size_and_is_the_same_each_time() {
        for bytes in [0, 1, 600, 100_000] {
            assert_eq!(body(bytes).len(), bytes);
            assert_eq!(body(bytes), body(bytes));
        }
    }
}
