//! Paths of control sockets: a file each, named by the number of the process in charge.
//!
//! | user | path |
//! | --- | --- |
//! | root | `/run/millstream/servers/` |
//! | others | `$XDG_RUNTIME_DIR/millstream/servers/` |
//! | others without that variable | `/tmp/millstream-UID/servers/` |
//!
//! File names, unlike abstract socket names, are the same in all network namespaces.

use mill_sys::account;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The folder of this user.
pub fn own_folder() -> PathBuf {
    let user = account::own_user();
    if user == 0 {
        return PathBuf::from(FOLDER_OF_ROOT);
    }
    let variable = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    match variable.filter(|folder| folder.is_absolute()) {
        Some(folder) => folder.join("millstream/servers"),
        None => PathBuf::from(format!("/tmp/millstream-{user}/servers")),
    }
}

/// The folders in which a client looks. Root also sees those of users at the places used without the variable.
pub fn folders() -> Vec<PathBuf> {
    let mut folders = vec![own_folder()];
    if account::own_user() == 0 {
        let below = |parent: &str, rest: &str| -> Vec<PathBuf> {
            let entries = fs::read_dir(parent).into_iter().flatten().flatten();
            entries.map(|entry| entry.path().join(rest)).collect()
        };
        folders.extend(below("/run/user", "millstream/servers"));
        let temporary = below("/tmp", "servers").into_iter();
        folders.extend(temporary.filter(|folder| {
            let parent = folder.parent().and_then(Path::file_name);
            parent.is_some_and(|name| name.as_encoded_bytes().starts_with(b"millstream-"))
        }));
    } else {
        folders.push(PathBuf::from(FOLDER_OF_ROOT));
    }
    folders
}

/// The socket of a process in a folder.
pub fn socket_in(folder: &Path, process: u32) -> PathBuf {
    folder.join(format!("{process}{SUFFIX}"))
}

/// The process that a socket belongs to, by its name.
pub fn process_of(socket: &Path) -> Option<u32> {
    socket
        .file_name()?
        .to_str()?
        .strip_suffix(SUFFIX)?
        .parse()
        .ok()
}

/// Makes a folder that no other user can write to; refuses one of another owner.
pub(crate) fn make(folder: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let mut part = Some(folder);
    for _ in 0..DEPTH {
        let Some(folder) = part else { break };
        let metadata = fs::symlink_metadata(folder)?;
        let is_safe = metadata.is_dir()
            && metadata.uid() == account::own_user()
            && metadata.permissions().mode() & 0o022 == 0;
        if !is_safe {
            let what = format!(
                "{} belongs to another user, or others may write to it",
                folder.display()
            );
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
        }
        part = folder.parent();
    }
    Ok(())
}

const FOLDER_OF_ROOT: &str = "/run/millstream/servers";

const SUFFIX: &str = ".socket";

/// Folders that are ours: `millstream` and `servers`.
const DEPTH: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sockets_name_is_its_process() {
        let socket = socket_in(Path::new("/a"), 4711);
        assert_eq!(socket, Path::new("/a/4711.socket"));
        let check = |name: &str, expected| assert_eq!(process_of(Path::new(name)), expected);
        check("/a/4711.socket", Some(4711));
        check("/a/x.socket", None);
        check("/a/4711", None);
        check("/", None);
    }

    #[test]
    fn a_folder_that_others_may_write_to_is_refused() {
        let scratch = crate::scratch::Directory::new();
        let folder = scratch.path("mine/servers");
        make(&folder).unwrap();
        assert_eq!(
            folder.metadata().unwrap().permissions().mode() & 0o777,
            0o700
        );
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        let error = make(&folder).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    }
}
