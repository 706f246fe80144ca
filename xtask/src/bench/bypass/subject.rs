//! Who is measured: a server, and the way by which its client reaches it.

use super::cell::{Cell, Pace};

/// What answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// nginx on kernel sockets.
    Nginx,
    /// Millstream on kernel sockets.
    Kernel,
    /// Millstream over AF_XDP.
    Xdp,
    /// Millstream over memif.
    Memif,
    /// Raw frames over AF_XDP; see `raw.rs`.
    Raw,
}

/// What asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// A client on kernel sockets, the best for this server.
    Kernel,
    /// `millstream load` over AF_XDP.
    Xdp,
    /// `millstream load` over memif.
    Memif,
    /// Raw frames over AF_XDP.
    Raw,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Subject {
    pub(super) kind: Kind,
    pub(super) way: Way,
}

pub(super) const NGINX: Subject = Subject::new(Kind::Nginx, Way::Kernel);
pub(super) const NGINX_BY_XDP: Subject = Subject::new(Kind::Nginx, Way::Xdp);
pub(super) const XDP: Subject = Subject::new(Kind::Xdp, Way::Xdp);
pub(super) const MEMIF: Subject = Subject::new(Kind::Memif, Way::Memif);
pub(super) const RAW: Subject = Subject::new(Kind::Raw, Way::Raw);

impl Subject {
    /// In the order in which they take turns: what is held against each other is measured one after the other.
    pub(super) const ALL: [Self; 8] = [
        Self::new(Kind::Xdp, Way::Kernel),
        NGINX,
        Self::new(Kind::Kernel, Way::Kernel),
        Self::new(Kind::Kernel, Way::Xdp),
        NGINX_BY_XDP,
        XDP,
        RAW,
        MEMIF,
    ];

    const fn new(kind: Kind, way: Way) -> Self {
        Self { kind, way }
    }

    pub(super) fn name(self) -> String {
        match self.way {
            Way::Raw | Way::Memif => self.kind.name().to_owned(),
            Way::Kernel => format!("{}, asked from the kernel", self.kind.name()),
            Way::Xdp => format!("{}, asked over AF_XDP", self.kind.name()),
        }
    }

    /// Whether server and way are among the kinds that there are.
    pub(super) fn is_there(self, kinds: &[Kind]) -> bool {
        let way = match self.way {
            Way::Kernel => Kind::Kernel,
            Way::Xdp => Kind::Xdp,
            Way::Memif => Kind::Memif,
            Way::Raw => Kind::Raw,
        };
        kinds.contains(&self.kind) && kinds.contains(&way)
    }

    /// Whether the cell is one for it: a pace is about few of them, and takes no more time than they need.
    pub(super) fn takes(self, cell: &Cell) -> bool {
        match cell.pace {
            Pace::Closed => true,
            Pace::HalfOfNginx => [NGINX, NGINX_BY_XDP, XDP, MEMIF].contains(&self),
            Pace::PerSecond(_) if cell.is_held() => self == MEMIF,
            Pace::PerSecond(_) => [XDP, MEMIF].contains(&self),
            Pace::Overload => [NGINX_BY_XDP, XDP].contains(&self),
        }
    }

    /// nginx asked in the same way, if there is such a thing.
    pub(super) const fn nginx(self) -> Self {
        match self.way {
            Way::Kernel => NGINX,
            Way::Xdp | Way::Memif | Way::Raw => NGINX_BY_XDP,
        }
    }
}

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Kernel => "millstream, kernel",
            Self::Xdp => "millstream, AF_XDP",
            Self::Memif => "millstream, memif",
            Self::Raw => "raw frames",
        }
    }

    /// Whether it uses all of its CPU whatever it has to do.
    pub(super) const fn spins(self) -> bool {
        matches!(self, Self::Xdp | Self::Memif | Self::Raw)
    }
}

impl Way {
    pub(super) const fn spins(self) -> bool {
        !matches!(self, Self::Kernel)
    }
}
