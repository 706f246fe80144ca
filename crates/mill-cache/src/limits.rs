//! Every limit of a zone, and the constants of its memory.

use std::time::Duration;

/// Bytes of a key at most: a longer one is not cached. nginx keeps keys of any length; ours are counted one by one, and
/// a key is a method, a scheme, a host and a target, of which the server bounds the last to 8 KiB by default.
pub const KEY_BYTES_MAX: usize = 16 * 1024;

/// Tags that an object keeps at most; those beyond are ignored.
pub const TAGS_MAX: usize = 128;

/// Bytes of a tag at most; longer ones are ignored.
pub const TAG_BYTES_MAX: usize = 1024;

/// Bytes of a chunk of content whose length is not known, or that is longer than [`EXACT_BYTES_MAX`].
pub const CHUNK_BYTES: usize = 64 * 1024;

/// Content of a known length up to this many bytes is one allocation of exactly that size.
pub const EXACT_BYTES_MAX: u64 = 256 * 1024;

/// Whole content up to this many bytes is put into one allocation, so that it leaves in one call: a copy when it becomes
/// whole saves a call for each chunk at each hit.
pub const JOINED_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Bytes that content which is not stored may be ahead of its slowest reader.
pub const WINDOW_BYTES: u64 = 1024 * 1024;

/// Purges by a predicate that may wait for the sweep at once; one more is refused.
pub const PENDING_PURGES_MAX: usize = 64;

/// Tags without objects of which a purge is kept for fills whose head has not come yet; after one more, what such fills
/// bring is not stored if it has tags.
pub(crate) const NOTED_TAGS_MAX: usize = 1024;

/// What a zone may hold.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of stored content, metadata and index (`max_size` of nginx, but counted exactly).
    pub bytes: u64,
    /// Stored objects, each variant by itself (`keys_zone`).
    pub keys: u64,
    /// Bytes of the content of one object; longer content is passed through.
    pub object_bytes: u64,
    /// Bytes of all content that is being filled; content beyond is passed through.
    pub filling_bytes: u64,
    /// Variants of one key; the oldest is removed for one more.
    pub variants: usize,
    /// Requests that wait for one fill; those beyond go on by themselves.
    pub waiters: usize,
    /// An object that is not used for so long is removed (`inactive`).
    pub inactive: Duration,
}

impl Default for Limits {
    /// 64 MiB for objects up to 16 MiB, as nginx has them used for ten minutes.
    fn default() -> Self {
        Self {
            bytes: 64 << 20,
            keys: 1 << 20,
            object_bytes: 16 << 20,
            filling_bytes: 64 << 20,
            variants: 64,
            waiters: 1024,
            inactive: Duration::from_secs(600),
        }
    }
}
