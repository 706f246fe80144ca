//! The network stack of our own, as the processes pass it on: what it is to be, and its device.
//!
//! The process in charge makes the device, which takes rights, and keeps it: a worker process that is started anew goes on
//! with the same one. It has an attachment for each worker thread of the first configuration, as far as it carries several; the
//! thread of that place reads and writes there. The device vanishes with the last descriptor, however the processes end.

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
    /// By the places of worker threads.
    attachments: Vec<Attached>,
    /// With the process that made the device only.
    hold: Hold,
}

/// One worker thread's attachment at the device.
#[derive(Debug)]
pub(crate) struct WorkerAttachment {
    specification: Specification,
    attached: Attached,
    /// Whose thread says what is true for all.
    is_first: bool,
}

/// The same in another thread's eyes, whose descriptor table is a copy.
#[derive(Clone, Debug)]
pub(crate) struct LentAttachment {
    specification: Specification,
    attached: Attached<RawFd>,
    is_first: bool,
}

impl OwnStack {
    /// Makes the device; beside it sentences about what is not as it was asked for.
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

    /// Takes the device over that the binary before this one has; it serves until a worker process of ours does.
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

    /// What [`Self::inherit`] takes.
    pub(crate) fn export(&self) -> Option<InheritedDevice<'_>> {
        let attachment = self.attachments.first()?;
        attachment.export(&self.hold)
    }

    /// For another process, with descriptors of its own.
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

    /// What the device vanishes with, for who outlives the thread that this value is given to.
    pub(crate) fn take_hold(&mut self) -> Hold {
        std::mem::take(&mut self.hold)
    }

    pub(crate) fn specification(&self) -> &Specification {
        &self.specification
    }

    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.attachments.iter().flat_map(Attached::descriptors)
    }

    /// The attachments for the threads of this process, by their places.
    pub(crate) fn take_seats(self) -> io::Result<Vec<WorkerAttachment>> {
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

    /// For a thread that is about to leave this descriptor table; valid as long as this value lives.
    pub(crate) fn lend(&self) -> LentAttachment {
        LentAttachment {
            specification: self.specification.clone(),
            attached: self.attached.lend(),
            is_first: self.is_first,
        }
    }

    /// What an engine is made with; nothing if the device is there no more. `on_trouble` is told sentences, and how bad
    /// they are.
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
                Trouble::Noticed(_) => LogLevel::Notice,
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
            "the device \"{name}\" was deleted: the stack reaches nobody any more, a restart makes it anew"
        ),
        Trouble::Said(what) | Trouble::Noticed(what) => format!("{name}: {what}"),
        Trouble::Capture(error) => {
            let (path, why) = (path.display(), describe(&error));
            format!("write() to \"{path}\" failed {why}: no more frames are written")
        }
    }
}

impl LentAttachment {
    /// Duplicates in the caller's descriptor table.
    pub(crate) fn take(self) -> io::Result<WorkerAttachment> {
        Ok(WorkerAttachment {
            specification: self.specification,
            attached: self.attached.take()?,
            is_first: self.is_first,
        })
    }
}

/// How many threads serve a configuration: those of the stack's attachments stay.
pub(crate) fn thread_count(main: &Main, stack: Option<&Specification>) -> u32 {
    let attachments = stack.map_or(0, Specification::attachments);
    threads::thread_count(main).max(attachments)
}

/// What to say when a configuration has another number of worker threads than the stack has attachments.
pub(crate) fn seats_differ(threads: u32, stack: &Specification) -> Option<String> {
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

/// The addresses of a configuration that are the stack's alone: the kernel does not have them, and can't listen there.
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
    fn the_kernel_listens_wherever_the_stack_is_not_alone() {
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
    fn what_does_not_fit_the_seats_is_said() {
        let check = |text: &str, attachments, threads, expected: Option<&str>| {
            let mut stack = Specification::parse(text).unwrap();
            stack.workers.count = attachments;
            let said = seats_differ(threads, &stack);
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
