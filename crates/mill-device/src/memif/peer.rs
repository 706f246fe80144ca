//! What a connecting or disconnecting peer does to a link.

use super::connection::Connection;
use super::control::News;
use super::handshake::Refusal;
use super::{Broken, MemifChange, MemifLink};
use mill_stack::link::LinkChange;

impl MemifLink {
    /// Polls the control channel if there is a reason to: no peer, an event, or the time since the last poll.
    pub(super) fn look(&mut self) {
        if self.connection.is_some() && !self.armed && !self.is_leaving && self.until_look > 0 {
            self.until_look -= 1;
            return;
        }
        self.until_look = CALLS_PER_LOOK;
        let mut news = std::mem::take(&mut self.news);
        self.access.look(&mut news);
        for what in news.drain(..) {
            match what {
                News::Up(connection) => self.begin(connection),
                News::Down(end) => {
                    self.is_leaving = true;
                    self.down(end.to_string());
                }
                News::FewRings { rings, workers } => {
                    self.note(MemifChange::FewRings { rings, workers });
                }
                News::Absent(error) => self.note(MemifChange::Absent(error.kind())),
                News::Failed(end) => {
                    self.counters.failed += 1;
                    self.note(MemifChange::Failed(end.to_string()));
                }
            }
        }
        self.news = news;
    }

    pub(super) fn begin(&mut self, connection: Box<Connection>) {
        self.end();
        if self.access.watch(&connection).is_err() {
            self.access.forget(&connection);
            self.counters.failed += 1;
            return self.access.hang_up(Refusal::EventFile);
        }
        connection.set_wakeups(false);
        self.counters.connected += 1;
        let offload = connection.offload;
        self.connection = Some(connection);
        self.note(MemifChange::Up { offload });
        // The host is not told of a former peer's end separately: this event resets that peer's connections too.
        self.peer_change = Some(LinkChange::PeerThere);
    }

    /// Sends the frames that were sent before there was a peer, as far as there is room: a slave gives its buffers a
    /// moment after the master has started.
    pub(super) fn send_waiting(&mut self) -> Result<(), Broken> {
        while let (Some(connection), Some(len)) = (&mut self.connection, self.waiting.next_len()) {
            // Twice the bytes, as the frame may be segmented.
            if !connection.has_room(2 * len)? {
                break;
            }
            if let Some((frame, offload)) = self.waiting.pop()
                && let Some(room) = self.room.get_mut(..len)
            {
                room.copy_from_slice(&frame);
                self.put(len, offload)?;
            }
        }
        Ok(())
    }

    fn down(&mut self, why: String) {
        self.peer_change = Some(LinkChange::PeerGone);
        self.note(MemifChange::Down(why));
    }

    /// Drops the connection and its memory.
    pub(super) fn end(&mut self) {
        self.is_leaving = false;
        self.armed = false;
        if let Some(mut connection) = self.connection.take() {
            self.counters.untaken += connection.count_untaken();
            self.access.forget(&connection);
        }
    }

    /// Disconnects a peer that has violated the rings' protocol.
    pub(super) fn refuse(&mut self, Broken: Broken) {
        self.end();
        self.access.hang_up(Refusal::Ring);
        self.down(Refusal::Ring.to_string());
    }

    fn note(&mut self, change: MemifChange) {
        if let Some(reporter) = &mut self.reporter {
            reporter.report(&change);
        }
        if self.changes.len() == CHANGES_MAX {
            self.changes.pop_front();
        }
        self.changes.push_back(change);
    }
}

/// Calls of `receive` between two polls of the control channel while frames keep coming: a poll is a system call, and a
/// peer that has left may be noticed some milliseconds later.
const CALLS_PER_LOOK: u32 = 2048;

/// Changes that are kept for `take_change`.
const CHANGES_MAX: usize = 16;
