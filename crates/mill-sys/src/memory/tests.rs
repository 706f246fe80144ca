//! Memory with two mappings, of one process or several.

use super::*;
use std::sync::atomic::Ordering;

fn again(memory: &SharedMemory) -> SharedMemory {
    SharedMemory::open(memory.as_fd().try_clone_to_owned().unwrap()).unwrap()
}

#[test]
fn what_one_mapping_writes_the_other_reads() {
    let one = SharedMemory::create("test", 5000, Pages::Small).unwrap();
    let other = again(&one);
    assert_eq!((one.len(), other.len()), (8192, 8192));
    one.write(4090, b"across pages").unwrap();
    let mut bytes = [0; 12];
    other.read(4090, &mut bytes).unwrap();
    assert_eq!(&bytes, b"across pages");
    let number: u32 = 0x0102_0304;
    other
        .atomic_u32(8)
        .unwrap()
        .store(number, Ordering::Release);
    assert_eq!(one.atomic_u32(8).unwrap().load(Ordering::Acquire), number);
    let half = one.atomic_u16(8).unwrap().load(Ordering::Acquire);
    assert_eq!(half.to_ne_bytes(), number.to_ne_bytes()[..2]);
    let four = one.four_atomic_u32(4).unwrap();
    assert_eq!(
        four.each_ref().map(|word| word.load(Ordering::Acquire)),
        [0, number, 0, 0]
    );
}

#[test]
fn nothing_outside_can_be_reached() {
    let memory = SharedMemory::create("test", 1, Pages::Small).unwrap();
    let check = |offset: usize, u16_is_there, u32_is_there| {
        let there = (
            memory.atomic_u16(offset).is_some(),
            memory.atomic_u32(offset).is_some(),
        );
        assert_eq!(there, (u16_is_there, u32_is_there), "{offset}");
    };
    check(0, true, true);
    check(1, false, false);
    check(2, true, false);
    check(4092, true, true);
    check(4094, true, false);
    check(4096, false, false);
    check(usize::MAX - 3, false, false);
    let four = |offset| memory.four_atomic_u32(offset).is_some();
    assert_eq!([0, 2, 4080, 4084].map(four), [true, false, true, false]);
    assert_eq!(memory.read(4095, &mut [0]), Some(()));
    assert_eq!(memory.read(4095, &mut [0; 2]), None);
    assert_eq!(memory.write(4096, &[]), Some(()));
    assert_eq!(memory.write(4096, &[1]), None);
    assert_eq!(memory.write(usize::MAX, &[1, 2]), None);
}

#[test]
fn its_length_is_sealed() {
    let memory = SharedMemory::create("test", 8192, Pages::Small).unwrap();
    assert!(memory.is_sealed() && again(&memory).is_sealed());
    let file = std::fs::File::from(memory.as_fd().try_clone_to_owned().unwrap());
    for len in [0, 4096, 16384] {
        let refused = file.set_len(len).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EPERM), "{len}");
    }
}

#[test]
fn memory_without_seals_is_reported() {
    // memory_file() does not allow sealing.
    let file = crate::passing::memory_file(c"test").unwrap();
    file.set_len(4096).unwrap();
    assert!(!SharedMemory::open(file.into()).unwrap().is_sealed());
    let empty = crate::passing::memory_file(c"test").unwrap();
    let refused = SharedMemory::open(empty.into()).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EINVAL));
}

#[test]
fn huge_pages_are_used_or_refused() {
    match SharedMemory::create("test", 1, Pages::Huge) {
        Ok(memory) => {
            assert_eq!(memory.len(), Pages::Huge.bytes());
            assert!(memory.is_huge() && again(&memory).is_huge());
            memory.write(memory.len() - 1, &[1]).unwrap();
        }
        // No huge pages are reserved.
        Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ENOMEM)),
    }
    let small = SharedMemory::create("test", 1, Pages::Small).unwrap();
    assert!(!small.is_huge() && !again(&small).is_huge());
}
