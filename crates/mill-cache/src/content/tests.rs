//! Content that grows, becomes whole, passes by or fails, and what its readers get of it.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};

use super::{Appended, Content, ContentReader, ContentWriter, LengthMismatch, Piece, Room};
use crate::ledger::{Ledger, Reservation};
use crate::limits::{CHUNK_BYTES, EXACT_BYTES_MAX, JOINED_BYTES_MAX, WINDOW_BYTES};

const WINDOW: usize = 1024 * 1024;
const _: () = assert!(WINDOW as u64 == WINDOW_BYTES);

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wakes {
    fn count(&self) -> usize {
        self.0.load(Relaxed)
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

fn waker() -> (Arc<Wakes>, Waker) {
    let wakes = Arc::new(Wakes::default());
    (wakes.clone(), wakes.into())
}

/// How far a reader came.
#[derive(Debug, PartialEq)]
enum Last {
    Pending,
    End,
    Failed,
}

struct Started {
    writer: ContentWriter,
    reader: ContentReader,
    ledger: Arc<Ledger>,
}

impl Started {
    fn content(&self) -> Arc<Content> {
        self.writer.content().clone()
    }
}

fn start_with(length: Option<u64>, limit: u64, filling_bytes: u64) -> Started {
    let ledger = Arc::new(Ledger::new(filling_bytes));
    let reservation = Reservation::new(ledger.clone());
    let (writer, reader) = ContentWriter::new(length, limit, reservation);
    Started {
        writer,
        reader,
        ledger,
    }
}

fn start(length: Option<u64>, limit: u64) -> Started {
    start_with(length, limit, u64::MAX)
}

/// Bytes that tell where they are.
fn pattern(len: usize) -> Vec<u8> {
    let byte = |at: usize| (at ^ at >> 8 ^ at >> 16).to_le_bytes()[0];
    (0..len).map(byte).collect()
}

fn drain(reader: &mut ContentReader, most: usize, waker: &Waker) -> (Vec<u8>, Last) {
    let mut all = Vec::new();
    loop {
        match reader.poll_piece(most, waker) {
            Piece::Bytes(bytes, range) => {
                assert!((1..=most.max(1)).contains(&range.len()));
                all.extend_from_slice(&bytes[range]);
            }
            Piece::Pending => return (all, Last::Pending),
            Piece::End => return (all, Last::End),
            Piece::Failed => return (all, Last::Failed),
        }
    }
}

fn len64(len: usize) -> u64 {
    u64::try_from(len).unwrap()
}

#[test]
fn every_reader_gets_all_bytes_in_order_at_every_length() {
    let exact = usize::try_from(EXACT_BYTES_MAX).unwrap();
    let joined = usize::try_from(JOINED_BYTES_MAX).unwrap();
    let lengths = [
        0,
        1,
        4095,
        4096,
        4097,
        65_535,
        65_536,
        65_537,
        exact,
        exact + 1,
        300_000,
        joined,
        joined + 1,
    ];
    let (_, waker) = waker();
    for (len, is_announced) in lengths
        .into_iter()
        .flat_map(|len| [(len, true), (len, false)])
    {
        let all = pattern(len);
        let mut started = start(is_announced.then(|| len64(len)), u64::MAX);
        let content = started.content();
        let mut middle = content.reader(len64(len / 2)).unwrap();
        let mut got = Vec::new();
        let mut got_middle = Vec::new();
        for (turn, bytes) in all.chunks(10_007).enumerate() {
            assert_eq!(started.writer.append(bytes), Appended::Stored);
            if turn % 3 > 0 {
                got.extend(drain(&mut started.reader, 50_000, &waker).0);
                got_middle.extend(drain(&mut middle, 700, &waker).0);
            }
        }
        assert_eq!((content.len(), content.piece(0, 1).is_none()), (None, true));
        assert_eq!(started.writer.finish(), Ok(true), "{len}");
        let (rest, last) = drain(&mut started.reader, 1 << 20, &waker);
        got.extend(rest);
        assert!(got == all && last == Last::End, "{len} {is_announced}");
        got_middle.extend(drain(&mut middle, 1 << 20, &waker).0);
        assert!(got_middle == all[len / 2..], "{len} {is_announced}");
        let mut late = content.reader(0).unwrap();
        assert!(drain(&mut late, 99_999, &waker).0 == all, "{len}");
        assert_eq!(content.len(), Some(len64(len)));
        assert_eq!(content.is_empty(), len == 0);
        let is_one = len64(len) <= JOINED_BYTES_MAX;
        assert_eq!(content.in_one().is_some(), is_one, "{len} {is_announced}");
        assert_eq!(started.ledger.reserved(), 0);
    }
}

#[test]
fn whole_content_counts_its_bytes_and_its_rows() {
    let rows = |count: u64| 24 + count * (16 + 24);
    let many = JOINED_BYTES_MAX + 1;
    let cases = [
        (0, None, 16),
        (1, None, 17),
        (5000, None, 5016),
        (5000, Some(5000), 5016),
        (65_536, None, 65_552),
        (JOINED_BYTES_MAX, None, JOINED_BYTES_MAX + 16),
        // 4096 + 4096 + 8192 + … + 32,768 are one chunk's bytes.
        (many, None, many + rows(5 + 63 + 1)),
        (many, Some(many), many + rows(61 + 1)),
    ];
    for (len, announced, expected) in cases {
        let mut started = start(announced, u64::MAX);
        for bytes in pattern(usize::try_from(len).unwrap()).chunks(1000) {
            started.writer.append(bytes);
        }
        let content = started.content();
        assert_eq!(content.footprint(), 0);
        started.writer.finish().unwrap();
        assert_eq!(content.footprint(), expected, "{len} {announced:?}");
    }
}

#[test]
fn a_piece_of_whole_content_is_what_lies_in_one_chunk() {
    let len = usize::try_from(JOINED_BYTES_MAX).unwrap() + 1;
    let all = pattern(len);
    let mut started = start(Some(len64(len)), u64::MAX);
    started.writer.append(&all);
    started.writer.finish().unwrap();
    let content = started.content();
    let cases = [
        (0, 10, Some(10)),
        (CHUNK_BYTES - 1, 10, Some(1)),
        (CHUNK_BYTES, 10, Some(10)),
        (len - 1, 10, Some(1)),
        (5, 0, Some(1)),
        (len, 10, None),
        (usize::MAX, 10, None),
    ];
    for (offset, most, expected) in cases {
        let got = match content.piece(len64(offset), most).unwrap() {
            Piece::Bytes(bytes, range) => Some(bytes[range].to_vec()),
            Piece::End => None,
            other => panic!("{other:?}"),
        };
        let expected = expected.map(|len| all[offset..offset + len].to_vec());
        assert_eq!(got, expected, "{offset}");
    }
}

#[test]
fn a_reader_ahead_of_the_writer_waits_for_its_first_byte() {
    for (offset, most, expected) in [(5, 9, &b"fg"[..]), (6, 1, b"g"), (7, 9, b""), (99, 9, b"")] {
        let mut started = start(None, 100);
        let content = started.content();
        let mut ahead = content.reader(offset).unwrap();
        let (_, waker) = waker();
        started.writer.append(b"abcde");
        assert_eq!(drain(&mut ahead, most, &waker), (vec![], Last::Pending));
        started.writer.append(b"fg");
        assert_eq!(drain(&mut ahead, most, &waker).0, expected, "{offset}");
        started.writer.finish().unwrap();
        assert_eq!(drain(&mut ahead, most, &waker), (vec![], Last::End));
    }
}

#[test]
fn readers_that_wait_are_woken_once_for_each_wait() {
    let mut started = start(None, 100);
    let (wakes, waker) = waker();
    let (replaced, replaced_waker) = self::waker();
    started.reader.poll_piece(9, &replaced_waker);
    started.reader.poll_piece(9, &waker);
    started.writer.append(b"a");
    started.writer.append(b"b");
    assert_eq!((wakes.count(), replaced.count()), (1, 0));
    assert_eq!(drain(&mut started.reader, 9, &waker).0, b"ab");
    started.writer.finish().unwrap();
    assert_eq!(wakes.count(), 2);
}

#[test]
fn content_of_another_length_than_announced_fails() {
    // The limit decides whether it is stored or passes by.
    for limit in [100, 1] {
        for (announced, len, is_right) in
            [(4, 3, false), (4, 4, true), (4, 5, false), (0, 1, false)]
        {
            let mut started = start(Some(announced), limit);
            let (_, waker) = waker();
            started.writer.append(&pattern(len));
            let finished = started.writer.finish();
            let is_stored = announced <= limit && len64(len) <= limit;
            let expected = if is_right {
                Ok(is_stored)
            } else {
                Err(LengthMismatch)
            };
            assert_eq!(finished, expected, "{announced} {len} {limit}");
            let last = drain(&mut started.reader, 9, &waker).1;
            assert_eq!(last == Last::End, is_right);
            assert_eq!(last == Last::Failed, !is_right);
            let Started { reader, ledger, .. } = started;
            drop(reader);
            assert_eq!(ledger.reserved(), 0);
        }
    }
}

#[test]
fn a_writer_that_is_dropped_fails_its_readers_and_frees_the_bytes() {
    for limit in [1 << 20, 10] {
        let started = start(None, limit);
        let content = started.content();
        let Started {
            writer,
            mut reader,
            ledger,
        } = started;
        writer.append(&pattern(100_000));
        let (wakes, waker) = waker();
        drain(&mut reader, 1 << 20, &waker);
        drop(writer);
        assert_eq!(wakes.count(), 1);
        assert_eq!(drain(&mut reader, 9, &waker), (vec![], Last::Failed));
        assert!(content.reader(0).is_none() && !content.is_whole());
        drop(reader);
        assert_eq!(ledger.reserved(), 0);
    }
}

#[test]
fn a_reader_of_failed_content_is_still_given_all_that_has_come() {
    let started = start(None, 1 << 20);
    let (_, waker) = waker();
    started.writer.append(&pattern(100_000));
    let Started {
        writer,
        mut reader,
        ledger,
    } = started;
    drop(writer);
    assert!(ledger.reserved() > 0);
    assert_eq!(
        drain(&mut reader, 9, &waker),
        (pattern(100_000), Last::Failed)
    );
    drop(reader);
    assert_eq!(ledger.reserved(), 0);
}

#[test]
fn content_up_to_the_limit_is_stored_and_beyond_it_passes_by() {
    let cases = [
        (Some(10), 10, Appended::Stored),
        (Some(11), 11, Appended::TooLarge),
        (None, 10, Appended::Stored),
        (None, 11, Appended::TooLarge),
    ];
    for (announced, len, expected) in cases {
        let mut started = start(announced, 10);
        let is_stored = expected == Appended::Stored;
        let too_long = announced == Some(11);
        assert_eq!(started.content().reader(0).is_none(), too_long);
        assert_eq!(started.writer.append(&pattern(len)), expected);
        assert_eq!(started.content().reader(0).is_some(), is_stored);
        let (_, waker) = waker();
        assert_eq!(
            started.writer.finish(),
            Ok(is_stored),
            "{announced:?} {len}"
        );
        assert_eq!(started.content().reader(0).is_some(), is_stored);
        let got = drain(&mut started.reader, 99, &waker);
        assert_eq!(got, (pattern(len), Last::End));
    }
}

#[test]
fn content_passes_by_when_too_much_is_being_filled() {
    let mut started = start_with(None, u64::MAX, 4096 + 8000);
    assert_eq!(started.writer.append(&pattern(8192)), Appended::Stored);
    assert_eq!(started.ledger.reserved(), 8192);
    assert_eq!(started.writer.append(&pattern(1)), Appended::TooLarge);
    assert_eq!(started.ledger.reserved(), 0);
    let (_, waker) = waker();
    assert_eq!(drain(&mut started.reader, 1 << 20, &waker).0.len(), 8193);
    assert_eq!(started.writer.finish(), Ok(false));
    assert_eq!(drain(&mut started.reader, 9, &waker).1, Last::End);
}

#[test]
fn a_writer_is_a_window_ahead_of_its_slowest_reader_at_most() {
    let started = start(None, 10);
    let (writer, mut fast) = (started.writer, started.reader);
    let content = writer.content().clone();
    let mut slow = content.reader(0).unwrap();
    let (wakes, waker) = waker();
    let (_, readers) = self::waker();
    writer.append(&pattern(WINDOW - 1));
    assert_eq!(writer.poll_room(&waker), Room::Ready);
    writer.append(b"x");
    assert_eq!(writer.poll_room(&waker), Room::Full);
    assert_eq!(drain(&mut fast, 1 << 20, &readers).0.len(), WINDOW);
    assert_eq!((wakes.count(), writer.poll_room(&waker)), (0, Room::Full));
    slow.poll_piece(1, &readers);
    assert_eq!((wakes.count(), writer.poll_room(&waker)), (1, Room::Ready));
    writer.append(b"yz");
    assert_eq!(writer.poll_room(&waker), Room::Full);
    drop(slow);
    assert_eq!((wakes.count(), writer.poll_room(&waker)), (2, Room::Ready));
    assert_eq!(drain(&mut fast, 9, &readers).0, b"yz");
    drop(fast);
    assert_eq!(writer.poll_room(&waker), Room::Unread);
    assert_eq!(writer.append(b"!"), Appended::Unread);
}

#[test]
fn a_passing_stream_keeps_only_what_its_slowest_reader_has_not_read() {
    let started = start(None, 10);
    let (writer, mut fast) = (started.writer, started.reader);
    let mut slow = writer.content().reader(0).unwrap();
    let (_, waker) = waker();
    let kept = || {
        let growing = writer.content().growing.lock().unwrap();
        growing.as_ref().unwrap().chunk_count()
    };
    writer.append(&pattern(CHUNK_BYTES * 4));
    let all = kept();
    drain(&mut fast, CHUNK_BYTES, &waker);
    assert_eq!(kept(), all);
    let mut got = 0;
    for _ in 0..4 {
        if let Piece::Bytes(_, range) = slow.poll_piece(CHUNK_BYTES, &waker) {
            got += range.len();
        }
    }
    assert_eq!((kept(), got > 0), (all - 4, true));
    drop(slow);
    assert_eq!(kept(), 0);
    drop(fast);
    writer.append(&pattern(CHUNK_BYTES * 4));
    assert_eq!(kept(), 0, "nothing reads it");
}

#[test]
fn a_stream_that_ended_is_read_to_its_end() {
    let mut started = start(Some(20), 10);
    let (_, waker) = waker();
    started.writer.append(&pattern(20));
    assert_eq!(started.writer.finish(), Ok(false));
    drop(started.writer);
    assert_eq!(
        drain(&mut started.reader, 7, &waker),
        (pattern(20), Last::End)
    );
}

/// A waker that notes, when it is dropped, whether the content's lock was free.
struct Probe {
    content: Arc<Content>,
    found_free: Arc<Mutex<Vec<bool>>>,
}

impl Wake for Probe {
    fn wake(self: Arc<Self>) {}
}

impl Drop for Probe {
    fn drop(&mut self) {
        let is_free = self.content.growing.try_lock().is_ok();
        self.found_free.lock().unwrap().push(is_free);
    }
}

#[test]
fn wakers_are_dropped_without_the_lock() {
    let mut started = start(None, 10);
    let found_free = Arc::new(Mutex::new(Vec::new()));
    let probe = || {
        let content = started.writer.content().clone();
        let found_free = found_free.clone();
        Waker::from(Arc::new(Probe {
            content,
            found_free,
        }))
    };
    let mut reader = started.writer.content().reader(0).unwrap();
    reader.poll_piece(9, &probe());
    reader.poll_piece(9, &probe());
    drop(reader);
    started.reader.poll_piece(9, &probe());
    started.writer.append(&pattern(2 * WINDOW));
    assert_eq!(started.writer.poll_room(&probe()), Room::Full);
    assert_eq!(started.writer.poll_room(&probe()), Room::Full);
    drop(started.reader);
    assert_eq!(*found_free.lock().unwrap(), [true; 5]);
}
