//! What theory expects of an ideal sender.

use super::{BITS_PER_SECOND, Cell, MTU};
use mill_tcp::config::Algorithm;

/// Payload bits a second.
pub(super) fn bits_per_second(cell: &Cell) -> f64 {
    let share = f64::from(PAYLOAD_BYTES) / f64::from(MTU + ETHERNET_BYTES);
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let wire = BITS_PER_SECOND as f64 * share;
    // What is lost is sent again; else losses mean nothing to BBR.
    if cell.loss_per_million == 0 || cell.algorithm == Algorithm::Bbr {
        return wire * (1.0 - f64::from(cell.loss_per_million) / 1e6);
    }
    let loss = f64::from(cell.loss_per_million) / 1e6;
    let rtt = cell.rtt.as_secs_f64();
    let reno = (1.5 / loss).sqrt();
    let segments = match cell.algorithm {
        Algorithm::Reno => reno,
        // RFC 9438 5.1 with C = 0.4 and beta = 0.7; 4.3 makes it at least what Reno reaches.
        Algorithm::Cubic | Algorithm::Bbr => reno.max(1.054 * (rtt / loss).powf(0.75)),
    };
    (segments * f64::from(PAYLOAD_BYTES) * 8.0 / rtt).min(wire)
}

/// Bytes of payload in a full segment: IPv4, TCP with timestamps.
const PAYLOAD_BYTES: u16 = MTU - 20 - 32;

const ETHERNET_BYTES: u16 = 14;
