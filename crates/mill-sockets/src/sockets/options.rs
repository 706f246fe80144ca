//! Options, by Linux's numbers.

use super::{SocketLink, Sockets};
use crate::errno::Errno;
use crate::readiness::Readiness;
use crate::socket::{Kind, Options, Socket, SocketNumber};
use crate::tcp_info::{self, Beside};
use mill_stack::queue::SendQueue;
use mill_tcp::config::Algorithm;
use mill_tcp::info::Info;
use mill_tcp::time::Duration;

const SOL_SOCKET: i32 = 1;
const SOL_IP: i32 = 0;
const SOL_TCP: i32 = 6;
const SOL_IPV6: i32 = 41;

const SO_TYPE: i32 = 3;
const SO_ERROR: i32 = 4;
const SO_SNDBUF: i32 = 7;
const SO_RCVBUF: i32 = 8;
const SO_KEEPALIVE: i32 = 9;
const SO_LINGER: i32 = 13;
const SO_REUSEPORT: i32 = 15;
const SO_RCVLOWAT: i32 = 18;
const SO_SNDLOWAT: i32 = 19;
const SO_RCVTIMEO: i32 = 20;
const SO_SNDTIMEO: i32 = 21;
const SO_ACCEPTCONN: i32 = 30;
const SO_PROTOCOL: i32 = 38;
const SO_DOMAIN: i32 = 39;

const TCP_NODELAY: i32 = 1;
const TCP_MAXSEG: i32 = 2;
const TCP_CORK: i32 = 3;
const TCP_KEEPIDLE: i32 = 4;
const TCP_KEEPINTVL: i32 = 5;
const TCP_KEEPCNT: i32 = 6;
const TCP_SYNCNT: i32 = 7;
const TCP_DEFER_ACCEPT: i32 = 9;
const TCP_INFO: i32 = 11;
const TCP_QUICKACK: i32 = 12;
const TCP_CONGESTION: i32 = 13;
const TCP_USER_TIMEOUT: i32 = 18;
const TCP_FASTOPEN: i32 = 23;
const TCP_NOTSENT_LOWAT: i32 = 25;
const TCP_FASTOPEN_CONNECT: i32 = 30;

const IP_TOS: i32 = 1;
const IPV6_TCLASS: i32 = 67;

const SOCK_STREAM: i32 = 1;
const IPPROTO_TCP: i32 = 6;
const AF_INET: i32 = 2;
const AF_INET6: i32 = 10;

/// The lowest bits of an IP header's byte of services (RFC 3168 5).
const ECN_BITS: u32 = 2;

/// The stack's algorithms, as `TCP_CONGESTION` has their names.
const ALGORITHMS: [(&[u8], Algorithm); 3] = [
    (b"cubic", Algorithm::Cubic),
    (b"reno", Algorithm::Reno),
    (b"bbr", Algorithm::Bbr),
];

/// Bytes of such a name (`TCP_CA_NAME_MAX`).
const CONGESTION_LEN: usize = 16;

/// What Linux takes for `TCP_MAXSEG` (`TCP_MIN_MSS`, `MAX_TCP_WINDOW`), bytes; 0 takes the limit away.
const MSS_ALLOWED: core::ops::RangeInclusive<u16> = 88..=32767;

