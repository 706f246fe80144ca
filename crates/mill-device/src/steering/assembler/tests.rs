//! Encodings as RFC 9669 writes them down, and labels.

use super::Condition::{Above, Below, Common, Equal, NotEqual};
use super::Operation::{Add, And, Multiply, Or, ShiftLeft, ShiftRight, Xor};
use super::Register::{R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10};
use super::Width::{Byte, Double, Half, Word};
use super::*;
use std::os::fd::AsFd;

/// One instruction's bytes: code, registers, offset, immediate, in the order of a little-endian machine.
fn check(write: impl FnOnce(&mut Assembler), expected: &[[u8; 8]]) {
    let mut assembler = Assembler::default();
    write(&mut assembler);
    let instructions = assembler.finish().unwrap();
    let bytes: Vec<[u8; 8]> = instructions.iter().map(bytes_of).collect();
    assert_eq!(bytes, expected);
}

fn bytes_of(instruction: &Instruction) -> [u8; 8] {
    let Instruction {
        code,
        registers,
        offset,
        immediate,
    } = *instruction;
    let registers = if cfg!(target_endian = "little") {
        registers
    } else {
        registers.rotate_left(4)
    };
    let [low, high] = offset.to_le_bytes();
    let [first, second, third, fourth] = immediate.to_le_bytes();
    [code, registers, low, high, first, second, third, fourth]
}

#[test]
fn arithmetic_is_section_4_1() {
    let immediate = |operation, code| {
        check(
            |to| to.calculate(operation, R3, -2),
            &[[code, 0x03, 0, 0, 0xfe, 0xff, 0xff, 0xff]],
        );
        check(
            |to| to.calculate(operation, R9, R1),
            &[[code | 8, 0x19, 0, 0, 0, 0, 0, 0]],
        );
    };
    immediate(Add, 0x07);
    immediate(Multiply, 0x27);
    immediate(Or, 0x47);
    immediate(And, 0x57);
    immediate(ShiftLeft, 0x67);
    immediate(ShiftRight, 0x77);
    immediate(Xor, 0xa7);
    immediate(Operation::Set, 0xb7);
    check(
        |to| to.set(R0, i32::MIN),
        &[[0xb7, 0x00, 0, 0, 0, 0, 0, 0x80]],
    );
    check(
        |to| to.set(R4, i32::MAX),
        &[[0xb7, 0x04, 0, 0, 0xff, 0xff, 0xff, 0x7f]],
    );
    check(|to| to.set_word(R2, 7), &[[0xb4, 0x02, 0, 0, 7, 0, 0, 0]]);
    check(|to| to.set_word(R2, R8), &[[0xbc, 0x82, 0, 0, 0, 0, 0, 0]]);
    check(
        |to| to.turn_to_host_order(R5),
        &[[0xdc, 0x05, 0, 0, 16, 0, 0, 0]],
    );
}

#[test]
fn immediates_of_64_bits_take_two_instructions() {
    check(
        |to| to.set_wide(R7, 0x8899_aabb_ccdd_eeff),
        &[
            [0x18, 0x07, 0, 0, 0xff, 0xee, 0xdd, 0xcc],
            [0, 0, 0, 0, 0xbb, 0xaa, 0x99, 0x88],
        ],
    );
    let file = std::fs::File::open("/dev/null").unwrap();
    let number = u8::try_from(file.as_raw_fd()).unwrap();
    check(
        |to| to.set_map(R1, file.as_fd()),
        &[[0x18, 0x11, 0, 0, number, 0, 0, 0], [0; 8]],
    );
    check(
        |to| to.set_map_value(R2, file.as_fd(), 0x1234),
        &[
            [0x18, 0x22, 0, 0, number, 0, 0, 0],
            [0, 0, 0, 0, 0x34, 0x12, 0, 0],
        ],
    );
}

#[test]
fn memory_is_section_5() {
    for (width, load, store) in [
        (Word, 0x61, 0x63),
        (Half, 0x69, 0x6b),
        (Byte, 0x71, 0x73),
        (Double, 0x79, 0x7b),
    ] {
        check(
            |to| to.load(width, R1, R7, 12),
            &[[load, 0x71, 12, 0, 0, 0, 0, 0]],
        );
        check(
            |to| to.store(width, R10, -8, R6),
            &[[store, 0x6a, 0xf8, 0xff, 0, 0, 0, 0]],
        );
    }
    check(
        |to| to.add_to_memory(R1, 8, R2),
        &[[0xdb, 0x21, 8, 0, 0, 0, 0, 0]],
    );
}

