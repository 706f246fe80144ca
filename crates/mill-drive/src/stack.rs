//! The network stack of our own, as load is sent over it.

use mill_device::attach::{Attached, Hold, Trouble};
use mill_device::specification::Specification;
use mill_device::specification::device::Device;
use mill_engine::combined::Bypass;
use mill_sys::random;
use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};

/// A stack and its device, which is made when a run is about to begin and vanishes with this. One thread at a time can
/// use it.
pub struct OwnStack {
    specification: Specification,
    made: OnceLock<(Attached, Hold)>,
    say: Say,
}

/// Who hears sentences: what is not as it was asked for, and what happens to the device.
type Say = Arc<dyn Fn(&str) + Send + Sync>;

impl OwnStack {
    /// Makes nothing yet.
    pub fn new(specification: Specification, say: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self {
            specification,
            made: OnceLock::new(),
            say: Arc::new(say),
        }
    }

    /// Makes the device, once; the error is a sentence.
    pub(crate) fn attach(&self) -> Result<&Attached, String> {
        if let Some((attached, _)) = self.made.get() {
            return Ok(attached);
        }
        let made = Attached::make(&self.specification).map_err(|error| error.to_string())?;
        for notice in &made.notices {
            (self.say)(notice);
        }
        let (attached, _) = self.made.get_or_init(|| (made.attached, made.hold));
        Ok(attached)
    }

    pub(crate) fn device(&self) -> &Device {
        &self.specification.device
    }

    /// What an engine of the calling thread is made with, on descriptors of its own.
    pub(crate) fn bypass(&self) -> io::Result<Bypass> {
        let attached = self.attach().map_err(io::Error::other)?;
        let mut secret = [0; 16];
        random::fill(&mut secret)?;
        let host = attached.host_config(&self.specification, secret);
        let (say, device) = (Arc::clone(&self.say), self.device().to_string());
        let on_trouble = move |trouble: Trouble| match trouble {
            Trouble::DeviceGone => {
                say(&format!("{device} was deleted: nobody is reached any more"))
            }
            Trouble::Capture(error) => {
                say(&format!("frames can't be written down any more: {error}"));
            }
            Trouble::Said(what) | Trouble::Noticed(what) => say(&format!("{device}: {what}")),
        };
        let link = attached
            .duplicate()?
            .link(&self.specification, on_trouble)?;
        Ok(Bypass {
            polling: self.specification.polling,
            send_buffer_bytes: self.specification.send_buffer_bytes,
            ..Bypass::new(link, host)
        })
    }
}

impl fmt::Debug for OwnStack {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "OwnStack({:?})", self.specification)
    }
}