impl Options {
    /// Takes one option's value. `ENOPROTOOPT` for those that the stack has no counterpart of.
    pub fn set(&mut self, level: i32, name: i32, value: &[u8]) -> Result<(), Errno> {
        if (level, name) == (SOL_TCP, TCP_CONGESTION) {
            return self.set_congestion(value);
        }
        if (level, name) == (SOL_IP, IP_TOS) {
            self.set_tos(value);
            return Ok(());
        }
        let number = int(value).ok_or(Errno::INVALID)?;
        let on = number != 0;
        match (level, name) {
            (SOL_TCP, TCP_QUICKACK) => {}
            (SOL_SOCKET, SO_REUSEPORT) => self.listen.share = on,
            (SOL_SOCKET, SO_LINGER) => {
                let seconds = value.get(4..).and_then(int).ok_or(Errno::INVALID)?;
                self.linger = on.then_some(seconds.cast_unsigned());
            }
            // Linux doubles what it is told, for its own bookkeeping, and says so when it is asked.
            (SOL_SOCKET, SO_SNDBUF) => {
                let doubled = number.cast_unsigned().saturating_mul(2);
                self.send_buffer_bytes = doubled.clamp(SEND_BUFFER_MIN, i32::MAX.cast_unsigned());
            }
            (SOL_SOCKET, SO_RCVBUF) => {
                let bytes = u32::try_from(number).ok();
                self.listen.each.receive_buffer_bytes =
                    bytes.map(|bytes| bytes.max(RECEIVE_BUFFER_MIN));
            }
            (SOL_SOCKET, SO_RCVLOWAT) => {
                self.readable_min = match number {
                    ..0 => i32::MAX.cast_unsigned(),
                    number => number.max(1).cast_unsigned(),
                }
            }
            (SOL_SOCKET, SO_RCVTIMEO) => self.receive_timeout = timeval(value)?,
            (SOL_SOCKET, SO_SNDTIMEO) => self.send_timeout = timeval(value)?,
            (SOL_SOCKET, SO_KEEPALIVE) => {
                let probes = self.keepalive;
                self.listen.each.keepalive = on.then_some(probes);
            }
            (SOL_TCP, TCP_KEEPIDLE | TCP_KEEPINTVL | TCP_KEEPCNT) => {
                self.set_keepalive(name, number)?;
            }
            (SOL_TCP, TCP_DEFER_ACCEPT) => self.listen.deferred = on,
            (SOL_TCP, TCP_FASTOPEN) => {
                self.listen.fast_open = u32::try_from(number).ok().filter(|&n| n > 0);
            }
            (SOL_TCP, TCP_FASTOPEN_CONNECT) => {
                if !(0..=1).contains(&number) {
                    return Err(Errno::INVALID);
                }
                self.is_fast_open = on;
                self.listen.each.fast_open = on;
            }
            (SOL_TCP, TCP_MAXSEG) => {
                let mss = u16::try_from(number).map_err(|_| Errno::INVALID)?;
                if on && !MSS_ALLOWED.contains(&mss) {
                    return Err(Errno::INVALID);
                }
                self.listen.each.mss_max = on.then_some(mss);
            }
            (SOL_TCP, TCP_SYNCNT) => {
                let count = u8::try_from(number).map_err(|_| Errno::INVALID)?;
                if !(1..=127).contains(&count) {
                    return Err(Errno::INVALID);
                }
                self.listen.each.syn_retries_max = Some(count);
            }
            (SOL_TCP, TCP_USER_TIMEOUT) => {
                let ms = u64::try_from(number).map_err(|_| Errno::INVALID)?;
                self.listen.each.user_timeout = on.then(|| Duration::from_millis(ms));
            }
            (SOL_TCP, TCP_NOTSENT_LOWAT) => {
                self.not_sent_max = on.then(|| u64::from(number.cast_unsigned()));
            }
            (SOL_IPV6, IPV6_TCLASS) if self.is_ipv6 => {
                let class = match number {
                    -1 => 0,
                    class => u8::try_from(class).map_err(|_| Errno::INVALID)?,
                };
                self.listen.each.dscp.ipv6 = class >> ECN_BITS;
            }
            (SOL_TCP, TCP_NODELAY) => self.listen.nodelay = on,
            (SOL_TCP, TCP_CORK) => self.cork = on,
            _ if self.noted.set(level, name, number)? => {}
            _ => return Err(Errno::NO_OPTION),
        }
        Ok(())
    }

    /// A byte, or the lowest one of a number; what it says of ECN is TCP's.
    fn set_tos(&mut self, value: &[u8]) {
        let tos = match (int(value), value.first()) {
            (Some(number), _) => number.to_le_bytes()[0],
            (None, Some(byte)) => *byte,
            (None, None) => 0,
        };
        self.listen.each.dscp.ipv4 = tos >> ECN_BITS;
    }

    /// By its name, as far as a NUL.
    fn set_congestion(&mut self, value: &[u8]) -> Result<(), Errno> {
        let name = value.split(|byte| *byte == 0).next().unwrap_or_default();
        if name.is_empty() {
            return Err(Errno::INVALID);
        }
        let found = ALGORITHMS.iter().find(|(known, _)| *known == name);
        let (_, algorithm) = found.ok_or(Errno::NO_ENTRY)?;
        self.listen.each.congestion = Some(*algorithm);
        Ok(())
    }

