//! The link of a device that goes from process to process, and what its log says.

use super::Trouble;
use crate::device_link::DeviceLink;
use crate::handover::member::Member;
use crate::handover::{Aim, Endpoint, OwnershipLock, ProcessNumber};
use crate::interface::{FaultCallback, InterfaceFault, Passage};
use crate::movable::MovableLink;
use crate::standby::{OpenDevice, Origin, Parts, StandbyLink};
use crate::wanted::Wanted;
use mill_stack::link::LinkProperties;
use std::io;

/// A TAP device or a memif: how it is opened, and what it is like while another process has it.
pub(super) struct Movable {
    pub(super) open: OpenDevice,
    pub(super) properties: LinkProperties,
    pub(super) kind: &'static str,
}

impl Movable {
    /// The link of the owner, or of a process that stands by; without the lock no other process can have the device.
    pub(super) fn link(
        self,
        ownership: Option<OwnershipLock>,
        (aim, number): (Aim, ProcessNumber),
        on_fault: FaultCallback,
    ) -> io::Result<DeviceLink> {
        let Some(ownership) = ownership else {
            return (self.open)().map(DeviceLink::Direct);
        };
        let (endpoint, is_ours) = Endpoint::new(ownership, number)?;
        let member = Member::new(endpoint, aim);
        let Self {
            open,
            properties,
            kind,
        } = self;
        if is_ours {
            let link = MovableLink::new(member, open, on_fault)?;
            return Ok(DeviceLink::Movable(Box::new(link)));
        }
        let link = StandbyLink::waiting(Parts {
            member,
            origin: Origin::Device {
                open,
                properties,
                kind,
            },
            on_fault,
            wanted: Wanted::default(),
            has_failed: false,
        });
        Ok(DeviceLink::Standby(Box::new(link)))
    }
}

/// A sentence about it.
pub(super) fn trouble_of(fault: InterfaceFault) -> Trouble {
    Trouble::Problem(match fault {
        InterfaceFault::Gone => return Trouble::DeviceGone,
        InterfaceFault::Passage(Passage::Down) => {
            String::from("the interface is down: connections wait until it is up again")
        }
        InterfaceFault::Passage(Passage::NoCarrier) => {
            String::from("the interface has no carrier: connections wait until the link is up")
        }
        InterfaceFault::Passage(Passage::Open) => {
            String::from("the interface is up again: connections go on")
        }
        InterfaceFault::AddressesLeftOut(count) => {
            format!("{count} addresses of the interface are one too many: the kernel serves them")
        }
        InterfaceFault::MtuTooLarge(mtu) => format!(
            "packets of {mtu} bytes do not fit into packet memory, which was made for less: \
             longer ones are dropped until a restart"
        ),
        InterfaceFault::NotGiven => String::from(
            "another process has the device and does not give it up, though it was asked to: \
             is the old worker process stopped? New connections are its own until then",
        ),
        InterfaceFault::NotTaken(why) => {
            format!("the device can't be taken over from another process: {why}")
        }
        InterfaceFault::RelayBroken => String::from(
            "the other process of an upgrade passes on invalid data: frames under way between the two are lost, \
             and they connect again",
        ),
        InterfaceFault::NetlinkLost(why) => {
            format!("changes of the interface are not followed: {why}")
        }
    })
}
