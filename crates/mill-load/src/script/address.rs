//! An address in a script: the result of `wrk.lookup`, and `thread.addr`.

use crate::target::Endpoint;
use mlua::{MetaMethod, UserData, UserDataMethods, Value};

/// Opaque to scripts, except for its text.
#[derive(Clone, Debug)]
pub(super) struct Address(pub(super) Endpoint);

impl Address {
    /// The address in a value, if it is one.
    pub(super) fn of(value: &Value) -> Option<Self> {
        let userdata = value.as_userdata()?;
        userdata
            .borrow::<Self>()
            .ok()
            .map(|address| address.clone())
    }

    /// wrk's form: no brackets around an IPv6 address.
    fn text(&self) -> String {
        match &self.0 {
            Endpoint::Ip(address) => format!("{}:{}", address.ip(), address.port()),
            unix @ Endpoint::Unix(_) => unix.to_string(),
        }
    }
}

impl UserData for Address {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_method(MetaMethod::ToString, |_, this, ()| Ok(this.text()));
    }
}

/// The port of a service: a number, or the name of a service that load generators use.
pub(super) fn port(service: &Value) -> Result<u16, String> {
    let text = match service {
        Value::Nil => return Ok(0),
        other => text(other).ok_or_else(|| {
            format!(
                "a service is a name or a number, not a {}",
                other.type_name()
            )
        })?,
    };
    match text.as_str() {
        "http" => Ok(80),
        "https" => Ok(443),
        "http-alt" => Ok(8080),
        number => number.parse().map_err(|_| {
            format!("the service \"{number}\" is not known: give a port, or http or https")
        }),
    }
}

/// A string, or a number as Lua writes it.
pub(super) fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.to_string_lossy()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
