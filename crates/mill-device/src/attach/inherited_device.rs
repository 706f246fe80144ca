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
            (Wire::AfXdp(attachment), None) if !attachment.is_movable() => {
                Err("several workers share it")
            }
            (Wire::AfXdp(_), None) => Err("its frames are being written to a file (--pcap)"),
        }
    }

    /// The attachments for the next binary, which holds the device from then on too; `None` if they cannot be taken over.
    pub(crate) fn export<'a>(
        attachments: &'a [Self],
        hold: &'a Hold,
    ) -> Option<InheritedDevice<'a>> {
        let Hold(Some(held)) = hold else {
            return None;
        };
        let mut descriptors: Vec<BorrowedFd<'a>> = vec![held.link()];
        let mut texts = Vec::new();
        for attachment in attachments {
            let (Wire::AfXdp(queues), Some(ownership)) = (&attachment.wire, &attachment.ownership)
            else {
                return None;
            };
            descriptors.extend(ownership.descriptors().map(AsFd::as_fd));
            descriptors.extend(queues.descriptors().map(AsFd::as_fd));
            texts.push(queues.describe()?);
        }
        Some(InheritedDevice {
            text: texts.join(BETWEEN),
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
        let link = descriptors.next().ok_or_else(unknown)?;
        let mut attachments = Vec::new();
        for text in text.split(BETWEEN) {
            let mut next = || descriptors.next().ok_or_else(unknown);
            let ownership = OwnershipLock::of([next()?, next()?, next()?]);
            let queues = AfXdp::inherit(interface, text, &mut descriptors)?;
            attachments.push(Self {
                wire: Wire::AfXdp(queues),
                ownership: Some(ownership),
                pcap: None,
            });
        }
        let wires: Vec<_> = attachments.iter().filter_map(Self::interface).collect();
        AfXdp::check(&wires, interface, &specification.af_xdp)?;
        Ok(Made {
            attachments,
            hold: Hold::inherited(link),
            notices: Vec::new(),
        })
    }

    fn interface(&self) -> Option<&AfXdp<OwnedFd>> {
        match &self.wire {
            Wire::AfXdp(queues) => Some(queues),
            Wire::Tap(_) | Wire::Memif(_) => None,
        }
    }
}

/// Between the descriptions of several attachments.
const BETWEEN: &str = ";";
