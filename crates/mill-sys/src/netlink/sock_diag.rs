//! Sockets of the kernel (sock_diag(7)).

use super::{ANSWER_WAIT, Netlink, Received, socket};
use crate::socket::{set_option, timeval};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

/// A TCP socket, or what waits for the end of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpSocket {
    /// `SO_COOKIE`.
    pub cookie: u64,
    pub local: SocketAddr,
    /// By its number in the kernel's tcp_states.h.
    pub state: u8,
}

/// The cookies (`SO_COOKIE`) of all TCP sockets that listen in this thread's network namespace.
pub fn tcp_listeners() -> io::Result<Vec<u64>> {
    let found = dump(1 << TCP_LISTEN)?;
    Ok(found.iter().map(|socket| socket.cookie).collect())
}

/// All TCP sockets in this thread's network namespace. The kernel walks its whole table for each family, which takes it 1 to 2 ms where
/// it has room for 262,144 connections.
pub fn tcp_sockets() -> io::Result<Vec<TcpSocket>> {
    dump(u32::MAX)
}

/// Those of connections that have not ended: none that listens, is only bound, is closed, or waits in TIME-WAIT.
pub fn tcp_connections() -> io::Result<Vec<TcpSocket>> {
    let open = TCP_OPEN.iter().fold(0, |bits, state| bits | 1 << state);
    dump(open)
}

/// Those in the states of these bits.
fn dump(states: u32) -> io::Result<Vec<TcpSocket>> {
    let socket = socket(libc::NETLINK_SOCK_DIAG, 0)?;
    let wait = timeval(ANSWER_WAIT);
    set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVTIMEO, &wait)?;
    let netlink = Netlink(socket);
    let mut found = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        netlink.send(&request(family, states))?;
        while !take_answer(&netlink, &mut found)? {}
    }
    Ok(found)
}

/// A dump of one family: `nlmsghdr`, and `inet_diag_req_v2` (linux/inet_diag.h).
fn request(family: libc::c_int, states: u32) -> [u8; REQUEST_BYTES] {
    let mut message = [0; REQUEST_BYTES];
    let mut put = |at: usize, bytes: &[u8]| {
        if let Some(place) = message.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    };
    let flags = u16::try_from(libc::NLM_F_REQUEST | libc::NLM_F_DUMP).unwrap_or(0);
    let len = u32::try_from(REQUEST_BYTES).unwrap_or(0);
    put(0, &len.to_ne_bytes());
    put(4, &SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    put(6, &flags.to_ne_bytes());
    let protocol = u8::try_from(libc::IPPROTO_TCP).unwrap_or(0);
    put(HEADER_BYTES, &[u8::try_from(family).unwrap_or(0), protocol]);
    put(HEADER_BYTES + 4, &states.to_ne_bytes());
    message
}

/// Takes one datagram of the answer; whether it was the last one.
fn take_answer(netlink: &Netlink, found: &mut Vec<TcpSocket>) -> io::Result<bool> {
    let mut buffer = vec![0; ANSWER_BYTES_MAX];
    let Received::Messages(len) = netlink.receive(&mut buffer)? else {
        return Err(io::Error::other("the kernel's answer did not fit"));
    };
    let mut rest = buffer.get(..len).unwrap_or_default();
    while let Some(message_len) = number(rest, 0) {
        let message_len = (message_len as usize).max(HEADER_BYTES);
        let kind = rest.get(4..6).and_then(|kind| kind.try_into().ok());
        match kind.map(u16::from_ne_bytes).map(libc::c_int::from) {
            // With the error of the dump, as where the kernel lacks the module for TCP.
            Some(libc::NLMSG_DONE) => match number(rest, HEADER_BYTES).unwrap_or_default() {
                0 => return Ok(true),
                errno => return Err(io::Error::from_raw_os_error(-errno.cast_signed())),
            },
            Some(libc::NLMSG_ERROR) => {
                let errno = number(rest, HEADER_BYTES).unwrap_or_default();
                return Err(io::Error::from_raw_os_error(-errno.cast_signed()));
            }
            _ => {}
        }
        found.extend(parse(rest));
        rest = rest
            .get(message_len.next_multiple_of(4)..)
            .unwrap_or_default();
    }
    Ok(false)
}

/// A `nlmsghdr` and its `inet_diag_msg`.
fn parse(message: &[u8]) -> Option<TcpSocket> {
    let body = message.get(HEADER_BYTES..)?;
    let (family, state) = (*body.first()?, *body.get(1)?);
    let port = body.get(PORT_AT..)?.first_chunk()?;
    let address = body.get(ADDRESS_AT..)?;
    let ip = match libc::c_int::from(family) {
        libc::AF_INET => IpAddr::from(*address.first_chunk::<4>()?),
        _ => IpAddr::from(*address.first_chunk::<16>()?),
    };
    let [low, high] = [0, 4].map(|half| number(body, COOKIE_AT + half).unwrap_or_default());
    Some(TcpSocket {
        cookie: u64::from(high) << 32 | u64::from(low),
        local: SocketAddr::new(ip.to_canonical(), u16::from_be_bytes(*port)),
        state,
    })
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_ne_bytes(bytes))
}

