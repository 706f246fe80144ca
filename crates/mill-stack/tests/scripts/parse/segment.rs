//! A segment: `@2 [ce] P. 1:1001(1000) ack 1 win 1000 urg 5 <nop,nop,TS val 1 ecr 0>`.

use crate::script::{ACK, Cookie, ECN, FLAGS, HeaderOption, Number, Segment, URG};

pub(super) fn parse(text: &str) -> Result<Segment, String> {
    let (flow, mut rest) = parse_flow(text)?;
    let mut segment = Segment {
        flow,
        options: Some(Vec::new()),
        ..Segment::default()
    };
    while let Some((mark, after)) = rest.strip_prefix('[').and_then(|r| r.split_once(']')) {
        take_mark(&mut segment, mark)?;
        rest = after.trim_start();
    }
    let (fixed, options) = match rest.split_once('<') {
        Some((fixed, options)) => {
            let options = options.trim_end();
            let options = options.strip_suffix('>').ok_or("the options have no end")?;
            (fixed, Some(options))
        }
        None => (rest, None),
    };
    take_fixed(&mut segment, fixed)?;
    match options {
        None => {}
        Some("...") => segment.options = None,
        Some(options) => segment.options = Some(parse_options(options)?),
    }
    Ok(segment)
}

/// The flow that `@2` in front names, and what follows.
pub(super) fn parse_flow(text: &str) -> Result<(u8, &str), String> {
    let Some(named) = text.strip_prefix('@') else {
        return Ok((1, text));
    };
    let (number, rest) = named.split_once(' ').unwrap_or((named, ""));
    let flow = number
        .parse()
        .map_err(|_| format!("@{number} is no flow"))?;
    Ok((flow, rest.trim_start()))
}

/// `1:1001(1000)`: where the sequence numbers begin, and how many bytes.
pub(super) fn parse_range(text: &str) -> Result<(u32, u32), String> {
    let problem = || format!("{text} is no range: first:end(length)");
    let (seq, rest) = text.split_once(':').ok_or_else(problem)?;
    let (end, len) = rest.split_once('(').ok_or_else(problem)?;
    let len = len.strip_suffix(')').ok_or_else(problem)?;
    let seq: u32 = seq.parse().map_err(|_| problem())?;
    let end: u32 = end.parse().map_err(|_| problem())?;
    let len: u32 = len.parse().map_err(|_| problem())?;
    if seq.wrapping_add(len) != end {
        return Err(format!("{text}: the length is not that of the range"));
    }
    Ok((seq, len))
}

fn take_mark(segment: &mut Segment, mark: &str) -> Result<(), String> {
    match mark {
        "bad_checksum" => segment.has_bad_checksum = true,
        "inverted" => segment.is_inverted = true,
        mark => {
            let found = (0..).zip(ECN).find(|(_, name)| *name == mark);
            segment.ecn = found.ok_or_else(|| format!("[{mark}] is no mark"))?.0;
        }
    }
    Ok(())
}

fn take_fixed(segment: &mut Segment, text: &str) -> Result<(), String> {
    let mut words = text.split_whitespace();
    let flags = words.next().ok_or("a segment begins with its flags")?;
    for letter in flags.chars().filter(|letter| *letter != '-') {
        let bit = FLAGS.iter().find(|(known, _)| *known == letter);
        segment.flags |= bit.ok_or_else(|| format!("{letter} is no flag"))?.1;
    }
    let range = words.next().ok_or("a segment has sequence numbers")?;
    (segment.seq, segment.len) = parse_range(range)?;
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word} has no value"))?;
        let problem = |_| format!("{value} is no {word}");
        match word {
            "ack" => segment.ack = Some(value.parse().map_err(problem)?),
            "win" => segment.window = Some(value.parse().map_err(problem)?),
            "urg" => segment.urgent = Some(value.parse().map_err(problem)?),
            other => return Err(format!("{other} is no field of a segment")),
        }
    }
    for (flag, field, name) in [
        (ACK, segment.ack.is_some(), "ack"),
        (URG, segment.urgent.is_some(), "urg"),
    ] {
        if (segment.flags & flag != 0) != field {
            return Err(format!("the flag and the field {name} go together"));
        }
    }
    Ok(())
}

fn parse_options(text: &str) -> Result<Vec<HeaderOption>, String> {
    text.split(',')
        .map(|option| parse_option(option.trim()))
        .collect()
}

fn parse_option(text: &str) -> Result<HeaderOption, String> {
    let problem = || format!("{text} is no option");
    let words: Vec<&str> = text.split_whitespace().collect();
    Ok(match *words.as_slice() {
        ["eol"] => HeaderOption::End,
        ["nop"] => HeaderOption::Nop,
        ["sackOK"] => HeaderOption::SackPermitted,
        ["mss", mss] => HeaderOption::Mss(mss.parse().map_err(|_| problem())?),
        ["wscale", shift] => HeaderOption::WindowScale(shift.parse().map_err(|_| problem())?),
        ["TS", "val", value, "ecr", echo] => {
            HeaderOption::Timestamps(parse_number(value)?, parse_number(echo)?)
        }
        ["sack", ref blocks @ ..] if !blocks.is_empty() => HeaderOption::Sack(
            blocks
                .iter()
                .map(|block| parse_block(block))
                .collect::<Result<_, _>>()?,
        ),
        ["fo"] => HeaderOption::FastOpen(Cookie::Request),
        ["fo", "*"] => HeaderOption::FastOpen(Cookie::Known),
        ["fo", cookie] => HeaderOption::FastOpen(Cookie::Bytes(parse_hex(cookie)?)),
        ["uto", value] => HeaderOption::UserTimeout(value.parse().map_err(|_| problem())?),
        ["kind", kind] => HeaderOption::Other(kind.parse().map_err(|_| problem())?, Vec::new()),
        ["kind", kind, bytes] => {
            HeaderOption::Other(kind.parse().map_err(|_| problem())?, parse_hex(bytes)?)
        }
        _ => return Err(problem()),
    })
}

fn parse_number(text: &str) -> Result<Number, String> {
    if text == "*" {
        return Ok(Number::Any);
    }
    let number = text.parse().map_err(|_| format!("{text} is no number"))?;
    Ok(Number::Is(number))
}

fn parse_block(text: &str) -> Result<(u32, u32), String> {
    text.split_once(':')
        .and_then(|(start, end)| Some((start.parse().ok()?, end.parse().ok()?)))
        .ok_or_else(|| format!("{text} is no block: start:end"))
}

fn parse_hex(text: &str) -> Result<Vec<u8>, String> {
    let problem = || format!("{text} are no bytes");
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return Err(problem());
    }
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| problem()))
        .collect()
}
