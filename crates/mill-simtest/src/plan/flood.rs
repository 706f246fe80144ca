//! SYNs with forged addresses.

use mill_runtime::time::Duration;
use mill_sim::random::Random;

/// Forged segments to the HTTP server.
#[derive(Clone, Copy, Debug)]
pub struct FloodPlan {
    /// When it begins.
    pub at: Duration,
    pub segments: u32,
    /// Between two.
    pub pause: Duration,
    /// So many of a million are acknowledgements that guess a cookie.
    pub guesses_per_million: u32,
    /// The forged addresses are there, and reset what they did not ask for.
    pub answers: bool,
}

impl FloodPlan {
    pub(super) fn draw(random: &mut Random) -> Option<Self> {
        random.happens(80_000).then(|| Self {
            at: Duration::from_millis(random.up_to(3_000)),
            segments: u32::try_from(20 + random.up_to(600)).unwrap_or(20),
            pause: Duration::from_micros(random.one_of(&[10, 500, 5_000])),
            guesses_per_million: random.one_of(&[0, 100_000, 500_000]),
            answers: random.happens(500_000),
        })
    }
}
