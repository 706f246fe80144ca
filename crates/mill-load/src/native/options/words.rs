//! Values of options that are words: methods, fields, versions, names.

use super::values::duration;
use super::{Body, Version};
use crate::origin::Origin;
use crate::plan::Arrivals;
use crate::tls::TlsVersions;
use core::time::Duration;

pub(super) fn arrivals(value: &str) -> Result<Arrivals, String> {
    match value {
        "uniform" => Ok(Arrivals::Uniform),
        "poisson" => Ok(Arrivals::Poisson),
        _ => Err(format!("\"{value}\" is neither uniform nor poisson")),
    }
}

/// A token of RFC 9110 5.6.2.
pub(super) fn method(value: &str) -> Result<String, String> {
    if is_token(value) {
        Ok(String::from(value))
    } else {
        Err(format!("\"{value}\" is no method"))
    }
}

pub(super) fn header(value: &str) -> Result<(String, String), String> {
    let (name, content) = value
        .split_once(':')
        .ok_or_else(|| format!("\"{value}\" has no colon; write 'Name: value'"))?;
    if !is_token(name) {
        return Err(format!("\"{name}\" is no field name"));
    }
    let content = content.trim_matches([' ', '\t']);
    if content.chars().any(|c| c.is_ascii_control() && c != '\t') {
        return Err(format!("the value of {name} has a control character"));
    }
    Ok((String::from(name), String::from(content)))
}

fn is_token(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_part)
}

pub(super) fn one_body(before: &Body, body: Body) -> Result<Body, String> {
    if *before == Body::None {
        Ok(body)
    } else {
        Err(String::from(
            "a request has one content; give --body or --body-file once",
        ))
    }
}

pub(super) fn user(value: &str) -> Result<String, String> {
    if value.contains(':') {
        Ok(String::from(value))
    } else {
        Err(String::from("write NAME:PASSWORD"))
    }
}

pub(super) fn tls_versions(value: &str) -> Result<TlsVersions, String> {
    match value {
        "1.2" => Ok(TlsVersions::Only12),
        "1.3" => Ok(TlsVersions::Only13),
        _ => Err(format!(
            "\"{value}\" is no version of TLS that is here; there are 1.2 and 1.3"
        )),
    }
}

pub(super) fn version(value: &str) -> Result<Version, String> {
    match value {
        "1.1" | "1" => Ok(Version::Http11),
        "1.0" => Ok(Version::Http10),
        "2" | "2.0" => Err(String::from(
            "HTTP/2 is not in this version; h2load speaks it. Use 1.1",
        )),
        "3" | "3.0" => Err(String::from(
            "HTTP/3 is not in this version; h2load speaks it. Use 1.1",
        )),
        _ => Err(format!(
            "\"{value}\" is no version of HTTP; there are 1.0 and 1.1"
        )),
    }
}

pub(super) fn origin(value: &str) -> Result<Origin, String> {
    let parsed = value.split_once(',').and_then(|(port, bytes)| {
        Some(Origin {
            port: port.parse().ok().filter(|port| *port > 0)?,
            content_bytes: bytes.parse().ok()?,
        })
    });
    parsed.ok_or_else(|| format!("\"{value}\" is not PORT,BYTES, such as 8081,1000"))
}

pub(super) fn file(value: &str) -> Result<String, String> {
    if value.is_empty() {
        Err(String::from("the name of the file is empty"))
    } else {
        Ok(String::from(value))
    }
}

pub(super) fn interval(value: &str) -> Result<Duration, String> {
    let interval = duration(value)?;
    if interval < INTERVAL_MIN {
        return Err(format!("\"{value}\" is too short, it is at least 10ms"));
    }
    Ok(interval)
}

/// Each interval copies a histogram of 264 KiB per thread: at this rate it costs a core less than 1 %.
const INTERVAL_MIN: Duration = Duration::from_millis(10);
