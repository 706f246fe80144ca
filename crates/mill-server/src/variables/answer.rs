//! The answer.

use crate::request::Request;
use mill_config::config::settings::Amount;

/// `$status`: three digits.
pub(super) fn status(request: &Request) -> Vec<u8> {
    let status = request.error_status.unwrap_or(request.sent.status);
    format!("{status:03}").into_bytes()
}

/// `$request_completion`.
pub(super) fn completion(request: &Request) -> &'static [u8] {
    if request.sent.complete { b"OK" } else { b"" }
}

/// `$gzip_ratio`: original size divided by compressed size, with two decimals.
pub(super) fn gzip_ratio(request: &Request) -> Option<Vec<u8>> {
    let compressed = request.sent.compressed?;
    ratio(compressed.from, compressed.to)
}

/// `$limit_rate`: the value of `set`, or, once the answer is being sent, that of the location.
pub(super) fn limit_rate(request: &Request) -> u64 {
    let of_location = match request.location.limit_rate.rate {
        Amount::Fixed(rate) if request.sent.bytes > 0 => rate,
        _ => 0,
    };
    request.limit_rate.unwrap_or(of_location)
}

/// Rounded as nginx rounds: the second decimal goes up when the third is above five.
fn ratio(original: u64, compressed: u64) -> Option<Vec<u8>> {
    if original == 0 || compressed == 0 {
        return None;
    }
    let (original, compressed) = (u128::from(original), u128::from(compressed));
    let mut whole = original / compressed;
    let mut hundredths = original * 100 / compressed % 100;
    if original * 1000 / compressed % 10 > 5 {
        hundredths += 1;
        if hundredths > 99 {
            (whole, hundredths) = (whole + 1, 0);
        }
    }
    Some(format!("{whole}.{hundredths:02}").into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_has_two_decimals_and_rounds_as_nginx_does() {
        let check = |original: u64, compressed: u64, expected: Option<&str>| {
            let found = ratio(original, compressed);
            assert_eq!(found.as_deref(), expected.map(str::as_bytes));
        };
        check(1000, 500, Some("2.00"));
        check(1000, 333, Some("3.00"));
        check(1999, 1000, Some("2.00"));
        check(1235, 1000, Some("1.23"));
        check(1236, 1000, Some("1.24"));
        check(0, 10, None);
        check(10, 0, None);
    }
}
