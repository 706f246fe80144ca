//! Layout of the memory that the program and the processes share.
//!
//! ```text
//! the table of what is served                               the counters
//! 0    whether the kernel's connections are looked up       0    first queue's row: one number a counter
//! 4    workers a queue                                      128  second queue's row
//! 8    number of addresses to search                        …
//! 12   of former versions, which leave it 0
//! 16   seed of the flow hash
//! 24   whether the device's owner has a successor that may have connections
//! 32   number of blocked addresses
//! 64   addresses: 16 bytes, IPv4 as ::ffff:a.b.c.d; then 8 with the offset of its bitmaps from those of the first address
//! 832  TCP ports: a bitmap of 8192 bytes for each address
//! …    UDP ports, likewise
//! …    TCP ports without listener whose connections go on, likewise
//! …    blocked addresses: buckets of 4 places, each of 16 bytes as above, or zeros
//! ```
//! A port's bit is bit port % 32 of the 32-bit word port / 32, in native byte order.

/// Addresses served at most, those of one interface. Each takes 24 KiB of the kernel's memory.
pub const ADDRESSES_MAX: usize = 32;

/// Workers that share a queue at most: the map has this many sockets for each queue.
pub const WORKERS_MAX: u32 = 64;

/// Tables that a program can have, each with its counters: it may use 64 maps (Linux's `MAX_USED_MAPS`), and one is that of the sockets.
pub const TABLES_MAX: u32 = 31;

pub(super) const LOOKS_UP_KERNEL_FLOWS: usize = 0;
pub(super) const WORKERS: usize = 4;
pub(super) const ADDRESS_COUNT: usize = 8;
pub(super) const SEED: usize = 16;
pub(super) const HAS_SUCCESSOR: usize = 24;
pub(super) const BLOCKED_COUNT: usize = 32;
pub(super) const ADDRESSES: usize = 64;
pub(super) const TCP_PORTS: usize = ADDRESSES + ADDRESSES_MAX * ADDRESS_BYTES;
pub(super) const UDP_PORTS: usize = TCP_PORTS + ADDRESSES_MAX * BITMAP_BYTES;
pub(super) const CLOSING_PORTS: usize = UDP_PORTS + ADDRESSES_MAX * BITMAP_BYTES;
pub(super) const BLOCKED: usize = CLOSING_PORTS + ADDRESSES_MAX * BITMAP_BYTES;
pub(super) const TABLE_BYTES: usize = BLOCKED + BLOCKED_BYTES;

/// Buckets of blocked addresses, and places in each: 256 KiB of the kernel's memory. With as many addresses as there may
/// be by default (16384 of `blocks`), one of five finds its bucket full, and is dropped by the stack.
pub(super) const BLOCKED_BUCKETS: usize = 4096;
pub(super) const BLOCKED_WAYS: usize = 4;
pub(super) const BUCKET_BYTES: usize = BLOCKED_WAYS * 16;
pub(super) const BLOCKED_BYTES: usize = BLOCKED_BUCKETS * BUCKET_BYTES;

/// Bytes of an address and the offset that follows it.
pub(super) const ADDRESS_BYTES: usize = 24;
pub(super) const BITMAP_OF_ADDRESS: usize = 16;

/// Bytes of a bitmap with one bit for each port.
pub(super) const BITMAP_BYTES: usize = (1 << 16) / 8;

/// Rows of counters. Queues with higher numbers share them; additions are atomic.
pub(super) const ROWS: usize = 64;
pub(super) const ROW_BYTES: usize = 128;
pub(super) const COUNTERS_BYTES: usize = ROWS * ROW_BYTES;

// The program masks and shifts by these; rows do not share cache lines.
const _: () = assert!(ROWS.is_power_of_two() && ROW_BYTES.is_power_of_two());
const _: () = assert!(ROW_BYTES.is_multiple_of(64) && ADDRESSES.is_multiple_of(8));
const _: () = assert!(BLOCKED.is_multiple_of(BUCKET_BYTES) && BUCKET_BYTES == 64);
const _: () = assert!(BLOCKED_BUCKETS.is_power_of_two());
const _: () = assert!((UDP_PORTS - TCP_PORTS).is_power_of_two());
const _: () = assert!(TCP_PORTS == 832 && WORKERS_MAX.is_power_of_two());
