//! A connection that has received only, on its way to another host on the same machine: the process that listens there has
//! changed, and the connection was not accepted yet.
//!
//! It travels as the handshake that made it, with the text that came behind. The other host completes the handshake again, and
//! takes the text as if it arrived there.

use crate::connection::{Connection, ConnectionFlags};
use crate::ecn::accurate::{CEP_INITIAL, ace};
use crate::env::Env;
use crate::handshake::TIMESTAMPS_BYTES;
use crate::listen::HalfOpen;
use crate::segment::{Ecn, Segment};
use crate::state::State;
use mill_wire::seq::SeqNumber;
use mill_wire::tcp::Flags;
use mill_wire::tcp_option::{TcpOptions, Timestamps};

/// The state of such a connection, beside its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    /// The handshake, as if its last acknowledgement were still to come.
    pub half_open: HalfOpen,
    /// SND.WND: what the peer takes, bytes.
    pub snd_wnd: u32,
    /// The right edge of the window that the peer knows.
    pub rcv_adv: SeqNumber,
    /// The peer's FIN came behind the text.
    pub is_finished: bool,
}

impl Connection {
    /// What another host needs to go on with it. The owner has sent nothing on it, and `unread_bytes` is all the text that has
    /// come. `None` if something is in flight, if the handshake is not complete, or if the connection is over.
    pub fn migrate(&self, unread_bytes: u32, env: &Env<'_>) -> Option<Migration> {
        let is_finished = match self.state {
            State::Established => false,
            State::CloseWait => true,
            _ => return None,
        };
        if !self.snd.is_all_acknowledged() {
            return None;
        }
        let has_timestamps = self.flags.has(ConnectionFlags::TIMESTAMPS);
        let scales = self.flags.has(ConnectionFlags::SCALING);
        let mss = self.snd_mss + if has_timestamps { TIMESTAMPS_BYTES } else { 0 };
        let half_open = HalfOpen {
            iss: self.snd.una() - 1,
            irs: self.rcv.nxt() - unread_bytes - u32::from(is_finished) - 1,
            ts: self.ts,
            retransmit_at: env.tick(),
            retransmits: 0,
            mss,
            mss_local: mss,
            window: u16::try_from(self.snd.wnd()).unwrap_or(u16::MAX),
            snd_wind_shift: scales.then_some(self.shifts.snd()),
            timestamps: has_timestamps,
            sack: self.flags.has(ConnectionFlags::SACK),
            ecn: self.feedback(),
        };
        Some(Migration {
            half_open,
            snd_wnd: self.snd.wnd(),
            rcv_adv: self.rcv.adv(),
            is_finished,
        })
    }
}

impl Migration {
    /// The connection as it was before its text came: `None` if the handshake is not one.
    pub fn resume(&self, env: &mut Env<'_>) -> Option<Connection> {
        let options = self.options(env);
        let acknowledgement = self.segment(&options, 0, &[], false);
        let mut half_open = self.half_open;
        // As after a SYN cookie: the time says nothing about the round trip.
        half_open.retransmit_at = env.tick();
        let mut connection = half_open.establish(&acknowledgement, env)?;
        connection.rcv.set_adv(self.rcv_adv);
        Some(connection)
    }

    /// The options of its peer's segments.
    pub fn options(&self, env: &Env<'_>) -> TcpOptions {
        let ts = self.half_open.ts;
        let timestamps = Timestamps {
            value: ts.recent(),
            echo: ts.value_at(env.tick()),
        };
        TcpOptions {
            timestamps: self.half_open.timestamps.then_some(timestamps),
            ..TcpOptions::default()
        }
    }

    /// The segment by which the peer would send this part of the text, which begins so many bytes behind the handshake.
    pub fn segment<'a>(
        &self,
        options: &'a TcpOptions,
        offset: u32,
        payload: &'a [u8],
        is_last: bool,
    ) -> Segment<'a> {
        let window = self.snd_wnd >> self.half_open.snd_wind_shift.unwrap_or(0);
        let fin = if is_last && self.is_finished {
            Flags::FIN
        } else {
            Flags::default()
        };
        Segment {
            seq: self.half_open.irs + 1 + offset,
            ack: self.half_open.iss + 1,
            // What accurate ECN counts begins anew.
            flags: match self.half_open.ecn.is_accurate() {
                true => Flags::ACK | fin | ace(CEP_INITIAL),
                false => Flags::ACK | fin,
            },
            window: u16::try_from(window).unwrap_or(u16::MAX),
            urgent: 0,
            options,
            payload,
            ecn: Ecn::NotCapable,
            merged: 1,
        }
    }
}

#[cfg(test)]
mod tests;
