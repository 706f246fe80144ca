//! The network stack of our own that the load is sent over, attached when a run begins.

use mill_device::attach::Trouble;
use mill_device::attachment::Attachment;
use mill_device::specification::Specification;
use mill_device::specification::device::Device;
use mill_device::specification::settings::Spread;
use mill_engine::combined::{self, Bypass};
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A stack's specification, and its attachment, which is made when a run begins and removed with this value. It has a
/// part for each thread of a run.
pub struct LazyAttachment {
    specification: Specification,
    made: Mutex<Option<Attachment>>,
    say: Say,
}

/// Called with messages: features that could not be had as requested, and faults of the device.
type Say = Arc<dyn Fn(&str) + Send + Sync>;

impl LazyAttachment {
    /// Stores the specification; makes no device yet.
    pub fn new(
        mut specification: Specification,
        say: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        // The queue of an answer is not known when a connection is opened.
        specification.workers.spread = Spread::ByFlow;
        Self {
            specification,
            made: Mutex::new(None),
            say: Arc::new(say),
        }
    }

    /// Makes the device with an attachment for each of so many threads, unless it has as many. All of them are free
    /// again: the threads of an earlier run have ended. The error is a message.
    pub(crate) fn attach(&self, threads: u32) -> Result<(), String> {
        let mut made = self.made();
        let specification = self.specification_for(threads);
        let attachments = specification.attachments();
        if attachments < threads {
            let device = self.device().noun();
            let carried = match attachments {
                1 => String::from("one thread"),
                _ => format!("{attachments} threads"),
            };
            let more = match self.device() {
                Device::Memif { .. } => format!(", or the stack \"rings={threads}\""),
                _ => String::new(),
            };
            return Err(format!(
                "{device} carries {carried}, and {threads} were asked for or are the default: give \"-t{attachments}\" with \"--stack\"{more}"
            ));
        }
        let fitting = made.take_if(|made| made.worker_count() == attachments as usize);
        // The device can exist only once: the earlier attachment goes first.
        *made = None;
        let attachment = match fitting {
            Some(attachment) => attachment,
            None => {
                let attached = Attachment::make(&specification);
                let (mut attachment, mut notices) = attached.map_err(|error| error.to_string())?;
                let opened = attachment.open().map_err(|error| error.to_string());
                notices.extend(opened?);
                notices.iter().for_each(|notice| (self.say)(notice));
                attachment
            }
        };
        let carried = attachment.worker_count();
        if carried < attachments as usize {
            let device = self.device();
            return Err(format!(
                "{device} carries {carried} of {threads} threads: give \"-t{carried}\" with \"--stack\""
            ));
        }
        made.insert(attachment)
            .prepare()
            .map_err(|error| format!("the device can't be prepared: {error}"))
    }

    /// Makes the device with any number of attachments, so that errors are known early.
    pub(crate) fn attach_at_all(&self) -> Result<(), String> {
        let is_made = self.made().is_some();
        if is_made { Ok(()) } else { self.attach(1) }
    }

    /// Whether the threads of a run have to share their process's descriptor table.
    pub(crate) fn needs_shared_table(&self) -> bool {
        self.made()
            .as_ref()
            .is_some_and(Attachment::needs_shared_table)
    }

    fn specification_for(&self, threads: u32) -> Specification {
        let mut specification = self.specification.clone();
        specification.workers.count = threads;
        specification
    }

    fn made(&self) -> MutexGuard<'_, Option<Attachment>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn device(&self) -> &Device {
        &self.specification.device
    }

    /// What the calling thread's engine is made with: its attachment, on descriptors of its own.
    pub(crate) fn bypass(&self, thread: u32) -> io::Result<Bypass> {
        let worker = match &*self.made() {
            Some(attachment) => attachment.worker(thread as usize)?,
            None => return Err(io::Error::other("the device is not made yet")),
        };
        let (say, device) = (Arc::clone(&self.say), self.device().to_string());
        let on_trouble = move |trouble: Trouble| match trouble {
            Trouble::DeviceGone => say(&format!(
                "{device} was deleted: the stack has no network any more"
            )),
            Trouble::Capture(error) => {
                say(&format!("frames can't be written down any more: {error}"));
            }
            Trouble::Problem(what) | Trouble::Notice(what) => say(&format!("{device}: {what}")),
        };
        combined::bypass(worker, on_trouble)
    }
}

impl fmt::Debug for LazyAttachment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "LazyAttachment({:?})", self.specification)
    }
}
