//! Frames in, the bytes of a file out.

use super::*;
use crate::any::AnyLink;
use crate::device_link::DeviceLink;
use crate::direct::DirectLink;
use crate::impair::{ImpairedLink, Impairment};
use crate::pair::{drain, pair, put, send};
use mill_stack::link::{
    Burst, ExternalBytes, ExternalSent, FrameId, LinkProperties, PartialChecksum, Stray,
};
use mill_sys::passing;
use std::io::{Read, Seek};
use std::sync::mpsc;

fn contents(file: &File) -> Vec<u8> {
    let mut file = file;
    file.rewind().unwrap();
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).unwrap();
    bytes
}

/// The frames of a file, whose two lengths have to be equal.
fn records(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut rest = bytes.strip_prefix(&FILE_HEADER).expect("a file header");
    let mut frames = Vec::new();
    while let Some((header, behind)) = rest.split_first_chunk::<16>() {
        let number = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().unwrap());
        assert!(number(4) < 1_000_000_000, "nanoseconds");
        assert_eq!(number(8), number(12), "truncated");
        let (frame, behind) = behind.split_at(number(8) as usize);
        frames.push(frame.to_vec());
        rest = behind;
    }
    frames
}

fn recorder(file: &File) -> Recorder {
    let file = file.try_clone().unwrap();
    Recorder::to_file(file, Box::new(|error| panic!("{error}")))
}

fn recorded(device: DeviceLink, file: &File) -> AnyLink {
    AnyLink::new(device, Some(recorder(file)))
}

/// A TCP segment over IPv4 without data, with a wrong checksum.
fn segment() -> Vec<u8> {
    let mut frame = vec![0; 12];
    frame.extend_from_slice(&[8, 0, 0x45, 0, 0, 40, 0, 1, 0, 0, 64, 6, 0, 0]);
    frame.extend_from_slice(&[10, 77, 0, 2, 10, 77, 0, 1, 0, 80, 0x30, 0x39]);
    frame.extend_from_slice(&[
        0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 1, 0xf6, 0xab, 0xcd, 0, 0,
    ]);
    frame
}

#[test]
fn both_directions_are_written_in_their_order() {
    let file = passing::memory_file(c"pcap").unwrap();
    let (link, far) = pair();
    let mut link = recorded(DeviceLink::Direct(DirectLink::Tap(link)), &file);
    assert!(send(&mut link, 1, 60));
    put(&far, 0, &[2; 70_000 - 5_000]);
    assert_eq!(drain(&mut link), [vec![2; 65_000]]);
    assert!(send(&mut link, 3, 61));
    // A poll that finds nothing writes the buffered records.
    drain(&mut link);
    let expected = [vec![1; 60], vec![2; 65_000], vec![3; 61]];
    assert_eq!(records(&contents(&file)), expected);
}

#[test]
fn checksums_that_were_left_to_the_device_are_right_in_the_file_and_untouched_on_the_way() {
    let file = passing::memory_file(c"pcap").unwrap();
    let (link, far) = pair();
    let mut link = recorded(DeviceLink::Direct(DirectLink::Tap(link)), &file);
    let partial = segment();
    put(&far, 1, &partial);
    assert_eq!(drain(&mut link), std::slice::from_ref(&partial));
    put(&far, 0, &partial);
    drain(&mut link);
    let room = link.reserve(partial.len()).unwrap();
    room.copy_from_slice(&partial);
    let offload = Offload {
        checksum: Some(PartialChecksum {
            start: 34,
            offset: 16,
        }),
        segmentation: None,
    };
    link.transmit(partial.len(), offload);
    assert!(crate::pair::take(&far).unwrap().ends_with(&partial));
    drain(&mut link);
    let mut whole = partial.clone();
    checksum::complete(&mut whole);
    assert_ne!(whole, partial);
    // A frame whose checksum is unverified is recorded as received.
    let expected = [whole.clone(), partial, whole];
    assert_eq!(records(&contents(&file)), expected);
}

#[test]
fn a_file_goes_on_where_another_process_has_left_it() {
    let file = passing::memory_file(c"pcap").unwrap();
    for byte in 1..4 {
        let (link, _far) = pair();
        let mut link = recorded(DeviceLink::Direct(DirectLink::Tap(link)), &file);
        assert!(send(&mut link, byte, 60));
    }
    assert_eq!(
        records(&contents(&file)),
        [vec![1; 60], vec![2; 60], vec![3; 60]]
    );
}

