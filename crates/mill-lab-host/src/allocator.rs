//! Allocators by LD_PRELOAD, and proof in /proc/PID/maps that it worked.

use mill_lab::recipe::Allocator;
use std::path::{Path, PathBuf};

/// The library to preload; an error is what the report's cell shows.
pub fn library(allocator: Allocator) -> Result<Option<PathBuf>, String> {
    let (names, package) = match allocator {
        Allocator::Glibc => return Ok(None),
        Allocator::Jemalloc => (&["libjemalloc.so.2", "libjemalloc.so"][..], "libjemalloc2"),
        Allocator::Mimalloc => (
            &["libmimalloc.so.2", "libmimalloc.so.2.0", "libmimalloc.so"][..],
            "libmimalloc2.0",
        ),
    };
    let candidates = FOLDERS
        .iter()
        .flat_map(|folder| names.iter().map(move |name| Path::new(folder).join(name)));
    let found = candidates.into_iter().find(|path| path.exists());
    found
        .map(Some)
        .ok_or_else(|| format!("not on this machine: needs {package}"))
}

/// Whether a process has loaded the library; the error names what it has instead.
pub fn verify(process: u32, allocator: Allocator) -> Result<(), String> {
    let wanted = match allocator {
        Allocator::Glibc => return Ok(()),
        Allocator::Jemalloc => "libjemalloc",
        Allocator::Mimalloc => "libmimalloc",
    };
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps"))
        .map_err(|error| format!("/proc/{process}/maps: {error}"))?;
    if maps.contains(wanted) {
        Ok(())
    } else {
        Err(format!(
            "{wanted} was preloaded, but process {process} has not mapped it: is the program static or set-user-ID?"
        ))
    }
}

const FOLDERS: [&str; 6] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
    "/usr/local/lib64",
];
