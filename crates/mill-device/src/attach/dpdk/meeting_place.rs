//! The socket at which the bridge listens, in a folder that only this user may search, and that is gone once it is open.

use mill_sys::file::{self, IfCold};
use mill_sys::random;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::PathBuf;

/// The folder, removed on drop.
#[derive(Debug)]
pub(super) struct MeetingPlace(PathBuf);

impl MeetingPlace {
    pub(super) fn new() -> io::Result<Self> {
        let mut number = [0; 8];
        random::fill(&mut number)?;
        let name = format!("millstream-dpdk-{:016x}", u64::from_ne_bytes(number));
        let path = std::env::temp_dir().join(name);
        // Fails if there is something of this name.
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.0.join("memif")
    }

    /// Opens the socket's file, by which a process of any user can connect, and no process without it.
    pub(super) fn open(&self) -> io::Result<OwnedFd> {
        let path = self.socket();
        fs::set_permissions(&path, Permissions::from_mode(0o666))?;
        file::open_path(
            None,
            path.as_os_str().as_encoded_bytes(),
            false,
            IfCold::Wait,
        )
    }
}

impl Drop for MeetingPlace {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memif;
    use mill_sys::seqpacket;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_socket_can_be_connected_to_when_its_folder_is_gone() {
        let place = MeetingPlace::new().unwrap();
        let path = place.socket();
        let _listener = memif::listener(&path).unwrap();
        let file = place.open().unwrap();
        drop(place);
        assert!(!path.parent().unwrap().exists());
        let name = format!("/proc/thread-self/fd/{}", file.as_raw_fd());
        seqpacket::connect(name.as_bytes()).unwrap();
    }
}
