//! What a packet script says, line by line.

use std::fmt;

/// A script that was read, with what it includes put in its place.
#[derive(Debug)]
pub(crate) struct Script {
    /// `--name=value` of the first lines.
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) lines: Vec<Line>,
}

/// One thing that happens, or has to happen.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// File and number, for messages.
    pub(crate) place: String,
    pub(crate) text: String,
    pub(crate) time: Time,
    pub(crate) event: Event,
}

/// When it happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    At(Moment),
    /// `a~b`: somewhere in between.
    Within(Moment, Moment),
    /// `a...b`: a call that begins at `a` and returns at `b`.
    Blocking(Moment, Moment),
    /// `*`: whenever it does.
    Any,
}

/// Nanoseconds since the script began, or, with `+`, since the line before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) relative: bool,
    pub(crate) nanos: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// `<`: the peer sends this.
    Inbound(Segment),
    /// `< icmp`: a router, or the peer, sends this about a segment of ours.
    Icmp(Icmp),
    /// `>`: the stack has to send this.
    Outbound(Segment),
    Call(Call),
    /// Until now nothing else may have been sent.
    Silence,
    /// The flow begins anew: the next SYN of the stack has an ISS of its own.
    Renew(u8),
}

/// A segment with numbers relative to the ISS of its direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Segment {
    /// `@2`; 1 if none is named.
    pub(crate) flow: u8,
    pub(crate) ecn: u8,
    /// `[bad_checksum]`, inbound.
    pub(crate) has_bad_checksum: bool,
    /// `[inverted]`, inbound: other bytes than the stream has there.
    pub(crate) is_inverted: bool,
    pub(crate) flags: u16,
    pub(crate) seq: u32,
    pub(crate) len: u32,
    pub(crate) ack: Option<u32>,
    /// Not compared if absent.
    pub(crate) window: Option<u16>,
    pub(crate) urgent: Option<u16>,
    /// `None` is `<...>`: whatever they are.
    pub(crate) options: Option<Vec<HeaderOption>>,
}

/// An option of the header, in the order of the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HeaderOption {
    End,
    Nop,
    Mss(u16),
    SackPermitted,
    WindowScale(u8),
    Timestamps(Number, Number),
    Sack(Vec<(u32, u32)>),
    /// `fo` asks for a cookie; `fo *` is whatever cookie the stack gave last; else its bytes.
    FastOpen(Cookie),
    UserTimeout(u16),
    /// `kind 253 0102`.
    Other(u8, Vec<u8>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    Is(u32),
    /// `*`
    Any,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cookie {
    Request,
    Known,
    Bytes(Vec<u8>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Icmp {
    pub(crate) flow: u8,
    pub(crate) kind: IcmpKind,
    /// The segment of ours that it quotes.
    pub(crate) seq: u32,
    pub(crate) len: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IcmpKind {
    /// Fragmentation needed, or packet too big, with the MTU of the next hop.
    TooBig(u32),
    NetUnreachable,
    HostUnreachable,
    PortUnreachable,
    AdminProhibited,
    TimeExceeded,
}

/// A call of the socket interface and what it has to give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) arguments: Vec<String>,
    pub(crate) result: String,
}

/// Bits of the header, with the letters of scripts.
pub(crate) const FLAGS: [(char, u16); 9] = [
    ('S', 0x02),
    ('F', 0x01),
    ('R', 0x04),
    ('P', 0x08),
    ('.', 0x10),
    ('U', 0x20),
    ('E', 0x40),
    ('W', 0x80),
    ('A', 0x100),
];

pub(crate) const SYN: u16 = 0x02;
pub(crate) const ACK: u16 = 0x10;
pub(crate) const URG: u16 = 0x20;

/// Names of the ECN field's values.
pub(crate) const ECN: [&str; 4] = ["noecn", "ect1", "ect0", "ce"];

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.flow != 1 {
            write!(f, "@{} ", self.flow)?;
        }
        if self.ecn != 0 {
            write!(f, "[{}] ", ECN[usize::from(self.ecn & 3)])?;
        }
        for (letter, bit) in FLAGS {
            if self.flags & bit != 0 {
                write!(f, "{letter}")?;
            }
        }
        if self.flags == 0 {
            write!(f, "-")?;
        }
        let end = self.seq.wrapping_add(self.len);
        write!(f, " {}:{}({})", self.seq, end, self.len)?;
        if let Some(ack) = self.ack {
            write!(f, " ack {ack}")?;
        }
        if let Some(window) = self.window {
            write!(f, " win {window}")?;
        }
        if let Some(urgent) = self.urgent {
            write!(f, " urg {urgent}")?;
        }
        match &self.options {
            None => write!(f, " <...>"),
            Some(options) if options.is_empty() => Ok(()),
            Some(options) => {
                let texts: Vec<String> = options.iter().map(ToString::to_string).collect();
                write!(f, " <{}>", texts.join(","))
            }
        }
    }
}

impl fmt::Display for HeaderOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::End => write!(f, "eol"),
            Self::Nop => write!(f, "nop"),
            Self::Mss(mss) => write!(f, "mss {mss}"),
            Self::SackPermitted => write!(f, "sackOK"),
            Self::WindowScale(shift) => write!(f, "wscale {shift}"),
            Self::Timestamps(value, echo) => write!(f, "TS val {value} ecr {echo}"),
            Self::Sack(blocks) => {
                write!(f, "sack")?;
                blocks.iter().try_for_each(|(a, b)| write!(f, " {a}:{b}"))
            }
            Self::FastOpen(Cookie::Request) => write!(f, "fo"),
            Self::FastOpen(Cookie::Known) => write!(f, "fo *"),
            Self::FastOpen(Cookie::Bytes(bytes)) => write!(f, "fo {}", hex(bytes)),
            Self::UserTimeout(value) => write!(f, "uto {value}"),
            Self::Other(kind, bytes) => write!(f, "kind {kind} {}", hex(bytes)),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Is(number) => write!(f, "{number}"),
            Self::Any => write!(f, "*"),
        }
    }
}
