//! What waits, as bytes from process to process of one machine: numbers in big-endian order, one after the other.
//!
//! | bytes | what |
//! | ---: | --- |
//! | 2 × 18 | own and remote end: address as of IPv6 (IPv4 mapped into it), port |
//! | 37 | the handshake |
//! | 1 | 0: that is all; 1: the connection is open; 2: the peer's FIN came, too |
//! | 12 | of an open one: SND.WND, the edge of the receive window, length of the text |
//! | | the text |
//!
//! The ticks of both processes are those of one monotonic clock.

use super::{Progress, Waiting};
use crate::flow::Flow;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};
use mill_tcp::ecn::accurate::Feedback;
use mill_tcp::listen::HalfOpen;
use mill_tcp::migration::Migration;
use mill_tcp::segment::Ecn;
use mill_tcp::time::Tick;
use mill_tcp::timestamps::TimestampState;
use mill_wire::seq::SeqNumber;

/// Appends one.
pub fn write(waiting: &Waiting, into: &mut Vec<u8>) {
    for end in [waiting.flow.local(), waiting.flow.remote()] {
        let address = match end.ip() {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        into.extend(address.octets());
        into.extend(end.port().to_be_bytes());
    }
    match &waiting.progress {
        Progress::Handshake(half_open) => {
            write_handshake(half_open, into);
            into.push(HANDSHAKE);
        }
        Progress::Open { migration, text } => {
            write_handshake(&migration.half_open, into);
            into.push(if migration.is_finished {
                FINISHED
            } else {
                OPEN
            });
            let len = u32::try_from(text.len()).unwrap_or(u32::MAX);
            for number in [migration.snd_wnd, migration.rcv_adv.0, len] {
                into.extend(number.to_be_bytes());
            }
            into.extend(text);
        }
    }
}

fn write_handshake(half_open: &HalfOpen, into: &mut Vec<u8>) {
    let numbers = [
        half_open.iss.0,
        half_open.irs.0,
        half_open.ts.offset(),
        half_open.ts.recent(),
        half_open.retransmit_at.0,
    ];
    into.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
    let numbers = [half_open.mss, half_open.mss_local, half_open.window];
    into.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
    into.extend([
        half_open.retransmits,
        half_open.snd_wind_shift.unwrap_or(NO_SHIFT),
        u8::from(half_open.timestamps),
        u8::from(half_open.sack),
        write_feedback(half_open.ecn),
    ]);
}

/// Hosts of before accurate ECN know 0 and 1, and take the others for 1.
const fn write_feedback(feedback: Feedback) -> u8 {
    match feedback {
        Feedback::None => 0,
        Feedback::Classic => 1,
        Feedback::Accurate {
            is_capable: false, ..
        } => 2,
        Feedback::Accurate {
            is_capable: true, ..
        } => 3,
    }
}

const fn read_feedback(byte: u8) -> Feedback {
    match byte {
        0 => Feedback::None,
        2 | 3 => Feedback::Accurate {
            syn: Ecn::NotCapable,
            is_capable: byte == 3,
        },
        _ => Feedback::Classic,
    }
}

/// Takes one from the front of `bytes`; `None` at the end, and where they are no such thing.
pub fn read(bytes: &mut &[u8]) -> Option<Waiting> {
    let mut reader = Reader(bytes);
    let (local, remote) = (reader.end()?, reader.end()?);
    if local.is_ipv4() != remote.is_ipv4() {
        return None;
    }
    let half_open = reader.handshake()?;
    let progress = match reader.byte()? {
        HANDSHAKE => Progress::Handshake(half_open),
        kind @ (OPEN | FINISHED) => {
            let migration = Migration {
                half_open,
                snd_wnd: reader.number()?,
                rcv_adv: SeqNumber(reader.number()?),
                is_finished: kind == FINISHED,
            };
            let len = usize::try_from(reader.number()?).ok()?;
            let text = reader.take(len)?.to_vec();
            Progress::Open { migration, text }
        }
        _ => return None,
    };
    *bytes = reader.0;
    Some(Waiting {
        flow: Flow::new(local, remote),
        progress,
    })
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    fn short(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    fn number(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    fn end(&mut self) -> Option<SocketAddr> {
        let address = Ipv6Addr::from(self.array::<16>()?).to_canonical();
        Some(SocketAddr::new(address, self.short()?))
    }

    fn handshake(&mut self) -> Option<HalfOpen> {
        Some(HalfOpen {
            iss: SeqNumber(self.number()?),
            irs: SeqNumber(self.number()?),
            ts: TimestampState::new(self.number()?, self.number()?),
            retransmit_at: Tick(self.number()?),
            mss: self.short()?,
            mss_local: self.short()?,
            window: self.short()?,
            retransmits: self.byte()?,
            snd_wind_shift: Some(self.byte()?).filter(|shift| *shift <= SHIFT_MAX),
            timestamps: self.byte()? != 0,
            sack: self.byte()? != 0,
            ecn: read_feedback(self.byte()?),
        })
    }
}

const HANDSHAKE: u8 = 0;
const OPEN: u8 = 1;
const FINISHED: u8 = 2;

/// RFC 7323 2.3; and none.
const SHIFT_MAX: u8 = 14;
const NO_SHIFT: u8 = 255;
