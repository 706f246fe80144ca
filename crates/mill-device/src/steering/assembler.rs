//! An assembler for the kernel's BPF virtual machine, with the instructions that steering needs.
//!
//! The encodings are those of RFC 9669 (BPF's instruction set): section 4 is arithmetic and jumps, section 5 loads and
//! stores. Numbers of 64 bits are meant wherever no width is named.

use mill_sys::bpf::Instruction;
use std::fmt;
use std::os::fd::{AsRawFd, BorrowedFd};

/// A program that is being written, from its first instruction to its last.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    instructions: Vec<Instruction>,
    /// Labels, each with the index of the instruction that follows it.
    labels: Vec<(String, usize)>,
    /// Jumps whose distance is not known yet: the index of the instruction, and the label.
    jumps: Vec<(usize, String)>,
    /// What the names of labels begin with.
    scope: String,
}

/// R0 holds results, R1 to R5 arguments, which calls clobber; R6 to R9 survive calls; R10 is the upper end of the
/// stack, which has 512 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Register {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10,
}

/// The second operand of an operation. An immediate is sign-extended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    Register(Register),
    Immediate(i32),
}

/// The width of a memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Width {
    Word = 0x00,
    Half = 0x08,
    Byte = 0x10,
    Double = 0x18,
}

/// An arithmetic operation, which changes its first operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Operation {
    Add = 0x00,
    Multiply = 0x20,
    Or = 0x40,
    And = 0x50,
    ShiftLeft = 0x60,
    ShiftRight = 0x70,
    Xor = 0xa0,
    Set = 0xb0,
}

/// Conditions of jumps; comparisons are unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Condition {
    Equal = 0x10,
    Above = 0x20,
    /// The operands have a bit in common.
    Common = 0x40,
    NotEqual = 0x50,
    Below = 0xa0,
}

/// Helper functions of the kernel (enum bpf_func_id).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(super) enum Helper {
    RedirectMap = 51,
    SocketRelease = 86,
    LookupTcp = 99,
}

/// Why a program cannot be assembled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AssembleError {
    Missing(String),
    Double(String),
    /// A jump over more than 32767 instructions.
    Far(String),
}

// Classes (RFC 9669, section 3.1), modes (section 5), and where an operand comes from (section 4).
const LOAD_IMMEDIATE: u8 = 0x18;
const LOAD: u8 = 0x61;
const STORE: u8 = 0x63;
const ARITHMETIC_32: u8 = 0x04;
const ARITHMETIC_64: u8 = 0x07;
const JUMP: u8 = 0x05;
const OF_REGISTER: u8 = 0x08;
/// Atomic, eight bytes (section 5.3).
const ATOMIC_DOUBLE: u8 = 0xdb;
/// Converts between network and host byte order, which is the same operation (section 4.2).
const NETWORK_ORDER: u8 = 0xdc;

impl Assembler {
    /// Labels that are defined and jumped to from here on are those of this scope.
    pub(super) fn enter(&mut self, scope: impl Into<String>) {
        self.scope = scope.into();
    }

    /// Defines a label at the next instruction.
    pub(super) fn label(&mut self, name: impl Into<String>) {
        let name = self.scope.clone() + &name.into();
        self.labels.push((name, self.instructions.len()));
    }

    pub(super) fn set(&mut self, target: Register, operand: impl Into<Operand>) {
        self.calculate(Operation::Set, target, operand);
    }

    /// Sets the lower 32 bits; the upper ones become zero.
    pub(super) fn set_word(&mut self, target: Register, operand: impl Into<Operand>) {
        self.operate(ARITHMETIC_32 | Operation::Set as u8, target, operand.into());
    }

    /// Sets all 64 bits, which takes two instruction slots.
    pub(super) fn set_wide(&mut self, target: Register, value: u64) {
        let [low, high] = [value, value >> 32].map(|half| {
            i32::from_ne_bytes(u32::to_ne_bytes(
                u32::try_from(half & u64::from(u32::MAX)).expect("masked"),
            ))
        });
        self.push_wide(target, 0, low, high);
    }

    pub(super) fn calculate(
        &mut self,
        operation: Operation,
        target: Register,
        operand: impl Into<Operand>,
    ) {
        self.operate(ARITHMETIC_64 | operation as u8, target, operand.into());
    }

    /// Converts a 16-bit number from network to host byte order.
    pub(super) fn turn_to_host_order(&mut self, target: Register) {
        self.push(
            NETWORK_ORDER,
            Instruction::registers(target as u8, 0),
            0,
            16,
        );
    }

    /// Reads memory; the upper bits of the register become zero.
    pub(super) fn load(&mut self, width: Width, target: Register, base: Register, offset: i16) {
        let registers = Instruction::registers(target as u8, base as u8);
        self.push(LOAD | width as u8, registers, offset, 0);
    }

