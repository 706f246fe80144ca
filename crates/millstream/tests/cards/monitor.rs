//! QEMU's monitor, which a guest reaches by a port of its own.

use crate::server::wait_for;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

/// Has QEMU plug the cable of a card in, or pull it out.
pub(crate) fn set_link(card: &str, is_on: bool) {
    let mut port = File::options().write(true).open(port()).unwrap();
    let state = if is_on { "on" } else { "off" };
    writeln!(port, "set_link {card} {state}").unwrap();
}

/// Of /sys/class/virtio-ports, where each port says its name.
fn port() -> PathBuf {
    let mut found = None;
    wait_for(|| {
        let ports = fs::read_dir("/sys/class/virtio-ports")
            .into_iter()
            .flatten();
        found = ports.flatten().find(|port| {
            let name = fs::read_to_string(port.path().join("name"));
            name.is_ok_and(|name| name.trim() == "monitor")
        });
        found.is_some()
    });
    PathBuf::from("/dev").join(found.unwrap().file_name())
}
