//! Options of sockets, by Linux's numbers.

use super::World;
use super::descriptors::Kind;
use mill_sockets::errno::Errno;
use mill_sockets::tcp_info::{self, Beside};
use mill_tcp::config::Keepalive;
use mill_tcp::time::Duration;

const SOL_SOCKET: i32 = 1;
const SOL_TCP: i32 = 6;

const SO_REUSEADDR: i32 = 2;
const SO_ERROR: i32 = 4;
const SO_SNDBUF: i32 = 7;
const SO_RCVBUF: i32 = 8;
const SO_KEEPALIVE: i32 = 9;
const SO_LINGER: i32 = 13;
const SO_REUSEPORT: i32 = 15;
const SO_MEMINFO: i32 = 55;

const TCP_NODELAY: i32 = 1;
const TCP_MAXSEG: i32 = 2;
const TCP_CORK: i32 = 3;
const TCP_KEEPIDLE: i32 = 4;
const TCP_KEEPINTVL: i32 = 5;
const TCP_KEEPCNT: i32 = 6;
const TCP_SYNCNT: i32 = 7;
const TCP_DEFER_ACCEPT: i32 = 9;
const TCP_INFO: i32 = 11;
const TCP_USER_TIMEOUT: i32 = 18;
const TCP_FASTOPEN: i32 = 23;
const TCP_NOTSENT_LOWAT: i32 = 25;
const TCP_CC_INFO: i32 = 26;
const TCP_FASTOPEN_CONNECT: i32 = 30;

/// Numbers of `SO_MEMINFO`, none of which the stack has a word for.
const MEMINFO_BYTES: usize = 9 * 4;
/// What Linux takes for `TCP_MAXSEG` (`TCP_MIN_MSS`, `MAX_TCP_WINDOW`), bytes; 0 takes the limit away.
const MSS_ALLOWED: core::ops::RangeInclusive<u16> = 88..=32767;
/// What a socket without a peer says for it, bytes (`TCP_MSS_DEFAULT`).
const MSS_DEFAULT: u16 = 536;
/// The largest `union tcp_cc_info`.
const CC_INFO_BYTES: usize = 20;

