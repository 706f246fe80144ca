//! The options of an IPv4 header (RFC 791 3.1).
//!
//! A host that sends none still gets some. They are kept as bytes, for nothing is done with them but to see that
//! they are well formed and that no source route leads on.

use crate::Malformed;

/// Bytes that options may take.
pub const OPTIONS_BYTES_MAX: usize = 40;

/// Options as they stand in the header, padding included: each of a length that fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Options {
    bytes: [u8; OPTIONS_BYTES_MAX],
    len: u8,
}

impl Ipv4Options {
    pub const NONE: Self = Self {
        bytes: [0; OPTIONS_BYTES_MAX],
        len: 0,
    };

    /// Takes the bytes between header and payload. An option whose length does not fit is malformed.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        if bytes.is_empty() {
            return Ok(Self::NONE);
        }
        let mut options = Self::NONE;
        options
            .bytes
            .get_mut(..bytes.len())
            .ok_or(Malformed::Length)?
            .copy_from_slice(bytes);
        options.len = u8::try_from(bytes.len()).map_err(|_| Malformed::Length)?;
        if !bytes.len().is_multiple_of(4) {
            return Err(Malformed::Length);
        }
        for option in options.each() {
            option?;
        }
        Ok(options)
    }

    /// Bytes, a multiple of four.
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.len()).unwrap_or_default()
    }

    /// Whether a source route has places left to go to (RFC 791 3.1, RFC 1122 3.2.1.8): a host that does not forward
    /// is not where such a packet wants to go.
    pub fn leads_on(&self) -> bool {
        self.each().flatten().any(|(kind, value)| {
            let pointer = value.first().map_or(0, |pointer| usize::from(*pointer));
            // The pointer counts from 1 at the option's kind.
            matches!(kind, LOOSE_SOURCE_ROUTE | STRICT_SOURCE_ROUTE) && pointer <= value.len() + 2
        })
    }

    /// Kind and value of each, padding left out.
    fn each(&self) -> impl Iterator<Item = Result<(u8, &[u8]), Malformed>> {
        let mut rest = self.as_slice();
        core::iter::from_fn(move || {
            while let Some((&NO_OPERATION, behind)) = rest.split_first() {
                rest = behind;
            }
            let (&kind, behind) = rest.split_first()?;
            if kind == END {
                return None;
            }
            let len = behind.first().map_or(0, |len| usize::from(*len));
            let value = rest.get(2..len).ok_or(Malformed::Option);
            rest = match value {
                Ok(_) => rest.get(len..).unwrap_or_default(),
                Err(_) => &[],
            };
            Some(value.map(|value| (kind, value)))
        })
    }
}

impl Default for Ipv4Options {
    fn default() -> Self {
        Self::NONE
    }
}

/// Kinds, as registered with IANA.
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const LOOSE_SOURCE_ROUTE: u8 = 131;
const STRICT_SOURCE_ROUTE: u8 = 137;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_that_do_not_fit_are_malformed() {
        let check = |bytes: &[u8], expected: Result<(), Malformed>| {
            assert_eq!(Ipv4Options::parse(bytes).map(|_| ()), expected, "{bytes:?}");
        };
        check(&[], Ok(()));
        check(&[1, 1, 1, 1], Ok(()));
        check(&[0, 9, 9, 9], Ok(()));
        check(&[148, 4, 0, 0], Ok(()));
        check(&[148, 2, 1, 0], Ok(()));
        check(&[148, 1, 0, 0], Err(Malformed::Option));
        check(&[148, 0, 0, 0], Err(Malformed::Option));
        check(&[148, 5, 0, 0], Err(Malformed::Option));
        check(&[1, 1, 1, 148], Err(Malformed::Option));
        check(&[1, 1, 1], Err(Malformed::Length));
        check(&[1; 40], Ok(()));
        check(&[1; 44], Err(Malformed::Length));
    }

    #[test]
    fn a_source_route_leads_on_until_its_pointer_is_past_its_end() {
        for kind in [LOOSE_SOURCE_ROUTE, STRICT_SOURCE_ROUTE] {
            for (pointer, leads_on) in [(4, true), (7, true), (8, false), (12, false)] {
                let bytes = [1, kind, 7, pointer, 10, 0, 0, 1];
                let options = Ipv4Options::parse(&bytes).unwrap();
                assert_eq!(options.leads_on(), leads_on, "{kind} {pointer}");
            }
        }
        let record_route = Ipv4Options::parse(&[7, 7, 4, 10, 0, 0, 1, 0]).unwrap();
        assert!(!record_route.leads_on());
    }
}
