//! Settings of a server as a JSON document.

use crate::api::error::ApiError;
use mill_config::config::upstream::{Balancing, UpstreamServer, UpstreamTarget};
use mill_config::url::Url;
use mill_config::{Text, value};
use mill_upstream::group::Group;
use serde_json::{Map, Value};
use std::time::Duration;

/// What is to be set. It is checked by itself when it is parsed; against the server that has it until now, by
/// [`Self::apply`].
pub(super) struct Changes {
    /// The value of `server`.
    pub(super) target: Option<UpstreamTarget>,
    /// It has a port.
    has_port: bool,
    document: Map<String, Value>,
    /// The group's method uses all servers at once and with their full weight.
    is_keyed: bool,
    group: String,
}

/// A server that is there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'s> {
    pub(super) id: u32,
    /// Where it is, or the name that it is.
    pub(super) target: &'s UpstreamTarget,
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
        let server = document.get("server");
        let target = server.map(|text| target_of(text, group)).transpose()?;
        let (target, has_port) = target.unzip();
        Ok(Self {
            target,
            has_port: has_port.unwrap_or(false),
            document,
            is_keyed: matches!(
                group.config().balancing,
                Balancing::Hash { .. } | Balancing::IpHash | Balancing::Random(_)
            ),
            group: group.config().name.display().into_owned(),
        })
    }

    /// Changes the settings: those of a server that is there, or those of a new one.
    pub(super) fn apply(
        &self,
        settings: &mut UpstreamServer,
        known: Option<Known<'_>>,
    ) -> Result<(), ApiError> {
        for (name, value) in &self.document {
            if value.is_object() || value.is_array() {
                return Err(ApiError::NESTED);
            }
            self.apply_one(name, value, settings, known)?;
        }
        Ok(())
    }

    fn apply_one(
        &self,
        name: &str,
        value: &Value,
        settings: &mut UpstreamServer,
        known: Option<Known<'_>>,
    ) -> Result<(), ApiError> {
        match name {
            "server" => self.set_address(value, settings, known)?,
            "weight" => {
                let weight = number(name, value, "UpstreamBadWeight", 1)?;
                if settings.service.is_some() && weight != settings.weight {
                    let id = known.map_or(0, |known| known.id);
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
            "backup" => self.set_backup(flag(name, value)?, settings, known)?,
            "id" if known.is_some_and(|known| value.as_u64() == Some(u64::from(known.id))) => {}
            "service" if is_service(text(name, value)?, settings) => {}
            "service" if text(name, value)?.is_empty() => {
                return Err(ApiError::bad(
                    "UpstreamBadService",
                    String::from("service is empty"),
                ));
            }
            "service" if known.is_none() => self.set_service(text(name, value)?, settings)?,
            _ => return Err(ApiError::format(format!("unknown parameter \"{name}\""))),
        }
        Ok(())
    }

    fn set_address(
        &self,
        value: &Value,
        settings: &mut UpstreamServer,
        known: Option<Known<'_>>,
    ) -> Result<(), ApiError> {
        let Some(target) = &self.target else {
            return Ok(());
        };
        if let Some(known) = known {
            if *known.target == *target {
                return Ok(());
            }
            if settings.resolve {
                let text = format!("server \"{}\" address is immutable", known.id);
                return Err(ApiError::immutable(text));
            }
            if let UpstreamTarget::Name { .. } = target {
                let text = String::from("invalid \"server\" argument");
                return Err(ApiError::bad("UpstreamBadAddress", text));
            }
        }
        settings.name = Text::from(text("server", value)?);
        settings.resolve = matches!(target, UpstreamTarget::Name { .. });
        settings.target = target.clone();
        Ok(())
    }

    /// `server` has been set before: names are in the order of the alphabet.
    fn set_service(&self, service: &[u8], settings: &mut UpstreamServer) -> Result<(), ApiError> {
        let why = match settings.target {
            UpstreamTarget::Name { .. } if self.has_port => "may not have port",
            UpstreamTarget::Name { .. } => {
                settings.service = Some(Text::from(service));
                return Ok(());
            }
            UpstreamTarget::Addresses(_) => "requires domain name",
        };
        let text = format!("service upstream \"{}\" {why}", settings.name.display());
        Err(ApiError::bad("UpstreamBadAddress", text))
    }

    fn set_backup(
        &self,
        backup: bool,
        settings: &mut UpstreamServer,
        known: Option<Known<'_>>,
    ) -> Result<(), ApiError> {
        if known.is_some() && backup != settings.backup {
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

/// Where a server is, and whether its port is written. Names are followed where there is a resolver.
fn target_of(value: &Value, group: &Group) -> Result<(UpstreamTarget, bool), ApiError> {
    let text = text("server", value)?;
    let url = Url::parse(text, DEFAULT_PORT, false).map_err(|why| {
        let text = format!("{why} while parsing \"{}\"", String::from_utf8_lossy(text));
        ApiError::bad("UpstreamBadAddress", text)
    })?;
    let target = match url.address {
        Some(address) => UpstreamTarget::Addresses(vec![address]),
        None if group.config().name_servers.is_none() => {
            let host = String::from_utf8_lossy(url.host);
            let text = format!("no resolver defined to resolve {host}");
            return Err(ApiError::bad("UpstreamConfNoResolver", text));
        }
        None => UpstreamTarget::Name {
            host: Text::from(url.host),
            port: url.port,
        },
    };
    Ok((target, url.port_text.is_some()))
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