/// `nlmsghdr`.
const HEADER_BYTES: usize = 16;

/// With `inet_diag_req_v2`, of 56 bytes.
const REQUEST_BYTES: usize = HEADER_BYTES + 56;

/// Of `inet_diag_msg`, which begins with family and state: `idiag_sport` behind four bytes, and its address behind another port.
const PORT_AT: usize = 4;
const ADDRESS_AT: usize = PORT_AT + 4;

/// `idiag_cookie` of it: behind two addresses and the interface.
const COOKIE_AT: usize = ADDRESS_AT + 32 + 4;

/// linux/sock_diag.h.
const SOCK_DIAG_BY_FAMILY: u16 = 20;

/// net/tcp_states.h.
const TCP_LISTEN: u32 = 10;

/// The same: from ESTABLISHED to FIN-WAIT-2, CLOSE-WAIT, LAST-ACK, CLOSING, and NEW-SYN-RECV.
const TCP_OPEN: [u32; 9] = [1, 2, 3, 4, 5, 8, 9, 11, 12];

/// What the kernel sends at once.
const ANSWER_BYTES_MAX: usize = 32 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    fn cookie(listener: &TcpListener) -> u64 {
        let (mut cookie, mut len) = (0_u64, 8);
        let place = (&raw mut cookie).cast();
        let fd = listener.as_raw_fd();
        // SAFETY: the pointers are to locals, of the stated size.
        let found =
            unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_COOKIE, place, &raw mut len) };
        assert_eq!(found, 0);
        cookie
    }

    #[test]
    fn sockets_are_told_with_their_addresses_and_states() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else {
                continue;
            };
            let local = listener.local_addr().unwrap();
            let connection = TcpStream::connect(local).unwrap();
            let near = connection.local_addr().unwrap();
            let found = tcp_sockets().unwrap();
            // A port may also be that of an earlier connection, to another address, which is in
            // TIME-WAIT: only this one's state is asked for.
            let has = |found: &[TcpSocket], local, state| {
                let mut each = found.iter();
                each.any(|socket| socket.local == local && socket.state == state)
            };
            assert!(has(&found, local, 10), "{found:?}");
            assert!(has(&found, near, 1), "{found:?}");
            let connections = tcp_connections().unwrap();
            assert!(!has(&connections, local, 10), "{connections:?}");
            assert!(has(&connections, near, 1), "{connections:?}");
        }
    }

    #[test]
    fn a_listener_is_among_them_until_it_is_closed() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else {
                continue;
            };
            let own = cookie(&listener);
            assert!(tcp_listeners().unwrap().contains(&own), "{address}");
            let again = listener.try_clone().unwrap();
            drop(listener);
            assert!(tcp_listeners().unwrap().contains(&own), "{address}");
            drop(again);
            assert!(!tcp_listeners().unwrap().contains(&own), "{address}");
        }
    }
}
