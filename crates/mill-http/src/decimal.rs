//! Numbers as text, without allocation.

use alloc::vec::Vec;

/// Appends `number` in decimal.
pub fn emit_decimal(number: u64, out: &mut Vec<u8>) {
    let mut digits = [0_u8; DECIMAL_DIGITS_MAX];
    let mut rest = number;
    let mut first = DECIMAL_DIGITS_MAX;
    for (index, digit) in digits.iter_mut().enumerate().rev() {
        *digit = b'0' + low_digit(rest % 10);
        rest /= 10;
        first = index;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(first..).unwrap_or(&[]));
}

/// Appends `number` in lower-case hexadecimal, without leading zeros.
pub fn emit_hex(number: u64, out: &mut Vec<u8>) {
    let nibbles = (u64::BITS - number.leading_zeros()).div_ceil(4).max(1);
    for nibble in (0..nibbles).rev() {
        let digit = low_digit((number >> (nibble * 4)) & 15);
        out.push(if digit < 10 {
            b'0' + digit
        } else {
            b'a' + digit - 10
        });
    }
}

/// Appends the last two decimal digits of `number`, with a leading zero.
pub fn emit_two_digits(number: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'0' + number / 10 % 10, b'0' + number % 10]);
}

/// How many digits `emit_decimal` writes.
pub const fn decimal_len(number: u64) -> u64 {
    match number.checked_ilog10() {
        Some(log) => log as u64 + 1,
        None => 1,
    }
}

/// Digits of 2^64 - 1.
const DECIMAL_DIGITS_MAX: usize = 20;

#[expect(
    clippy::cast_possible_truncation,
    reason = "the callers' digits are below 16"
)]
const fn low_digit(digit: u64) -> u8 {
    digit as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn numbers_are_written_as_the_standard_library_writes_them() {
        for shift in 0..64 {
            for number in [
                1_u64 << shift,
                (1 << shift) - 1,
                u64::MAX >> shift,
                9 * (1 << shift >> 3),
            ] {
                let (mut decimal, mut hex) = (Vec::new(), Vec::new());
                emit_decimal(number, &mut decimal);
                emit_hex(number, &mut hex);
                assert_eq!(decimal, format!("{number}").into_bytes());
                assert_eq!(hex, format!("{number:x}").into_bytes());
                assert_eq!(decimal.len() as u64, decimal_len(number));
            }
        }
    }
}
