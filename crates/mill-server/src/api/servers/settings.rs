//! Settings of a server as a JSON document.

use crate::api::error::ApiError;
use mill_config::config::upstream::{Balancing, UpstreamAddress, UpstreamServer, UpstreamTarget};
use mill_config::url::Url;
use mill_config::{Text, value};
use mill_upstream::group::Group;
use mill_upstream::peer::Peer;
use serde_json::{Map, Value};
use std::time::Duration;

/// What is to be set. It is checked by itself when it is parsed; against the server that has it until now, by
/// [`Self::apply`].
pub(super) struct Changes {
    /// The value of `server`.
    pub(super) address: Option<UpstreamAddress>,
    document: Map<String, Value>,
    /// The group's method uses all servers at once and with their full weight.
    is_keyed: bool,
    group: String,
}

/// The port of a server without one, and the longest `route`, as in the configuration.
const DEFAULT_PORT: u16 = 80;
const ROUTE_LEN_MAX: usize = 32;

impl Changes {
    pub(super) fn parse(content: &[u8], group: &Group) -> Result<Self, ApiError> {
        let document = serde_json::from_slice(content).map_err(|_| ApiError::JSON)?;
        let Value::Object(document) = document else {
            return Err(ApiError::NESTED);
        };
        let address = document.get("server");
        Ok(Self {
            address: address.map(|text| address_of(text, group)).transpose()?,
            document,
            is_keyed: matches!(
                group.config().balancing,
                Balancing::Hash { .. } | Balancing::IpHash | Balancing::Random(_)
            ),
            group: group.config().name.display().into_owned(),
        })
    }

    /// Changes the settings: those of `peer`, or those of a new server.
    pub(super) fn apply(
        &self,
        settings: &mut UpstreamServer,
        peer: Option<&Peer>,
    ) -> Result<(), ApiError> {
        for (name, value) in &self.document {
            if value.is_object() || value.is_array() {
                return Err(ApiError::NESTED);
            }
            self.apply_one(name, value, settings, peer)?;
        }
        Ok(())
    }

    fn apply_one(
        &self,
        name: &str,
        value: &Value,
        settings: &mut UpstreamServer,
        peer: Option<&Peer>,
    ) -> Result<(), ApiError> {
        match name {
            "server" => self.set_address(value, settings, peer)?,
            "weight" => {
                let weight = number(name, value, "UpstreamBadWeight", 1)?;
                if settings.service.is_some() && weight != settings.weight {
                    let id = peer.map_or(0, |peer| peer.id);
                    let text = format!("server \"{id}\" weight is immutable");
                    return Err(ApiError::bad("UpstreamServerWeightImmutable", text));
                }
                settings.weight = weight;
            }
            "max_conns" => settings.max_conns = number(name, value, "UpstreamBadMaxConns", 0)?,
            "max_fails" => settings.max_fails = number(name, value, "UpstreamBadMaxFails", 0)?,
            "fail_timeout" => {
                settings.fail_timeout =
                    time(name, value, "UpstreamBadFailTimeout", value::seconds)?;
            }
            "slow_start" => {
                const CODE: &str = "UpstreamBadSlowStart";
                settings.slow_start = time(name, value, CODE, value::milliseconds)?;
                if self.is_keyed && !settings.slow_start.is_zero() {
                    let text = format!("upstream \"{}\" has no slow start", self.group);
                    return Err(ApiError::bad(CODE, text));
                }
            }
            "route" => {
                let route = text(name, value)?;
                if route.len() > ROUTE_LEN_MAX {
                    return Err(ApiError::BAD_ROUTE);
                }
                settings.route = Some(Text::from(route)).filter(|_| !route.is_empty());
            }
            "down" => settings.down = flag(name, value)?,
            "drain" => settings.drain = flag(name, value)?,
            "backup" => self.set_backup(flag(name, value)?, settings, peer)?,
            "id" if peer.is_some_and(|peer| value.as_u64() == Some(u64::from(peer.id))) => {}
            "service" if is_service(text(name, value)?, settings) => {}
            "service" if text(name, value)?.is_empty() => {
                return Err(ApiError::bad(
                    "UpstreamBadService",
                    String::from("service is empty"),
                ));
            }
            "service" if peer.is_none() => {
                let shown = settings.name.display();
                let text = format!("service upstream \"{shown}\" requires domain name");
                return Err(ApiError::bad("UpstreamBadAddress", text));
            }
            _ => return Err(ApiError::format(format!("unknown parameter \"{name}\""))),
        }
        Ok(())
    }

