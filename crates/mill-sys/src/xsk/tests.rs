//! Sockets without an interface; how they behave on one is tested with the links of mill-device.

use super::*;
use crate::memory::Pages;

fn options() -> XskOptions {
    XskOptions {
        frame_bytes: 2048,
        receive_frames: 64,
        transmit_frames: 32,
        sharers: 1,
        copying: Copying::AsDriverCan,
        in_pieces: false,
    }
}

#[test]
fn memory_is_as_large_as_frames_and_their_marks() {
    let check = |options: XskOptions, expected: Option<usize>| {
        assert_eq!(options.memory_bytes().ok(), expected, "{options:?}");
    };
    check(options(), Some(96 * 2048 + 96));
    let with = |frame_bytes, receive_frames, transmit_frames| XskOptions {
        frame_bytes,
        receive_frames,
        transmit_frames,
        ..options()
    };
    check(with(4096, 1, 1), Some(2 * 4096 + 2));
    check(with(1024, 1, 1), None);
    check(with(8192, 1, 1), None);
    check(with(2048, 0, 1), None);
    check(with(2048, 3, 1), None);
    check(with(2048, 1, 6), None);
    check(with(2048, 1 << 31, 1 << 31), None);
    let shared = |sharers| XskOptions {
        sharers,
        ..options()
    };
    check(shared(3), Some(3 * (96 * 2048 + 96)));
    check(shared(0), None);
    check(shared(1 << 30), None);
}

#[test]
fn each_socket_of_a_queue_has_frames_of_its_own() {
    let options = XskOptions {
        sharers: 3,
        ..options()
    };
    assert_eq!((options.receivers(), options.frames()), (192, 288));
    assert_eq!(options.receivers_of(0), 0..64);
    assert_eq!(options.receivers_of(2), 128..192);
    assert_eq!(options.senders_of(0), 192..224);
    assert_eq!(options.senders_of(2), 256..288);
    // Powers of two, with room for all.
    assert_eq!((options.fill_ring(), options.completion_ring()), (512, 128));
}

#[test]
fn a_socket_that_cannot_be_made_names_the_call() {
    let memory = SharedMemory::create("xsk", 96 * 2049, Pages::Small).unwrap();
    let check = |options: &XskOptions, expected: (&str, i32)| {
        // No interface has index zero.
        let failed = create(0, 0, &memory, options).unwrap_err();
        if failed.error.raw_os_error() == Some(libc::EPERM) {
            println!("not tested: an AF_XDP socket takes privileges that are missing");
            return;
        }
        let errno = failed.error.raw_os_error().unwrap();
        assert_eq!((failed.call, errno), expected);
    };
    check(&options(), ("bind(AF_XDP)", libc::ENODEV));
    let more = XskOptions {
        receive_frames: 128,
        ..options()
    };
    check(&more, ("XskOptions", libc::EINVAL));
}