#[test]
fn jumps_are_section_4_3() {
    for (condition, code) in [
        (Equal, 0x15),
        (Above, 0x25),
        (Common, 0x45),
        (NotEqual, 0x55),
        (Below, 0xa5),
    ] {
        check(
            |to| {
                to.jump_if(R8, condition, 6, "here");
                to.label("here");
            },
            &[[code, 0x08, 0, 0, 6, 0, 0, 0]],
        );
        check(
            |to| {
                to.jump_if(R2, condition, R8, "here");
                to.label("here");
            },
            &[[code | 8, 0x82, 0, 0, 0, 0, 0, 0]],
        );
    }
    check(
        |to| to.call(Helper::RedirectMap),
        &[[0x85, 0, 0, 0, 51, 0, 0, 0]],
    );
    check(
        |to| to.call(Helper::LookupTcp),
        &[[0x85, 0, 0, 0, 99, 0, 0, 0]],
    );
    check(
        |to| to.call(Helper::SocketRelease),
        &[[0x85, 0, 0, 0, 86, 0, 0, 0]],
    );
    check(Assembler::exit, &[[0x95, 0, 0, 0, 0, 0, 0, 0]]);
}

#[test]
fn labels_lead_forwards_and_backwards() {
    check(
        |to| {
            to.jump("end");
            to.label("again");
            to.set(R0, 0);
            to.jump("again");
            to.label("end");
            to.exit();
        },
        &[
            [0x05, 0, 2, 0, 0, 0, 0, 0],
            [0xb7, 0, 0, 0, 0, 0, 0, 0],
            [0x05, 0, 0xfe, 0xff, 0, 0, 0, 0],
            [0x95, 0, 0, 0, 0, 0, 0, 0],
        ],
    );
}

#[test]
fn both_halves_of_an_immediate_count_as_instructions() {
    check(
        |to| {
            to.jump("end");
            to.set_wide(R0, 1);
            to.label("end");
            to.exit();
        },
        &[
            [0x05, 0, 2, 0, 0, 0, 0, 0],
            [0x18, 0, 0, 0, 1, 0, 0, 0],
            [0; 8],
            [0x95, 0, 0, 0, 0, 0, 0, 0],
        ],
    );
}

#[test]
fn labels_are_there_once() {
    let check = |write: &dyn Fn(&mut Assembler), expected: AssembleError, text: &str| {
        let mut assembler = Assembler::default();
        write(&mut assembler);
        assert_eq!(assembler.finish(), Err(expected.clone()));
        assert_eq!(expected.to_string(), text);
    };
    check(
        &|to| to.jump("nowhere"),
        AssembleError::Missing(String::from("nowhere")),
        "there is no label \"nowhere\"",
    );
    check(
        &|to| {
            to.label("two");
            to.label("two");
        },
        AssembleError::Double(String::from("two")),
        "there are two labels \"two\"",
    );
}

#[test]
fn a_jump_has_sixteen_bits() {
    let distance = |instructions: usize, is_forward: bool| {
        let mut assembler = Assembler::default();
        if is_forward {
            assembler.jump("there");
        } else {
            assembler.label("there");
        }
        for _ in 0..instructions {
            assembler.set(R0, 0);
        }
        if is_forward {
            assembler.label("there");
        } else {
            assembler.jump("there");
        }
        assembler.finish().map(|program| {
            let jump = program.iter().find(|one| one.code == 0x05);
            jump.unwrap().offset
        })
    };
    let far = Err(AssembleError::Far(String::from("there")));
    assert_eq!(distance(32767, true), Ok(32767));
    assert_eq!(distance(32768, true), far);
    assert_eq!(distance(32767, false), Ok(-32768));
    assert_eq!(distance(32768, false), far);
    assert_eq!(
        AssembleError::Far(String::from("there")).to_string(),
        "\"there\" is too far away for a jump"
    );
}
