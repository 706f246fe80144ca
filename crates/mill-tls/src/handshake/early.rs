//! Requests that come with the first flight of a client (0-RTT, RFC 8446 2.3), and answers before the last one.
//!
//! rustls keeps both directions' keys until the handshake is over, so records are opened and sealed by it here, through
//! memory of their own: at most the early data that it accepts at all, and a record at a time.

use super::{Asked, Handshake, Role, facts_of};
use crate::facts::TlsFacts;
use rustls::server::ServerConnectionData;
use rustls::unbuffered::{ConnectionState, EncryptError, UnbufferedStatus, WriteTraffic};

impl Handshake {
    /// The first early data, with what is agreed on when it comes; `None` if there is none.
    pub(crate) fn take_early(&mut self) -> Option<(TlsFacts, Vec<u8>)> {
        let early = self.take_more_early();
        let mut facts = match &self.role {
            Role::Server(connection) if !early.is_empty() => facts_of(connection),
            _ => return None,
        };
        self.add_opened(&mut facts);
        facts.is_early.set(true);
        Some((facts, early))
    }

    /// Early data that was opened since.
    pub(crate) fn take_more_early(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.early)
    }

    /// Seals an answer before the handshake is over; whether that is possible now.
    pub(crate) fn seal_early(&mut self, plain: &[u8], out: &mut Vec<u8>) -> bool {
        self.seal(out, |traffic, out| traffic.encrypt(plain, out))
    }

    /// The same for the end of what our side sends.
    pub(crate) fn close_early(&mut self, out: &mut Vec<u8>) -> bool {
        self.seal(out, |traffic, out| traffic.queue_close_notify(out))
    }

    fn seal(
        &mut self,
        out: &mut Vec<u8>,
        mut seal: impl FnMut(
            &mut WriteTraffic<'_, ServerConnectionData>,
            &mut [u8],
        ) -> Result<usize, EncryptError>,
    ) -> bool {
        // A message that goes on in the next record: rustls wants to see those bytes, and no others.
        if self.seen > 0 {
            return false;
        }
        let Role::Server(connection) = &mut self.role else {
            return false;
        };
        let status = connection.process_tls_records(&mut []);
        let Ok(ConnectionState::WriteTraffic(mut traffic)) = status.state else {
            return false;
        };
        let start = out.len();
        // Without room it says how much is needed.
        if let Err(EncryptError::InsufficientSize(needed)) = seal(&mut traffic, &mut []) {
            out.resize(start + needed.required_size, 0);
        }
        let written = seal(&mut traffic, out.get_mut(start..).unwrap_or_default());
        out.truncate(start + written.as_ref().map_or(0, |len| *len));
        written.is_ok()
    }
}

/// As [`super::take`], with early data.
pub(super) fn take(
    status: UnbufferedStatus<'_, '_, ServerConnectionData>,
    early: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> (usize, Asked) {
    match status.state {
        Ok(ConnectionState::ReadEarlyData(mut data)) => {
            while let Some(Ok(record)) = data.next_record() {
                early.extend_from_slice(record.payload);
            }
            (status.discard, Asked::Next)
        }
        _ => super::take(status, out),
    }
}