    fn set_keepalive(&mut self, name: i32, number: i32) -> Result<(), Errno> {
        let most = if name == TCP_KEEPCNT { 127 } else { 32_767 };
        if !(1..=most).contains(&number) {
            return Err(Errno::INVALID);
        }
        let seconds = Duration::from_secs(u64::from(number.cast_unsigned()));
        match name {
            TCP_KEEPIDLE => self.keepalive.idle = seconds,
            TCP_KEEPINTVL => self.keepalive.interval = seconds,
            _ => self.keepalive.count = u8::try_from(number).unwrap_or(u8::MAX),
        }
        if let Some(probes) = &mut self.listen.each.keepalive {
            *probes = self.keepalive;
        }
        Ok(())
    }

    /// The value of an option that is as it was set.
    pub fn value(&self, level: i32, name: i32) -> Option<i32> {
        let seconds = |duration: Duration| i32::try_from(duration.as_secs()).unwrap_or(i32::MAX);
        Some(match (level, name) {
            (SOL_SOCKET, SO_TYPE) => SOCK_STREAM,
            (SOL_SOCKET, SO_PROTOCOL) => IPPROTO_TCP,
            (SOL_SOCKET, SO_DOMAIN) if self.is_ipv6 => AF_INET6,
            (SOL_SOCKET, SO_DOMAIN) => AF_INET,
            (SOL_SOCKET, SO_SNDLOWAT) => 1,
            (SOL_SOCKET, SO_REUSEPORT) => self.listen.share.into(),
            (SOL_SOCKET, SO_SNDBUF) => i32::try_from(self.send_buffer_bytes).unwrap_or(i32::MAX),
            (SOL_SOCKET, SO_RCVLOWAT) => self.readable_min.cast_signed(),
            (SOL_SOCKET, SO_KEEPALIVE) => self.listen.each.keepalive.is_some().into(),
            (SOL_IP, IP_TOS) => i32::from(self.listen.each.dscp.ipv4 << ECN_BITS),
            (SOL_IPV6, IPV6_TCLASS) if self.is_ipv6 => {
                i32::from(self.listen.each.dscp.ipv6 << ECN_BITS)
            }
            (SOL_TCP, TCP_NODELAY) => self.listen.nodelay.into(),
            (SOL_TCP, TCP_CORK) => self.cork.into(),
            (SOL_TCP, TCP_KEEPIDLE) => seconds(self.keepalive.idle),
            (SOL_TCP, TCP_KEEPINTVL) => seconds(self.keepalive.interval),
            (SOL_TCP, TCP_KEEPCNT) => self.keepalive.count.into(),
            (SOL_TCP, TCP_QUICKACK) => 1,
            (SOL_TCP, TCP_SYNCNT) => self.listen.each.syn_retries_max.unwrap_or(6).into(),
            (SOL_TCP, TCP_DEFER_ACCEPT) => self.listen.deferred.into(),
            (SOL_TCP, TCP_NOTSENT_LOWAT) => {
                let max = self.not_sent_max.unwrap_or(0);
                u32::try_from(max).unwrap_or(u32::MAX).cast_signed()
            }
            (SOL_TCP, TCP_USER_TIMEOUT) => {
                let timeout = self.listen.each.user_timeout.unwrap_or_default();
                i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX)
            }
            (SOL_TCP, TCP_FASTOPEN_CONNECT) => self.is_fast_open.into(),
            (SOL_TCP, TCP_FASTOPEN) => {
                let waiting_max = self.listen.fast_open.unwrap_or(0);
                i32::try_from(waiting_max).unwrap_or(i32::MAX)
            }
            _ => return self.noted.value(level, name),
        })
    }
}

impl<L: SocketLink> Sockets<L> {
    pub fn set_waits(&mut self, number: SocketNumber, waits: bool) -> Result<(), Errno> {
        self.socket_mut(number)?.options.waits = waits;
        Ok(())
    }

    pub fn options(&self, number: SocketNumber) -> Result<&Options, Errno> {
        Ok(&self.socket(number)?.options)
    }

