//! The requests that h2load sends.

use super::arguments::Arguments;
use crate::request::{Batch, Rendered, Requests};
use std::sync::Arc;

/// One after the other, and the first one again.
pub(super) fn of_thread(arguments: &Arguments) -> Requests {
    let all = arguments.targets.iter();
    let mut all: Vec<Rendered> = all.map(|target| render(arguments, target)).collect();
    if all.len() > 1 {
        return Requests::Replay(all.into());
    }
    Requests::Mix(all.drain(..).map(|rendered| (rendered, 1.0)).collect())
}

/// A later field replaces ours of the same name; pseudo-fields replace what they stand for.
fn render(arguments: &Arguments, target: &str) -> Rendered {
    let given = |name: &str| {
        let mut found = arguments.headers.iter().rev();
        let found = found.find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone())
    };
    let usual = match arguments.content {
        Some(_) => "POST",
        None => "GET",
    };
    let method = given(":method").unwrap_or_else(|| usual.to_owned());
    let target = given(":path").unwrap_or_else(|| target.to_owned());
    let authority = given(":authority").or_else(|| given("host"));
    let authority = authority.unwrap_or_else(|| arguments.url.authority());
    let agent = given("user-agent").unwrap_or_else(|| AGENT.to_owned());
    let mut text =
        format!("{method} {target} HTTP/1.1\r\nhost: {authority}\r\nuser-agent: {agent}\r\n");
    for (name, value) in &arguments.headers {
        let is_own = name.starts_with(':')
            || matches!(name.as_str(), "host" | "user-agent" | "content-length");
        if !is_own {
            text += &format!("{name}: {value}\r\n");
        }
    }
    if let Some(content) = &arguments.content {
        text += &format!("content-length: {}\r\n", content.len());
    }
    text += "\r\n";
    let mut bytes = text.into_bytes();
    bytes.extend_from_slice(arguments.content.as_deref().unwrap_or_default());
    Rendered {
        bytes: Arc::from(bytes),
        batch: Batch {
            responses: 1,
            is_head: method == "HEAD",
        },
    }
}

/// What h2load calls itself.
const AGENT: &str = "h2load nghttp2/1.52.0";
