//! Hosts of several processes that listen at the same address of one device: a group, as sockets that share a port by
//! `SO_REUSEPORT`. Each new connection is that host's on which the hash of its flow falls.

use crate::flow::Flow;
use core::fmt;
use core::net::SocketAddr;

/// The groups in which a host is. Cost of a question: a load, and a hash where more hosts listen than the device has queues for.
pub trait ListenerGroups: fmt::Debug + Send {
    /// This host listens at the address, with one listener more.
    fn join(&mut self, address: SocketAddr);

    /// New connections of one of its listeners there are others', if there are others.
    fn leave(&mut self, address: SocketAddr);

    /// Whether a new connection to a listener at `address` is another host's.
    fn is_of_another(&mut self, address: SocketAddr, flow: &Flow) -> bool;
}
