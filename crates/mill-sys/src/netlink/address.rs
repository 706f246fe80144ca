//! Adding addresses to interfaces.

use super::{Netlink, Received};
use crate::interface;
use std::io;
use std::net::IpAddr;

/// Adds an address to an interface, and with it the route to its prefix. An IPv6 address is usable at once, without the
/// second of duplicate address detection. `EEXIST` if the interface has it already.
pub fn add_address(interface: &str, address: IpAddr, prefix_len: u8) -> io::Result<()> {
    let index = interface::index(interface)?;
    let (family, bytes) = match address {
        IpAddr::V4(address) => (libc::AF_INET, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6, address.octets().to_vec()),
    };
    // struct ifaddrmsg: family, length of the prefix, flags, scope (0 is the whole world), index of the interface.
    let mut body = vec![u8::try_from(family).unwrap_or(0), prefix_len, 0, 0];
    body.extend_from_slice(&index.to_ne_bytes());
    push_attribute(&mut body, libc::IFA_LOCAL, &bytes);
    push_attribute(&mut body, libc::IFA_ADDRESS, &bytes);
    push_attribute(&mut body, libc::IFA_FLAGS, &libc::IFA_F_NODAD.to_ne_bytes());
    let flags = libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
    ask(libc::RTM_NEWADDR, flags, &body)
}

/// Sends one request and receives its acknowledgement.
fn ask(kind: u16, flags: libc::c_int, body: &[u8]) -> io::Result<()> {
    let socket = Netlink::open()?;
    let len = u32::try_from(HEADER_LEN + body.len()).unwrap_or(u32::MAX);
    // struct nlmsghdr: length, type, flags, sequence number, port (0: the kernel fills it in).
    let mut message = len.to_ne_bytes().to_vec();
    message.extend_from_slice(&kind.to_ne_bytes());
    message.extend_from_slice(&u16::try_from(flags).unwrap_or(0).to_ne_bytes());
    message.extend_from_slice(&[0; 8]);
    message.extend_from_slice(body);
    socket.send(&message)?;
    let mut answer = [0_u8; ANSWER_LEN_MAX];
    let Received::Messages(_) = socket.receive(&mut answer)? else {
        return Err(io::Error::from(io::ErrorKind::InvalidData));
    };
    // struct nlmsgerr begins with the error, negated; zero acknowledges.
    let code = answer.get(HEADER_LEN..).and_then(<[u8]>::first_chunk::<4>);
    match code.map(|code| i32::from_ne_bytes(*code)) {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(code.saturating_neg())),
        None => Err(io::Error::from(io::ErrorKind::InvalidData)),
    }
}

/// struct rtattr: length including its own four bytes, type; then the value, padded to four bytes.
fn push_attribute(body: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let len = u16::try_from(4 + value.len()).expect("an address is short");
    body.extend_from_slice(&len.to_ne_bytes());
    body.extend_from_slice(&kind.to_ne_bytes());
    body.extend_from_slice(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

/// Bytes of struct nlmsghdr.
const HEADER_LEN: usize = 16;

/// Bytes of the longest acknowledgement: an error includes the request, which is shorter than this.
const ANSWER_LEN_MAX: usize = 1024;
