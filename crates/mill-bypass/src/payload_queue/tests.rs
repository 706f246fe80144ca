//! Queues beside a naive model: all bytes that were pushed, in one vector.

use super::*;
use crate::pool::LARGE_BYTES;
use alloc::format;
use alloc::rc::Rc;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::{Cell, OnceCell, RefCell};
use mill_runtime::files::{FileError, FileErrorKind};
use mill_runtime::payload::Shared;
use mill_tcp::random::Random;

/// A file in memory that can be cut, and counts what is read.
#[derive(Clone)]
struct TestFile(Rc<Content>);

struct Content {
    bytes: RefCell<Vec<u8>>,
    reads: Cell<usize>,
    /// The error number of every read, if not 0.
    code: Cell<i32>,
    /// The same bytes, if they are mapped.
    mapped: OnceCell<Vec<u8>>,
}

impl TestFile {
    fn new(bytes: Vec<u8>) -> Self {
        Self(Rc::new(Content {
            bytes: RefCell::new(bytes),
            reads: Cell::new(0),
            code: Cell::new(0),
            mapped: OnceCell::new(),
        }))
    }

    fn new_mapped(bytes: Vec<u8>) -> Self {
        let file = Self::new(bytes.clone());
        file.0.mapped.set(bytes).unwrap();
        file
    }

    fn payload(&self, offset: u64, len: u64) -> Payload<'static, Self> {
        let file = self.clone();
        Payload::File { file, offset, len }
    }
}

impl FileBytes for TestFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize, FileError> {
        self.0.reads.set(self.0.reads.get() + 1);
        if self.0.code.get() != 0 {
            return Err(FileError {
                kind: FileErrorKind::Other,
                call: "pread()",
                code: self.0.code.get(),
            });
        }
        let bytes = self.0.bytes.borrow();
        let rest = usize::try_from(offset)
            .ok()
            .and_then(|from| bytes.get(from..));
        let rest = rest.unwrap_or_default();
        // Short reads are allowed anywhere.
        let count = rest.len().min(into.len()).min(40_000);
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn mapped(&self, offset: u64, len: u64) -> Option<ExternalBytes<'_>> {
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(usize::try_from(len).ok()?)?;
        let bytes = self.0.mapped.get()?.get(start..end)?;
        Some(ExternalBytes::of_memory(bytes))
    }
}

type Queue = PayloadQueue<TestFile>;

fn files_of(bytes_max: usize) -> FileMemory {
    FileMemory {
        bytes_max,
        is_mapped: true,
    }
}

/// Bytes in which a lost or doubled piece shows.
fn pattern(len: usize) -> Vec<u8> {
    (0..=250).cycle().take(len).collect()
}

fn push(queue: &mut Queue, payload: Payload<'_, TestFile>) -> Result<(), StreamError> {
    queue.push(payload, &Pool::default(), files_of(4 * LARGE_BYTES))
}

fn copied(queue: &mut Queue, offset: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    queue.copy(offset, &mut bytes).unwrap();
    bytes
}

/// Random pushes, copies and releases; what is copied is what the model has.
fn check_against_the_model(seed: u64) {
    let mut random = Random::new(seed);
    let mut below = |bound: usize| usize::try_from(random.below(bound as u64)).unwrap();
    let bytes = pattern(300_000);
    let (shared, file) = (Shared::from(&bytes[..]), TestFile::new(bytes.clone()));
    let pool = Pool::default();
    let file_bytes_max = [0, LARGE_BYTES, 3 * LARGE_BYTES, 1 << 30][below(4)];
    let (mut queue, mut model) = (Queue::default(), Vec::new());
    let mut loaded_before = 0;
    for step in 0..400 {
        let context = format!("seed {seed}, step {step}");
        match below(8) {
            0..=2 => {
                let from = below(200_000);
                let size = below(3);
                let len = 1 + below([10, 3_000, 90_000][size]);
                let range = from..from + len;
                model.extend_from_slice(&bytes[range.clone()]);
                let payload = match below(3) {
                    0 => Payload::Copy(&bytes[range]),
                    1 => Payload::Shared(Shared::clone(&shared), range),
                    _ => file.payload(from as u64, len as u64),
                };
                queue
                    .push(payload, &pool, files_of(file_bytes_max))
                    .unwrap();
            }
            3..=5 if !model.is_empty() => {
                let from = below(model.len());
                let len = below((model.len() - from).min(70_000) + 1);
                let found = copied(&mut queue, from as u64, len);
                assert!(found == model[from..from + len], "{context}");
            }
            6 => {
                let count = below(model.len() + 1).min(below(150_000));
                model.drain(..count);
                queue.release(count as u64);
                loaded_before = queue.loaded().min(loaded_before);
            }
            _ => {}
        }
        assert_eq!(queue.len(), model.len() as u64, "{context}");
        assert!(loaded_before <= queue.loaded() && queue.loaded() <= queue.len());
        loaded_before = queue.loaded();
        assert!(
            queue.file_bytes() <= file_bytes_max.max(LARGE_BYTES),
            "{context}"
        );
    }
}