    /// setsockopt(2).
    pub fn set_option(
        &mut self,
        number: SocketNumber,
        level: i32,
        name: i32,
        value: &[u8],
    ) -> Result<(), Errno> {
        let socket = self.socket_mut(number)?;
        let is_listener = matches!(socket.kind, Kind::Listener(_));
        if (level, name) == (SOL_TCP, TCP_FASTOPEN) && !is_listener {
            return Err(Errno::INVALID);
        }
        let is_closed = socket.kind == Kind::Idle && socket.deferred.is_none();
        if (level, name) == (SOL_TCP, TCP_FASTOPEN_CONNECT) && !is_closed {
            return Err(Errno::INVALID);
        }
        let former = socket.options.listen.each;
        socket.options.set(level, name, value)?;
        let (kind, options) = (socket.kind, socket.options.clone());
        match (kind, level, name) {
            (Kind::Listener(id), _, _) => {
                self.host.set_listener_options(id, options.listen.each);
                self.host
                    .set_listener_fast_open(id, options.listen.fast_open);
            }
            (Kind::Stream(id), SOL_TCP, TCP_NODELAY) => {
                self.host.set_nodelay(id, options.listen.nodelay);
            }
            (Kind::Stream(id), SOL_TCP, TCP_CORK) => self.host.set_cork(id, options.cork),
            (Kind::Stream(_), SOL_SOCKET, SO_RCVLOWAT | SO_SNDBUF)
            | (Kind::Stream(_), SOL_TCP, TCP_NOTSENT_LOWAT) => self.note_limits(number, name),
            // Accepted connections have the listener's until they are told otherwise.
            (Kind::Stream(id), _, _) if options.listen.each != former => {
                self.host.set_socket_options(id, options.listen.each);
            }
            _ => {}
        }
        Ok(())
    }

    /// Other limits may make a stream ready, as in Linux (`tcp_set_rcvlowat`, `sk_stream_write_space`).
    fn note_limits(&mut self, number: SocketNumber, name: i32) {
        let Ok(socket) = self.socket(number) else {
            return;
        };
        let (kind, is_ready) = match name {
            SO_RCVLOWAT => (Readiness::ARRIVALS, self.has_data(socket)),
            _ => (Readiness::ROOM, self.found(number).has_any(Readiness::ROOM)),
        };
        if !is_ready {
            return;
        }
        if kind == Readiness::ROOM {
            socket.lacks_space.set(false);
        }
        self.on_change(number, kind);
    }

    /// Whether a stream has as many bytes as a reader waits for, or its end. That it has failed is nothing new (`tcp_data_ready`).
    fn has_data(&self, socket: &Socket) -> bool {
        let Kind::Stream(id) = socket.kind else {
            return false;
        };
        let state = self.host.readable(id);
        let is_enough = state.unread >= socket.options.readable_min as usize;
        state.finished || (state.unread > 0 && is_enough)
    }

