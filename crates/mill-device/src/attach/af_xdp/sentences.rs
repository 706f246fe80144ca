//! Errors and notices as sentences for the administrator.

use crate::af_xdp::XdpTrouble;
use crate::attach::Trouble;
use crate::network::NetworkError;
use crate::rights::{Right, Rights};
use crate::specification::nearest::nearest;
use mill_sys::interface;
use mill_sys::xsk::XskError;
use std::io;

pub(super) fn not_read(error: &NetworkError) -> String {
    if !error.is_gone() {
        return error.to_string();
    }
    let wanted = &error.interface;
    let names = interface::names().unwrap_or_default();
    match nearest(wanted, names.iter().map(String::as_str)) {
        Some(name) => format!("there is no interface \"{wanted}\"; did you mean \"{name}\"?"),
        None => {
            format!("there is no interface \"{wanted}\"; \"ip link\" lists those that there are")
        }
    }
}

pub(super) fn loses_merged_notice(interface: &str) -> String {
    format!(
        "af_xdp:{interface}: unsegmented packets from a peer on this machine are lost: set mode=generic, which makes room for them, \
                 or have the peer segment them (\"ethtool -K PEER tso off gso off\", PEER being its interface)"
    )
}

pub(super) fn not_bound(failed: &XskError, queue: u32) -> String {
    let has = |right| Rights::own().is_none_or(|own| own.has(right));
    let why = match failed.error.kind() {
        io::ErrorKind::PermissionDenied if has(Right::NET_RAW) => String::from(
            "the interface belongs to another user namespace, where this process has no rights",
        ),
        io::ErrorKind::PermissionDenied => {
            String::from("the right CAP_NET_RAW is missing, which root has")
        }
        io::ErrorKind::ResourceBusy => {
            format!("queue {queue} of the interface is in use, perhaps by another Millstream")
        }
        // The kernel's answer where pinned pages would exceed RLIMIT_MEMLOCK (xdp_umem_account_pages).
        _ if failed.error.raw_os_error() == Some(ENOBUFS) => {
            let missing = if has(Right::IPC_LOCK) {
                ""
            } else {
                ", and the right CAP_IPC_LOCK is missing, for which there is no limit"
            };
            format!("packet memory is more than may be locked (ulimit -l){missing}")
        }
        _ => format!("{}: {}", failed.call, failed.error),
    };
    format!("the queue can't be had: {why}")
}

/// "No buffer space available" (asm-generic/errno.h).
const ENOBUFS: i32 = 105;

pub(super) fn queue_trouble(trouble: XdpTrouble) -> Trouble {
    match trouble {
        XdpTrouble::DeviceGone => Trouble::DeviceGone,
        XdpTrouble::QueueSendsNothing => Trouble::Problem(String::from(
            "the interface has fewer queues to send than to receive by, and sends nothing by this one: \
             choose a lower queue=, or give it as many (ethtool -L)",
        )),
    }
}
