//! Scripts, from text.
//!
//! ```text
//! --initial-window=4            how the stack is set; first lines only
//! include states/established    the lines of states/established.inc, below the folder of scripts
//! // a comment                  also behind a line
//! 0    socket() = 3             absolute time, call, result
//! +.1  < S 0:0(0) win 1000      so long after the line before; the peer sends
//! +0   > S. 0:0(0) ack 1 <...>  the stack has to send
//! 1~2  > . 1:1(0) ack 2         somewhere in this second
//! 1...2 read(4, 10) = 10        begins at 1 and returns at 2
//! +1   silence                  until now nothing else is sent
//! ```

mod call;
mod segment;

use crate::script::{Event, Icmp, IcmpKind, Line, Moment, Script, Time};
use std::path::Path;

/// Reads the script `path` of the folder `root`.
pub(crate) fn script(root: &Path, path: &Path) -> Result<Script, String> {
    let mut script = Script {
        settings: Vec::new(),
        lines: Vec::new(),
    };
    read(root, path, &mut script, INCLUDE_DEPTH_MAX)?;
    if script.lines.is_empty() {
        return Err(format!("{}: nothing happens in it", path.display()));
    }
    Ok(script)
}

/// Scripts included by scripts that are included: no further.
const INCLUDE_DEPTH_MAX: u32 = 8;

fn read(root: &Path, path: &Path, script: &mut Script, depth: u32) -> Result<(), String> {
    let name = path.strip_prefix(root).unwrap_or(path).display();
    let text = std::fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
    for (index, raw) in text.lines().enumerate() {
        let place = format!("{name}:{}", index + 1);
        let text = without_comment(raw).trim();
        if text.is_empty() {
            continue;
        }
        let problem = |what: String| format!("{place}: {what}\n    {raw}");
        if text.starts_with("--") {
            for setting in text.split_whitespace() {
                script
                    .settings
                    .push(parse_setting(setting).map_err(problem)?);
            }
        } else if let Some(included) = text.strip_prefix("include ") {
            if depth == 0 {
                return Err(problem("too many scripts include each other".into()));
            }
            let included = root.join(format!("{}.inc", included.trim()));
            read(root, &included, script, depth - 1)?;
        } else {
            let (time, event) = parse_line(text).map_err(problem)?;
            let text = text.to_owned();
            script.lines.push(Line {
                place,
                text,
                time,
                event,
            });
        }
    }
    Ok(())
}

fn without_comment(line: &str) -> &str {
    line.split_once("//").map_or(line, |(before, _)| before)
}

fn parse_setting(text: &str) -> Result<(String, String), String> {
    text.strip_prefix("--")
        .and_then(|setting| setting.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .ok_or_else(|| format!("a setting is --name=value, not {text}"))
}

fn parse_line(text: &str) -> Result<(Time, Event), String> {
    let (time, rest) = text
        .split_once(char::is_whitespace)
        .ok_or("a line is a time and what happens then")?;
    let rest = rest.trim();
    Ok((parse_time(time)?, parse_event(rest)?))
}

fn parse_time(text: &str) -> Result<Time, String> {
    if text == "*" {
        return Ok(Time::Any);
    }
    if let Some((from, until)) = text.split_once("...") {
        return Ok(Time::Blocking(parse_moment(from)?, parse_moment(until)?));
    }
    if let Some((from, until)) = text.split_once('~') {
        return Ok(Time::Within(parse_moment(from)?, parse_moment(until)?));
    }
    Ok(Time::At(parse_moment(text)?))
}

/// `+.1`, `2`, `0.000001`: seconds with up to nine decimals, counted exactly.
fn parse_moment(text: &str) -> Result<Moment, String> {
    let (relative, number) = match text.strip_prefix('+') {
        Some(number) => (true, number),
        None => (false, text),
    };
    let problem = || format!("{text} is no time");
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.len() > 9 {
        return Err(problem());
    }
    let parse = |digits: &str| match digits {
        "" => Some(0),
        digits if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse::<u64>().ok(),
        _ => None,
    };
    let seconds = parse(whole).ok_or_else(problem)?;
    let nanos = parse(&format!("{fraction:0<9}")).ok_or_else(problem)?;
    Ok(Moment {
        relative,
        nanos: seconds * 1_000_000_000 + nanos,
    })
}

fn parse_event(text: &str) -> Result<Event, String> {
    if let Some(rest) = text.strip_prefix('<') {
        let rest = rest.trim();
        let (flow, inner) = segment::parse_flow(rest)?;
        return match inner.strip_prefix("icmp ") {
            Some(icmp) => Ok(Event::Icmp(parse_icmp(flow, icmp)?)),
            None => Ok(Event::Inbound(segment::parse(rest)?)),
        };
    }
    if let Some(rest) = text.strip_prefix('>') {
        return Ok(Event::Outbound(segment::parse(rest.trim())?));
    }
    if text == "silence" {
        return Ok(Event::Silence);
    }
    if let Some(rest) = text.strip_prefix("renew") {
        return match segment::parse_flow(rest.trim())? {
            (flow, "") => Ok(Event::Renew(flow)),
            (_, rest) => Err(format!("{rest} behind renew means nothing")),
        };
    }
    Ok(Event::Call(call::parse(text)?))
}

/// `too_big 1200 [1:1001(1000)]`
fn parse_icmp(flow: u8, text: &str) -> Result<Icmp, String> {
    let (kind, quoted) = text
        .split_once('[')
        .and_then(|(kind, quoted)| Some((kind.trim(), quoted.strip_suffix(']')?)))
        .ok_or("ICMP is: icmp kind [quoted sequence numbers]")?;
    let (seq, len) = segment::parse_range(quoted.trim())?;
    let kind = match kind.split_once(' ') {
        Some(("too_big", mtu)) => {
            IcmpKind::TooBig(mtu.trim().parse().map_err(|_| format!("{mtu} is no MTU"))?)
        }
        _ => match kind {
            "net_unreachable" => IcmpKind::NetUnreachable,
            "host_unreachable" => IcmpKind::HostUnreachable,
            "port_unreachable" => IcmpKind::PortUnreachable,
            "admin_prohibited" => IcmpKind::AdminProhibited,
            "time_exceeded" => IcmpKind::TimeExceeded,
            other => return Err(format!("{other} is no kind of ICMP message known here")),
        },
    };
    Ok(Icmp {
        flow,
        kind,
        seq,
        len,
    })
}

#[cfg(test)]
mod tests;
