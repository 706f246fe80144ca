//! One Lua state of a script, and the calls into it.

use super::Environment;
use super::address::{Address, port, text};
use super::failure::describe;
use crate::request::ScriptError;
use crate::target::{Endpoint, Scheme, Url};
use mlua::chunk::ChunkMode;
use mlua::{FromLuaMulti, Function, IntoLuaMulti, Lua, LuaOptions, StdLib, Table, Value};
use std::path::Path;
use std::sync::Arc;

/// A script's text, read once for all its states.
#[derive(Debug)]
pub(super) struct Source {
    /// As given on the command line.
    name: String,
    text: Vec<u8>,
}

/// A state in which the script has been loaded.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) lua: Lua,
    /// Our own functions that call the script's.
    steps: Table,
    /// Where queries are answered, while they are allowed.
    host: Table,
    file: Arc<str>,
}

impl Source {
    pub(super) fn read(path: &Path) -> Result<Self, ScriptError> {
        let name = path.display().to_string();
        let text = std::fs::read(path)
            .map_err(|error| ScriptError(format!("cannot read the script {name}: {error}")))?;
        Ok(Self { name, text })
    }
}

impl State {
    /// Makes a state, describes the request in it and loads the script.
    pub(super) fn new(
        source: &Source,
        url: &Url,
        headers: &[(&[u8], &[u8])],
        environment: &Environment<'_>,
    ) -> Result<Self, ScriptError> {
        let file = Arc::from(source.name.as_str());
        let state = Self::prepared(Arc::clone(&file), url, headers)
            .map_err(|error| describe(&error, &file))?;
        state.hosted(environment, || {
            let chunk = state.lua.load(source.text.as_slice());
            let chunk = chunk.set_name(format!("@{file}"));
            chunk.set_mode(ChunkMode::Text).exec()
        })?;
        Ok(state)
    }

    fn prepared(file: Arc<str>, url: &Url, headers: &[(&[u8], &[u8])]) -> mlua::Result<Self> {
        // Our callbacks never panic, so scripts keep LuaJIT's own `pcall`, which it compiles.
        let options = LuaOptions::new().catch_rust_panics(false);
        let lua = Lua::new_with(StdLib::ALL_SAFE, options)?;
        let host = lua.create_table()?;
        let prelude = lua.load(include_str!("prelude.lua")).set_name("=wrk");
        let steps: Table = prelude.call(&host)?;
        let wrk: Table = lua.globals().get("wrk")?;
        wrk.set(
            "scheme",
            match url.scheme {
                Scheme::Http => "http",
                Scheme::Https => "https",
            },
        )?;
        wrk.set("host", url.host.as_str())?;
        // A string, because it comes from a URL.
        wrk.set("port", url.port.map(|port| port.to_string()))?;
        wrk.set("path", url.target.as_str())?;
        let fields: Table = wrk.get("headers")?;
        for (name, value) in headers {
            fields.set(lua.create_string(name)?, lua.create_string(value)?)?;
        }
        Ok(Self {
            lua,
            steps,
            host,
            file,
        })
    }

    /// One of our own functions, for calling it often.
    pub(super) fn step(&self, name: &str) -> Result<Function, ScriptError> {
        self.described(self.steps.get(name))
    }

    /// Whether the script defines a global function of that name.
    pub(super) fn defines(&self, name: &str) -> Result<bool, ScriptError> {
        self.described(self.step("defines")?.call(name))
    }

    /// Makes a call in which the script may query names and addresses.
    pub(super) fn call<R: FromLuaMulti>(
        &self,
        step: &str,
        arguments: impl IntoLuaMulti,
        environment: &Environment<'_>,
    ) -> Result<R, ScriptError> {
        let step = self.step(step)?;
        self.hosted(environment, || step.call(arguments))
    }

    /// The table `wrk`.
    pub(super) fn wrk(&self) -> Result<Table, ScriptError> {
        self.described(self.lua.globals().get("wrk"))
    }

    /// A result, with its error as a message.
    pub(super) fn described<T>(&self, result: mlua::Result<T>) -> Result<T, ScriptError> {
        result.map_err(|error| describe(&error, &self.file))
    }

    /// An error without a line of the script.
    pub(super) fn error(&self, message: impl core::fmt::Display) -> ScriptError {
        ScriptError(format!("{}: {message}", self.file))
    }

    /// Answers the queries of `wrk.lookup` and `wrk.connect` while `act` runs.
    pub(super) fn hosted<R>(
        &self,
        environment: &Environment<'_>,
        act: impl FnOnce() -> mlua::Result<R>,
    ) -> Result<R, ScriptError> {
        let result = self.lua.scope(|scope| {
            let lookup = scope.create_function(|lua, (name, service): (Value, Value)| {
                lookup(lua, environment, &name, &service)
            })?;
            let connect = scope.create_function(|_, address: Value| {
                Ok(match Address::of(&address) {
                    Some(Address(Endpoint::Ip(address))) => {
                        (Some((environment.accepts)(address)), None)
                    }
                    _ => (None, Some("wrk.connect takes an address of wrk.lookup")),
                })
            })?;
            self.host.set("lookup", lookup)?;
            self.host.set("connect", connect)?;
            let result = act();
            self.host.clear()?;
            result
        });
        let flushed: mlua::Result<()> = self
            .steps
            .get("flush")
            .and_then(|flush: Function| flush.call(()));
        self.described(result.and_then(|result| flushed.map(|()| result)))
    }
}

/// The addresses of a name, or why there are none.
fn lookup(
    lua: &Lua,
    environment: &Environment<'_>,
    name: &Value,
    service: &Value,
) -> mlua::Result<(Option<Table>, Option<String>)> {
    let Some(name) = text(name) else {
        let kind = name.type_name();
        return Ok((None, Some(format!("wrk.lookup takes a name, not a {kind}"))));
    };
    let found = port(service).and_then(|port| (environment.resolve)(&name, port));
    match found {
        Ok(addresses) => {
            let addresses = addresses.into_iter().map(Endpoint::from).map(Address);
            Ok((Some(lua.create_sequence_from(addresses)?), None))
        }
        Err(problem) => Ok((None, Some(problem))),
    }
}