    fn set_address(
        &self,
        value: &Value,
        settings: &mut UpstreamServer,
        peer: Option<&Peer>,
    ) -> Result<(), ApiError> {
        let Some(address) = &self.address else {
            return Ok(());
        };
        if let Some(peer) = peer {
            if peer.address == *address {
                return Ok(());
            }
            if settings.resolve {
                let text = format!("server \"{}\" address is immutable", peer.id);
                return Err(ApiError::immutable(text));
            }
        }
        settings.name = Text::from(text("server", value)?);
        settings.target = UpstreamTarget::Addresses(vec![address.clone()]);
        Ok(())
    }

    fn set_backup(
        &self,
        backup: bool,
        settings: &mut UpstreamServer,
        peer: Option<&Peer>,
    ) -> Result<(), ApiError> {
        if peer.is_some() && backup != settings.backup {
            return Err(ApiError::format(String::from(
                "unknown parameter \"backup\"",
            )));
        }
        if self.is_keyed && backup {
            let text = format!("upstream \"{}\" has no backup", self.group);
            return Err(ApiError::bad("UpstreamNoBackup", text));
        }
        settings.backup = backup;
        Ok(())
    }
}

/// Names are followed only where the configuration has them.
fn address_of(value: &Value, group: &Group) -> Result<UpstreamAddress, ApiError> {
    let text = text("server", value)?;
    let bad = |why: &str| {
        let text = format!("{why} while parsing \"{}\"", String::from_utf8_lossy(text));
        ApiError::bad("UpstreamBadAddress", text)
    };
    let url = Url::parse(text, DEFAULT_PORT, false).map_err(bad)?;
    let host = String::from_utf8_lossy(url.host);
    match url.address {
        Some(address) => Ok(address),
        None if group.config().name_servers.is_none() => {
            let text = format!("no resolver defined to resolve {host}");
            Err(ApiError::bad("UpstreamConfNoResolver", text))
        }
        None => Err(bad("name that is not in the configuration")),
    }
}

fn is_service(text: &[u8], settings: &UpstreamServer) -> bool {
    let service = settings.service.as_ref();
    service.is_some_and(|service| service.as_bytes() == text)
}

fn invalid(name: &str) -> ApiError {
    ApiError::format(format!("invalid \"{name}\" value"))
}

fn text<'v>(name: &str, value: &'v Value) -> Result<&'v [u8], ApiError> {
    let text = value.as_str().ok_or_else(|| invalid(name))?;
    // No line of a configuration could have them.
    match text.contains(char::is_control) {
        true => Err(invalid(name)),
        false => Ok(text.as_bytes()),
    }
}

fn flag(name: &str, value: &Value) -> Result<bool, ApiError> {
    value.as_bool().ok_or_else(|| invalid(name))
}

fn number(name: &str, value: &Value, code: &'static str, least: u32) -> Result<u32, ApiError> {
    if !value.is_number() {
        return Err(invalid(name));
    }
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    let number = number.filter(|number| *number >= least);
    number.ok_or_else(|| ApiError::bad(code, format!("invalid \"{name}\"")))
}

/// A time as in the configuration, or a number of seconds.
fn time(
    name: &str,
    value: &Value,
    code: &'static str,
    parse: impl Fn(&[u8]) -> Option<Duration>,
) -> Result<Duration, ApiError> {
    let time = match value {
        Value::Number(seconds) => parse(seconds.to_string().as_bytes()),
        value => parse(text(name, value)?),
    };
    time.ok_or_else(|| ApiError::bad(code, format!("invalid \"{name}\"")))
}
