//! The environment of the tests: a journal in a folder that is removed with it, and sockets inside namespaces.

use mill_lab_host::host::Host;
use mill_lab_host::journal::Journal;
use mill_sys::namespace::enter_network;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder below the system's temporary one, removed with what is in it.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("mill-lab-host-{}-{number}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn journal(&self, run: &str) -> Journal {
        Journal::begin(&self.0, run).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Whether namespaces can be made here; prints a line if not.
pub(crate) fn has_root() -> bool {
    let has = mill_sys::account::is_super_user();
    if !has {
        println!("skipped: needs root (CAP_NET_ADMIN)");
    }
    has
}

/// Namespaces are named by the process: tests of one process that look for free names take turns.
pub(crate) fn turn() -> std::sync::MutexGuard<'static, ()> {
    static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
    TURN.lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Does something on a thread in the host's namespace.
pub(crate) fn on<T: Send>(host: &Host, act: impl FnOnce() -> T + Send) -> T {
    let Host::Namespace(name) = host else {
        return act();
    };
    let namespace = File::open(Path::new("/run/netns").join(name)).unwrap();
    std::thread::scope(|scope| {
        let inside = scope.spawn(move || {
            enter_network(&namespace).unwrap();
            act()
        });
        inside.join().unwrap()
    })
}

/// The namespaces of this process's labs.
pub(crate) fn namespaces() -> Vec<String> {
    let own = format!("ms{}", std::process::id());
    let Ok(folder) = std::fs::read_dir("/run/netns") else {
        return Vec::new();
    };
    let names = folder.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|name| name.starts_with(&own)).collect()
}
