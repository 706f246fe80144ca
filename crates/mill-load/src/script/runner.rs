//! A thread's script while requests are made.

use super::pipeline;
use super::state::State;
use super::thread::Strings;
use crate::request::{Batch, Rendered, Requests, Script, ScriptError};
use core::time::Duration;
use mlua::{Function, Lua, LuaString, MultiValue, Value};
use std::sync::Arc;

/// The script of one thread, with its functions.
#[derive(Debug)]
pub(super) struct Runner {
    state: State,
    strings: Strings,
    source: Source,
    delay: Option<Function>,
    response: Option<Function>,
    fields: Fields,
}

#[derive(Debug)]
enum Source {
    /// The script makes no requests: always this one.
    Always(Rendered),
    /// It makes each one when it is to be sent.
    Made {
        request: Function,
        /// The first request, if it was made for inspection.
        first: Option<Vec<u8>>,
        /// The last request and its responses: many scripts send few different ones, and each is parsed once.
        last: (Vec<u8>, Batch),
    },
}

/// The fields of the last response as Lua strings, names and values alternating. Most of them are the same in the next
/// response, and comparing them costs less than making them.
#[derive(Debug, Default)]
struct Fields {
    bytes: Vec<Vec<u8>>,
    values: MultiValue,
}

impl Runner {
    /// Looks up what the script defines after `init`. `is_first`: the first thread's script makes a request now, so
    /// that an invalid one is reported before the run.
    pub(super) fn new(state: State, strings: Strings, is_first: bool) -> Result<Self, ScriptError> {
        let request = state.step("request")?;
        let hook = |name| {
            let defined = state.defines(name)?;
            defined.then(|| state.step(name)).transpose()
        };
        let (delay, response) = (hook("delay")?, hook("response")?);
        let source = if state.defines("request")? {
            let first = is_first.then(|| first(&state, &request)).transpose()?;
            let last = first.clone().unwrap_or_else(|| (Vec::new(), Batch::ONE));
            Source::Made {
                first: first.map(|(bytes, _)| bytes),
                request,
                last,
            }
        } else {
            let (bytes, batch) = first(&state, &request)?;
            Source::Always(Rendered {
                bytes: Arc::from(bytes),
                batch,
            })
        };
        Ok(Self {
            state,
            strings,
            source,
            delay,
            response,
            fields: Fields::default(),
        })
    }

    /// The requests of the thread. A script that only made one fixed request is not needed any more.
    pub(super) fn into_requests(self) -> Requests {
        match self.source {
            Source::Always(rendered) if self.delay.is_none() && self.response.is_none() => {
                Requests::always(rendered)
            }
            _ => Requests::Script(Box::new(self)),
        }
    }
}

/// Makes a request and checks that it is one, or several.
fn first(state: &State, request: &Function) -> Result<(Vec<u8>, Batch), ScriptError> {
    let mut bytes = Vec::new();
    make(state, request, &mut bytes)?;
    let found = pipeline::Requests::parse(&bytes);
    if let Some(fault) = found.fault {
        return Err(state.error(format_args!("request() makes no HTTP request: {fault}")));
    }
    let batch = found.batch().map_err(|reason| state.error(reason))?;
    Ok((bytes, batch))
}

/// Appends the result of `request()`.
fn make(state: &State, request: &Function, into: &mut Vec<u8>) -> Result<(), ScriptError> {
    let value: Value = state.described(request.call(()))?;
    let Some(text) = value.as_string() else {
        let kind = value.type_name();
        return Err(state.error(format_args!("request() has to return a string, not {kind}")));
    };
    into.extend_from_slice(&text.as_bytes());
    Ok(())
}

impl Fields {
    fn update(
        &mut self,
        lua: &Lua,
        fields: &mut dyn Iterator<Item = (&[u8], &[u8])>,
    ) -> mlua::Result<()> {
        let mut count = 0;
        for bytes in fields.flat_map(|(name, value)| [name, value]) {
            match (self.bytes.get_mut(count), self.values.get_mut(count)) {
                (Some(known), Some(_)) if known == bytes => {}
                (Some(known), Some(value)) => {
                    *value = Value::String(lua.create_string(bytes)?);
                    known.clear();
                    known.extend_from_slice(bytes);
                }
                _ => {
                    let value = lua.create_string(bytes)?;
                    self.values.push_back(Value::String(value));
                    self.bytes.push(bytes.to_vec());
                }
            }
            count += 1;
        }
        self.bytes.truncate(count);
        self.values.truncate(count);
        Ok(())
    }
}

impl Script for Runner {
    fn delay(&mut self) -> Result<Duration, ScriptError> {
        let Some(delay) = &self.delay else {
            return Ok(Duration::ZERO);
        };
        let value: Value = self.state.described(delay.call(()))?;
        let ms = match &value {
            Value::Nil => Some(0.0),
            Value::Boolean(_) => None,
            other => self
                .state
                .described(self.state.lua.coerce_number(other.clone()))?,
        };
        let duration = ms.and_then(|ms| Duration::try_from_secs_f64(ms / 1e3).ok());
        duration.ok_or_else(|| {
            let text = value.to_string().unwrap_or_default();
            self.state.error(format_args!(
                "delay() has to return a number of milliseconds, not {text}"
            ))
        })
    }

    fn request(&mut self, into: &mut Vec<u8>) -> Result<Batch, ScriptError> {
        let (request, first, last) = match &mut self.source {
            Source::Always(rendered) => {
                into.extend_from_slice(&rendered.bytes);
                return Ok(rendered.batch);
            }
            Source::Made {
                request,
                first,
                last,
            } => (request, first, last),
        };
        if let Some(bytes) = first.take() {
            into.extend_from_slice(&bytes);
            return Ok(last.1);
        }
        let start = into.len();
        make(&self.state, request, into)?;
        let bytes = into.get(start..).unwrap_or_default();
        if bytes != last.0 {
            let batch = pipeline::Requests::parse(bytes).batch();
            last.1 = batch.map_err(|reason| self.state.error(reason))?;
            last.0.clear();
            last.0.extend_from_slice(bytes);
        }
        Ok(last.1)
    }

    fn wants_responses(&self) -> bool {
        self.response.is_some()
    }

    fn on_response(
        &mut self,
        status: u16,
        fields: &mut dyn Iterator<Item = (&[u8], &[u8])>,
        content: &[u8],
    ) -> Result<(), ScriptError> {
        let Some(response) = &self.response else {
            return Ok(());
        };
        let mut call = || {
            self.fields.update(&self.state.lua, fields)?;
            let content = LuaString::wrap(content);
            response.call((status, content, &self.fields.values))
        };
        let result = call();
        self.state.described(result)
    }

    fn has_stopped(&self) -> bool {
        self.strings.has_stopped()
    }

    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any> {
        self
    }
}
