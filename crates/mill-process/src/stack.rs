//! The network stack of our own, as the processes pass it on: what it is to be, and its device.
//!
//! The process in charge makes the device, which takes rights, and keeps it: a worker process that is started anew goes on
//! with the same one. One worker thread reads and writes it. The device vanishes with the last descriptor, however the
//! processes end.

use crate::process_log::describe;
use mill_config::Config;
use mill_config::config::{ListenAddress, LogLevel};
use mill_device::attach::heritage::Heritage;
use mill_device::attach::{self, AttachError, Attached, Hold, Trouble};
use mill_device::specification::Specification;
use mill_device::specification::device::Device;
use mill_engine::combined::Bypass;
use mill_sys::random;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::path::Path;

/// A stack with its device, not yet running.
#[derive(Debug)]
pub(crate) struct OwnStack {
    specification: Specification,
    attached: Attached,
    /// With the process that made the device only.
    hold: Hold,
}

/// The same in another thread's eyes, whose descriptor table is a copy.
#[derive(Clone, Debug)]
pub(crate) struct Lent {
    specification: Specification,
    attached: Attached<RawFd>,
}

impl OwnStack {
    /// Makes the device; beside it sentences about what is not as it was asked for.
    pub(crate) fn attach(
        specification: &Specification,
    ) -> Result<(Self, Vec<String>), AttachError> {
        let made = Attached::make(specification)?;
        let stack = Self {
            specification: specification.clone(),
            attached: made.attached,
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
        let stack = Self {
            specification: specification.clone(),
            attached: made.attached,
            hold: made.hold,
        };
        Ok((stack, made.notices))
    }

    /// Whether another binary can have the device; if not, why.
    pub(crate) fn bequeathable(&self) -> Result<(), &'static str> {
        self.attached.bequeathable()
    }

    /// What [`Self::inherit`] takes.
    pub(crate) fn bequeath(&self) -> Option<Heritage<'_>> {
        self.attached.bequeath(&self.specification, &self.hold)
    }

    /// For another process, with descriptors of its own.
    pub(crate) fn duplicate(&self) -> io::Result<Self> {
        Ok(Self {
            specification: self.specification.clone(),
            attached: self.attached.duplicate()?,
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
        self.attached.descriptors()
    }

    /// For a thread that is about to leave this descriptor table; valid as long as this value lives.
    pub(crate) fn lend(&self) -> Lent {
        Lent {
            specification: self.specification.clone(),
            attached: self.attached.lend(),
        }
    }

    /// What an engine is made with; nothing if the device is there no more. `on_trouble` is told sentences, and how bad
    /// they are.
    pub(crate) fn bypass(
        self,
        on_trouble: impl Fn(LogLevel, String) + Clone + Send + 'static,
    ) -> io::Result<Option<Bypass>> {
        let mut secret = [0; 16];
        random::fill(&mut secret)?;
        let host = self.attached.host_config(&self.specification, secret);
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
                tell(Trouble::DeviceGone);
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

impl Lent {
    /// Duplicates in the caller's descriptor table.
    pub(crate) fn take(self) -> io::Result<OwnStack> {
        Ok(OwnStack {
            specification: self.specification,
            attached: self.attached.take()?,
            hold: Hold::default(),
        })
    }
}

/// What to say when there are several worker threads.
pub(crate) fn one_worker_of(count: u32, device: &Device) -> String {
    let others = match count {
        2 => String::from("the other serves"),
        _ => format!("the other {} serve", count.saturating_sub(1)),
    };
    let device = device.noun();
    format!(
        "{device} carries one worker: the first worker thread serves --stack, \
         {others} kernel sockets only (\"worker_processes 1;\" is enough)"
    )
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
}
