//! What a driver does with XDP programs (the generic netlink family `netdev`, Documentation/netlink/specs/netdev.yaml; Linux 6.3).

use super::{ANSWER_WAIT, Netlink, Received, socket};
use crate::socket::{set_option, timeval};
use std::io;
use std::os::fd::AsFd;

/// What a driver says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XdpFeatures {
    bits: u64,
    /// Slots that a frame may take with zero copy.
    pub zero_copy_segments_max: u32,
}

impl XdpFeatures {
    /// Whether programs run in the driver and may redirect frames.
    pub const fn is_native(self) -> bool {
        self.bits & (BASIC | REDIRECT) == BASIC | REDIRECT
    }

    pub const fn has_zero_copy(self) -> bool {
        self.bits & XSK_ZEROCOPY != 0
    }

    /// Whether programs take frames of several slots.
    pub const fn has_multi_buffer(self) -> bool {
        self.bits & RX_SG != 0
    }
}

/// The features of the interface with this index. `NotFound` if the kernel does not tell: before Linux 6.3.
pub fn xdp_features(index: u32) -> io::Result<XdpFeatures> {
    let socket = socket(libc::NETLINK_GENERIC, 0)?;
    let wait = timeval(ANSWER_WAIT);
    set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVTIMEO, &wait)?;
    let netlink = Netlink(socket);
    let family = family(&netlink)?;
    let question = attribute(DEV_IFINDEX, &index.to_ne_bytes());
    let answer = ask(&netlink, family, DEV_GET, &question)?;
    let mut features = XdpFeatures::default();
    for (kind, value) in attributes(&answer) {
        match (kind, value.first_chunk::<8>(), value.first_chunk::<4>()) {
            (DEV_XDP_FEATURES, Some(bits), _) => features.bits = u64::from_ne_bytes(*bits),
            (DEV_XDP_ZC_MAX_SEGS, _, Some(count)) => {
                features.zero_copy_segments_max = u32::from_ne_bytes(*count);
            }
            _ => {}
        }
    }
    Ok(features)
}

/// The number of the family.
fn family(netlink: &Netlink) -> io::Result<u16> {
    let answer = ask(
        netlink,
        GENL_ID_CTRL,
        CTRL_GETFAMILY,
        &attribute(CTRL_FAMILY_NAME, b"netdev\0"),
    )?;
    let found = attributes(&answer).find(|(kind, _)| *kind == CTRL_FAMILY_ID);
    let number = found.and_then(|(_, value)| value.first_chunk().copied());
    let number = number.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
    Ok(u16::from_ne_bytes(number))
}

/// Sends a question (`nlmsghdr`, `genlmsghdr`, an attribute), and gives the attributes of the answer.
fn ask(netlink: &Netlink, family: u16, command: u8, question: &[u8]) -> io::Result<Vec<u8>> {
    let len = u32::try_from(HEADERS_BYTES + question.len()).unwrap_or(0);
    let flags = u16::try_from(libc::NLM_F_REQUEST).unwrap_or(0);
    let mut message = Vec::new();
    message.extend(len.to_ne_bytes());
    message.extend(family.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    // Sequence and port, which one question at a time does not need.
    message.extend([0; 8]);
    message.extend([command, VERSION, 0, 0]);
    message.extend(question);
    netlink.send(&message)?;
    let mut answer = vec![0; ANSWER_BYTES_MAX];
    let Received::Messages(len) = netlink.receive(&mut answer)? else {
        return Err(io::Error::other("the kernel's answer did not fit"));
    };
    let answer = answer.get(..len).unwrap_or_default();
    let kind = answer.get(4..).and_then(|rest| rest.first_chunk().copied());
    let is_error = kind.map(u16::from_ne_bytes).map(libc::c_int::from) == Some(libc::NLMSG_ERROR);
    if is_error {
        let errno = answer
            .get(HEADER_BYTES..)
            .and_then(|rest| rest.first_chunk());
        let errno = errno.map_or(0, |errno| i32::from_ne_bytes(*errno));
        return Err(io::Error::from_raw_os_error(-errno));
    }
    Ok(answer.get(HEADERS_BYTES..).unwrap_or_default().to_vec())
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let len = u16::try_from(ATTRIBUTE_BYTES + value.len()).unwrap_or(0);
    let mut bytes = Vec::new();
    bytes.extend(len.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// The attributes in these bytes, without those of wrong lengths.
fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    core::iter::from_fn(move || {
        let [len, kind] = [0, 2].map(|at| rest.get(at..at + 2)?.first_chunk().copied());
        let len = usize::from(u16::from_ne_bytes(len?));
        let value = rest.get(ATTRIBUTE_BYTES..len)?;
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes(kind?), value))
    })
}

/// `nlmsghdr`, and with it `genlmsghdr`.
const HEADER_BYTES: usize = 16;
const HEADERS_BYTES: usize = HEADER_BYTES + 4;
const ATTRIBUTE_BYTES: usize = 4;
const ANSWER_BYTES_MAX: usize = 32 * 1024;

/// Of both families' commands.
const VERSION: u8 = 1;

// linux/genetlink.h.
const GENL_ID_CTRL: u16 = 16;
const CTRL_GETFAMILY: u8 = 3;
const CTRL_FAMILY_ID: u16 = 1;
const CTRL_FAMILY_NAME: u16 = 2;

// linux/netdev.h.
const DEV_GET: u8 = 1;
const DEV_IFINDEX: u16 = 1;
const DEV_XDP_FEATURES: u16 = 3;
const DEV_XDP_ZC_MAX_SEGS: u16 = 4;
const BASIC: u64 = 1;
const REDIRECT: u64 = 2;
const XSK_ZEROCOPY: u64 = 8;
const RX_SG: u64 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_of_wrong_lengths_end_the_list() {
        let both = [attribute(1, b"abc"), attribute(7, b"")].concat();
        let found: Vec<_> = attributes(&both).collect();
        assert_eq!(found, [(1, &b"abc"[..]), (7, b"")]);
        for broken in [&both[..3], &[3, 0, 1, 0], &[9, 0, 1, 0, 1, 2, 3, 4]] {
            assert_eq!(attributes(broken).count(), 0, "{broken:?}");
        }
    }

    #[test]
    fn the_loopback_takes_no_programs_in_its_driver() {
        match xdp_features(1) {
            Ok(features) => assert!(!features.is_native() && !features.has_zero_copy()),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::NotFound),
        }
        let gone = xdp_features(u32::MAX >> 1).unwrap_err();
        let is_gone = [libc::ENODEV, libc::ENOENT]
            .map(Some)
            .contains(&gone.raw_os_error());
        assert!(is_gone, "{gone}");
    }
}
