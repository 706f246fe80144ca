//! Files that are whole or not there: written under another name, on disk, and only then under their own.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Writes a file that does not exist yet; it is on disk when this returns. An existing one is an error.
pub fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if path.try_exists()? {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "it is written once and exists already",
        ));
    }
    publish(path, bytes)
}

/// Writes a file, or replaces the old one: a concurrent reader sees one of the two, whole.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if path.is_dir() {
        return Err(io::Error::new(
            io::ErrorKind::IsADirectory,
            "a folder of this name is in the way",
        ));
    }
    publish(path, bytes)
}

fn publish(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no file name"))?;
    let folder = folder_of(path);
    // The process' number keeps two labs apart that write the same report.
    let draft = folder.join(format!(".{name}.{}.draft", std::process::id()));
    // What an ended process of the same number left.
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let written = write_draft(&draft, bytes).and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(&draft);
    }
    written?;
    sync_folder(&folder)
}

fn write_draft(draft: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(draft)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Names live in folders: without this a file may be on disk and its name not.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// Takes the right to write from everything below `folder`, and from itself; or gives it back. Links are left alone.
pub(super) fn set_writable(folder: &Path, writable: bool) -> io::Result<()> {
    let folder_mode = if writable { 0o755 } else { 0o555 };
    if writable {
        fs::set_permissions(folder, Permissions::from_mode(folder_mode))?;
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            set_writable(&entry.path(), writable)?;
        } else if kind.is_file() {
            let mode = if writable { 0o644 } else { 0o444 };
            fs::set_permissions(entry.path(), Permissions::from_mode(mode))?;
        }
    }
    if !writable {
        fs::set_permissions(folder, Permissions::from_mode(folder_mode))?;
    }
    Ok(())
}
