//! Where the program has called listen(2): the stack listens there with the first accept(2) or epoll_ctl(2) only, so that the process
//! that accepts has the connections. SYNs that come before are not refused.

use crate::lock::{Lock, LockGuard};
use crate::{kernel_options, listening, stacks};
use core::ffi::c_int;
use core::net::SocketAddr;

/// Listeners of the kernel, with their descriptors. Locked with a stack's lock held, as fork(2) copies it.
static DECLARED: Lock<Vec<(c_int, SocketAddr)>> = Lock::new(Vec::new());

fn table() -> LockGuard<'static, Vec<(c_int, SocketAddr)>> {
    DECLARED.lock()
}

/// The program listens at a socket of the kernel.
pub(crate) fn note(fd: c_int) {
    if stacks::is_inside() || !stacks::is_offered() || !listening::is_tcp_listener(fd) {
        return;
    }
    if let Ok(address) = listening::local(fd) {
        let _guard = stacks::visit(0);
        let mut table = table();
        table.retain(|(other, _)| *other != fd);
        table.push((fd, address));
    }
}

/// Whether the program is about to listen at an address; a stack's lock is held.
pub(crate) fn has(address: SocketAddr) -> bool {
    let mut table = table();
    // Descriptors may have been closed since.
    table.retain(|(fd, local)| listening::local(*fd) == Ok(*local));
    table.iter().any(|(fd, local)| {
        let ip = local.ip().to_canonical();
        let is_there = ip.is_unspecified() || ip == address.ip();
        let accepts = || kernel_options::number(*fd, libc::SOL_SOCKET, libc::SO_ACCEPTCONN);
        is_there && local.port() == address.port() && accepts() == Some(1)
    })
}
