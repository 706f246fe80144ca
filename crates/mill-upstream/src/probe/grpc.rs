//! gRPC's health checking protocol (grpc, doc/health-checking.md): the question, and what the answer says.

use super::examination::Test;
use mill_config::config::health_check::GrpcHealth;

/// The method that is called.
pub const PATH: &[u8] = b"/grpc.health.v1.Health/Check";

/// The content of the call: one message, `HealthCheckRequest`, behind its prefix.
pub fn question(service: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    if !service.is_empty() {
        message.push(SERVICE_TAG);
        emit_varint(service.len(), &mut message);
        message.extend_from_slice(service);
    }
    let len = u32::try_from(message.len()).unwrap_or(u32::MAX);
    let mut content = vec![NOT_COMPRESSED];
    content.extend_from_slice(&len.to_be_bytes());
    content.extend_from_slice(&message);
    content
}

/// Judges the answer of a call by its status, which stands in `grpc-status`, and its content. Returns the test that decided.
pub fn examine(health: &GrpcHealth, status: Option<&[u8]>, content: &[u8]) -> Result<Test, Test> {
    let status = status.and_then(|text| str::from_utf8(text).ok()?.parse::<u8>().ok());
    match status {
        Some(STATUS_OK) => {}
        Some(status) if health.accepted_status == Some(status) => return Ok(Test::GrpcStatus),
        _ => return Err(Test::GrpcStatus),
    }
    if serving_status(content) == Some(SERVING) {
        Ok(Test::GrpcHealth)
    } else {
        Err(Test::GrpcHealth)
    }
}

/// The field `status` of the first message, a `HealthCheckResponse`; `None` if there is none that can be read.
fn serving_status(content: &[u8]) -> Option<u64> {
    let (prefix, rest) = content.split_first_chunk::<5>()?;
    let [NOT_COMPRESSED, len @ ..] = *prefix else {
        return None;
    };
    let len = usize::try_from(u32::from_be_bytes(len)).ok()?;
    let mut message = rest.get(..len)?;
    // What is not there has the value 0: UNKNOWN.
    let mut status = 0;
    while !message.is_empty() {
        let tag = take_varint(&mut message)?;
        match tag & 7 {
            0 => {
                let value = take_varint(&mut message)?;
                if tag == STATUS_TAG {
                    status = value;
                }
            }
            1 => message = message.get(8..)?,
            2 => {
                let len = usize::try_from(take_varint(&mut message)?).ok()?;
                message = message.get(len..)?;
            }
            5 => message = message.get(4..)?,
            _ => return None,
        }
    }
    Some(status)
}

fn emit_varint(value: usize, out: &mut Vec<u8>) {
    let mut rest = value;
    while rest >= 0x80 {
        out.push(low_bits(rest) | 0x80);
        rest >>= 7;
    }
    out.push(low_bits(rest));
}

/// Seven bits of a number.
#[expect(clippy::cast_possible_truncation, reason = "seven bits fit")]
const fn low_bits(number: usize) -> u8 {
    (number & 0x7f) as u8
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..u64::BITS).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

const NOT_COMPRESSED: u8 = 0;

/// OK.
const STATUS_OK: u8 = 0;

/// `SERVING` of `HealthCheckResponse`.
const SERVING: u64 = 1;

/// Field 1, of the kind that has a length: `service`.
const SERVICE_TAG: u8 = 0x0a;

/// Field 1, a number: `status`.
const STATUS_TAG: u64 = 0x08;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_names_the_service() {
        assert_eq!(question(b""), [0, 0, 0, 0, 0]);
        assert_eq!(question(b"ab"), [0, 0, 0, 0, 4, 0x0a, 2, b'a', b'b']);
        let long = question(&[b'x'; 300]);
        assert_eq!(long[..8], [0, 0, 0, 1, 47, 0x0a, 0xac, 2]);
        assert_eq!(long.len(), 5 + 3 + 300);
    }

    #[test]
    fn a_server_is_healthy_if_it_says_so_or_has_the_status_that_is_accepted() {
        let check = |accepted_status, status: &str, content: &[u8], expected| {
            let health = GrpcHealth {
                accepted_status,
                ..GrpcHealth::default()
            };
            let status = (!status.is_empty()).then_some(status.as_bytes());
            assert_eq!(examine(&health, status, content), expected, "{content:?}");
        };
        let (by_status, by_health) = (Test::GrpcStatus, Test::GrpcHealth);
        let serving = [0, 0, 0, 0, 2, 8, 1];
        check(None, "0", &serving, Ok(by_health));
        check(Some(12), "0", &serving, Ok(by_health));
        check(None, "0", &[0, 0, 0, 0, 2, 8, 2], Err(by_health));
        check(None, "0", &[0, 0, 0, 0, 2, 8, 3], Err(by_health));
        // UNKNOWN.
        check(None, "0", &[0, 0, 0, 0, 0], Err(by_health));
        check(None, "0", b"", Err(by_health));
        // Compressed, though nothing was agreed on; or cut.
        check(None, "0", &[1, 0, 0, 0, 2, 8, 1], Err(by_health));
        check(None, "0", &serving[..6], Err(by_health));
        check(None, "0", &[0, 0, 0, 0, 1, 8], Err(by_health));
        // Other fields are passed over; the last of a kind counts.
        let others = [
            0x12, 1, 9, 0x1d, 0, 0, 0, 0, 0x21, 0, 0, 0, 0, 0, 0, 0, 0, 0x28, 3,
        ];
        let mut message = [&others[..], &[8, 2, 8, 1]].concat();
        message.splice(0..0, [0, 0, 0, 0, 23]);
        check(None, "0", &message, Ok(by_health));
        check(None, "0", &[0, 0, 0, 0, 2, 0x0b, 1], Err(by_health));
        check(
            None,
            "0",
            &[&[0, 0, 0, 0, 12, 8][..], &[0xff; 11]].concat(),
            Err(by_health),
        );
        for status in ["", "12", "x", "-1", "300"] {
            check(None, status, &serving, Err(by_status));
        }
        check(Some(12), "12", b"", Ok(by_status));
        check(Some(12), "14", b"", Err(by_status));
    }
}
