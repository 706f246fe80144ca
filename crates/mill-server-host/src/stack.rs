//! The network stack of our own, passed from process to process: its specification and its device.
//!
//! The process in charge (the master, or the only process) makes the device, which takes privileges, and keeps it: a
//! restarted worker process goes on with the same device. If a device can have several attachments, there is one for
//! each worker thread of the first configuration, and the thread with that index reads and writes there. The device
//! vanishes with its last descriptor, however the processes end.

use crate::process_log::describe;
use crate::threads;
use mill_config::Config;
use mill_config::config::{ListenAddress, LogLevel, Main};
use mill_device::attach::inherited_device::InheritedDevice;
use mill_device::attach::{self, AttachError, Attached, Hold, Trouble};
use mill_device::specification::Specification;
use mill_engine::combined::Bypass;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::path::Path;

/// A stack with its device, not yet running.
#[derive(Debug)]
pub(crate) struct OwnStack {
    specification: Specification,
    /// Indexed by worker thread.
    attachments: Vec<Attached>,
    /// Set only in the process that made the device.
    hold: Hold,
}

/// One worker thread's attachment to the device.
#[derive(Debug)]
pub(crate) struct WorkerAttachment {
    specification: Specification,
    attached: Attached,
    /// This thread logs what concerns all threads.
    is_first: bool,
}

/// An attachment borrowed for another thread, whose descriptor table is a copy of this one.
#[derive(Clone, Debug)]
pub(crate) struct LentAttachment {
    specification: Specification,
    attached: Attached<RawFd>,
    is_first: bool,
}

impl OwnStack {
    /// Makes the device; beside it messages about features that could not be had as requested.
    pub(crate) fn attach(
        specification: &Specification,
    ) -> Result<(Self, Vec<String>), AttachError> {
        let made = Attached::make(specification)?;
        let stack = Self {
            specification: specification.clone(),
            attachments: made.attachments,
            hold: made.hold,
        };
        Ok((stack, made.notices))
    }

    /// Takes over the old binary's device; the old binary serves until a worker process of this one does.
    pub(crate) fn inherit(
        specification: &Specification,
        text: &str,
        descriptors: Vec<OwnedFd>,
    ) -> Result<(Self, Vec<String>), AttachError> {
        let made = Attached::inherit(specification, text, descriptors)?;
        let mut specification = specification.clone();
        specification.workers.count = u32::try_from(made.attachments.len()).unwrap_or(u32::MAX);
        let stack = Self {
            specification,
            attachments: made.attachments,
            hold: made.hold,
        };
        Ok((stack, made.notices))
    }

    /// Whether another binary can have the device; if not, why.
    pub(crate) fn can_export(&self) -> Result<(), &'static str> {
        match self.attachments.as_slice() {
            [attachment] => attachment.can_export(),
            _ => Err("several workers share it"),
        }
    }

    /// The argument of the new binary's [`Self::inherit`].
    pub(crate) fn export(&self) -> Option<InheritedDevice<'_>> {
        let attachment = self.attachments.first()?;
        attachment.export(&self.hold)
    }

    /// A copy for another process, with descriptors of its own.
    pub(crate) fn duplicate(&self) -> io::Result<Self> {
        Ok(Self {
            specification: self.specification.clone(),
            attachments: self
                .attachments
                .iter()
                .map(Attached::duplicate)
                .collect::<io::Result<_>>()?,
            hold: Hold::default(),
        })
    }

    /// The descriptors that keep the device alive, to be held longer than by the thread that gets this value.
    pub(crate) fn take_hold(&mut self) -> Hold {
        std::mem::take(&mut self.hold)
    }

    pub(crate) fn specification(&self) -> &Specification {
        &self.specification
    }

    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.attachments.iter().flat_map(Attached::descriptors)
    }

    /// The attachments for the threads of this process, in the threads' order.
    pub(crate) fn take_attachments(self) -> io::Result<Vec<WorkerAttachment>> {
        Attached::prepare(&self.attachments)?;
        let specification = self.specification;
        let attachments = self.attachments.into_iter().enumerate();
        let attachments = attachments.map(|(place, attached)| WorkerAttachment {
            specification: specification.clone(),
            attached,
            is_first: place == 0,
        });
        Ok(attachments.collect())
    }
}

impl WorkerAttachment {
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.attached.descriptors()
    }

    /// For a thread that is about to unshare its descriptor table; valid as long as this value lives.
    pub(crate) fn lend(&self) -> LentAttachment {
        LentAttachment {
            specification: self.specification.clone(),
            attached: self.attached.lend(),
            is_first: self.is_first,
        }
    }

    /// What an engine is made with; `None` if the device no longer exists. `on_trouble` gets a message and its level
    /// for each fault.
    pub(crate) fn bypass(
        self,
        on_trouble: impl Fn(LogLevel, String) + Clone + Send + 'static,
    ) -> io::Result<Option<Bypass>> {
        let host = self.attached.host_config(&self.specification)?;
        let polling = self.specification.polling;
        let send_buffer_bytes = self.specification.send_buffer_bytes;
        let path = self.specification.pcap.clone().unwrap_or_default();
        let name = self.specification.device.to_string();
        let tell = move |trouble| {
            let level = match trouble {
                Trouble::Notice(_) => LogLevel::Notice,
                _ => LogLevel::Alert,
            };
            on_trouble(level, sentence(trouble, &name, &path));
        };
        let link = match self.attached.link(&self.specification, tell.clone()) {
            Err(error) if attach::is_gone(&error) => {
                if self.is_first {
                    tell(Trouble::DeviceGone);
                }
                return Ok(None);
            }
            link => link?,
        };
        Ok(Some(Bypass {
            polling,
            send_buffer_bytes,
            ..Bypass::new(link, host)
        }))
    }
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

impl LentAttachment {
    /// Duplicates the descriptors in the caller's descriptor table.
    pub(crate) fn take(self) -> io::Result<WorkerAttachment> {
        Ok(WorkerAttachment {
            specification: self.specification,
            attached: self.attached.take()?,
            is_first: self.is_first,
        })
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
        let why = match attachments {
            1 if stack.workers.count > 1 => format!("{noun} carries one worker: "),
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
    let listeners = config.http.iter().flat_map(|http| &http.listeners);
    listeners
        .map(|listener| &listener.address)
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
        check(
            memif,
            2,
            2,
            Some(
                "a memif carries one worker: the first worker thread serves --stack, the other serves kernel",
            ),
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