#[test]
fn any_part_of_a_queue_is_what_was_pushed() {
    for seed in 0..60 {
        check_against_the_model(seed);
    }
}

#[test]
fn small_copies_share_a_buffer() {
    let mut queue = Queue::default();
    for byte in 0..100 {
        push(&mut queue, Payload::Copy(&[byte; 30])).unwrap();
    }
    let chunks = queue.0.as_ref().map(|outbound| outbound.chunks());
    assert_eq!(chunks, Some(2), "3000 bytes in two buffers of 2048");
    assert_eq!(copied(&mut queue, 2040, 20), [[68; 20]].concat());
}

#[test]
fn a_small_file_is_in_memory_at_once_and_a_long_one_as_it_is_sent() {
    let file = TestFile::new(pattern(1_000_000));
    let mut queue = Queue::default();
    push(&mut queue, Payload::Copy(b"head")).unwrap();
    push(&mut queue, file.payload(0, 1000)).unwrap();
    assert_eq!(queue.loaded(), 1004);
    push(&mut queue, file.payload(0, 1_000_000)).unwrap();
    let chunk = LARGE_BYTES as u64;
    assert_eq!(queue.loaded(), 1004 + chunk);
    push(&mut queue, Payload::Copy(b"tail")).unwrap();
    assert_eq!(
        queue.loaded(),
        1004 + chunk,
        "something unread stands before it"
    );

    let mut reads = file.0.reads.get();
    let mut sent = 0;
    while sent + 1400 < queue.len() {
        copied(&mut queue, sent, 1400);
        sent += 1400;
        assert!(queue.loaded() >= sent && queue.loaded() <= sent + chunk + 4);
    }
    let rest = usize::try_from(queue.len() - sent).unwrap();
    copied(&mut queue, sent, rest);
    assert_eq!(queue.loaded(), queue.len());
    reads = file.0.reads.get() - reads;
    assert!(
        reads <= 2 * 1_000_000_usize.div_ceil(LARGE_BYTES),
        "{reads} reads"
    );
}

#[test]
fn no_more_of_a_file_is_kept_than_the_bound_and_what_is_gone_is_read_again() {
    let bytes = pattern(1_000_000);
    let file = TestFile::new(bytes.clone());
    let mut queue = Queue::default();
    push(&mut queue, file.payload(0, 1_000_000)).unwrap();
    for offset in (0..1_000_000).step_by(10_000) {
        let found = copied(&mut queue, offset as u64, 10_000);
        assert!(found == bytes[offset..offset + 10_000]);
        assert!(queue.file_bytes() <= 4 * LARGE_BYTES);
    }
    assert_eq!(queue.loaded(), queue.len());
    // The whole window again, twice, as after a timeout.
    for offset in (0..1_000_000).step_by(50_000).chain([0]) {
        assert!(copied(&mut queue, offset as u64, 1448) == bytes[offset..offset + 1448]);
        assert_eq!(
            queue.loaded(),
            queue.len(),
            "what was read once stays taken"
        );
    }
}

#[test]
fn everything_goes_back_to_the_pool() {
    let pool = Pool::default();
    let file = TestFile::new(pattern(200_000));
    let mut queue = Queue::default();
    for _ in 0..2 {
        for payload in [
            Payload::Copy(&pattern(70_000)[..]),
            file.payload(0, 200_000),
            Payload::Copy(b"small"),
        ] {
            queue.push(payload, &pool, files_of(1 << 30)).unwrap();
        }
        let len = queue.len();
        copied(&mut queue, 0, usize::try_from(len).unwrap());
        queue.release(len - 1);
        assert_eq!(queue.len(), 1);
        queue.release(1);
        assert!(queue.0.is_none(), "an empty queue owns nothing");
        // 70 000 bytes in a large and, with 4464 left, another large one; 200 000 of the file in three and a last one
        // of 3392; five bytes in a small one.
        assert_eq!(format!("{pool:?}"), "Pool(1 small, 6 large, 1 queues)");
    }
    queue.push(Payload::Copy(b"x"), &pool, files_of(1)).unwrap();
    drop(queue);
    assert_eq!(format!("{pool:?}"), "Pool(1 small, 6 large, 1 queues)");
}

#[test]
fn a_file_that_is_too_short_is_an_error_at_once_and_ends_the_queue_there() {
    let file = TestFile::new(pattern(10));
    let check = |offset, len, code, expected| {
        let mut queue = Queue::default();
        push(&mut queue, Payload::Copy(b"head")).unwrap();
        file.0.code.set(code);
        assert_eq!(push(&mut queue, file.payload(offset, len)), Err(expected));
        file.0.code.set(0);
        assert_eq!((queue.len(), queue.loaded()), (5, 4), "{offset} {len}");
        assert_eq!(copied(&mut queue, 0, 4), b"head");
        assert_eq!(queue.copy(3, &mut [0; 2]), Err(Vanished));
    };
    check(0, 11, 0, StreamError::Truncated);
    check(10, 1, 0, StreamError::Truncated);
    check(0, 100_000, 0, StreamError::Truncated);
    check(0, u64::MAX, 0, StreamError::Truncated);
    check(u64::MAX, 1, 0, StreamError::Truncated);
    check(u64::MAX / 2, u64::MAX / 2, 0, StreamError::Truncated);
    check(0, 5, 21, StreamError::Other(21));
}

