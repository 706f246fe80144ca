//! Objects on disk, behind those in memory: the format of their files, the index of these, and purges that outlive the
//! process. No I/O: the caller reads, writes and removes files.
//!
//! Why a file for each object, and not one file for all as databases have it: a cache folder that is not wanted any more
//! is removed with `rm`, a file that is gone is a miss, what is removed gives its room back at once, and the kernel keeps
//! in memory what is read often. Why not nginx's format: its files are of one build of nginx (the header is a structure of
//! C), and have neither a checksum of the content nor the tags.
//!
//! What always holds:
//! - A file is written under a temporary name and renamed once it is whole, and never changed. What a crash of the system
//!   has left of it does not match its checksums.
//! - A purge is on disk before it is told to be done, and stays there until no file is left that it concerns.
//! - The files of the index, and those that are being removed, take no more bytes than the limit.

mod host_of_key;
mod index;
mod name;
mod pending;
mod record;

pub use host_of_key::is_of_host;
pub use index::{DiskFigures, DiskIndex, DiskLimits, FILE_UNIT_BYTES, Leaving};
pub use name::{DiskName, variant};
pub use pending::{DiskPurge, DiskPurges, PURGES_MAX};
pub use record::{
    BLOCK_BYTES, BlockSums, Damage, HEADER_BYTES, Header, Record, RecordParts, check_blocks,
    emit_header, emit_tail,
};
