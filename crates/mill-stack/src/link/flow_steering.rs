//! Which frames come to a link.

use super::ExclusiveLink;
use core::net::{IpAddr, SocketAddr};
use mill_wire::protocol::Protocol;

/// Says which frames a link is to bring, where the kernel has the device's other frames, and which it does bring, where
/// several links share a device.
pub trait FlowSteering {
    /// From now on frames for this address and port are wanted, or no longer, but for those of connections that are there
    /// until [`Self::forget`]. An unspecified address stands for all that the host has.
    fn serve(&mut self, service: Service, on: bool);

    /// As long as others want this, too, they may have the device: this host serves it no longer than it must.
    fn retire(&mut self, service: Service);

    /// Of the connections that were there when this was served no longer none is left.
    fn forget(&mut self, service: Service);

    /// Connections are about to be opened: frames for the ports that [`Self::brings`] names are wanted from now on.
    fn open_ports(&mut self);

    /// Frames of these addresses, and of no others, need not come: the host drops them. What steers in the kernel drops them
    /// there.
    fn set_blocked(&mut self, addresses: &[IpAddr]);

    /// Whether frames from this peer to this port of ours come here, as far as that is known. The port of an outgoing
    /// connection is chosen by it.
    fn brings(&self, remote: SocketAddr, local_port: u16) -> bool;
}

/// All frames come.
impl<L: ExclusiveLink> FlowSteering for L {
    fn serve(&mut self, _service: Service, _on: bool) {}

    fn retire(&mut self, _service: Service) {}

    fn forget(&mut self, _service: Service) {}

    fn open_ports(&mut self) {}

    fn set_blocked(&mut self, _addresses: &[IpAddr]) {}

    fn brings(&self, _remote: SocketAddr, _local_port: u16) -> bool {
        true
    }
}

/// Where a host listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Service {
    pub address: SocketAddr,
    pub protocol: Protocol,
}
