//! Writes down what passes, for tcpdump and Wireshark: a link around a link.
//!
//! The file is pcap's with nanoseconds (draft-ietf-opsawg-pcap). Checksums that were left to a device are completed in it;
//! frames that a device cuts, or has merged, stand in it as they are: longer than the MTU.

use crate::checksum;
use mill_stack::link::{
    Burst, FrameId, Link, LinkChange, LinkProperties, Offload, Received, ReceivedChecksum, Service,
};
use mill_sys::clock;
use std::fs::File;
use std::io::{self, Write};
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd};

/// A link whose frames are written to a file. An error of the file ends the writing, not the traffic.
pub struct CapturedLink<L> {
    link: L,
    file: Option<File>,
    /// Whole records, not yet written.
    buffer: Vec<u8>,
    /// Told of the first error, and of nothing after it.
    on_error: Box<dyn FnMut(io::Error) + Send>,
}

impl<L> CapturedLink<L> {
    /// Goes on with a file, or begins one with its header if it is empty.
    pub fn new(link: L, file: File, on_error: Box<dyn FnMut(io::Error) + Send>) -> Self {
        let mut buffer = Vec::with_capacity(BUFFER_BYTES);
        // A worker process that is restarted finds what the one before has written.
        if file.metadata().map_or(0, |metadata| metadata.len()) == 0 {
            buffer.extend_from_slice(&FILE_HEADER);
        }
        let mut captured = Self {
            link,
            file: Some(file),
            buffer,
            on_error,
        };
        captured.write();
        captured
    }

    pub fn inner(&self) -> &L {
        &self.link
    }

    /// Writes what is gathered.
    fn write(&mut self) {
        if let Some(file) = &mut self.file
            && let Err(error) = file.write_all(&self.buffer)
        {
            self.file = None;
            (self.on_error)(error);
        }
        self.buffer.clear();
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
        if new.is_empty() && !self.buffer.is_empty() {
            // Nothing more to do now: whoever looks at the file finds it up to date.
            self.write();
        }
        if self.file.is_none() {
            return;
        }
        for received in new {
            let is_partial = received.checksum != ReceivedChecksum::Unverified;
            record(&mut self.buffer, self.link.frame(received.id), is_partial);
            if self.buffer.len() > BUFFER_BYTES - RECORD_BYTES_MAX {
                self.write();
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
        if self.file.is_some()
            && let Some(frame) = self.link.reserve(len)
        {
            record(&mut self.buffer, frame, offload.checksum.is_some());
        }
        self.link.transmit(len, offload);
        if self.buffer.len() > BUFFER_BYTES - RECORD_BYTES_MAX {
            self.write();
        }
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

    fn resolve(&mut self, address: IpAddr) {
        self.link.resolve(address);
    }

    fn forget(&mut self, service: Service) {
        self.link.forget(service);
    }

    fn hand_over(&mut self, frame: &Received) -> bool {
        self.link.hand_over(frame)
    }

    fn take_changes(&mut self, into: &mut Vec<LinkChange>) {
        self.link.take_changes(into);
    }
}

impl<L> Drop for CapturedLink<L> {
    fn drop(&mut self) {
        self.write();
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
            .field("is_writing", &self.file.is_some())
            .finish_non_exhaustive()
    }
}

/// Magic number of times in nanoseconds, version 2.4, two words of nothing, longest frame, Ethernet (link type 1).
const FILE_HEADER: [u8; 24] = [
    0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0,
];

/// Bytes of records that are gathered before they are written: some 200 full frames of 1500 bytes.
const BUFFER_BYTES: usize = 256 * 1024 + RECORD_BYTES_MAX;

/// Bytes of the longest record: its header of 16, a frame of 64 KiB with its own headers.
const RECORD_BYTES_MAX: usize = 16 + 65536 + 64;

#[cfg(test)]
mod tests;
