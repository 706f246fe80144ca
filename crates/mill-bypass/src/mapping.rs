//! Options and errors, between the runtime's and the stack's.

use core::net::{IpAddr, SocketAddr};
use mill_runtime::datagrams::{DatagramError, Ecn};
use mill_runtime::engine::{ConnectOptions, Keepalive, ListenError, ListenOptions};
use mill_runtime::stream::{StreamError, TransportInfo};
use mill_runtime::time::{Duration, Instant};
use mill_stack::socket::{self, ConnectError, SocketError};
use mill_stack::udp::{BindError, UdpError, UdpWriteError};
use mill_tcp::{config, info::Info, time};
use mill_wire::ipv4;

/// An instant of the runtime as an instant of the stack.
pub(crate) const fn to_stack(now: Instant) -> time::Instant {
    time::Instant::from_nanos(now.as_nanos())
}

/// An instant of the stack as an instant of the runtime.
pub(crate) const fn to_runtime(at: time::Instant) -> Instant {
    Instant::from_nanos(at.as_nanos())
}

pub(crate) const fn to_stack_ecn(ecn: Ecn) -> ipv4::Ecn {
    match ecn {
        Ecn::NotCapable => ipv4::Ecn::NotCapable,
        Ecn::Capable1 => ipv4::Ecn::Capable1,
        Ecn::Capable0 => ipv4::Ecn::Capable0,
        Ecn::CongestionExperienced => ipv4::Ecn::CongestionExperienced,
    }
}

pub(crate) const fn to_runtime_ecn(ecn: ipv4::Ecn) -> Ecn {
    match ecn {
        ipv4::Ecn::NotCapable => Ecn::NotCapable,
        ipv4::Ecn::Capable1 => Ecn::Capable1,
        ipv4::Ecn::Capable0 => Ecn::Capable0,
        ipv4::Ecn::CongestionExperienced => Ecn::CongestionExperienced,
    }
}

/// The error that a datagram sent earlier has met.
pub(crate) const fn datagram_error(error: UdpError) -> DatagramError {
    match error {
        UdpError::Refused => DatagramError::Refused,
        UdpError::Unreachable => DatagramError::Unreachable,
    }
}

/// Why a datagram is not sent. A full queue is not an error for a caller that may wait.
pub(crate) const fn write_error(error: UdpWriteError) -> Option<DatagramError> {
    match error {
        UdpWriteError::TooLarge => Some(DatagramError::TooLarge),
        UdpWriteError::NoRoute => Some(DatagramError::Unreachable),
        UdpWriteError::Full => None,
    }
}

pub(crate) const fn bind_error(error: BindError) -> DatagramError {
    match error {
        BindError::InUse | BindError::NoPort => DatagramError::Other(EADDRINUSE),
        BindError::TooMany => DatagramError::Other(EMFILE),
    }
}

/// A listener's options as the stack takes them; it has all of them.
pub(crate) fn listen_options(options: &ListenOptions) -> socket::ListenOptions {
    socket::ListenOptions {
        backlog: options.backlog,
        share: options.share.is_some(),
        deferred: options.deferred,
        fast_open: options.fastopen,
        fast_open_without_cookie: false,
        nodelay: options.nodelay,
        // Linux's default (net.ipv6.bindv6only = 0) where it is left to the system.
        dual_stack: options.address_is_v6_wildcard() && options.ipv6only != Some(true),
        each: socket::SocketOptions {
            keepalive: keepalive(options.keepalive),
            receive_buffer_bytes: options.receive_buffer_bytes.map(clamp),
            ..socket::SocketOptions::default()
        },
    }
}

/// The options of a connection that is opened, over the ones of all.
pub(crate) fn opened_options(
    all: socket::SocketOptions,
    options: &ConnectOptions,
) -> socket::SocketOptions {
    let probes = || config::Keepalive::default();
    socket::SocketOptions {
        keepalive: options.keepalive.then(probes).or(all.keepalive),
        receive_buffer_bytes: options
            .receive_buffer_bytes
            .map(clamp)
            .or(all.receive_buffer_bytes),
        ..all
    }
}

