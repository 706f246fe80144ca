//! The library was preloaded by itself, without a `millstream run` before: `LD_PRELOAD=libonload.so wrk …`, as Onload's users do.
//!
//! Where `MILLSTREAM_STACK` says which interface, the process becomes its program once more, by `onload`. In a network namespace without that
//! interface it stays as it is, and leaves this to the programs that it becomes: `taskset` and `ip netns exec` stand before the one
//! that is meant.

use crate::say::say;
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Before the program's main(); returns where the program goes on as it is.
pub(crate) fn begin() {
    let stack = std::env::var(mill_keeper::onload::STACK).unwrap_or_default();
    if !is_here(&stack) {
        return;
    }
    let (Some(library), Ok(program)) = (library(), std::fs::read_link("/proc/self/exe")) else {
        return;
    };
    let words = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    let words = words.strip_suffix(b"\0").unwrap_or(&words);
    let mut words = words
        .split(|byte| *byte == 0)
        .map(|word| OsString::from_vec(word.to_vec()));
    let called = words.next().unwrap_or_default();
    let Some(binary) = binary(&library) else {
        let library = library.display();
        return say(&format!(
            "this program stays on the kernel's network stack: there is no millstream beside {library}"
        ));
    };
    // Under the name that it was called by, where that leads to it.
    let is_same = |path: PathBuf| path.canonicalize().is_ok_and(|path| path == program);
    let is_known = mill_keeper::executable::find(&called).is_some_and(is_same);
    let program = if is_known { called } else { program.into() };
    let mut command = Command::new(&binary);
    command.arg0("onload").arg("--").arg(program).args(words);
    command.env(
        PRELOAD,
        others(&std::env::var_os(PRELOAD).unwrap_or_default()),
    );
    let error = command.exec();
    say(&format!("{} can't be started: {error}", binary.display()));
}

/// Whether the interface of a stack is in this network namespace.
fn is_here(stack: &str) -> bool {
    let name = stack
        .split(',')
        .next()
        .and_then(|device| device.strip_prefix("af_xdp:"));
    let Some(name) = name.and_then(|name| CString::new(name).ok()) else {
        return false;
    };
    // SAFETY: the name is NUL-terminated and lives through the call.
    unsafe { libc::if_nametoindex(name.as_ptr()) != 0 }
}

/// This library's file, whatever link it was loaded by.
fn library() -> Option<PathBuf> {
    let maps = std::fs::read("/proc/self/maps").ok()?;
    let own = maps
        .split(|byte| *byte == b'\n')
        .find(|line| line.ends_with(NAME));
    let path = own?.iter().position(|byte| *byte == b'/')?;
    Some(PathBuf::from(OsStr::from_bytes(own?.get(path..)?)))
}

/// The program of this library: beside it, or in the `bin` folder beside its own.
fn binary(library: &Path) -> Option<PathBuf> {
    let folder = library.parent()?;
    let places = [folder.join("millstream"), folder.join("../bin/millstream")];
    places.into_iter().find(|place| place.is_file())
}

/// What else was preloaded: `onload` puts this library before it.
fn others(preloaded: &OsStr) -> OsString {
    let is_other = |path: &&[u8]| {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        !name.is_empty() && name != b"libonload.so" && !NAME.ends_with(name)
    };
    let separates = |byte: &u8| *byte == b':' || *byte == b' ';
    let kept: Vec<&[u8]> = preloaded
        .as_bytes()
        .split(separates)
        .filter(is_other)
        .collect();
    OsString::from_vec(kept.join(&b':'))
}

const PRELOAD: &str = "LD_PRELOAD";

const NAME: &[u8] = b"/libmillstream.so";
