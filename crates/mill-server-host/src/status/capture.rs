//! Writes frames of a running stack to a client's file for a while.
//!
//! Workers hand copies to a queue and never wait; the thread that answers the question writes them. The capture ends by
//! itself: when the time is over, the limit of frames or bytes is reached, the file cannot be written any more, or the
//! client has disconnected.

use super::control_socket::Question;
use mill_device::pcap::FILE_HEADER;
use mill_device::pcap::filter::FrameFilter;
use mill_device::pcap::sink::FrameReceiver;
use mill_status::Request;
use mill_status::tables::Captured;
use mill_sys::{clock, descriptor};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

/// The frames that a question asks for.
pub(crate) fn filter(request: &Request) -> FrameFilter {
    FrameFilter {
        port: request.filter.port,
        address: request.filter.address,
    }
}

/// Writes frames until the capture ends.
pub(crate) fn write(question: &Question, frames: &FrameReceiver) -> Result<Captured, String> {
    let Some(capture) = &question.request.capture else {
        return Err(String::from("no capture was asked for"));
    };
    let file = question.files.first().map(|file| file.try_clone());
    let mut file = match file {
        Some(Ok(file)) => File::from(file),
        Some(Err(error)) => return Err(format!("dup() failed: {error}")),
        None => return Err(String::from("there is no file to write to")),
    };
    let failed = |error: std::io::Error| format!("writing failed: {error}");
    file.write_all(&FILE_HEADER).map_err(failed)?;
    let begun = clock::monotonic();
    let until = begun + Duration::from_millis(capture.ms).min(TIME_MAX);
    let bytes_max = capture.bytes.min(BYTES_MAX);
    let mut captured = Captured::default();
    while captured.frames < capture.frames && captured.bytes < bytes_max {
        let left = until.saturating_sub(clock::monotonic());
        if left.is_zero() || is_gone(question) {
            break;
        }
        match frames.blocks.recv_timeout(left.min(LOOK_INTERVAL)) {
            Ok(block) => {
                let room = capture.frames - captured.frames;
                let (count, len) = records(&block, room, bytes_max - captured.bytes);
                let records = block.get(..len).unwrap_or_default();
                file.write_all(records).map_err(failed)?;
                captured.frames += count;
                captured.bytes += len as u64;
                if len < block.len() {
                    break;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    captured.seconds = clock::monotonic().saturating_sub(begun).as_secs_f64();
    captured.lost_blocks = frames.lost_blocks();
    Ok(captured)
}

/// How many whole records of a block fit, and their bytes: the third word of a record is the length of its frame.
fn records(block: &[u8], count_max: u64, bytes_max: u64) -> (u64, usize) {
    let (mut count, mut len) = (0, 0);
    while count < count_max {
        let header = block.get(len..).and_then(|rest| rest.first_chunk::<16>());
        let Some([_, _, _, _, _, _, _, _, a, b, c, d, ..]) = header else {
            break;
        };
        let next = len + 16 + u32::from_le_bytes([*a, *b, *c, *d]) as usize;
        if next > block.len() || next as u64 > bytes_max {
            break;
        }
        len = next;
        count += 1;
    }
    (count, len)
}

/// Whether the client has closed its end: after its question it sends nothing else.
fn is_gone(question: &Question) -> bool {
    let ready = descriptor::wait_readable(&[question.client.as_fd()], Some(Duration::ZERO));
    ready.is_ok_and(|ready| ready.first() == Some(&true))
}

/// How often the client's socket is checked.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// The longest capture, and the largest file: a forgotten one must not fill a disk.
const TIME_MAX: Duration = Duration::from_secs(3600);
const BYTES_MAX: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::Channel;
    use mill_device::pcap::sink;
    use mill_status::request::Capture;
    use std::io::{Read, Seek};

    fn block(frames: &[usize]) -> Vec<u8> {
        let mut block = Vec::new();
        for len in frames {
            let words = [
                7,
                8,
                u32::try_from(*len).unwrap(),
                u32::try_from(*len).unwrap(),
            ];
            block.extend(words.iter().flat_map(|word: &u32| word.to_le_bytes()));
            block.extend(vec![0xaa; *len]);
        }
        block
    }

    #[test]
    fn only_whole_records_are_written_and_no_more_than_was_asked_for() {
        let block = block(&[10, 20, 30]);
        let check = |count, bytes, expected| assert_eq!(records(&block, count, bytes), expected);
        check(9, 1000, (3, 108));
        check(3, 108, (3, 108));
        check(2, 1000, (2, 62));
        check(9, 107, (2, 62));
        check(0, 1000, (0, 0));
        check(9, 25, (0, 0));
        assert_eq!(records(block.get(..40).unwrap(), 9, 1000), (1, 26));
        assert_eq!(records(&[], 9, 1000), (0, 0));
    }

    fn question(capture: Capture) -> (Channel, Question, File) {
        let (near, far) = Channel::pair().unwrap();
        let file = mill_sys::passing::memory_file(c"capture").unwrap();
        let question = Question {
            client: far,
            request: Request {
                capture: Some(capture),
                ..Request::default()
            },
            body: Vec::new(),
            files: vec![file.try_clone().unwrap().into()],
        };
        (near, question, file)
    }

    #[test]
    fn a_capture_ends_with_the_last_frame_that_was_asked_for() {
        let capture = Capture {
            ms: 60_000,
            frames: 4,
            bytes: u64::MAX,
        };
        let (_near, question, mut file) = question(capture);
        let (sender, receiver) = sink::queue(filter(&question.request));
        sender.give(block(&[10, 20, 30]));
        sender.give(block(&[40, 50]));
        let captured = write(&question, &receiver).unwrap();
        assert_eq!((captured.frames, captured.bytes), (4, 164));
        let mut written = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut written).unwrap();
        let expected = [&FILE_HEADER[..], &block(&[10, 20, 30, 40])].concat();
        assert_eq!(written, expected);
    }

    #[test]
    fn a_capture_ends_when_its_time_is_over_or_the_client_is_gone() {
        let short = Capture {
            ms: 10,
            frames: u64::MAX,
            bytes: u64::MAX,
        };
        let (_near, of_time, _) = question(short.clone());
        let (_sender, receiver) = sink::queue(FrameFilter::default());
        assert_eq!(write(&of_time, &receiver).unwrap().frames, 0);
        let long = Capture {
            ms: 600_000,
            ..short
        };
        let (near, of_nobody, _) = question(long);
        drop(near);
        assert_eq!(write(&of_nobody, &receiver).unwrap().frames, 0);
    }
}