#[test]
fn a_file_that_gets_shorter_later_is_an_error_when_it_is_read() {
    for left in [0, LARGE_BYTES, LARGE_BYTES + 1, 199_999] {
        let file = TestFile::new(pattern(200_000));
        let mut queue = Queue::default();
        push(&mut queue, file.payload(0, 200_000)).unwrap();
        file.0.bytes.borrow_mut().truncate(left);
        copied(&mut queue, 0, LARGE_BYTES);
        let mut into = vec![0; 200_000 - LARGE_BYTES];
        assert_eq!(
            queue.copy(LARGE_BYTES as u64, &mut into),
            Err(Vanished),
            "{left}"
        );
    }
}

#[test]
fn a_range_outside_its_bytes_is_an_error() {
    let bytes = Shared::from(&b"0123456789"[..]);
    let check = |range: core::ops::Range<usize>, expected: Result<(), StreamError>| {
        let mut queue = Queue::default();
        let pushed = push(
            &mut queue,
            Payload::Shared(Shared::clone(&bytes), range.clone()),
        );
        assert_eq!(pushed, expected, "{range:?}");
    };
    check(0..10, Ok(()));
    check(3..3, Ok(()));
    check(9..11, Err(StreamError::Truncated));
    check(11..12, Err(StreamError::Truncated));
}

#[test]
fn an_empty_queue_needs_no_memory_for_its_bookkeeping() {
    let mut queue = Queue::default();
    push(&mut queue, Payload::Copy(b"")).unwrap();
    push(&mut queue, TestFile::new(Vec::new()).payload(7, 0)).unwrap();
    assert!(queue.is_empty() && queue.0.is_none());
    assert_eq!(queue.copy(0, &mut []), Ok(()));
    assert_eq!(queue.copy(0, &mut [0]), Err(Vanished));
    queue.clear();
    queue.release(0);
}

#[test]
fn what_is_mapped_is_sent_from_there_and_never_read() {
    let content = pattern(300_000);
    let file = TestFile::new_mapped(content.clone());
    let mut queue = Queue::default();
    push(&mut queue, Payload::Copy(b"head")).unwrap();
    push(&mut queue, file.payload(1000, 200_000)).unwrap();
    push(&mut queue, Payload::Copy(b"next")).unwrap();
    assert_eq!(queue.loaded(), 200_008, "it takes no memory");
    // The bytes before the file are copied.
    let slice =
        |bytes: Option<ExternalBytes<'_>>| bytes.map(|bytes| bytes.as_slice().unwrap().to_vec());
    let first = slice(queue.external(0, 60_000));
    assert_eq!(first.as_deref(), Some(&content[1000..60_996]));
    let second = slice(queue.external(60_000, 60_000));
    assert_eq!(second.as_deref(), Some(&content[60_996..120_996]));
    queue.release(60_000);
    assert_eq!(slice(queue.external(0, 60_000)), second, "once more");
    for (offset, len, why) in [
        (0, 4000, "is little"),
        (140_000, 5000, "ends behind the file"),
        (140_000, 8, "is no file"),
        (0, 0, "is nothing"),
    ] {
        assert!(slice(queue.external(offset, len)).is_none(), "what {why}");
    }
    assert_eq!(file.0.reads.get(), 0);
    // What has to be sent again in short segments is read, and only that.
    let mut into = vec![0; 1448];
    queue.copy(60_000, &mut into).unwrap();
    assert_eq!(into, content[120_996..122_444]);
    assert_eq!(queue.file_bytes(), LARGE_BYTES);
    let reads = file.0.reads.get();
    assert!((1..=2).contains(&reads), "{reads} reads");
    // A segment that begins in one piece of the file and ends in the next one: the beginning is to be copied.
    let behind = slice(queue.external(60_000, 60_000));
    assert_eq!(behind.as_deref(), Some(&content[132_072..180_996]));
    queue.release(140_008);
    assert!(queue.is_empty());
}

#[test]
fn a_file_that_is_not_mapped_is_read() {
    let content = pattern(300_000);
    let mut queue = Queue::default();
    push(
        &mut queue,
        TestFile::new(content.clone()).payload(0, 200_000),
    )
    .unwrap();
    let read = queue.external(0, 60_000).unwrap().as_slice().unwrap();
    assert!(read == &content[..60_000], "its beginning is in memory");
    assert!(queue.external(70_000, 60_000).is_none(), "the rest is not");
    let file = TestFile::new_mapped(content);
    let files = FileMemory {
        bytes_max: 4 * LARGE_BYTES,
        is_mapped: false,
    };
    queue
        .push(file.payload(0, 200_000), &Pool::default(), files)
        .unwrap();
    assert!(queue.external(200_000, 60_000).is_none(), "the link can't");
}
