//! The network stack of our own in the server: its faults as log messages, how many threads serve on it, and the
//! addresses that are its alone.
//!
//! The process in charge (the master, or the only process) makes the device (mill-device `attachment.rs`), which takes
//! privileges, and keeps it: a restarted worker process goes on with the same device. If a device can have several
//! attachments, there is one for each worker thread of the first configuration.

use crate::process_log::describe;
use crate::threads;
use mill_config::Config;
use mill_config::config::{ListenAddress, LogLevel, Main};
use mill_device::attach::{self, Trouble};
use mill_device::attachment::{Attachment, WorkerAttachment};
use mill_device::specification::Specification;
use mill_device::specification::device::Device;
use mill_engine::combined::{self, Bypass};
use std::io;
use std::path::Path;

/// What a worker's engine is made with; `None` if the device no longer exists. `on_trouble` gets a message and its level
/// for each fault.
pub(crate) fn bypass(
    worker: WorkerAttachment,
    on_trouble: impl Fn(LogLevel, String) + Clone + Send + 'static,
) -> io::Result<Option<Bypass>> {
    let path = worker.specification().pcap.clone().unwrap_or_default();
    let name = worker.specification().device.to_string();
    let is_first = worker.is_first();
    let tell = move |trouble| {
        let level = match trouble {
            Trouble::Notice(_) => LogLevel::Notice,
            _ => LogLevel::Alert,
        };
        on_trouble(level, sentence(trouble, &name, &path));
    };
    match combined::bypass(worker, tell.clone()) {
        Err(error) if attach::is_gone(&error) => {
            if is_first {
                tell(Trouble::DeviceGone);
            }
            Ok(None)
        }
        bypass => bypass.map(Some),
    }
}

/// Opens what the process that serves has for itself of a device, and must not fork afterwards. What could not be had as requested is
/// known since the device was made; the error is a message.
pub(crate) fn open(attachment: &mut Attachment) -> Result<(), String> {
    let opened = attachment.open().map_err(|error| error.to_string());
    opened.map(drop)
}

fn sentence(trouble: Trouble, name: &str, path: &Path) -> String {
    match trouble {
        Trouble::DeviceGone => format!(
            "the device \"{name}\" was deleted: the stack has no network any more; a restart creates the device again"
        ),
        Trouble::Problem(what) | Trouble::Notice(what) => format!("{name}: {what}"),
        Trouble::Capture(error) => {
            let (path, why) = (path.display(), describe(&error));
            format!("write() to \"{path}\" failed {why}: no more frames are written")
        }
    }
}

/// The number of threads that serve a configuration: the stack's attachments are a lower bound.
pub(crate) fn thread_count(main: &Main, stack: Option<&Specification>) -> u32 {
    let attachments = stack.map_or(0, Specification::attachments);
    threads::thread_count(main).max(attachments)
}

/// The warning when a configuration's number of worker threads differs from the number of attachments.
pub(crate) fn attachment_count_differs(threads: u32, stack: &Specification) -> Option<String> {
    let (attachments, device) = (stack.attachments(), &stack.device);
    let (noun, name) = (device.noun(), device.kind());
    if threads > attachments {
        let first = match attachments {
            1 => String::from("the first worker thread serves"),
            _ => format!("the first {attachments} worker threads serve"),
        };
        let others = match threads - attachments {
            1 => String::from("the other serves"),
            others => format!("the other {others} serve"),
        };
        let why = match (device, attachments) {
            _ if stack.workers.count <= attachments => String::new(),
            (Device::Memif { .. }, _) => {
                format!("{noun} carries as many workers as \"rings=\" says, here {attachments}: ")
            }
            (_, 1) => format!("{noun} carries one worker: "),
            _ => String::new(),
        };
        return Some(format!(
            "{why}{first} --stack, {others} kernel sockets only; what {name} carries is settled at the start"
        ));
    }
    (threads < attachments).then(|| {
        format!(
            "\"worker_processes {threads}\" is too few for --stack, which has {attachments} worker threads since the start, \
             with connections of their own: they stay until a restart"
        )
    })
}

/// The addresses of a configuration that only the stack has: the kernel can't listen there.
pub(crate) fn own_addresses(
    config: &Config,
    specification: Option<&Specification>,
) -> Vec<ListenAddress> {
    config
        .sockets()
        .map(|socket| socket.address)
        .filter(|address| is_own(address, specification))
        .cloned()
        .collect()
}

/// Whether an address is one of the stack's.
pub(crate) fn is_own(address: &ListenAddress, specification: Option<&Specification>) -> bool {
    let ListenAddress::Inet(address) = address else {
        return false;
    };
    let own = specification.iter().flat_map(|stack| &stack.addresses);
    own.into_iter().any(|own| own.address == address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_listens_at_addresses_that_are_not_only_the_stacks() {
        let text = "tap:ms0,address=10.77.0.2/24,address=fd00::2/64,host=10.77.0.1/24";
        let stack = Specification::parse(text).unwrap();
        let check = |address: &str, expected| {
            let address = ListenAddress::Inet(address.parse().unwrap());
            assert_eq!(is_own(&address, Some(&stack)), expected, "{address}");
            assert!(!is_own(&address, None));
        };
        check("10.77.0.2:80", true);
        check("[fd00::2]:8080", true);
        check("10.77.0.1:80", false);
        check("0.0.0.0:80", false);
        check("[::]:80", false);
        check("127.0.0.1:80", false);
        assert!(!is_own(&ListenAddress::Unix("/a".into()), Some(&stack)));
    }

    #[test]
    fn another_number_of_threads_than_attachments_is_reported() {
        let check = |text: &str, attachments, threads, expected: Option<&str>| {
            let mut stack = Specification::parse(text).unwrap();
            stack.workers.count = attachments;
            let said = attachment_count_differs(threads, &stack);
            assert_eq!(said.is_some(), expected.is_some(), "{said:?}");
            let begins = expected.unwrap_or_default();
            assert!(said.unwrap_or_default().starts_with(begins), "{begins}");
        };
        let memif = "memif:/run/m,role=master,address=10.0.0.1/24";
        check("af_xdp:eth0", 2, 2, None);
        check(memif, 1, 1, None);
        let one = "a memif carries as many workers as \"rings=\" says, here 1: the first worker thread serves --stack, the other serves";
        check(memif, 2, 2, Some(one));
        let with_rings = format!("{memif},rings=2");
        check(&with_rings, 2, 2, None);
        let two = "a memif carries as many workers as \"rings=\" says, here 2: the first 2 worker threads serve --stack";
        check(&with_rings, 3, 3, Some(two));
        check(
            "dpdk:vdev=net_tap0,bridge=on,address=10.0.0.1/24",
            2,
            2,
            Some("a port of DPDK carries one worker: "),
        );
        check(
            "af_xdp:eth0",
            1,
            4,
            Some("the first worker thread serves --stack, the other 3 serve"),
        );
        check(
            "af_xdp:eth0",
            2,
            3,
            Some("the first 2 worker threads serve --stack, the other serves"),
        );
        check(
            "af_xdp:eth0",
            2,
            1,
            Some("\"worker_processes 1\" is too few for --stack, which has 2"),
        );
    }
}
