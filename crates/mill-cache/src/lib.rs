//! The content cache's store, for all workers of the process: keys, variants, tags, bytes, and metadata that it does not
//! look at. It knows no HTTP, does no I/O, reads no clock and draws no random numbers.
//!
//! A request looks up its key ([`Zone::look_up`]); after a miss it claims it ([`Zone::claim`]). One request of all workers
//! gets the [`FillTicket`] and asks the origin, the others wait ([`Waiting`]) until the head is known, and then read the
//! same content while it arrives ([`ContentReader`]).
//!
//! Why a table with locks, and no worker that owns a part and is asked by messages: a message costs two wake-ups of
//! threads for each miss, where a lock of one of 64 shards costs some tens of nanoseconds. The hottest hits do not come
//! here at all: each worker keeps answers as they are sent, and asks two atomics whether they still hold
//! ([`Zone::generation`], [`Object::is_current`]).
//!
//! What always holds:
//! - An object is given out only for the key whose bytes it was stored with.
//! - The charges of whole objects ([`Object::charge`]) and tags are never more than [`Limits::bytes`], but for the tags of
//!   objects that grow and up to 1024 that only a purge has named; fills are counted apart, with their tags, and never
//!   more than [`Limits::filling_bytes`].
//! - After a purge has returned, no look-up gives what was claimed before it.
//! - The end of a fill, also by dropping its handle, wakes all that wait for it.
#![forbid(unsafe_code)]

mod content; // bytes that may still arrive, their readers and their writer
pub mod disk; // objects on disk: names, format, index
mod eviction; // which object goes: S3-FIFO
mod figures; // what is told of a zone
mod fill; // the filler's end of a fill
mod filling; // a fill under way, and those that wait for it
mod key; // keys and their seeded hash
mod ledger; // bytes that are being filled
mod limits; // every limit
mod lock; // locks that outlive a panic
mod object; // an object and what it counts
mod purge; // purges of many objects
mod shard; // a part of the table
mod siphash; // the hash
mod tag; // tags
mod zone; // the store

pub use content::{Appended, Content, ContentReader, LengthMismatch, Piece, Room};
pub use figures::Figures;
pub use fill::{Arrival, Fill, FillTicket};
pub use filling::{Head, Waiting};
pub use key::{Key, KeyTooLong, Seed};
pub use limits::{
    CHUNK_BYTES, EXACT_BYTES_MAX, JOINED_BYTES_MAX, KEY_BYTES_MAX, Limits, PENDING_PURGES_MAX,
    TAG_BYTES_MAX, TAGS_MAX, WINDOW_BYTES,
};
pub use object::{OBJECT_OVERHEAD, Object, Weigh};
pub use purge::{KeyPredicate, PurgeMode, TooManyPurges};
pub use zone::{Claim, Restored, Zone};
