//! wrk's Lua scripts, run by LuaJIT: one state per thread, and one for `setup` and `done`.
//!
//! Read wrk's `SCRIPTING` first: hooks and table are the same. A `Stage` makes all states on the caller's thread, lets
//! the script set up each, and returns the requests of the threads. Each thread then uses its own state alone. After
//! the run the stage calls `done`, which still sees the threads' globals.
//!
//! Deliberate differences from wrk:
//! - A script that fails ends the run with file, line and message; wrk goes on without it, or crashes.
//! - The result of `request` is parsed whenever it changes, so that HEAD and a varying number of pipelined requests get
//!   the right number of responses. wrk counts once, and waits for the content of a HEAD.
//! - The request that the first thread's script makes for inspection is sent, not discarded.
//! - `wrk.lookup` and `wrk.connect` work before and after the run, not while requests are made.
//! - Scripts have neither `ffi` nor `debug` nor modules in C: they could do anything to this process.

use crate::dialect::wrk::statistics::Statistics;
use crate::request::{Requests, ScriptError};
use crate::target::{Endpoint, Url};
use core::fmt;
use core::net::SocketAddr;
use core::time::Duration;
use std::path::Path;

/// Queries that scripts may make, before and after the run.
#[derive(Clone, Copy)]
pub struct Environment<'a> {
    /// The addresses of a name, with this port; or a message.
    pub resolve: &'a Resolve<'a>,
    /// Whether something accepts connections there.
    pub accepts: &'a dyn Fn(SocketAddr) -> bool,
}

/// Finds the addresses of a name.
pub type Resolve<'a> = dyn Fn(&str, u16) -> Result<Vec<SocketAddr>, String> + 'a;

/// A script through all steps of a run: loaded, set up, run by threads, done.
#[derive(Debug)]
pub struct Stage<'a> {
    source: state::Source,
    url: Url,
    headers: Vec<(Vec<u8>, Vec<u8>)>,
    environment: Environment<'a>,
    /// The state of `setup` and `done`. Its thread objects keep the threads' states alive.
    main: state::State,
}

/// The beginning of a thread.
#[derive(Debug)]
pub struct ThreadScript {
    /// Where the thread's connections go: the default, unless the script chose.
    pub endpoint: Endpoint,
    pub requests: Requests,
}

/// The figures of the run for `done`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub duration: Duration,
    pub requests: u64,
    pub bytes: u64,
    pub errors: Errors,
}

/// The errors in a [`Summary`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Errors {
    pub connect: u64,
    pub read: u64,
    pub write: u64,
    /// Responses with a status above 399.
    pub status: u64,
    pub timeout: u64,
}

impl<'a> Stage<'a> {
    /// Reads the script and runs it once, for `setup` and `done`. `headers` are the names and values of `-H`.
    pub fn load(
        path: &Path,
        url: &Url,
        headers: &[(&[u8], &[u8])],
        environment: Environment<'a>,
    ) -> Result<Self, ScriptError> {
        let source = state::Source::read(path)?;
        let main = state::State::new(&source, url, headers, &environment)?;
        let headers = headers
            .iter()
            .map(|(name, value)| (name.to_vec(), value.to_vec()));
        Ok(Self {
            source,
            url: url.clone(),
            headers: headers.collect(),
            environment,
            main,
        })
    }

    /// Makes the states of all threads and runs `setup` and `init` for each. `addresses` are those of the URL that
    /// accept connections, not empty: the first is the default of all threads. `arguments` begin with the URL as typed,
    /// as in wrk: `args[0]` in the script, the arguments after `--` from `args[1]` on.
    pub fn setup(
        &self,
        threads: u32,
        addresses: &[Endpoint],
        arguments: &[Vec<u8>],
    ) -> Result<Vec<ThreadScript>, ScriptError> {
        let Some(default) = addresses.first() else {
            return Err(self.main.error("the URL has no address"));
        };
        let known = addresses.iter().cloned().map(address::Address);
        let known = self
            .main
            .described(self.main.lua.create_sequence_from(known))?;
        self.main.described(self.main.wrk()?.set("addrs", known))?;
        let prepared: Vec<_> = (0..threads)
            .map(|_| self.prepare(default, arguments))
            .collect::<Result<_, _>>()?;
        let scripts = prepared.into_iter().enumerate();
        scripts
            .map(|(index, (state, strings))| {
                strings.begin();
                let endpoint = strings.endpoint();
                let runner = runner::Runner::new(state, strings, index == 0)?;
                Ok(ThreadScript {
                    endpoint,
                    requests: runner.into_requests(),
                })
            })
            .collect()
    }

    /// One thread's state, after its `setup` and `init`.
    fn prepare(
        &self,
        default: &Endpoint,
        arguments: &[Vec<u8>],
    ) -> Result<(state::State, thread::Strings), ScriptError> {
        let headers = self.headers.iter();
        let headers: Vec<(&[u8], &[u8])> = headers
            .map(|(name, value)| (name.as_slice(), value.as_slice()))
            .collect();
        let state = state::State::new(&self.source, &self.url, &headers, &self.environment)?;
        let strings = thread::Strings::new(default.clone());
        let within = thread::Thread::seen_from_within(&state.lua, &strings);
        state.described(state.wrk()?.set("thread", within))?;
        let outside = thread::Thread::seen_from_outside(&state.lua, &strings);
        self.main.call::<()>("setup", outside, &self.environment)?;
        let list = state.described(state.lua.create_table())?;
        for (index, argument) in arguments.iter().enumerate() {
            let argument = state.described(state.lua.create_string(argument))?;
            state.described(list.raw_set(index, argument))?;
        }
        state.call::<()>("init", list, &self.environment)?;
        Ok((state, strings))
    }

    /// Calls `done`, if the script has it. The report so far must be flushed before: scripts print to standard output
    /// themselves.
    pub fn done(
        &self,
        summary: &Summary,
        latency: &dyn Statistics,
        requests: &dyn Statistics,
    ) -> Result<(), ScriptError> {
        let done = self.main.step("done")?;
        self.main.hosted(&self.environment, || {
            let table = summary.table(&self.main.lua)?;
            self.main.lua.scope(|scope| {
                let latency = scope.create_userdata(view::View(latency))?;
                let requests = scope.create_userdata(view::View(requests))?;
                done.call::<()>((table, latency, requests))
            })
        })
    }
}

impl Summary {
    fn table(&self, lua: &mlua::Lua) -> mlua::Result<mlua::Table> {
        let errors = lua.create_table_from([
            ("connect", self.errors.connect),
            ("read", self.errors.read),
            ("write", self.errors.write),
            ("status", self.errors.status),
            ("timeout", self.errors.timeout),
        ])?;
        let duration_us = u64::try_from(self.duration.as_micros()).unwrap_or(u64::MAX);
        let table = lua.create_table_from([
            ("duration", duration_us),
            ("requests", self.requests),
            ("bytes", self.bytes),
        ])?;
        table.set("errors", errors)?;
        Ok(table)
    }
}

impl fmt::Debug for Environment<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Environment")
            .finish_non_exhaustive()
    }
}

/// Addresses as scripts hold them.
mod address;
/// Errors as messages.
mod failure;
/// Several requests in one string.
mod pipeline;
/// A thread's running script.
mod runner;
/// One Lua state.
mod state;
/// Threads as scripts see them.
mod thread;
/// Values from state to state.
mod transfer;
/// Statistics as scripts see them.
mod view;

#[cfg(test)]
mod tests;
