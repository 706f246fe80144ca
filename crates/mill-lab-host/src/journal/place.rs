//! `Host` as one word of text.

use crate::host::Host;
use serde::{Deserialize, Deserializer, Serializer};

pub(super) fn serialize<S: Serializer>(host: &Host, serializer: S) -> Result<S::Ok, S::Error> {
    match host {
        Host::Local => serializer.serialize_str("local"),
        Host::Namespace(name) => serializer.serialize_str(&format!("netns:{name}")),
        Host::Remote(target) => serializer.serialize_str(&format!("ssh:{target}")),
    }
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Host, D::Error> {
    let word = String::deserialize(deserializer)?;
    Ok(match word.split_once(':') {
        Some(("netns", name)) => Host::Namespace(name.to_owned()),
        Some(("ssh", target)) => Host::Remote(target.to_owned()),
        _ => Host::Local,
    })
}
