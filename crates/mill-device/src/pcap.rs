//! Records a link's frames for tcpdump and Wireshark.
//!
//! The file format is pcap with nanoseconds (draft-ietf-opsawg-pcap). Checksums that were offloaded are completed in
//! the file; frames that the device segments, or has merged, are recorded as they are: longer than the MTU.

use crate::checksum;
use crate::handover::returned_frames::is_returned;
use mill_stack::link::{Link, Offload, Received, ReceivedChecksum};
use mill_sys::clock;
use std::fmt;
use std::fs::File;
use std::io;

/// Selection of frames.
pub mod filter;

/// Destinations of frames.
pub mod sink;

use filter::FrameFilter;
use sink::{FrameSender, Sink};

/// Records frames. An error of the file ends the recording, not the traffic.
pub struct Recorder {
    sink: Option<Sink>,
    /// Complete records that were not written yet.
    buffer: Vec<u8>,
    /// Called with the first error only.
    on_error: Box<dyn FnMut(io::Error) + Send>,
}

impl Recorder {
    /// Appends to a file, which gets a header if it is empty.
    pub fn to_file(file: File, on_error: Box<dyn FnMut(io::Error) + Send>) -> Self {
        // A worker process that is restarted continues its predecessor's file.
        let is_empty = file.metadata().map_or(0, |metadata| metadata.len()) == 0;
        let mut recorder = Self::new(Sink::File(file), on_error);
        if is_empty {
            recorder.buffer.extend_from_slice(&FILE_HEADER);
        }
        recorder.write();
        recorder
    }

    /// Passes frames to the reader of a queue, until it is closed.
    pub fn to_queue(frames: FrameSender) -> Self {
        Self::new(Sink::Queue(frames), Box::new(|_| {}))
    }

    /// Records the frames that the link has just received.
    #[cold]
    pub(crate) fn received(&mut self, link: &mut impl Link, new: &[Received]) {
        if new.is_empty() {
            // The link is idle: bring the file up to date for its readers.
            self.write();
        }
        let Some(filter) = self.filter() else {
            return;
        };
        // What comes back was recorded by the process to which it came from the device.
        for received in new.iter().filter(|received| !is_returned(received.id)) {
            let is_partial = received.checksum != ReceivedChecksum::Unverified;
            let frame = link.frame(received.id);
            if filter.has(frame) {
                self.record(frame, is_partial);
            }
        }
    }

    /// Records the frame that the link is about to transmit: the first `len` bytes of the room that was reserved last, which was
    /// `reserved` bytes long. Less could be another room, as long segments have one of their own.
    #[cold]
    pub(crate) fn transmits(
        &mut self,
        link: &mut impl Link,
        (reserved, len): (usize, usize),
        offload: Offload,
    ) {
        if let Some(filter) = self.filter()
            && let Some(room) = link.reserve(reserved)
            && let Some(frame) = room.get_mut(..len)
            && filter.has(frame)
        {
            self.record(frame, offload.checksum.is_some());
        }
    }

    fn new(sink: Sink, on_error: Box<dyn FnMut(io::Error) + Send>) -> Self {
        Self {
            sink: Some(sink),
            buffer: Vec::with_capacity(BUFFER_BYTES),
            on_error,
        }
    }

    /// The selection of frames; `None` if none is recorded.
    fn filter(&self) -> Option<FrameFilter> {
        self.sink.as_ref().map(Sink::filter)
    }

    fn record(&mut self, frame: &[u8], is_partial: bool) {
        record(&mut self.buffer, frame, is_partial);
        if self.buffer.len() > BUFFER_BYTES - RECORD_BYTES_MAX {
            self.write();
        }
    }

    /// Writes the buffered records.
    fn write(&mut self) {
        if self.buffer.is_empty() {
            return;
        }
        if let Some(sink) = &mut self.sink
            && let Err(error) = sink.write(&self.buffer)
        {
            self.sink = None;
            (self.on_error)(error);
        }
        self.buffer.clear();
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Recorder")
            .field("is_writing", &self.sink.is_some())
            .finish_non_exhaustive()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.write();
    }
}

/// Appends one record; `is_partial` says that the checksum may have to be completed.
fn record(buffer: &mut Vec<u8>, frame: &[u8], is_partial: bool) {
    let time = clock::realtime();
    let len = u32::try_from(frame.len()).unwrap_or(u32::MAX);
    // The format ends in 2106, with its 32 bits of seconds.
    let seconds = u32::try_from(time.as_secs()).unwrap_or(u32::MAX);
    for number in [seconds, time.subsec_nanos(), len, len] {
        buffer.extend_from_slice(&number.to_le_bytes());
    }
    let from = buffer.len();
    buffer.extend_from_slice(frame);
    if is_partial {
        checksum::complete(buffer.get_mut(from..).unwrap_or_default());
    }
}

/// Magic number of nanosecond timestamps, version 2.4, two unused words, longest frame, Ethernet (link type 1).
pub const FILE_HEADER: [u8; 24] = [
    0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0,
];

/// Bytes of records that are buffered before they are written: some 200 full frames of 1500 bytes.
const BUFFER_BYTES: usize = 256 * 1024 + RECORD_BYTES_MAX;

/// Bytes of the longest record: its header of 16, a frame of 64 KiB with its headers.
const RECORD_BYTES_MAX: usize = 16 + 65536 + 64;

#[cfg(test)]
mod tests;