#[test]
fn an_error_of_the_file_is_reported_once_and_stops_no_traffic() {
    let (sender, told) = mpsc::channel();
    let on_error = move |error: io::Error| sender.send(error.raw_os_error()).unwrap();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let (link, far) = pair();
    let recorder = Recorder::to_file(full, Box::new(on_error));
    let mut link = AnyLink::new(DeviceLink::Direct(DirectLink::Tap(link)), Some(recorder));
    for byte in 0..3 {
        assert!(send(&mut link, byte, 60));
        put(&far, 0, &[byte; 60]);
        assert_eq!(drain(&mut link), [vec![byte; 60]]);
    }
    // ENOSPC
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [Some(28)]);
}

#[test]
fn the_buffer_is_bounded() {
    let file = passing::memory_file(c"pcap").unwrap();
    let (mut link, far) = pair();
    let mut recorder = recorder(&file);
    let capacity = recorder.buffer.capacity();
    for _ in 0..20 {
        assert!(send(&mut link, 7, 65_000));
        recorder.transmits(&mut link, (65_000, 65_000), Offload::default());
        crate::pair::take(&far).unwrap();
    }
    assert_eq!(recorder.buffer.capacity(), capacity);
    drop(recorder);
    assert_eq!(records(&contents(&file)).len(), 20);
}

#[test]
fn the_file_shows_the_second_copies_that_an_impaired_wire_brings() {
    let file = passing::memory_file(c"pcap").unwrap();
    let (link, far) = pair();
    let twice = Impairment {
        duplicate_ppm: 1_000_000,
        ..Impairment::default()
    };
    let link = ImpairedLink::new(link, twice);
    let mut link = recorded(DeviceLink::Direct(DirectLink::Impaired(link)), &file);
    put(&far, 0, &[7; 60]);
    assert_eq!(drain(&mut link).len(), 2);
    assert_eq!(records(&contents(&file)), [[7; 60], [7; 60]]);
}

#[test]
fn a_queue_gets_what_passes_between_the_beginning_and_the_end_of_a_capture() {
    let (link, far) = pair();
    let mut link = AnyLink::new(DeviceLink::Direct(DirectLink::Tap(link)), None);
    let (frames, queue) = sink::queue(FrameFilter::default());
    let pass = |link: &mut AnyLink, byte| {
        assert!(send(link, byte, 60));
        put(&far, 0, &[byte; 61]);
        assert_eq!(drain(link), [[byte; 61]]);
    };
    pass(&mut link, 1);
    assert!(link.begin_capture(frames.clone()));
    assert!(!link.begin_capture(frames.clone()), "there is one already");
    pass(&mut link, 2);
    link.end_capture();
    pass(&mut link, 3);
    let mut bytes = FILE_HEADER.to_vec();
    bytes.extend(queue.blocks.try_iter().flatten());
    assert_eq!(records(&bytes), [vec![2; 60], vec![2; 61]]);
    assert!(link.begin_capture(frames));
}

/// A link with a room for frames and another one for long segments, as an interface has them.
struct TwoRooms {
    rooms: [Vec<u8>; 2],
    reserved: usize,
    sent: Vec<Vec<u8>>,
}

impl Link for TwoRooms {
    fn properties(&self) -> &LinkProperties {
        unreachable!("a recorder does not ask")
    }

    fn receive(&mut self, _: &mut Burst) {}

    fn frame(&mut self, _: FrameId) -> &mut [u8] {
        &mut []
    }

    fn release(&mut self, _: FrameId) {}

    fn reserve(&mut self, len_max: usize) -> Option<&mut [u8]> {
        self.reserved = usize::from(len_max > 1514);
        self.rooms[self.reserved].get_mut(..len_max)
    }

    fn transmit(&mut self, len: usize, _: Offload) {
        self.sent.push(self.rooms[self.reserved][..len].to_vec());
    }

    fn transmit_external(&mut self, _: usize, _: Offload, _: ExternalBytes<'_>) -> ExternalSent {
        ExternalSent::Unable
    }

    fn flush(&mut self) -> bool {
        false
    }

    fn hand_over(&mut self, _: &Received, _: &Stray<'_>) -> bool {
        false
    }
}

/// A segment that the device cuts, though it is no longer than a frame, as a path takes shorter ones.
#[test]
fn a_recorded_frame_stays_in_its_room() {
    let file = passing::memory_file(c"pcap").unwrap();
    let mut link = TwoRooms {
        rooms: [vec![0; 1514], vec![0; 65_536]],
        reserved: 0,
        sent: Vec::new(),
    };
    let mut recorder = recorder(&file);
    link.reserve(65_000).unwrap()[..900].fill(7);
    recorder.transmits(&mut link, (65_000, 900), Offload::default());
    link.transmit(900, Offload::default());
    drop(recorder);
    assert_eq!(link.sent, [[7; 900]]);
    assert_eq!(records(&contents(&file)), [[7; 900]]);
}
