//! The peer comes and goes: what that does to a link.

use super::connection::Connection;
use super::control::News;
use super::handshake::Refusal;
use super::{Broken, MemifChange, MemifLink};
use mill_stack::link::LinkChange;

impl MemifLink {
    /// Looks after the control channel, where there is a reason to: nobody there, somebody woke us, or it is time.
    pub(super) fn look(&mut self) {
        if self.connection.is_some() && !self.armed && !self.is_leaving && self.until_look > 0 {
            self.until_look -= 1;
            return;
        }
        self.until_look = CALLS_PER_LOOK;
        let mut news = std::mem::take(&mut self.news);
        self.control.look(&mut news);
        for what in news.drain(..) {
            match what {
                News::Up(connection) => self.begin(connection),
                News::Down(end) => {
                    self.is_leaving = true;
                    self.down(end.to_string());
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

    fn begin(&mut self, connection: Box<Connection>) {
        self.end();
        if self.control.watch(&connection).is_err() {
            self.control.forget(&connection);
            self.counters.failed += 1;
            return self.control.hang_up(Refusal::EventFile);
        }
        connection.set_wakeups(false);
        self.counters.connected += 1;
        let offload = connection.offload;
        self.connection = Some(connection);
        self.note(MemifChange::Up { offload });
        // Without a word of the one before, if there was one: its connections are reset by this one.
        self.host_hears = Some(LinkChange::PeerThere);
    }

    /// What was sent before there was a peer goes as soon as it has room for it: a slave gives its buffers a moment after
    /// its master has begun.
    pub(super) fn send_waiting(&mut self) -> Result<(), Broken> {
        while let (Some(connection), Some(len)) = (&mut self.connection, self.waiting.next_len()) {
            // Twice, as it may be cut.
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
        self.host_hears = Some(LinkChange::PeerGone);
        self.note(MemifChange::Down(why));
    }

    /// Gives the memory up.
    pub(super) fn end(&mut self) {
        self.is_leaving = false;
        self.armed = false;
        if let Some(mut connection) = self.connection.take() {
            self.counters.untaken += connection.count_untaken();
            self.control.forget(&connection);
        }
    }

    /// The peer broke the rules of the rings.
    pub(super) fn refuse(&mut self, Broken: Broken) {
        self.end();
        self.control.hang_up(Refusal::Ring);
        self.down(Refusal::Ring.to_string());
    }

    fn note(&mut self, change: MemifChange) {
        if let Some(told) = &mut self.told {
            told.tell(&change);
        }
        if self.changes.len() == CHANGES_MAX {
            self.changes.pop_front();
        }
        self.changes.push_back(change);
    }
}

/// Calls of `receive` between two looks at the control channel while frames keep coming: a look is a system call, and
/// a peer that has left may be noticed some milliseconds later.
const CALLS_PER_LOOK: u32 = 2048;

/// Changes that are remembered for who asks.
const CHANGES_MAX: usize = 16;
