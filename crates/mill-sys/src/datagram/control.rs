//! Control messages, as bytes: a header of 16 bytes (length with the header, level, kind: cmsghdr on 64 bits), the data,
//! and padding to 8 bytes.

use super::Outgoing;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Room for the control messages of one datagram, aligned as cmsg(3) wants it.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub(super) struct Control {
    bytes: [u8; Self::SIZE],
    len: usize,
}

impl Control {
    /// The address of an IPv6 datagram, its class and its segments take 40, 24 and 24 bytes.
    pub(super) const SIZE: usize = 96;

    pub(super) const EMPTY: Self = Self {
        bytes: [0; Self::SIZE],
        len: 0,
    };

    pub(super) const fn as_mut_ptr(&mut self) -> *mut u8 {
        self.bytes.as_mut_ptr()
    }

    /// Bytes of the messages that were made.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Makes the messages of a datagram that is sent.
    pub(super) fn describe(&mut self, datagram: &Outgoing<'_>) {
        match datagram.local {
            // in_pktinfo: interface, source address, and the header's address, which is only received.
            Some(IpAddr::V4(ip)) => {
                let mut info = [0; 12];
                info[4..8].copy_from_slice(&ip.octets());
                self.push(libc::IPPROTO_IP, libc::IP_PKTINFO, &info);
            }
            // in6_pktinfo: address, interface.
            Some(IpAddr::V6(ip)) => {
                let mut info = [0; 20];
                info[..16].copy_from_slice(&ip.octets());
                self.push(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &info);
            }
            None => {}
        }
        if datagram.class != 0 {
            let class = i32::from(datagram.class).to_ne_bytes();
            if datagram.remote.is_ipv6() {
                self.push(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &class);
            } else {
                self.push(libc::IPPROTO_IP, libc::IP_TOS, &class);
            }
        }
        if let Some(segment_bytes) = datagram.segment_bytes {
            let len = segment_bytes.to_ne_bytes();
            self.push(libc::SOL_UDP, libc::UDP_SEGMENT, &len);
        }
    }

    /// The local address and the class of a datagram that came, from `len` bytes of messages.
    pub(super) fn told(&self, len: usize) -> (Option<IpAddr>, u8) {
        let (mut local, mut class) = (None, 0);
        let mut rest = self.bytes.get(..len).unwrap_or_default();
        while let Some((level, kind, data, behind)) = split_message(rest) {
            match (level, kind) {
                // The header's address is the one that it was sent to.
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    local = field::<4>(data, 8).map(|ip| Ipv4Addr::from(ip).into());
                }
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    local = field::<16>(data, 0).map(|ip| Ipv6Addr::from(ip).into());
                }
                // IPv4's is a byte.
                (libc::IPPROTO_IP, libc::IP_TOS) => class = data.first().copied().unwrap_or(0),
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                    let told = i32::from_ne_bytes(field(data, 0).unwrap_or_default());
                    class = u8::try_from(told).unwrap_or(0);
                }
                _ => {}
            }
            rest = behind;
        }
        (local, class)
    }

    fn push(&mut self, level: i32, kind: i32, data: &[u8]) {
        let room = self.bytes.get_mut(self.len..).unwrap_or_default();
        let len = HEADER_BYTES + data.len();
        let Some(message) = room.get_mut(..len) else {
            debug_assert!(false, "the room is for all messages that there are");
            return;
        };
        message[..8].copy_from_slice(&len.to_ne_bytes());
        message[8..12].copy_from_slice(&level.to_ne_bytes());
        message[12..16].copy_from_slice(&kind.to_ne_bytes());
        message[HEADER_BYTES..].copy_from_slice(data);
        self.len += len.next_multiple_of(8);
    }
}

/// Level, kind and data of the first message, and what follows it.
fn split_message(bytes: &[u8]) -> Option<(i32, i32, &[u8], &[u8])> {
    let len = usize::from_ne_bytes(field(bytes, 0)?);
    let level = i32::from_ne_bytes(field(bytes, 8)?);
    let kind = i32::from_ne_bytes(field(bytes, 12)?);
    let data = bytes.get(HEADER_BYTES..len)?;
    let behind = bytes.get(len.next_multiple_of(8)..).unwrap_or_default();
    Some((level, kind, data, behind))
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

const HEADER_BYTES: usize = 16;
const _: () = assert!(size_of::<libc::cmsghdr>() == HEADER_BYTES);

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    fn check(local: &str, class: u8) {
        let local: IpAddr = local.parse().unwrap();
        let datagram = Outgoing {
            bytes: b"",
            remote: SocketAddr::new(local, 1),
            local: Some(local),
            class,
            segment_bytes: Some(1200),
        };
        let mut control = Control::EMPTY;
        control.describe(&datagram);
        assert!(control.len() <= Control::SIZE);
        let (told, told_class) = control.told(control.len());
        assert_eq!(told_class, class);
        // The address to send from stands where the interface's is when one is received.
        match local {
            IpAddr::V4(_) => assert_eq!(told, Some(Ipv4Addr::UNSPECIFIED.into())),
            IpAddr::V6(_) => assert_eq!(told, Some(local)),
        }
    }

    #[test]
    fn messages_are_found_behind_each_other() {
        for class in 0..4 {
            check("192.0.2.1", class);
            check("2001:db8::1", class);
        }
    }

    #[test]
    fn a_message_that_is_cut_off_is_the_end() {
        let mut control = Control::EMPTY;
        control.push(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &3_i32.to_ne_bytes());
        for len in 0..HEADER_BYTES + 4 {
            assert_eq!(control.told(len), (None, 0), "{len}");
        }
        assert_eq!(control.told(HEADER_BYTES + 4), (None, 3));
    }
}
