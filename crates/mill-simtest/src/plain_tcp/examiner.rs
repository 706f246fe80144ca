//! What the other end must not do, by what it has said in this connection so far and what it was told.

use super::header::{ACK, CWR, ECE, FIN, RST, SYN, Segment, URG};
use super::host::Circumstances;
use super::sequence::{before, index, later, len};

/// Looks at every segment of the other end that arrives with a right checksum.
#[derive(Debug)]
pub(super) struct Examiner {
    /// What was announced to it; without an option the default of the family (RFC 9293 3.7.1).
    mss: usize,
    /// The wire neither overtakes nor doubles, so that what comes later was sent later.
    is_orderly: bool,
    /// It may answer a SYN twice: with a cookie, or because the second came after the first one's conversation.
    may_forget: bool,
    /// The number of its SYN.
    irs: Option<u32>,
    /// Every byte that it ever sent, from its SYN on.
    said: Vec<Option<u8>>,
    fin: Option<u32>,
    /// One behind the highest number of a byte that it has sent.
    highest: u32,
    ack: Option<u32>,
    edge: Option<u32>,
}

/// What the other end knows: of what is beyond that, it can't speak.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeerKnowledge {
    pub(super) iss: u32,
    /// One behind the highest number that was sent to it.
    pub(super) sent: u32,
    /// The highest acknowledgement and the furthest edge of a window that were sent to it.
    pub(super) edge: Option<u32>,
    /// It has answered our SYN. Before that it may be in an earlier conversation, which a SYN that comes late does not
    /// end (RFC 9293 3.5.1, figure 9).
    pub(super) is_established: bool,
}

impl Examiner {
    pub(super) const fn new(mss: Option<u16>, is_ipv6: bool, world: Circumstances) -> Self {
        let default = if is_ipv6 { 1220 } else { 536 };
        let mss = match mss {
            Some(mss) => mss as usize,
            None => default,
        };
        Self {
            mss,
            is_orderly: world.is_orderly,
            // Two SYNs may come with a whole conversation between them.
            may_forget: world.has_cookies || !world.is_orderly,
            irs: None,
            said: Vec::new(),
            fin: None,
            highest: 0,
            ack: None,
            edge: None,
        }
    }

