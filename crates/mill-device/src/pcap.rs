//! Writes down what passes, for tcpdump and Wireshark: a link around a link.
//!
//! The file is pcap's with nanoseconds (draft-ietf-opsawg-pcap). Checksums that were left to a device are completed in it;
//! frames that a device cuts, or has merged, stand in it as they are: longer than the MTU.

use crate::checksum;
use crate::forwarding::is_handed;
use mill_stack::link::{
    Burst, FrameId, Link, LinkChange, LinkProperties, Offload, Received, ReceivedChecksum, Service,
};
use mill_sys::clock;
use std::fs::File;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd};

/// Which frames are meant.
pub mod filter;

/// Where frames are written to.
pub mod sink;

use filter::FrameFilter;
use sink::{FrameSender, Sink};

/// A link whose frames are written down. An error of the file ends the writing, not the traffic.
pub struct CapturedLink<L> {
    link: L,
    recorder: Recorder,
}

/// What passes a link, on its way to where it is written.
struct Recorder {
    sink: Option<Sink>,
    /// Whole records, not yet written.
    buffer: Vec<u8>,
    /// Told of the first error, and of nothing after it.
    on_error: Box<dyn FnMut(io::Error) + Send>,
}

impl<L> CapturedLink<L> {
    /// Goes on with a file, or begins one with its header if it is empty.
    pub fn new(link: L, file: File, on_error: Box<dyn FnMut(io::Error) + Send>) -> Self {
        // A worker process that is restarted finds what the one before has written.
        let is_empty = file.metadata().map_or(0, |metadata| metadata.len()) == 0;
        let mut recorder = Recorder::new(Sink::File(file), on_error);
        if is_empty {
            recorder.buffer.extend_from_slice(&FILE_HEADER);
        }
        recorder.write();
        Self { link, recorder }
    }

    /// Gives frames to whoever waits at the other end of a queue, until he leaves it.
    pub fn for_a_while(link: L, frames: FrameSender) -> Self {
        let recorder = Recorder::new(Sink::Queue(frames), Box::new(|_| {}));
        Self { link, recorder }
    }

    /// The link itself; what was gathered is written.
    pub fn into_inner(self) -> L {
        self.link
    }

    pub fn inner(&self) -> &L {
        &self.link
    }

    pub(crate) fn inner_mut(&mut self) -> &mut L {
        &mut self.link
    }
}

impl Recorder {
    fn new(sink: Sink, on_error: Box<dyn FnMut(io::Error) + Send>) -> Self {
        Self {
            sink: Some(sink),
            buffer: Vec::with_capacity(BUFFER_BYTES),
            on_error,
        }
    }

    /// Which frames are to be written; `None` if none is.
    fn filter(&self) -> Option<FrameFilter> {
        self.sink.as_ref().map(Sink::filter)
    }

    fn record(&mut self, frame: &[u8], is_partial: bool) {
        record(&mut self.buffer, frame, is_partial);
        if self.buffer.len() > BUFFER_BYTES - RECORD_BYTES_MAX {
            self.write();
        }
    }

    /// Writes what is gathered.
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

impl Drop for Recorder {
    fn drop(&mut self) {
        self.write();
    }
}

/// Appends one record; `is_partial` says that the checksum may have to be completed.
fn record(buffer: &mut Vec<u8>, frame: &[u8], is_partial: bool) {
    let time = clock::realtime();
    let len = u32::try_from(frame.len()).unwrap_or(u32::MAX);
    // The format ends in 2106, with 32 bits of seconds.
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

impl<L: Link> Link for CapturedLink<L> {
    fn properties(&self) -> &LinkProperties {
        self.link.properties()
    }

    fn receive(&mut self, burst: &mut Burst) {
        let before = burst.as_slice().len();
        self.link.receive(burst);
        let new = burst.as_slice().get(before..).unwrap_or_default();
        if new.is_empty() {
            // Nothing more to do now: whoever looks at the file finds it up to date.
            self.recorder.write();
        }
        let Some(filter) = self.recorder.filter() else {
            return;
        };
        // Who received it first has written it down.
        for received in new.iter().filter(|frame| !is_handed(frame.id)) {
            let is_partial = received.checksum != ReceivedChecksum::Unverified;
            let frame = self.link.frame(received.id);
            if filter.has(frame) {
                self.recorder.record(frame, is_partial);
            }
        }
    }

    fn frame(&mut self, id: FrameId) -> &mut [u8] {
        self.link.frame(id)
    }

    fn release(&mut self, id: FrameId) {
        self.link.release(id);
    }

    fn reserve(&mut self, len_max: usize) -> Option<&mut [u8]> {
        self.link.reserve(len_max)
    }

    fn transmit(&mut self, len: usize, offload: Offload) {
        if let Some(filter) = self.recorder.filter()
            && let Some(frame) = self.link.reserve(len)
            && filter.has(frame)
        {
            self.recorder.record(frame, offload.checksum.is_some());
        }
        self.link.transmit(len, offload);
    }

    fn flush(&mut self) {
        self.link.flush();
    }

    fn serve(&mut self, service: Service, on: bool) {
        self.link.serve(service, on);
    }

    fn open_ports(&mut self, ports: RangeInclusive<u16>) {
        self.link.open_ports(ports);
    }

    fn brings(&self, remote: SocketAddr, local_port: u16) -> bool {
        self.link.brings(remote, local_port)
    }

    fn resolve(&mut self, address: IpAddr) {
        self.link.resolve(address);
    }

    fn forget(&mut self, service: Service) {
        self.link.forget(service);
    }

    fn hand_over(&mut self, frame: &Received) -> bool {
        self.link.hand_over(frame)
    }

    fn is_behind(&self) -> bool {
        self.link.is_behind()
    }

    fn frames_per_turn(&self) -> usize {
        self.link.frames_per_turn()
    }

    fn take_changes(&mut self, into: &mut Vec<LinkChange>) {
        self.link.take_changes(into);
    }
}

impl<L: AsFd> AsFd for CapturedLink<L> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.link.as_fd()
    }
}

impl<L: std::fmt::Debug> std::fmt::Debug for CapturedLink<L> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("CapturedLink")
            .field("link", &self.link)
            .field("is_writing", &self.recorder.sink.is_some())
            .finish_non_exhaustive()
    }
}

/// Magic number of times in nanoseconds, version 2.4, two words of nothing, longest frame, Ethernet (link type 1).
pub const FILE_HEADER: [u8; 24] = [
    0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0,
];

/// Bytes of records that are gathered before they are written: some 200 full frames of 1500 bytes.
const BUFFER_BYTES: usize = 256 * 1024 + RECORD_BYTES_MAX;

/// Bytes of the longest record: its header of 16, a frame of 64 KiB with its own headers.
const RECORD_BYTES_MAX: usize = 16 + 65536 + 64;

#[cfg(test)]
mod tests;
