//! What lies where in the memory that the program and the processes share.
//!
//! ```text
//! the table of what is served                          the counters
//! 0    grace: connections of the kernel are looked up  0    first queue's row: one number a counter
//! 4    workers a queue                                 128  second queue's row
//! 8    how many addresses to look through              …
//! 12   how many tags a frame may have
//! 16   seed of the flows' hash
//! 24   whether another process may have connections behind the one that has the interface
//! 64   addresses: 16 bytes, IPv4's as ::ffff:a.b.c.d; then 8 with the beginning of its bitmaps, from the first's on
//! 832  ports of TCP: a bitmap of 8192 bytes for each address
//! …    ports of UDP, likewise
//! …    ports of TCP at which nobody listens any more, and connections go on, likewise
//! ```
//! A bit lies in a word of four bytes in the machine's order: port / 32 is the word, port % 32 the bit.

/// How many addresses are served at most: those of one interface. Each takes 24 KiB of the kernel's memory.
pub const ADDRESSES_MAX: usize = 32;

/// How many workers share a queue at most: as many sockets for each queue are in the kernel's table.
pub const WORKERS_MAX: u32 = 64;

/// How many tags (802.1Q, 802.1ad) the program looks behind at most.
pub const TAGS_MAX: u32 = 2;

pub(super) const GRACE: usize = 0;
pub(super) const WORKERS: usize = 4;
pub(super) const ADDRESS_COUNT: usize = 8;
pub(super) const TAGS: usize = 12;
pub(super) const SEED: usize = 16;
pub(super) const BEHIND: usize = 24;
pub(super) const ADDRESSES: usize = 64;
pub(super) const TCP_PORTS: usize = ADDRESSES + ADDRESSES_MAX * ADDRESS_BYTES;
pub(super) const UDP_PORTS: usize = TCP_PORTS + ADDRESSES_MAX * BITMAP_BYTES;
pub(super) const CLOSING_PORTS: usize = UDP_PORTS + ADDRESSES_MAX * BITMAP_BYTES;
pub(super) const TABLE_BYTES: usize = CLOSING_PORTS + ADDRESSES_MAX * BITMAP_BYTES;

/// An address and the number behind it.
pub(super) const ADDRESS_BYTES: usize = 24;
pub(super) const BITMAP_OF_ADDRESS: usize = 16;

/// A bit for each port.
pub(super) const BITMAP_BYTES: usize = (1 << 16) / 8;

/// Rows of counters. Queues further on share them; adding is atomic.
pub(super) const ROWS: usize = 64;
pub(super) const ROW_BYTES: usize = 128;
pub(super) const COUNTERS_BYTES: usize = ROWS * ROW_BYTES;

// Masks and shifts of the program stand for these; rows don't share cache lines.
const _: () = assert!(ROWS.is_power_of_two() && ROW_BYTES.is_power_of_two());
const _: () = assert!(ROW_BYTES.is_multiple_of(64) && ADDRESSES.is_multiple_of(8));
const _: () = assert!((UDP_PORTS - TCP_PORTS).is_power_of_two());
const _: () = assert!(TCP_PORTS == 832 && WORKERS_MAX.is_power_of_two());
