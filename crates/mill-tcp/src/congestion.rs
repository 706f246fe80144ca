//! The congestion window (RFC 5681, RFC 9438, RFC 9406).

/// What CUBIC and HyStart++ keep while data is in flight.
#[derive(Debug, Default)]
pub struct CongestionDetail {}
