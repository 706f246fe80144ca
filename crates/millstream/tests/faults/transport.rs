//! The transports between client and server.

use crate::server::Site;
use crate::topology::{HOSTS, STACK};
use std::fmt;

/// The transport of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// Kernel sockets at both ends, over a veth pair.
    Kernel,
    /// The server's stack on its interface; the client's kernel at the other end.
    AfXdp,
    /// Shared memory; the client is the only possible peer.
    Memif,
}

impl Transport {
    pub(crate) const ALL: [Self; 3] = [Self::Kernel, Self::AfXdp, Self::Memif];

    /// Those on which any peer can send frames.
    pub(crate) const OPEN: [Self; 2] = [Self::Kernel, Self::AfXdp];

    /// The server's stack, if it has one of its own.
    pub(crate) fn of_server(self, site: &Site) -> Option<String> {
        match self {
            Self::Kernel => None,
            Self::AfXdp => Some(STACK.to_owned()),
            Self::Memif => Some(memif(site, "master,address=10.60.0.1/24")),
        }
    }

    /// The client's stack, if it has one of its own.
    pub(crate) fn of_client(self, site: &Site) -> Option<String> {
        match self {
            Self::Kernel | Self::AfXdp => None,
            Self::Memif => Some(memif(site, "slave,address=10.60.0.2/24")),
        }
    }

    pub(crate) const fn host(self) -> &'static str {
        match self {
            Self::Kernel | Self::AfXdp => HOSTS[0],
            Self::Memif => "10.60.0.1",
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Kernel => "kernel sockets",
            Self::AfXdp => "AF_XDP",
            Self::Memif => "memif",
        })
    }
}

fn memif(site: &Site, end: &str) -> String {
    format!("memif:{},role={end}", site.path("memif.sock").display())
}
