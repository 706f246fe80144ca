//! Sealing what is written, into the worker's buffer, from where the engine takes it.

use super::reading::KEY_UPDATE;
use super::{Established, State, TlsStream};
use crate::alert::Alert;
use crate::handshake::Fault;
use crate::protection::Version;
use crate::record::{ContentType, PLAIN_BYTES_MAX};
use mill_runtime::payload::Payload;
use mill_runtime::stream::{Stream, StreamError, StreamOption};

impl<S: Stream> TlsStream<S> {
    /// Seals and hands over. Never waits.
    pub(super) fn write_plain(&self, bytes: &[u8]) {
        let is_sealed = match &mut *self.state.borrow_mut() {
            State::Handshaking { held, .. } => {
                held.extend_from_slice(bytes);
                true
            }
            State::Early(early) => {
                early.write(&self.stream, &self.worker, bytes);
                true
            }
            State::Established(established) => established
                .seal_all(&self.stream, &self.worker, bytes)
                .is_some(),
            State::Clear(_) | State::Failed(..) => true,
        };
        if !is_sealed {
            self.cut();
        }
    }

    /// Seals a message of one record beside application data.
    pub(super) fn seal_message(&self, content_type: ContentType, message: &[u8]) {
        if let State::Established(established) = &mut *self.state.borrow_mut() {
            let mut sealed = self.worker.shared().sealed.borrow_mut();
            if let Some(len) = established.sealer.seal(content_type, message, &mut sealed) {
                let record = sealed.get(..len).unwrap_or_default();
                self.stream.write(Payload::Copy(record));
            }
        }
    }

    /// New keys for what our side sends from now on.
    pub(super) fn update_keys(&self) {
        self.worker.count(|counters| counters.key_updates += 1);
        self.seal_message(ContentType::Handshake, &KEY_UPDATE_MESSAGE);
        let is_renewed = match &mut *self.state.borrow_mut() {
            State::Established(established) => established.renew_sealer().is_some(),
            _ => true,
        };
        if !is_renewed {
            self.cut();
        }
    }

    /// Says that nothing follows, once; not after a failure, nor before a reset.
    pub(super) fn send_close(&self) {
        let is_due = match &mut *self.state.borrow_mut() {
            State::Established(established) if !self.resets.get() => {
                !std::mem::replace(&mut established.has_sent_close, true)
            }
            State::Early(early) if !self.resets.get() => {
                early.close(&self.stream, &self.worker);
                false
            }
            _ => false,
        };
        if is_due {
            self.seal_message(ContentType::Alert, &Alert::CLOSE_NOTIFY.emit());
        }
    }

    /// Ends the connection so that the peer can tell.
    pub(super) fn cut(&self) {
        // An engine without resets sends FIN, and there is no close_notify before it.
        let _ = self.stream.set(StreamOption::ResetOnClose);
        self.resets.set(true);
        *self.state.borrow_mut() = State::Failed(StreamError::Truncated, Fault::Closed);
    }
}

impl Established {
    fn seal_all<S: Stream>(
        &mut self,
        stream: &S,
        worker: &crate::worker::TlsWorker,
        bytes: &[u8],
    ) -> Option<()> {
        let mut sealed = worker.shared().sealed.borrow_mut();
        let mut len = 0;
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.sealer.is_used_up() {
                len += self.seal_key_update(sealed.get_mut(len..)?)?;
            }
            let (plain, behind) = rest.split_at(self.record_plain_bytes().min(rest.len()));
            rest = behind;
            self.sealed_bytes = self.sealed_bytes.saturating_add(plain.len());
            let out = sealed.get_mut(len..)?;
            len += self.sealer.seal(ContentType::ApplicationData, plain, out)?;
            // Room for the longest record and for new keys.
            if sealed.len() - len < self.sealer.record_bytes(PLAIN_BYTES_MAX) + 64 {
                stream.write(Payload::Copy(sealed.get(..len)?));
                len = 0;
            }
        }
        if len > 0 {
            stream.write(Payload::Copy(sealed.get(..len)?));
        }
        Some(())
    }

    fn seal_key_update(&mut self, out: &mut [u8]) -> Option<usize> {
        // TLS 1.2 has no new keys without a new handshake: the connection ends.
        if self.version == Version::Tls12 {
            return None;
        }
        let len = (self.sealer).seal(ContentType::Handshake, &KEY_UPDATE_MESSAGE, out)?;
        self.renew_sealer()?;
        Some(len)
    }

    /// Small records at first: the peer opens each as soon as its one segment is there, while the congestion window grows.
    fn record_plain_bytes(&self) -> usize {
        if self.sealed_bytes < SMALL_UNTIL {
            SMALL_BYTES.min(self.record_bytes_max)
        } else {
            self.record_bytes_max
        }
    }
}

/// KeyUpdate without a request for the peer's (RFC 8446 4.6.3).
const KEY_UPDATE_MESSAGE: [u8; 5] = [KEY_UPDATE, 0, 0, 1, 0];

/// With its header, content type and tag, and TCP's and IPv6's headers with timestamps, such a record fits a segment of 1500
/// bytes.
const SMALL_BYTES: usize = 1369;

/// Bytes until records are long, as many as a connection's first windows carry.
const SMALL_UNTIL: usize = 64 * 1024;
