//! The initial file system: a shell, modules, the script that lays the guest's root, and what the guest is to do.

use crate::archive::Archive;
use crate::kernel::Kernel;
use crate::modules;
use std::io;
use std::path::Path;

/// What a guest is to do, in files below [`GUEST_FOLDER`].
#[derive(Debug, Default)]
pub struct Errand {
    /// A script for /bin/sh, which runs with the console as its output; the guest then shows its exit status behind
    /// [`JOB_ENDED`], and switches itself off. Without one it stays.
    pub job: Option<String>,
    /// A public key: commands by ssh are accepted.
    pub authorized_key: Option<String>,
}

/// The archive for `-initrd`.
pub fn build(kernel: &Kernel, errand: &Errand) -> io::Result<Vec<u8>> {
    let busybox = std::fs::read(BUSYBOX).map_err(|error| {
        io::Error::new(error.kind(), format!("needs {BUSYBOX} (busybox-static)"))
    })?;
    let mut archive = Archive::default();
    for folder in [
        "bin", "proc", "sys", "dev", "lower", "upper", "new", "modules", "guest",
    ] {
        archive.folder(folder);
    }
    archive.file("bin/busybox", true, &busybox);
    archive.file("init", true, include_bytes!("init.sh"));
    let mut list = String::new();
    for module in modules::read(&kernel.modules, &MODULES)? {
        archive.file(
            &format!("modules/{}.ko", module.name),
            false,
            &module.content,
        );
        list.push_str(&module.name);
        list.push('\n');
    }
    archive.file("modules/list", false, list.as_bytes());
    archive.file("guest/start", true, include_bytes!("start.sh"));
    if let Some(job) = &errand.job {
        archive.file("guest/job", true, job.as_bytes());
    }
    if let Some(key) = &errand.authorized_key {
        archive.file("guest/authorized_keys", false, key.as_bytes());
    }
    Ok(archive.finish())
}

/// What is missing on this machine for guests at all, beside a kernel.
pub fn missing(accepts_ssh: bool) -> Vec<&'static str> {
    let mut needed = vec![
        ("/usr/bin/qemu-system-x86_64", "qemu-system-x86"),
        (BUSYBOX, "busybox-static"),
    ];
    if accepts_ssh {
        needed.push(("/usr/sbin/dropbear", "dropbear-bin"));
        needed.push(("/usr/bin/ssh", "openssh-client"));
    }
    let absent = needed
        .into_iter()
        .filter(|(path, _)| !Path::new(path).exists());
    absent.map(|(_, package)| package).collect()
}

/// Where the files are in the guest.
pub const GUEST_FOLDER: &str = "/run/guest";

/// What the console shows before the exit status of a job.
pub const JOB_ENDED: &str = "guest: job ended with ";

/// What the console shows when commands by ssh are accepted.
pub const READY: &str = "guest: ready";

/// Linked statically, so that it runs before there are any libraries.
const BUSYBOX: &str = "/usr/bin/busybox";

/// The carriers of the root directory, of the console's neighbour and of random numbers; cards; what tests and the lab
/// make in the guest.
const MODULES: [&str; 18] = [
    "virtio_pci",
    "virtio_console",
    "virtio_rng",
    "9pnet_virtio",
    "9p",
    "overlay",
    "virtio_net",
    "igb",
    "e1000e",
    "veth",
    "tun",
    "bridge",
    "macvlan",
    "8021q",
    "sch_tbf",
    "sch_fq",
    "tcp_bbr",
    "netlink_diag",
];