impl World {
    pub(crate) fn set_option(
        &mut self,
        fd: i32,
        level: i32,
        name: i32,
        value: &[u8],
    ) -> Result<(), Errno> {
        // Before the value is looked at: those of IP may be a byte.
        if !matches!(level, SOL_SOCKET | SOL_TCP) {
            return Err(Errno::NO_OPTION);
        }
        let number = int(value).ok_or(Errno::INVALID)?;
        if (level, name) == (SOL_TCP, TCP_FASTOPEN_CONNECT) {
            self.refresh();
            if !self.may_open_fast() {
                return Err(Errno::NOT_SUPPORTED);
            }
        }
        let on = number != 0;
        let descriptor = self.descriptors.find(fd)?;
        let kind = descriptor.kind;
        match (level, name) {
            (SOL_SOCKET, SO_REUSEADDR) => {}
            (SOL_SOCKET, SO_REUSEPORT) => descriptor.options.share = on,
            (SOL_SOCKET, SO_LINGER) => {
                let seconds = value.get(4..).and_then(int).ok_or(Errno::INVALID)?;
                descriptor.aborts = on && seconds == 0;
            }
            // Linux doubles what it is told, for its own bookkeeping, and says so when it is asked.
            (SOL_SOCKET, SO_SNDBUF) => {
                descriptor.send_buffer_bytes = 2 * u64::try_from(number).unwrap_or(0);
            }
            (SOL_SOCKET, SO_RCVBUF) => {
                descriptor.options.each.receive_buffer_bytes = u32::try_from(number).ok();
            }
            (SOL_SOCKET, SO_KEEPALIVE) => {
                descriptor.options.each.keepalive = on.then(Keepalive::default);
            }
            (SOL_TCP, TCP_KEEPIDLE | TCP_KEEPINTVL | TCP_KEEPCNT) => {
                let keepalive = descriptor.options.each.keepalive.get_or_insert_default();
                set_keepalive(keepalive, name, number);
            }
            (SOL_TCP, TCP_DEFER_ACCEPT) => descriptor.options.deferred = on,
            (SOL_TCP, TCP_FASTOPEN) => {
                descriptor.options.fast_open = u32::try_from(number).ok().filter(|&n| n > 0);
            }
            (SOL_TCP, TCP_MAXSEG) => {
                let mss = u16::try_from(number).map_err(|_| Errno::INVALID)?;
                if on && !MSS_ALLOWED.contains(&mss) {
                    return Err(Errno::INVALID);
                }
                descriptor.options.each.mss_max = on.then_some(mss);
            }
            (SOL_TCP, TCP_SYNCNT) => {
                let count = u8::try_from(number).map_err(|_| Errno::INVALID)?;
                descriptor.options.each.syn_retries_max = Some(count);
            }
            (SOL_TCP, TCP_USER_TIMEOUT) => {
                let ms = u64::try_from(number).map_err(|_| Errno::INVALID)?;
                descriptor.options.each.user_timeout = on.then(|| Duration::from_millis(ms));
            }
            (SOL_TCP, TCP_NOTSENT_LOWAT) => {
                descriptor.not_sent_max = on.then(|| u64::from(number.cast_unsigned()));
            }
            (SOL_TCP, TCP_FASTOPEN_CONNECT) => descriptor.connects_fast = on,
            (SOL_TCP, TCP_NODELAY) => descriptor.options.nodelay = on,
            (SOL_TCP, TCP_CORK) => descriptor.cork = on,
            _ => return Err(Errno::NO_OPTION),
        }
        let each = descriptor.options.each;
        let fast_open = descriptor.options.fast_open;
        if let (Kind::Listener(id), SOL_TCP, TCP_FASTOPEN) = (kind, level, name) {
            self.host().set_listener_fast_open(id, fast_open);
        }
        if let (Kind::Listener(id), SOL_TCP, TCP_MAXSEG | TCP_USER_TIMEOUT) = (kind, level, name) {
            self.host().set_listener_options(id, each);
        }
        if let (Kind::Stream(id), SOL_TCP) = (kind, level) {
            match name {
                TCP_NODELAY => self.host().set_nodelay(id, on),
                TCP_CORK => self.host().set_cork(id, on),
                _ => self.host().set_socket_options(id, each),
            }
            self.turn();
        }
        if let (Kind::Stream(id), SOL_SOCKET, SO_KEEPALIVE | SO_RCVBUF) = (kind, level, name) {
            self.host().set_socket_options(id, each);
            self.turn();
        }
        Ok(())
    }

    /// The value's bytes, of which the caller takes what it has room for.
    pub(crate) fn option(&mut self, fd: i32, level: i32, name: i32) -> Result<Vec<u8>, Errno> {
        let descriptor = self.descriptors.find(fd)?;
        let number = match (level, name) {
            (SOL_SOCKET, SO_SNDBUF) => {
                i32::try_from(descriptor.send_buffer_bytes).unwrap_or(i32::MAX)
            }
            (SOL_SOCKET, SO_MEMINFO) => return Ok(vec![0; MEMINFO_BYTES]),
            (SOL_TCP, TCP_CC_INFO) => return Ok(vec![0; CC_INFO_BYTES]),
            (SOL_TCP, TCP_NODELAY) => descriptor.options.nodelay.into(),
            (SOL_TCP, TCP_CORK) => descriptor.cork.into(),
            (SOL_TCP, TCP_NOTSENT_LOWAT) => {
                let max = descriptor.not_sent_max.unwrap_or(0);
                u32::try_from(max).unwrap_or(u32::MAX).cast_signed()
            }
            (SOL_SOCKET, SO_ERROR) => {
                let id = descriptor.stream()?;
                let error = self.host().readable(id).error;
                error.map_or(0, |error| Errno::from(error).0)
            }
            (SOL_TCP, TCP_MAXSEG) => {
                let (kind, own) = (descriptor.kind, descriptor.options.each.mss_max);
                match kind {
                    Kind::Stream(id) => self.host().info(id).map_or(0, |info| info.mss.into()),
                    Kind::Fresh | Kind::Deferred(_) | Kind::Listener(_) => {
                        own.unwrap_or(MSS_DEFAULT).into()
                    }
                }
            }
            (SOL_TCP, TCP_INFO) => {
                let kind = descriptor.kind;
                let mss_max = descriptor.options.each.mss_max.unwrap_or(u16::MAX);
                let (info, peer) = match kind {
                    Kind::Stream(id) => (self.host().info(id), self.host().peer(id)),
                    Kind::Fresh | Kind::Deferred(_) | Kind::Listener(_) => (None, None),
                };
                let is_ipv6 = peer.is_some_and(|peer| peer.is_ipv6());
                let headers = if is_ipv6 { 60 } else { 40 };
                let mss_announced = (self.settings.mtu - headers).min(mss_max);
                let beside = match kind {
                    Kind::Stream(id) => Beside {
                        mss_announced,
                        headers,
                        acked: self.host().acked(id),
                        not_sent: self.host().not_sent(id),
                    },
                    Kind::Fresh | Kind::Deferred(_) | Kind::Listener(_) => Beside::default(),
                };
                return Ok(tcp_info::to_bytes(info.as_ref(), beside));
            }
            _ => return Err(Errno::NO_OPTION),
        };
        Ok(number.to_ne_bytes().to_vec())
    }
}

