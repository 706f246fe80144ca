//! Options that are taken without effect: a program that asks for them gets what it has set.

use crate::errno::Errno;

const SOL_SOCKET: i32 = 1;
const SOL_TCP: i32 = 6;

const SO_REUSEADDR: i32 = 2;
const SO_DONTROUTE: i32 = 5;
const SO_BROADCAST: i32 = 6;
const SO_OOBINLINE: i32 = 10;
const TCP_LINGER2: i32 = 8;
const TCP_THIN_LINEAR_TIMEOUTS: i32 = 16;

/// Seconds in FIN-WAIT-2: what Linux has of its own, and the most that it takes (`tcp_fin_timeout`, `TCP_FIN_TIMEOUT_MAX`).
const LINGER2: i32 = 60;
const LINGER2_MAX: i32 = 120;

/// The values of a socket.
#[derive(Clone, Copy, Debug)]
pub struct Noted {
    reuses_address: bool,
    is_in_line: bool,
    broadcasts: bool,
    is_direct: bool,
    is_thin: bool,
    linger2: i32,
}

impl Default for Noted {
    fn default() -> Self {
        Self {
            reuses_address: false,
            is_in_line: false,
            broadcasts: false,
            is_direct: false,
            is_thin: false,
            linger2: LINGER2,
        }
    }
}

impl Noted {
    /// Takes a value; false if the option is none of these.
    pub(crate) fn set(&mut self, level: i32, name: i32, value: i32) -> Result<bool, Errno> {
        let on = value != 0;
        match (level, name) {
            (SOL_SOCKET, SO_REUSEADDR) => self.reuses_address = on,
            (SOL_SOCKET, SO_OOBINLINE) => self.is_in_line = on,
            (SOL_SOCKET, SO_BROADCAST) => self.broadcasts = on,
            (SOL_SOCKET, SO_DONTROUTE) => self.is_direct = on,
            (SOL_TCP, TCP_THIN_LINEAR_TIMEOUTS) if (0..=1).contains(&value) => self.is_thin = on,
            (SOL_TCP, TCP_THIN_LINEAR_TIMEOUTS) => return Err(Errno::INVALID),
            (SOL_TCP, TCP_LINGER2) => {
                self.linger2 = match value {
                    0 => LINGER2,
                    seconds => seconds.clamp(-1, LINGER2_MAX),
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    pub(crate) fn value(&self, level: i32, name: i32) -> Option<i32> {
        Some(match (level, name) {
            (SOL_SOCKET, SO_REUSEADDR) => self.reuses_address.into(),
            (SOL_SOCKET, SO_OOBINLINE) => self.is_in_line.into(),
            (SOL_SOCKET, SO_BROADCAST) => self.broadcasts.into(),
            (SOL_SOCKET, SO_DONTROUTE) => self.is_direct.into(),
            (SOL_TCP, TCP_THIN_LINEAR_TIMEOUTS) => self.is_thin.into(),
            (SOL_TCP, TCP_LINGER2) => self.linger2,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_set_is_told_within_linux_s_bounds() {
        let mut noted = Noted::default();
        for (level, name, value, told) in [
            (SOL_SOCKET, SO_REUSEADDR, 7, 1),
            (SOL_SOCKET, SO_OOBINLINE, 0, 0),
            (SOL_TCP, TCP_LINGER2, -5, -1),
            (SOL_TCP, TCP_LINGER2, 120, 120),
            (SOL_TCP, TCP_LINGER2, 121, 120),
            (SOL_TCP, TCP_LINGER2, 0, 60),
        ] {
            assert_eq!(noted.set(level, name, value), Ok(true));
            assert_eq!(noted.value(level, name), Some(told), "{name} {value}");
        }
        let too_much = noted.set(SOL_TCP, TCP_THIN_LINEAR_TIMEOUTS, 2);
        assert_eq!(too_much, Err(Errno::INVALID));
        assert_eq!(noted.set(SOL_SOCKET, 9999, 1), Ok(false));
    }
}