    pub(super) fn store(&mut self, width: Width, base: Register, offset: i16, from: Register) {
        let registers = Instruction::registers(base as u8, from as u8);
        self.push(STORE | width as u8, registers, offset, 0);
    }

    /// Atomically adds to eight bytes of memory.
    pub(super) fn add_to_memory(&mut self, base: Register, offset: i16, from: Register) {
        let registers = Instruction::registers(base as u8, from as u8);
        self.push(ATOMIC_DOUBLE, registers, offset, 0);
    }

    /// Sets a register to a map (section 5.4), as an argument of a helper.
    pub(super) fn set_map(&mut self, target: Register, map: BorrowedFd<'_>) {
        self.push_wide(target, MAP_BY_DESCRIPTOR, map.as_raw_fd(), 0);
    }

    /// Sets a register to the address `offset` bytes inside a map's only element.
    pub(super) fn set_map_value(&mut self, target: Register, map: BorrowedFd<'_>, offset: i32) {
        self.push_wide(target, VALUE_BY_DESCRIPTOR, map.as_raw_fd(), offset);
    }

    pub(super) fn jump(&mut self, label: impl Into<String>) {
        self.note_jump(label);
        self.push(JUMP, 0, 0, 0);
    }

    pub(super) fn jump_if(
        &mut self,
        left: Register,
        condition: Condition,
        right: impl Into<Operand>,
        label: impl Into<String>,
    ) {
        self.note_jump(label);
        self.operate(JUMP | condition as u8, left, right.into());
    }

    fn note_jump(&mut self, label: impl Into<String>) {
        let label = self.scope.clone() + &label.into();
        self.jumps.push((self.instructions.len(), label));
    }

    pub(super) fn call(&mut self, helper: Helper) {
        self.push(CALL, 0, 0, helper as i32);
    }

    pub(super) fn exit(&mut self) {
        self.push(EXIT, 0, 0, 0);
    }

    /// The program with all its jumps resolved.
    pub(super) fn finish(mut self) -> Result<Vec<Instruction>, AssembleError> {
        for (index, (name, _)) in self.labels.iter().enumerate() {
            if self
                .labels
                .iter()
                .skip(index + 1)
                .any(|(other, _)| other == name)
            {
                return Err(AssembleError::Double(name.clone()));
            }
        }
        for (from, label) in self.jumps {
            let target = self.labels.iter().find(|(name, _)| *name == label);
            let Some((_, to)) = target else {
                return Err(AssembleError::Missing(label));
            };
            // Distances count from the instruction after the jump (section 4.3).
            let Some(offset) = distance(from + 1, *to) else {
                return Err(AssembleError::Far(label));
            };
            if let Some(jump) = self.instructions.get_mut(from) {
                jump.offset = offset;
            }
        }
        Ok(self.instructions)
    }

    fn operate(&mut self, code: u8, target: Register, operand: Operand) {
        match operand {
            Operand::Immediate(value) => {
                self.push(code, Instruction::registers(target as u8, 0), 0, value);
            }
            Operand::Register(source) => {
                let registers = Instruction::registers(target as u8, source as u8);
                self.push(code | OF_REGISTER, registers, 0, 0);
            }
        }
    }

    fn push_wide(&mut self, target: Register, kind: u8, low: i32, high: i32) {
        let registers = Instruction::registers(target as u8, kind);
        self.push(LOAD_IMMEDIATE, registers, 0, low);
        self.push(0, 0, 0, high);
    }

    fn push(&mut self, code: u8, registers: u8, offset: i16, immediate: i32) {
        self.instructions.push(Instruction {
            code,
            registers,
            offset,
            immediate,
        });
    }
}

/// The distance between two instructions, if it fits into a jump.
fn distance(from: usize, to: usize) -> Option<i16> {
    if to >= from {
        i16::try_from(to - from).ok()
    } else {
        // Two's complement has one more negative number.
        i16::try_from(from - to - 1).ok().map(|less| -1 - less)
    }
}

const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;

// Kinds of 64-bit immediates (section 5.4): a map by its descriptor, and the memory of an array's element.
const MAP_BY_DESCRIPTOR: u8 = 1;
const VALUE_BY_DESCRIPTOR: u8 = 2;

impl From<i32> for Operand {
    fn from(value: i32) -> Self {
        Self::Immediate(value)
    }
}

impl From<Register> for Operand {
    fn from(register: Register) -> Self {
        Self::Register(register)
    }
}

impl fmt::Display for AssembleError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(label) => write!(formatter, "there is no label \"{label}\""),
            Self::Double(label) => write!(formatter, "there are two labels \"{label}\""),
            Self::Far(label) => write!(formatter, "\"{label}\" is too far away for a jump"),
        }
    }
}

#[cfg(test)]
mod tests;