    /// What is wrong with a segment.
    pub(super) fn examine(
        &mut self,
        segment: &Segment,
        told: &PeerKnowledge,
    ) -> Result<(), &'static str> {
        if segment.reserved != 0 || segment.has(URG) || segment.urgent != 0 {
            return Err("reserved bits or urgent data");
        }
        if segment.has(SYN) {
            return self.examine_syn(segment, told);
        }
        let options = segment.options();
        if options.is_err() || options.is_ok_and(|options| !options.is_empty()) {
            return Err("an option that was not agreed on");
        }
        if segment.ecn != 0 || segment.flags & (ECE | CWR) != 0 {
            return Err("congestion notification that was not agreed on");
        }
        if segment.has(RST) {
            return self.examine_reset(segment, told);
        }
        if !segment.has(ACK) {
            return Err("a segment without ACK");
        }
        let Some(irs) = self.irs else {
            return Err("a segment before its SYN");
        };
        self.examine_text(segment, irs, told)?;
        self.examine_ack(segment, told)
    }

    fn examine_syn(&mut self, segment: &Segment, told: &PeerKnowledge) -> Result<(), &'static str> {
        let options = segment.options().map_err(|_| "options that do not fit")?;
        if segment.flags & (FIN | RST) != 0 || segment.ecn != 0 {
            return Err("a SYN with what does not belong to it");
        }
        if segment.has(ACK) {
            if segment.ack != told.iss.wrapping_add(1) {
                return Err("a SYN-ACK of another SYN");
            }
            if options.iter().any(|(kind, _)| *kind != 2) || segment.has(ECE) {
                return Err("a SYN-ACK with an option that was not offered");
            }
            if !segment.payload.is_empty() {
                return Err("a SYN-ACK with data");
            }
        }
        if self.irs.is_some_and(|irs| irs != segment.seq) {
            // A host that keeps nothing of a SYN answers the next one as if it were the first (RFC 4987 3.6).
            let is_right = self.may_forget && segment.has(ACK);
            return is_right
                .then_some(())
                .ok_or("another initial sequence number");
        }
        if self.irs.is_none() {
            self.irs = Some(segment.seq);
            self.highest = segment.seq.wrapping_add(1);
        }
        Ok(())
    }

    /// RFC 9293 3.10.7.4 and 3.5.2: a reset is somewhere in the window that was offered, or where an acknowledgement
    /// of ours pointed.
    fn examine_reset(&self, segment: &Segment, told: &PeerKnowledge) -> Result<(), &'static str> {
        let Some(irs) = self.irs else {
            // The answer to our SYN.
            let is_answer = segment.has(ACK) && segment.ack == told.iss.wrapping_add(1);
            return is_answer.then_some(()).ok_or("a reset of something else");
        };
        let edge = told.edge.unwrap_or(irs);
        if before(segment.seq, irs) || before(edge.wrapping_add(1), segment.seq) {
            return Err("a reset outside of every window");
        }
        if segment.has(ACK) && before(told.sent, segment.ack) {
            return Err("a reset that acknowledges what was never sent");
        }
        Ok(())
    }

    fn examine_text(
        &mut self,
        segment: &Segment,
        irs: u32,
        told: &PeerKnowledge,
    ) -> Result<(), &'static str> {
        // Senders need not go below 48 bytes, whatever a peer asks for (Linux's `tcp_min_snd_mss`).
        if segment.payload.len() > self.mss.max(48) {
            return Err("a segment larger than was announced");
        }
        let first = segment.seq;
        let end = first.wrapping_add(len(segment.payload.len()));
        // The probe of a kept connection (RFC 9293 3.8.4) lies one before, at the SYN at first.
        if before(first, irs) {
            return Err("a segment before its SYN's");
        }
        // One byte beyond is the probe of a closed window (RFC 9293 3.8.6.1).
        let edge = told.edge.unwrap_or(irs);
        if !segment.payload.is_empty() && before(edge.wrapping_add(1), end) {
            return Err("data beyond the window that was offered");
        }
        if let Some(fin) = self.fin {
            // Behind it only acknowledgements have a number, the next one.
            let is_behind = before(fin, end);
            if is_behind && (!segment.payload.is_empty() || end != fin.wrapping_add(1)) {
                return Err("data behind its FIN");
            }
            if segment.has(FIN) && fin != end {
                return Err("a FIN at another place");
            }
        } else if segment.has(FIN) {
            if before(end, self.highest) {
                return Err("a FIN before what was sent already");
            }
            self.fin = Some(end);
        }
        self.compare(first.wrapping_sub(irs), &segment.payload)?;
        if !segment.payload.is_empty() {
            self.highest = later(self.highest, end);
        }
        Ok(())
    }

    /// The same number is the same byte, however often it is sent.
    fn compare(&mut self, offset: u32, payload: &[u8]) -> Result<(), &'static str> {
        let offset = index(offset);
        if self.said.len() < offset + payload.len() {
            self.said.resize(offset + payload.len(), None);
        }
        for (known, byte) in self.said[offset..].iter_mut().zip(payload) {
            if known.is_some_and(|known| known != *byte) {
                return Err("another byte at the same number");
            }
            *known = Some(*byte);
        }
        Ok(())
    }

    fn examine_ack(&mut self, segment: &Segment, told: &PeerKnowledge) -> Result<(), &'static str> {
        if !told.is_established {
            return Ok(());
        }
        if before(told.sent, segment.ack) {
            return Err("an acknowledgement of what was never sent");
        }
        if before(segment.ack, told.iss) {
            return Err("an acknowledgement before the SYN");
        }
        let edge = segment.ack.wrapping_add(u32::from(segment.window));
        if self.is_orderly {
            if self.ack.is_some_and(|ack| before(segment.ack, ack)) {
                return Err("an acknowledgement that goes back");
            }
            if self.edge.is_some_and(|old| before(edge, old)) {
                return Err("a window that shrinks");
            }
        }
        self.ack = Some(self.ack.map_or(segment.ack, |ack| later(ack, segment.ack)));
        self.edge = Some(self.edge.map_or(edge, |old| later(old, edge)));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
