//! Where the measurement happens: the temporary folder with its content, the CPUs, free ports.

use std::cell::Cell;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use mill_sys::affinity::allowed_cpus;
use mill_sys::rlimit::Resource;

use super::caretaker::Caretaker;
use super::failure::{Failure, Result};

#[derive(Debug)]
pub(super) struct Lab {
    pub(super) caretaker: Caretaker,
    folder: PathBuf,
    pub(super) server_cpu: u16,
    pub(super) client_cpu: u16,
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
            next_port: Cell::new(FIRST_PORT),
        })
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
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

/// wrk and the idle connections need more descriptors than the usual soft limit.
fn raise_descriptor_limit() -> Result<()> {
    let failed = || Failure::during("cannot raise the limit of open files");
    let mut limit = Resource::Descriptors.limit().map_err(failed())?;
    limit.soft = limit.hard;
    Resource::Descriptors.set_limit(limit).map_err(failed())
}
