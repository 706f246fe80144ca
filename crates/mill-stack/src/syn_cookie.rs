//! SYN cookies (RFC 4987 3.6): while the SYN cache is full, the state of a handshake travels in its segments.
//!
//! ```text
//! sequence number of the SYN-ACK            lower six bits of its timestamp, as Linux has them
//! | minute: 5 | MSS: 3 | hash: 24 |         | ECN: 1 | SACK: 1 | window scale: 4, 15 if none |
//! ```
//!
//! The peer's acknowledgement brings both back. Without timestamps there is neither window scaling nor SACK.

use crate::flow::Flow;
use crate::siphash::Key;
use mill_tcp::config::{Config, EcnMode};
use mill_tcp::ecn::accurate::{Feedback, is_accurate_ack};
use mill_tcp::segment::{Ecn, Segment};
use mill_tcp::time::Instant;
use mill_wire::seq::SeqNumber;

/// The options of a peer's SYN that a cookie keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreed {
    pub mss: u16,
    /// `None` where a side has no timestamps; then the options below are off.
    pub timestamps: Option<AgreedOptions>,
}

/// The options that fit into a timestamp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgreedOptions {
    /// The peer's shift, if both sides scale windows.
    pub snd_wind_shift: Option<u8>,
    pub sack: bool,
    pub ecn: bool,
}

impl AgreedOptions {
    /// Without what this side does not have on: the peer may echo another timestamp than it was given.
    #[must_use]
    pub fn within(self, config: &Config) -> Self {
        Self {
            snd_wind_shift: self.snd_wind_shift.filter(|_| config.window_scaling),
            sack: self.sack && config.sack,
            ecn: self.ecn && config.ecn != EcnMode::Off,
        }
    }
}

/// The sequence number of a SYN-ACK for a peer's SYN with the number `irs`.
pub fn make(key: Key, flow: &Flow, irs: SeqNumber, mss: u16, now: Instant) -> SeqNumber {
    let minute = minute(now);
    let index = mss_index(mss);
    SeqNumber(((minute & 31) << 27) | (index << 24) | hash(key, flow, irs, minute, index))
}

/// The MSS that a cookie keeps, if we made it for this flow and SYN, less than about two minutes ago.
pub fn open(key: Key, flow: &Flow, irs: SeqNumber, cookie: SeqNumber, now: Instant) -> Option<u16> {
    let index = (cookie.0 >> 24) & 7;
    let minute = minute(now);
    [minute, minute.wrapping_sub(1)]
        .into_iter()
        .filter(|minute| minute & 31 == cookie.0 >> 27)
        .find(|minute| cookie.0 & HASH_MASK == hash(key, flow, irs, *minute, index))
        .and_then(|_| MSS_TABLE.get(index as usize).copied())
}

/// What was agreed on marks, of which a timestamp keeps that there was something; an acknowledgement of accurate ECN tells itself
/// from others (RFC 9768 5.1).
pub fn feedback(agreed: bool, segment: &Segment<'_>, config: &Config) -> Feedback {
    if config.ecn == EcnMode::AcceptAccurate && is_accurate_ack(segment.flags) {
        return Feedback::Accurate {
            syn: Ecn::NotCapable,
            is_capable: true,
        };
    }
    if agreed {
        Feedback::Classic
    } else {
        Feedback::None
    }
}

/// The amount to subtract from a timestamp so that its lower six bits encode the options. Later timestamps are not
/// smaller than the result (RFC 7323 5.2).
pub fn timestamp_decrement(value: u32, options: AgreedOptions) -> u32 {
    let shift = options
        .snd_wind_shift
        .map_or(NO_SHIFT, |shift| u32::from(shift).min(14));
    let bits = shift | (u32::from(options.sack) << 4) | (u32::from(options.ecn) << 5);
    value.wrapping_sub(bits) & OPTIONS_MASK
}

/// The options that an echoed timestamp encodes.
pub const fn options_of(echo: u32) -> AgreedOptions {
    let [.., low] = echo.to_be_bytes();
    let shift = low & 15;
    AgreedOptions {
        snd_wind_shift: if shift < 15 { Some(shift) } else { None },
        sack: low & (1 << 4) != 0,
        ecn: low & (1 << 5) != 0,
    }
}

/// The hash ties the cookie to its flow, SYN, time and MSS.
fn hash(key: Key, flow: &Flow, irs: SeqNumber, minute: u32, index: u32) -> u32 {
    let key = key.derive((u64::from(minute) << 32) | u64::from(irs.0));
    let [a, b, c, ..] = flow.secret_hash(key, u64::from(index)).to_le_bytes();
    u32::from_le_bytes([a, b, c, 0])
}

