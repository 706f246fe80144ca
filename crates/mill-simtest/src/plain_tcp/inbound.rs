//! What came, in order, and the window that is offered for more (RFC 9293 3.8.6).

use super::habits::Habits;
use super::sequence::{before, len};
use std::collections::BTreeMap;

/// The receiving half.
#[derive(Debug)]
pub(super) struct Inbound {
    /// RCV.NXT.
    pub(super) next: u32,
    /// The right edge of the window, which never goes back.
    pub(super) edge: u32,
    /// The number of the peer's FIN, once it is known.
    pub(super) fin: Option<u32>,
    /// In order, not taken by the application.
    pub(super) unread: Vec<u8>,
    /// Out of order: bytes by their numbers, one each.
    early: BTreeMap<u32, u8>,
    buffer_bytes: u32,
    /// The least by which an edge moves.
    step: u32,
    keeps_disorder: bool,
}

impl Inbound {
    /// `irs` is the number of the peer's SYN.
    pub(super) fn new(irs: u32, habits: &Habits) -> Self {
        let buffer_bytes = u32::from(habits.buffer_bytes.max(1));
        let mss = u32::from(habits.mss.unwrap_or(536)).max(1);
        let step = if habits.is_silly {
            1
        } else {
            mss.min(buffer_bytes.div_ceil(2))
        };
        let next = irs.wrapping_add(1);
        Self {
            next,
            edge: next.wrapping_add(buffer_bytes),
            fin: None,
            unread: Vec::new(),
            early: BTreeMap::new(),
            buffer_bytes,
            step,
            keeps_disorder: habits.keeps_disorder,
        }
    }

    /// RCV.WND.
    pub(super) const fn window(&self) -> u32 {
        self.edge.wrapping_sub(self.next)
    }

    /// Whether the peer has said all and it is here.
    pub(super) fn is_finished(&self) -> bool {
        self.fin.is_some_and(|fin| before(fin, self.next))
    }

    /// Text of an acceptable segment. Says whether it was in order.
    pub(super) fn take(&mut self, seq: u32, payload: &[u8], has_fin: bool) -> bool {
        let end = seq.wrapping_add(len(payload.len()));
        let is_in_order = !before(self.next, seq);
        if !is_in_order && !self.keeps_disorder {
            return false;
        }
        for (offset, byte) in payload.iter().enumerate() {
            let number = seq.wrapping_add(len(offset));
            // What lies outside the window is cut off (RFC 9293 3.10.7.4).
            if !before(number, self.next) && before(number, self.edge) {
                self.early.insert(number, *byte);
            }
        }
        if has_fin && before(end, self.edge) {
            self.fin = Some(end);
        }
        while let Some(byte) = self.early.remove(&self.next) {
            self.unread.push(byte);
            self.next = self.next.wrapping_add(1);
        }
        if self.fin == Some(self.next) {
            self.next = self.next.wrapping_add(1);
        }
        is_in_order
    }

    /// The application has taken so many bytes. Says whether the window is to be told anew.
    pub(super) fn consume(&mut self, taken: usize) -> bool {
        self.unread.drain(..taken);
        let room = self.buffer_bytes - len(self.unread.len()).min(self.buffer_bytes);
        let edge = self.next.wrapping_add(room);
        let is_wider = before(self.edge, edge);
        if is_wider && edge.wrapping_sub(self.edge) >= self.step {
            self.edge = edge;
            return true;
        }
        false
    }

    /// Bytes that the application may see now.
    pub(super) fn unread_len(&self) -> u32 {
        len(self.unread.len())
    }

    /// Whether half of the buffer waits for the reader.
    pub(super) fn half_full(&self) -> bool {
        self.unread_len() * 2 >= self.buffer_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mill_sim::random::Random;

    /// Text comes in pieces around the place where numbers begin again; what is in order afterwards.
    fn check(keeps_disorder: bool, pieces: &[(u32, &str)], expected: &str) {
        let mut habits = Habits::draw(1500, false, &mut Random::new(1));
        habits.keeps_disorder = keeps_disorder;
        habits.buffer_bytes = 10;
        let irs = u32::MAX - 4;
        let mut inbound = Inbound::new(irs, &habits);
        for (offset, text) in pieces {
            let seq = irs.wrapping_add(1).wrapping_add(*offset);
            inbound.take(seq, text.as_bytes(), text.ends_with('.'));
        }
        let text = String::from_utf8(inbound.unread.clone()).unwrap();
        assert_eq!(text, expected, "{pieces:?}");
        assert_eq!(inbound.is_finished(), expected.ends_with('.'));
        assert_eq!(
            inbound.window() + inbound.unread_len(),
            10 - u32::from(inbound.is_finished())
        );
    }

    #[test]
    fn text_is_put_in_order_if_disorder_is_kept() {
        check(true, &[(0, "abc"), (3, "def.")], "abcdef.");
        check(true, &[(3, "def."), (0, "abc")], "abcdef.");
        check(false, &[(3, "def."), (0, "abc")], "abc");
        check(false, &[(3, "def."), (0, "abc"), (3, "def.")], "abcdef.");
        check(true, &[(2, "cd"), (4, "ef"), (0, "abcd")], "abcdef");
        check(false, &[(0, "abc"), (1, "bcde"), (0, "ab")], "abcde");
    }

    #[test]
    fn nothing_behind_the_window_is_taken() {
        check(true, &[(0, "0123456789ab")], "0123456789");
        check(true, &[(8, "89ab"), (0, "01234567")], "0123456789");
    }

    #[test]
    fn a_window_opens_by_whole_steps() {
        let mut habits = Habits::draw(1500, false, &mut Random::new(1));
        (habits.buffer_bytes, habits.mss, habits.is_silly) = (10, Some(3), false);
        let mut inbound = Inbound::new(0, &habits);
        inbound.take(1, b"0123456789", false);
        assert_eq!(inbound.window(), 0);
        assert!(!inbound.consume(2));
        assert_eq!(inbound.window(), 0);
        assert!(inbound.consume(1));
        assert_eq!(inbound.window(), 3);
    }
}
