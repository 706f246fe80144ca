//! What was sent and is not acknowledged, segment by segment (RFC 6675 2, RFC 8985 5).

/// The segments in flight in the order of their sequence numbers, each with when it was sent last and what is known
/// of it.
#[derive(Debug, Default)]
pub struct Scoreboard {}

impl Scoreboard {
    pub fn clear(&mut self) {}
}
