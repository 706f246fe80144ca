//! Passing a device from one binary to the next: what the old one describes, and how the new one checks it.

use super::af_xdp::AfXdp;
use super::{AttachError, Attached, Hold, Made, Wire};
use crate::handover::OwnershipLock;
use crate::specification::Specification;
use crate::specification::device::Device;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A device as it is described to the next binary.
#[derive(Debug)]
pub struct InheritedDevice<'a> {
    /// The description, as [`Attachment::inherit`](crate::attachment::Attachment::inherit) parses it.
    pub text: String,
    pub descriptors: Vec<BorrowedFd<'a>>,
}

impl Attached {
    /// Whether another process can take the device over while this one serves; if not, why.
    pub(crate) fn can_export(&self) -> Result<(), &'static str> {
        match (&self.wire, &self.ownership) {
            (_, Some(_)) => Ok(()),
            (Wire::Tap(_), None) => Err("a TAP device can't be handed over"),
            (Wire::Memif(_), None) => Err("the other end of a memif would have to connect again"),
            (Wire::AfXdp(attachment), None) if !attachment.has_one_queue() => {
                Err("it has several queues (queue=)")
            }
            (Wire::AfXdp(_), None) => Err("its frames are being written to a file (--pcap)"),
        }
    }

    /// The device for the next binary, which holds it from then on too; `None` if it cannot be taken over.
    pub(crate) fn export<'a>(&'a self, hold: &'a Hold) -> Option<InheritedDevice<'a>> {
        let (Wire::AfXdp(queue), Some(ownership)) = (&self.wire, &self.ownership) else {
            return None;
        };
        let Hold(Some(held)) = hold else {
            return None;
        };
        let mut descriptors: Vec<BorrowedFd<'a>> = vec![held.link()];
        descriptors.extend(ownership.descriptors().map(AsFd::as_fd));
        descriptors.extend(queue.descriptors().map(AsFd::as_fd));
        Some(InheritedDevice {
            text: queue.describe()?,
            descriptors,
        })
    }

    /// The device of the previous binary, which serves until a worker of this one takes it over.
    pub(crate) fn inherit(
        specification: &Specification,
        text: &str,
        descriptors: Vec<OwnedFd>,
    ) -> Result<Made, AttachError> {
        let unknown = || {
            AttachError(format!(
                "the old binary has a device that this one does not know ({text})"
            ))
        };
        let Device::AfXdp { interface } = &specification.device else {
            return Err(AttachError(format!(
                "the device can't be changed together with the binary: the old one has {}",
                text.split_whitespace()
                    .skip(1)
                    .take(2)
                    .collect::<Vec<_>>()
                    .join(":")
            )));
        };
        if specification.pcap.is_some() {
            let what = "--pcap begins with a start, not when the binary is changed";
            return Err(AttachError(String::from(what)));
        }
        let mut descriptors = descriptors.into_iter();
        let mut next = || descriptors.next().ok_or_else(unknown);
        let link = next()?;
        let ownership = OwnershipLock::of([next()?, next()?, next()?]);
        let queue = AfXdp::inherit(interface, &specification.af_xdp, text, descriptors)?;
        Ok(Made {
            attachments: vec![Self {
                wire: Wire::AfXdp(queue),
                ownership: Some(ownership),
                pcap: None,
            }],
            hold: Hold::inherited(link),
            notices: Vec::new(),
        })
    }
}
