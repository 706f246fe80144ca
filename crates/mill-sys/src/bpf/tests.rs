//! Maps, programs and links against the kernel, in a network namespace of its own.

use super::link::{self, Mode};
use super::map::{ArrayMemory, Map};
use super::program::{Program, Trial, Verdict};
use super::*;
use crate::{interface, namespace};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::Ordering;

/// `r0 = verdict; exit`.
fn always(verdict: i32) -> [Instruction; 2] {
    let answer = Instruction {
        code: 0xb7,
        immediate: verdict,
        ..Instruction::default()
    };
    let exit = Instruction {
        code: 0x95,
        ..Instruction::default()
    };
    [answer, exit]
}

/// Whether privileges and kernel features for these tests are present.
fn is_possible() -> bool {
    match Program::load("possible", &always(2)) {
        Ok(_) => true,
        Err(error) if error.error.raw_os_error() == Some(libc::EINVAL) => panic!("{error}"),
        Err(error) => {
            println!("not tested: {error}");
            false
        }
    }
}

#[test]
fn a_program_decides_the_fate_of_a_frame() {
    if !is_possible() {
        return;
    }
    let check = |number: i32, expected: Verdict| {
        let program = Program::load("verdict", &always(number)).unwrap();
        let outcome = program.try_out(Trial {
            frame: &[0; 14],
            arrival: None,
            repeat: 1,
        });
        assert_eq!(outcome.unwrap().verdict, expected, "{number}");
    };
    check(0, Verdict::Aborted);
    check(1, Verdict::Drop);
    check(2, Verdict::Pass);
    check(3, Verdict::Transmit);
    // Redirected to nowhere, which only a test run allows.
    check(4, Verdict::Redirect);
    check(5, Verdict::Aborted);
    let program = Program::load("short", &always(2)).unwrap();
    let refused = program.try_out(Trial {
        frame: &[0; 13],
        arrival: None,
        repeat: 1,
    });
    assert_eq!(
        refused.unwrap_err().error.raw_os_error(),
        Some(libc::EINVAL)
    );
}

#[test]
fn a_program_that_is_refused_comes_with_the_reason() {
    if !is_possible() {
        return;
    }
    // r0 is not set.
    let [_, exit] = always(0);
    let refused = Program::load("no_answer", &[exit]).unwrap_err();
    assert_eq!(refused.error.raw_os_error(), Some(libc::EACCES));
    assert!(refused.log.contains("R0 !read_ok"), "{}", refused.log);
    let text = refused.to_string();
    assert!(
        text.starts_with("bpf(BPF_PROG_LOAD): Permission denied"),
        "{text}"
    );
    assert!(text.contains("R0 !read_ok"), "{text}");
}

#[test]
fn a_program_reads_and_counts_in_the_memory_of_a_process() {
    if !is_possible() {
        return;
    }
    let array = Map::array("counter", 16).unwrap();
    let memory = ArrayMemory::open(array.as_fd(), 16).unwrap();
    let instruction = |code, registers, offset, immediate| Instruction {
        code,
        registers,
        offset,
        immediate,
    };
    let program = [
        // r1 = address of the array's element (BPF_PSEUDO_MAP_VALUE is 2).
        instruction(
            0x18,
            Instruction::registers(1, 2),
            0,
            array.as_fd().as_raw_fd(),
        ),
        instruction(0, 0, 0, 0),
        // r2 = 1; lock *(u64 *)(r1 + 8) += r2; r0 = *(u32 *)(r1 + 0); exit.
        instruction(0xb7, 2, 0, 1),
        instruction(0xdb, Instruction::registers(1, 2), 8, 0),
        instruction(0x61, Instruction::registers(0, 1), 0, 0),
        instruction(0x95, 0, 0, 0),
    ];
    let program = Program::load("counting", &program).unwrap();
    for (verdict, expected) in [(1, Verdict::Drop), (2, Verdict::Pass)] {
        let answer = memory.atomic_u32(0).unwrap();
        answer.store(verdict, Ordering::Release);
        let outcome = program.try_out(Trial {
            frame: &[0; 14],
            arrival: None,
            repeat: 5,
        });
        assert_eq!(outcome.unwrap().verdict, expected);
    }
    assert_eq!(memory.atomic_u64(8).unwrap().load(Ordering::Acquire), 10);
    assert!(memory.atomic_u64(12).is_none());
    assert!(memory.atomic_u64(16).is_none());
    assert!(memory.atomic_u32(2).is_none());
}

#[test]
fn an_interface_has_one_program_until_its_link_is_closed() {
    if !is_possible() {
        return;
    }
    std::thread::spawn(|| {
        namespace::leave_network().unwrap();
        let index = interface::index("lo").unwrap();
        let program = Program::load("passing", &always(2)).unwrap();
        let refused = link::attach(&program, index, Mode::Native).unwrap_err();
        assert_eq!(refused.error.raw_os_error(), Some(libc::EOPNOTSUPP));
        let first = link::attach(&program, index, Mode::Generic).unwrap();
        let second = link::attach(&program, index, Mode::Generic).unwrap_err();
        assert_eq!(second.error.raw_os_error(), Some(libc::EBUSY));
        drop(first);
        link::attach(&program, index, Mode::Generic).unwrap();
        let nowhere = link::attach(&program, 4_000_000, Mode::Generic).unwrap_err();
        assert_eq!(nowhere.error.raw_os_error(), Some(libc::EINVAL));
    })
    .join()
    .unwrap();
}

#[test]
fn sockets_are_entered_into_a_table_and_removed() {
    if !is_possible() {
        return;
    }
    let table = Map::sockets("sockets", 2).unwrap();
    // SAFETY: socket(2) takes no pointer.
    let number = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    let code =
        |result: Result<(), BpfError>| result.map_err(|refused| refused.error.raw_os_error());
    table.remove(1).unwrap();
    table.set_socket(1, socket.as_fd()).unwrap();
    assert_eq!(
        code(table.set_socket(2, socket.as_fd())),
        Err(Some(libc::E2BIG))
    );
    assert_eq!(
        code(table.set_socket(0, table.as_fd())),
        Err(Some(libc::ENOTSOCK))
    );
    table.remove(1).unwrap();
    assert_eq!(code(table.remove(2)), Err(Some(libc::EINVAL)));
}

#[test]
fn names_are_limited_to_what_the_kernel_allows() {
    let check = |text: &str, expected: &[u8]| {
        let name = name_of(text);
        assert_eq!(name.split(|byte| *byte == 0).next().unwrap(), expected);
        assert_eq!(name[15], 0);
    };
    check("steering", b"steering");
    check("a-b c", b"abc");
    check("fifteen_bytes_1", b"fifteen_bytes_1");
    check("sixteen_bytes_12", b"sixteen_bytes_1");
    check("", b"");
}