    /// getsockopt(2): the value's bytes, of which the caller takes what it has room for.
    pub fn option(
        &mut self,
        number: SocketNumber,
        level: i32,
        name: i32,
    ) -> Result<Vec<u8>, Errno> {
        let socket = self.socket(number)?;
        if let Some(value) = socket.options.value(level, name) {
            return Ok(value.to_ne_bytes().to_vec());
        }
        let kind = socket.kind;
        let number_of = match (level, name, kind) {
            (SOL_SOCKET, SO_ERROR, Kind::Listener(_)) => 0,
            (SOL_SOCKET, SO_ERROR, Kind::Stream(_) | Kind::Idle) => {
                self.take_error(number)?.map_or(0, |error| error.0)
            }
            (SOL_SOCKET, SO_ACCEPTCONN, _) => matches!(kind, Kind::Listener(_)).into(),
            (SOL_SOCKET, SO_RCVBUF, _) => {
                let bytes = socket.options.listen.each.receive_buffer_bytes;
                i32::try_from(bytes.unwrap_or(RECEIVE_BUFFER_BYTES)).unwrap_or(i32::MAX)
            }
            (SOL_SOCKET, SO_LINGER, _) => {
                let seconds = socket.options.linger;
                let on = i32::from(seconds.is_some());
                let bytes = [on, seconds.unwrap_or(0).cast_signed()];
                return Ok(bytes.iter().flat_map(|part| part.to_ne_bytes()).collect());
            }
            (SOL_SOCKET, SO_RCVTIMEO, _) => {
                return Ok(timeval_bytes(socket.options.receive_timeout));
            }
            (SOL_SOCKET, SO_SNDTIMEO, _) => return Ok(timeval_bytes(socket.options.send_timeout)),
            (SOL_TCP, TCP_CONGESTION, _) => {
                let chosen = socket.options.listen.each.congestion;
                let chosen = chosen.unwrap_or(self.host.tcp_config().congestion);
                let found = ALGORITHMS.iter().find(|(_, known)| *known == chosen);
                let mut name = found.map_or(Vec::new(), |(name, _)| name.to_vec());
                name.resize(CONGESTION_LEN, 0);
                return Ok(name);
            }
            (SOL_TCP, TCP_MAXSEG, Kind::Stream(id)) => {
                self.host.info(id).map_or(0, |info| info.mss.into())
            }
            (SOL_TCP, TCP_INFO, Kind::Stream(id)) => {
                let headers = if self.host.peer(id).is_some_and(|peer| peer.is_ipv6()) {
                    60
                } else {
                    40
                };
                let beside = Beside {
                    mss_announced: self.link.properties().mtu.saturating_sub(headers),
                    headers,
                    acked: self.host.acked(id),
                    not_sent: self.host.not_sent(id),
                };
                return Ok(tcp_info::to_bytes(self.host.info(id).as_ref(), beside));
            }
            (SOL_TCP, TCP_INFO, Kind::Listener(_)) => {
                return Ok(tcp_info::to_bytes(None, Beside::default()));
            }
            (SOL_TCP, TCP_INFO, Kind::Idle) => {
                let nothing = Some(Info::default());
                return Ok(tcp_info::to_bytes(nothing.as_ref(), Beside::default()));
            }
            (SOL_TCP, TCP_MAXSEG, Kind::Idle) => 536,
            (SOL_SOCKET | SOL_TCP, _, _) => return Err(Errno::NO_OPTION),
            _ => return Err(Errno::NOT_SUPPORTED),
        };
        Ok(number_of.to_ne_bytes().to_vec())
    }

    /// Whether a stream holds bytes that its peer has not acknowledged.
    pub fn is_sending(&self, number: SocketNumber) -> bool {
        let id = self.socket(number).and_then(|socket| socket.stream());
        id.is_ok_and(|id| {
            let queue = self.host.queue_in_use(id);
            queue.is_some_and(|queue| !queue.is_empty())
        })
    }
}

fn int(value: &[u8]) -> Option<i32> {
    value.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes))
}

/// `struct timeval` of 64-bit machines: zero is for ever, and what is negative no time at all.
fn timeval(value: &[u8]) -> Result<Option<Duration>, Errno> {
    let parts = value.first_chunk::<16>().ok_or(Errno::INVALID)?;
    let part = |at: usize| {
        parts[at..]
            .first_chunk()
            .map_or(0, |&bytes| i64::from_ne_bytes(bytes))
    };
    let micros = u64::try_from(part(8))
        .ok()
        .filter(|micros| *micros < 1_000_000);
    let micros = micros.ok_or(Errno::DOMAIN)?;
    let Ok(seconds) = u64::try_from(part(0)) else {
        return Ok(Some(Duration::ZERO));
    };
    let timeout = Duration::from_secs(seconds) + Duration::from_micros(micros);
    Ok((!timeout.is_zero()).then_some(timeout))
}

fn timeval_bytes(timeout: Option<Duration>) -> Vec<u8> {
    let timeout = timeout.unwrap_or_default();
    let parts = [timeout.as_secs(), u64::from(timeout.subsec_micros())];
    parts.iter().flat_map(|part| part.to_ne_bytes()).collect()
}

/// Bytes: Linux's smallest send buffer (`SOCK_MIN_SNDBUF`).
const SEND_BUFFER_MIN: u32 = 4608;

/// Bytes: what Linux offers of its smallest receive buffer (`SOCK_MIN_RCVBUF`), half of which is for bookkeeping.
const RECEIVE_BUFFER_MIN: u32 = 1152;

/// Bytes: what Linux says of a socket that was not told otherwise (`tcp_rmem`).
const RECEIVE_BUFFER_BYTES: u32 = 131_072;