fn int(value: &[u8]) -> Option<i32> {
    value.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes))
}

fn set_keepalive(keepalive: &mut Keepalive, name: i32, number: i32) {
    let seconds = Duration::from_secs(u64::try_from(number).unwrap_or(0));
    match name {
        TCP_KEEPIDLE => keepalive.idle = seconds,
        TCP_KEEPINTVL => keepalive.interval = seconds,
        _ => keepalive.count = u8::try_from(number).unwrap_or(u8::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::settings::Settings;

    const SOL_IP: i32 = 0;
    const IP_TOS: i32 = 1;

    fn check(level: i32, name: i32, value: &[u8], expected: Result<(), Errno>) {
        let mut world = World::new(Settings::from_flags("").expect("no flags"));
        let fd = world.socket(false, true);
        assert_eq!(
            world.set_option(fd, level, name, value),
            expected,
            "{level} {name} {value:?}"
        );
    }

    #[test]
    fn values_are_taken_within_their_bounds_and_unknown_options_refused() {
        let invalid = Err(Errno::INVALID);
        for (name, number, expected) in [
            (TCP_MAXSEG, 0, Ok(())),
            (TCP_MAXSEG, 87, invalid),
            (TCP_MAXSEG, 88, Ok(())),
            (TCP_MAXSEG, 32_767, Ok(())),
            (TCP_MAXSEG, 32_768, invalid),
            (TCP_MAXSEG, -1, invalid),
            (TCP_USER_TIMEOUT, 3_000, Ok(())),
            (TCP_USER_TIMEOUT, -1, invalid),
            (TCP_INFO, 1, Err(Errno::NO_OPTION)),
        ] {
            check(SOL_TCP, name, &i32::to_ne_bytes(number), expected);
        }
        check(SOL_TCP, TCP_NODELAY, &[1], invalid);
        check(SOL_IP, IP_TOS, &[4], Err(Errno::NO_OPTION));
    }

    #[test]
    fn what_was_set_is_told() {
        let mut world = World::new(Settings::from_flags("").expect("no flags"));
        let fd = world.socket(false, true);
        for (name, before, after) in [
            (TCP_MAXSEG, i32::from(MSS_DEFAULT), 1_000),
            (TCP_NODELAY, 0, 1),
            (TCP_CORK, 0, 1),
            (TCP_NOTSENT_LOWAT, 0, 4_000),
        ] {
            let told = |world: &mut World| world.option(fd, SOL_TCP, name);
            assert_eq!(told(&mut world), Ok(before.to_ne_bytes().to_vec()));
            let value = i32::to_ne_bytes(after);
            assert_eq!(world.set_option(fd, SOL_TCP, name, &value), Ok(()));
            assert_eq!(told(&mut world), Ok(value.to_vec()));
        }
    }
}
