//! Passing a device from one binary to the next: what the old one describes, and how the new one checks it.

use super::af_xdp::AfXdp;
use super::memif::Memif;
use super::tap::Tap;
use super::{AttachError, Attached, Held, Hold, Made, Wire};
use crate::handover::{OwnershipLock, VERSION};
use crate::specification::Specification;
use crate::specification::device::Device;
use crate::vlan::Vlan;
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
            _ if self.pcap.is_some() => Err("its frames are being written to a file (--pcap)"),
            (Wire::Tap(_), None) => Err("its wire is impaired"),
            (Wire::Dpdk(_), None) => {
                Err("a port of DPDK is one process's; with \"bridge=on\" it can be handed over")
            }
            _ => Err("it has fewer queues than workers, which share them"),
        }
    }

    /// The attachments for the next binary, which holds the device from then on too; `None` if they cannot be taken over.
    pub(crate) fn export<'a>(
        attachments: &'a [Self],
        hold: &'a Hold,
        specification: &Specification,
    ) -> Option<InheritedDevice<'a>> {
        let mut descriptors: Vec<BorrowedFd<'a>> = Vec::new();
        let mut texts = Vec::new();
        // An interface is steered, and a bridge lives, as long as a process has this; other devices have none.
        descriptors.extend(hold.0.as_ref().map(Held::link));
        for attachment in attachments {
            let ownership = attachment.ownership.as_ref()?;
            descriptors.extend(ownership.descriptors().map(AsFd::as_fd));
            let text = match &attachment.wire {
                Wire::AfXdp(queues) => {
                    hold.0.as_ref()?;
                    descriptors.extend(queues.descriptors().map(AsFd::as_fd));
                    queues.describe()?
                }
                Wire::Tap(tap) => {
                    descriptors.extend(tap.descriptors().map(AsFd::as_fd));
                    tap.describe(specification)
                }
                Wire::Dpdk(_) => return None,
                Wire::Memif(memif) => {
                    descriptors.extend(memif.descriptors().map(AsFd::as_fd));
                    memif.describe(specification)
                }
            };
            texts.push(text);
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
        if specification.pcap.is_some() {
            let what = "--pcap begins with a start, not when the binary is changed";
            return Err(AttachError(String::from(what)));
        }
        let has = |kind: &str| text.split_whitespace().nth(1) == Some(kind);
        if !has(specification.device.kind()) {
            let theirs: Vec<&str> = text.split_whitespace().skip(1).take(2).collect();
            return Err(AttachError(format!(
                "the device can't be changed together with the binary: the old one has {}",
                theirs.join(":")
            )));
        }
        let unknown = || unknown(text);
        let mut descriptors = descriptors.into_iter();
        let lock = |descriptors: &mut std::vec::IntoIter<OwnedFd>| {
            let mut next = || descriptors.next().ok_or_else(unknown);
            Ok::<_, AttachError>(OwnershipLock::of([next()?, next()?, next()?]))
        };
        let interface = match &specification.device {
            Device::AfXdp { interface } => interface,
            Device::Tap { .. } => {
                let queues = text.split(BETWEEN).map(|text| {
                    let ownership = lock(&mut descriptors)?;
                    let tap = Tap::inherit(specification, text, &mut descriptors)?;
                    Ok(Self::inherited(Wire::Tap(tap), ownership))
                });
                return Ok(Made {
                    attachments: queues.collect::<Result<_, _>>()?,
                    hold: Hold::default(),
                    notices: Vec::new(),
                });
            }
            Device::Dpdk { .. } if !specification.dpdk.bridge => {
                let what = "a port of DPDK goes from process to process only with \"bridge=on\": stop the old binary and start this one";
                return Err(AttachError(String::from(what)));
            }
            Device::Dpdk { .. } => {
                let lifeline = descriptors.next().ok_or_else(unknown)?;
                let ownership = lock(&mut descriptors)?;
                let memif = Memif::inherit(specification, text, &mut descriptors)?;
                return Ok(Made {
                    hold: Hold::inherited(lifeline),
                    ..Made::inherited(Wire::Memif(memif), ownership)
                });
            }
            Device::Memif { .. } => {
                let workers = text.split(BETWEEN).map(|text| {
                    let ownership = lock(&mut descriptors)?;
                    let memif = Memif::inherit(specification, text, &mut descriptors)?;
                    Ok(Self::inherited(Wire::Memif(memif), ownership))
                });
                return Ok(Made {
                    attachments: workers.collect::<Result<_, _>>()?,
                    hold: Hold::default(),
                    notices: Vec::new(),
                });
            }
        };
        let link = descriptors.next().ok_or_else(unknown)?;
        let mut attachments = Vec::new();
        for text in text.split(BETWEEN) {
            let ownership = lock(&mut descriptors)?;
            let queues = AfXdp::inherit((interface, specification.vlan()), text, &mut descriptors)?;
            attachments.push(Self::inherited(Wire::AfXdp(queues), ownership));
        }
        let wires: Vec<_> = attachments.iter().filter_map(Self::interface).collect();
        AfXdp::check(&wires, interface, &specification.af_xdp)?;
        Ok(Made {
            attachments,
            hold: Hold::inherited(link),
            notices: Vec::new(),
        })
    }

    fn inherited(wire: Wire<OwnedFd>, ownership: OwnershipLock) -> Self {
        Self {
            wire,
            ownership: Some(ownership),
            pcap: None,
        }
    }

    pub(super) fn interface(&self) -> Option<&AfXdp<OwnedFd>> {
        match &self.wire {
            Wire::AfXdp(queues) => Some(queues),
            Wire::Tap(_) | Wire::Memif(_) | Wire::Dpdk(_) => None,
        }
    }

    pub(super) fn interface_mut(&mut self) -> Option<&mut AfXdp<OwnedFd>> {
        match &mut self.wire {
            Wire::AfXdp(queues) => Some(queues),
            Wire::Tap(_) | Wire::Memif(_) | Wire::Dpdk(_) => None,
        }
    }
}

impl Made {
    /// A device that nothing steers.
    fn inherited(wire: Wire<OwnedFd>, ownership: OwnershipLock) -> Self {
        Self {
            attachments: vec![Attached::inherited(wire, ownership)],
            hold: Hold::default(),
            notices: Vec::new(),
        }
    }
}

/// What a description says beside what both processes have to agree on, `terms`; the error says what differs.
pub(super) fn same_terms<'a>(text: &'a str, terms: &str) -> Result<&'a str, AttachError> {
    let (version, theirs) = text.split_once(' ').ok_or_else(|| unknown(text))?;
    if version != VERSION.to_string() {
        return Err(AttachError(format!(
            "the old binary speaks of its device in version {version}, and this one in {VERSION}: stop it and start the new one"
        )));
    }
    let rest = theirs.strip_prefix(terms);
    let rest = rest.filter(|rest| rest.is_empty() || rest.starts_with(' '));
    rest.map(str::trim_start).ok_or_else(|| {
        AttachError(format!(
            "the device can't be changed together with the binary: the old one has {theirs}, and this one {terms}"
        ))
    })
}

/// The virtual network among the terms; nothing without one, as of versions that knew none.
pub(in crate::attach) fn vlan_terms(vlan: Option<Vlan>) -> String {
    vlan.map_or_else(String::new, |vlan| format!(" vlan {}", vlan.id()))
}

pub(super) fn unknown(text: &str) -> AttachError {
    AttachError(format!(
        "the old binary has a device that this one does not know ({text})"
    ))
}

/// Between the descriptions of several attachments.
const BETWEEN: &str = ";";
