//! The network stack of our own, as load is sent over it.

use mill_device::attach::{AttachError, Attached, Hold};
use mill_device::specification::Specification;
use mill_device::specification::device::Device;
use mill_engine::combined::Bypass;
use mill_sys::random;
use std::io;

/// A stack and its device, which vanishes with it. One thread at a time can use it.
#[derive(Debug)]
pub struct OwnStack {
    specification: Specification,
    attached: Attached,
    notices: Vec<String>,
    _hold: Hold,
}

impl OwnStack {
    /// Makes the device.
    pub fn attach(specification: Specification) -> Result<Self, AttachError> {
        let made = Attached::make(&specification)?;
        Ok(Self {
            specification,
            attached: made.attached,
            notices: made.notices,
            _hold: made.hold,
        })
    }

    pub fn device(&self) -> &Device {
        &self.specification.device
    }

    /// What is not as it was asked for, in sentences.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// What an engine of the calling thread is made with, on descriptors of its own.
    pub(crate) fn bypass(&self) -> io::Result<Bypass> {
        let mut secret = [0; 16];
        random::fill(&mut secret)?;
        let host = self.attached.host_config(&self.specification, secret);
        let attached = self.attached.duplicate()?;
        // A file that can't be written ends before the run does, and a device that was deleted is a run full of errors:
        // whoever looks sees that.
        let link = attached.link(&self.specification, drop)?;
        Ok(Bypass {
            polling: self.specification.polling,
            send_buffer_bytes: self.specification.send_buffer_bytes,
            ..Bypass::new(link, host)
        })
    }
}
