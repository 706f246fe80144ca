//! Connections of a process that are the kernel's: over loopback, over other interfaces, or from before there was a stack.
//!
//! They are counted at the time of asking, from the kernel's tables. Descriptors of the stack's connections are duplicates of a socket
//! without a connection, which is in no table.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;

/// Tables of the kernel that were read, by network namespace: processes of one have the same.
#[derive(Debug, Default)]
pub struct KernelConnections(BTreeMap<OsString, BTreeSet<u64>>);

impl KernelConnections {
    /// How many connections of a process the kernel has now; `None` where this user may not look.
    pub fn of(&mut self, process: u32) -> Option<usize> {
        let namespace = fs::read_link(format!("/proc/{process}/ns/net")).ok()?;
        let sockets = sockets(process)?;
        let connected = self.0.entry(namespace.into_os_string()).or_insert_with(|| {
            let tables = ["tcp", "tcp6"].map(|table| format!("/proc/{process}/net/{table}"));
            let texts = tables.map(|path| fs::read_to_string(path).unwrap_or_default());
            texts.iter().flat_map(|text| connected(text)).collect()
        });
        Some(sockets.intersection(connected).count())
    }
}

/// The inodes of a process's sockets: its descriptors are links to `socket:[4711]` (proc_pid_fd(5)).
fn sockets(process: u32) -> Option<BTreeSet<u64>> {
    let entries = fs::read_dir(format!("/proc/{process}/fd")).ok()?;
    let inodes = entries.flatten().filter_map(|entry| {
        let link = fs::read_link(entry.path()).ok()?;
        let link = std::str::from_utf8(link.as_os_str().as_bytes()).ok()?;
        link.strip_prefix("socket:[")?
            .strip_suffix(']')?
            .parse()
            .ok()
    });
    Some(inodes.collect())
}

/// The inodes of a table's connections (proc_pid_net(5)): the fourth column is the state, the tenth the inode.
fn connected(table: &str) -> impl Iterator<Item = u64> {
    table.lines().skip(1).filter_map(|line| {
        let mut columns = line.split_whitespace();
        let state = columns.nth(3)?;
        let inode = columns.nth(5)?.parse().ok()?;
        (![LISTEN, CLOSE].contains(&state)).then_some(inode)
    })
}

/// From the kernel's tcp_states.h.
const CLOSE: &str = "07";
const LISTEN: &str = "0A";

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn lines_of_connections_alone_are_taken() {
        let table = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11 1 0000 100 0 0 10 0
   1: 0100007F:1F90 0100007F:CAFE 01 00000000:00000000 00:00000000 00000000     0        0 12 1 0000 20 4 30 10 -1
   2: 0100007F:1F90 0100007F:CAFF 06 00000000:00000000 03:00000176 00000000     0        0 0 3 0000
   3: 0100007F:1F91 0100007F:CAFF 08 00000000:00000000 00:00000000 00000000     0        0 13 1 0000
   4: 0100007F:1F92 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 14 1 0000
   5: cut
";
        assert_eq!(connected(table).collect::<Vec<_>>(), [12, 0, 13]);
    }

    #[test]
    fn connections_of_the_kernel_are_counted_and_listeners_are_not() {
        let own = std::process::id();
        let count = || KernelConnections::default().of(own).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        // Other tests of this process may have connections meanwhile: these are looked for by their inodes.
        let before = sockets(own).unwrap();
        let _both = [
            TcpStream::connect(listener.local_addr().unwrap()).unwrap(),
            listener.accept().unwrap().0,
        ];
        assert!(sockets(own).unwrap().difference(&before).count() >= 2);
        assert!(count() >= 2);
        assert_eq!(KernelConnections::default().of(u32::MAX), None);
    }
}