/// The largest entry that is not more than the peer's MSS; the smallest for less.
fn mss_index(mss: u16) -> u32 {
    let index = MSS_TABLE.iter().rposition(|entry| *entry <= mss);
    u32::try_from(index.unwrap_or(0)).unwrap_or(0)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the count wraps after 8000 years"
)]
const fn minute(now: Instant) -> u32 {
    (now.as_millis() / PERIOD_MS) as u32
}

/// A cookie is good in the period in which it was made and in the next one: 64 to 128 s.
const PERIOD_MS: u64 = 64_000;

/// How long after the last SYN that was answered with a cookie acknowledgements may hold one, in milliseconds.
pub const VALID_MS: u64 = 2 * PERIOD_MS;

/// Less than any peer that is not absurd says, for those that say less than 536; then values that are in use: without an
/// option, IPv6's least MTU, tunnels, Ethernet with IPv6 (and PPPoE, a little less than it could have) and with IPv4, and
/// frames of 9000 bytes.
const MSS_TABLE: [u16; 8] = [48, 536, 1220, 1300, 1400, 1440, 1460, 8940];

const HASH_MASK: u32 = (1 << 24) - 1;
const OPTIONS_MASK: u32 = 63;
const NO_SHIFT: u32 = 15;

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = Key::new([3; 16]);

    fn flow(remote: &str) -> Flow {
        Flow::new("10.0.0.1:80".parse().unwrap(), remote.parse().unwrap())
    }

    fn at_secs(secs: u64) -> Instant {
        Instant::from_nanos(secs * 1_000_000_000)
    }

    #[test]
    fn a_cookie_opens_for_its_own_flow_and_syn_only() {
        let flow = flow("10.0.0.2:1000");
        let irs = SeqNumber(77);
        let cookie = make(KEY, &flow, irs, 1460, at_secs(100));
        let opens = |key, flow: &Flow, irs, cookie| open(key, flow, irs, cookie, at_secs(101));
        assert_eq!(opens(KEY, &flow, irs, cookie), Some(1460));
        assert_eq!(opens(Key::new([4; 16]), &flow, irs, cookie), None);
        assert_eq!(opens(KEY, &self::flow("10.0.0.2:1001"), irs, cookie), None);
        assert_eq!(opens(KEY, &flow, irs + 1, cookie), None);
        for bit in 0..32 {
            let other = SeqNumber(cookie.0 ^ (1 << bit));
            assert_eq!(opens(KEY, &flow, irs, other), None, "bit {bit}");
        }
    }

    #[test]
    fn a_cookie_is_good_for_two_periods_at_most() {
        let flow = flow("10.0.0.2:1000");
        let irs = SeqNumber(77);
        let cookie = make(KEY, &flow, irs, 536, at_secs(63));
        for (secs, is_good) in [
            (63, true),
            (64, true),
            (127, true),
            (128, false),
            (63 + 2048, false),
        ] {
            let opened = open(KEY, &flow, irs, cookie, at_secs(secs));
            assert_eq!(opened.is_some(), is_good, "{secs} s");
        }
    }

    #[test]
    fn the_mss_kept_is_never_more_than_what_the_peer_said_if_that_was_not_absurd() {
        let flow = flow("[::2]:1000");
        for (said, kept) in [
            (20, 48),
            (48, 48),
            (535, 48),
            (536, 536),
            (1219, 536),
            (1220, 1220),
            (1459, 1440),
            (9000, 8940),
        ] {
            let cookie = make(KEY, &flow, SeqNumber(1), said, at_secs(0));
            assert_eq!(
                open(KEY, &flow, SeqNumber(1), cookie, at_secs(0)),
                Some(kept)
            );
        }
    }

    #[test]
    fn a_timestamp_carries_what_was_agreed_and_lies_at_most_63_ticks_back() {
        for value in [0, 5, 64, 1000, u32::MAX] {
            for shift in [None, Some(0), Some(7), Some(14)] {
                for (sack, ecn) in [(false, false), (true, false), (false, true), (true, true)] {
                    let options = AgreedOptions {
                        snd_wind_shift: shift,
                        sack,
                        ecn,
                    };
                    let decrement = timestamp_decrement(value, options);
                    assert!(decrement < 64);
                    assert_eq!(options_of(value.wrapping_sub(decrement)), options);
                }
            }
        }
    }
}
