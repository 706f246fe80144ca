//! `split_clients`: a variable with a value for each share of what another value may be.

use crate::Text;
use crate::config::{Map, MapLookup, MapValue, Template};
use crate::directive::{Apply, Arity, Directive, HTTP_AND_STREAM, many};
use crate::directives::map::{open, open_with};
use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver};

pub(crate) const DIRECTIVES: &[Directive] = &[many(
    "split_clients",
    HTTP_AND_STREAM,
    Arity::Exactly(2),
    Apply::Block(split_clients),
    "Makes a variable that has each of its values for a share of all texts: PERCENT% VALUE, and * VALUE for the rest.",
)];

fn split_clients(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let (source, target) = (statement.arg(1), statement.arg(2));
    let source = resolver.template(&source.bytes, statement, source)?;
    open_with(
        resolver,
        statement,
        target,
        source,
        MapLookup::Shares(Vec::new()),
    )?;
    resolver.entries(statement, entry)?;
    let total: u32 = shares(resolver).iter().map(|(share, _)| *share).sum();
    let has_rest = shares(resolver)
        .iter()
        .rev()
        .skip(1)
        .any(|(share, _)| *share == 0);
    if total > WHOLE || has_rest {
        let message = "percent total is greater than 100%";
        return Err(resolver.emerg(statement, statement.name(), message));
    }
    Ok(())
}

/// 100 % in hundredths of a percent.
const WHOLE: u32 = 10_000;

fn shares<'a>(resolver: &'a mut Resolver<'_>) -> &'a mut [(u32, MapValue)] {
    match open(resolver).map(|map| &mut map.lookup) {
        Some(MapLookup::Shares(shares)) => shares,
        _ => &mut [],
    }
}

fn entry(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let [share, value] = statement.words.as_slice() else {
        let message = "invalid number of the split_clients parameters";
        return Err(resolver.emerg(statement, statement.name(), message));
    };
    let percent = match share.bytes.as_slice() {
        b"*" => Some(0),
        [number @ .., b'%'] => hundredths(number).filter(|&share| share > 0),
        _ => None,
    };
    let Some(percent) = percent else {
        let message = format!("invalid percent value \"{}\"", share.display());
        return Err(resolver.emerg(statement, share, message));
    };
    let value = MapValue(Template::literal(Text::from(value.bytes.as_slice())));
    if let Some(Map {
        lookup: MapLookup::Shares(shares),
        ..
    }) = open(resolver)
    {
        shares.push((percent, value));
    }
    Ok(())
}

/// A decimal number with at most two digits behind its point, in hundredths.
fn hundredths(text: &[u8]) -> Option<u32> {
    let (whole, part) = match text.iter().position(|&byte| byte == b'.') {
        Some(at) => (text.get(..at)?, text.get(at + 1..)?),
        None => (text, &[][..]),
    };
    let digits = |text: &[u8]| {
        let number = |sum: u32, byte: &u8| {
            let digit = byte.is_ascii_digit().then(|| u32::from(byte - b'0'))?;
            sum.checked_mul(10)?.checked_add(digit)
        };
        text.iter().try_fold(0, number)
    };
    let part = match part {
        [] => 0,
        [_] => digits(part)? * 10,
        [_, _] => digits(part)?,
        _ => return None,
    };
    (!text.is_empty()).then_some(())?;
    digits(whole)?.checked_mul(100)?.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::hundredths;

    #[test]
    fn shares_have_two_digits_behind_the_point() {
        for (text, expected) in [
            ("50", Some(5000)),
            ("0.5", Some(50)),
            ("33.33", Some(3333)),
            (".5", Some(50)),
            ("1.", Some(100)),
            ("", None),
            ("1.234", None),
            ("x", None),
            ("-1", None),
            ("99999999999", None),
        ] {
            assert_eq!(hundredths(text.as_bytes()), expected, "{text}");
        }
    }
}
