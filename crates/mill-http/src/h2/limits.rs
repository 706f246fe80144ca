//! Bounds on what a peer may cost, with their defaults.

/// Counts are per [`PERIOD_SECONDS`], but where it is said otherwise. A peer that exceeds one gets GOAWAY with
/// ENHANCE_YOUR_CALM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Streams that the peer has reset before they were answered, or made us reset; each two answers allow one more
    /// (CVE-2023-44487, CVE-2025-8671).
    pub resets: u32,
    /// Beside one for each frame of content.
    pub pings: u32,
    pub settings: u32,
    /// PRIORITY and PRIORITY_UPDATE.
    pub priorities: u32,
    /// WINDOW_UPDATE that allow little, beside one for each frame of content.
    pub window_updates: u32,
    /// DATA without content that does not end its stream, and HEADERS and CONTINUATION without a fragment.
    pub empty_frames: u32,
    /// CONTINUATION behind one HEADERS.
    pub continuations: u32,
    /// Bytes of one block before it is decoded.
    pub block_bytes: usize,
    /// Bytes of a request's head after it was decoded: beyond, it is answered with 400, as nginx's 494.
    pub head_bytes: usize,
    /// Streams above the announced number, which are refused, in a row.
    pub refused_streams: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            resets: 100,
            pings: 100,
            settings: 100,
            priorities: 1000,
            window_updates: 10_000,
            empty_frames: 100,
            continuations: 8,
            block_bytes: 64 * 1024,
            head_bytes: 32 * 1024,
            refused_streams: 256,
        }
    }
}

/// The time in which frames are counted together.
pub const PERIOD_SECONDS: u64 = 10;