/// Bytes of a buffer.
pub(crate) fn clamp(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// Keep-alive is off by default, as on Linux; a value left to the system is Linux's.
fn keepalive(keepalive: Keepalive) -> Option<config::Keepalive> {
    match keepalive {
        Keepalive::System | Keepalive::Off => None,
        Keepalive::On {
            idle,
            interval,
            count,
        } => {
            let system = config::Keepalive::default();
            let at_least_1_s = |duration: Duration| duration.max(Duration::from_secs(1));
            Some(config::Keepalive {
                idle: idle.map_or(system.idle, at_least_1_s),
                interval: interval.map_or(system.interval, at_least_1_s),
                count: count.map_or(system.count, |count| {
                    u8::try_from(count.clamp(1, KEEPALIVE_COUNT_MAX)).unwrap_or(u8::MAX)
                }),
            })
        }
    }
}

/// The kernel's call and error number for the same failure.
pub(crate) fn listen_error(error: socket::ListenError) -> ListenError {
    match error {
        socket::ListenError::InUse => ListenError {
            call: "bind()",
            code: EADDRINUSE,
        },
        socket::ListenError::NotOurs => ListenError {
            call: "bind()",
            code: EADDRNOTAVAIL,
        },
        socket::ListenError::TooMany => ListenError {
            call: "socket()",
            code: EMFILE,
        },
    }
}

pub(crate) fn connect_error(error: ConnectError) -> StreamError {
    match error {
        ConnectError::NoRoute => StreamError::Unreachable,
        ConnectError::NoPort => StreamError::Other(EADDRNOTAVAIL),
        ConnectError::InUse => StreamError::Other(EADDRINUSE),
        ConnectError::TooMany => StreamError::Other(EMFILE),
    }
}

pub(crate) fn stream_error(error: SocketError) -> StreamError {
    match error {
        SocketError::Reset | SocketError::Stale => StreamError::Reset,
        SocketError::Refused => StreamError::Refused,
        SocketError::Unreachable => StreamError::Unreachable,
        SocketError::Vanished => StreamError::Truncated,
    }
}

pub(crate) fn transport_info(info: &Info) -> TransportInfo {
    TransportInfo {
        rtt: info.rtt,
        rtt_variation: info.rtt_variation,
        snd_cwnd: info.cwnd.div_ceil(u32::from(info.mss.max(1))),
        rcv_space: info.rcv_wnd,
    }
}

/// As a socket of both families shows an IPv4 address (RFC 4291 2.5.5.2).
pub(crate) fn mapped(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
        IpAddr::V6(_) => address,
    }
}

/// The IP address as the stack represents it.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// The host's addresses that a listener's address covers.
pub(crate) trait ListenAddress {
    fn address_is_v6_wildcard(&self) -> bool;
}

impl ListenAddress for ListenOptions {
    fn address_is_v6_wildcard(&self) -> bool {
        use mill_runtime::address::Address;
        matches!(&self.address, Address::Ip(SocketAddr::V6(v6)) if v6.ip().is_unspecified())
    }
}

/// Linux's `MAX_TCP_KEEPCNT`.
const KEEPALIVE_COUNT_MAX: u32 = 127;

/// Linux's error numbers (asm-generic/errno-base.h, errno.h).
pub(crate) const EMFILE: i32 = 24;
pub(crate) const EADDRINUSE: i32 = 98;
pub(crate) const EADDRNOTAVAIL: i32 = 99;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_opened_connection_has_what_is_asked_for_and_else_what_all_have() {
        let all = socket::SocketOptions {
            receive_buffer_bytes: Some(1),
            ..socket::SocketOptions::default()
        };
        let asked = ConnectOptions {
            keepalive: true,
            receive_buffer_bytes: Some(2),
            ..ConnectOptions::default()
        };
        let opened = opened_options(all, &asked);
        assert_eq!(opened.keepalive, Some(config::Keepalive::default()));
        assert_eq!(opened.receive_buffer_bytes, Some(2));
        assert_eq!(opened_options(all, &ConnectOptions::default()), all);
    }
}
