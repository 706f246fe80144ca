//! Scripts called directly: what they send, what they see, and their error messages.

/// Errors of scripts.
mod errors;
/// The nine techniques of wrk's sample scripts.
mod situations;
/// States, threads and values between them.
mod states;

use super::{Environment, Stage, Summary, ThreadScript};
use crate::request::{Batch, Requests, Script, ScriptError};
use crate::target::{Endpoint, Url};
use core::net::SocketAddr;
use mlua::FromLua;
use std::fs;
use std::path::PathBuf;

/// A script in a temporary file.
struct File(PathBuf);

impl File {
    /// `name` distinguishes tests that run at the same time.
    fn new(name: &str, text: &str) -> Self {
        let name = format!("millstream-script-{}-{name}.lua", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // A leftover file does no harm.
        let _ = fs::remove_file(&self.0);
    }
}

/// A name with three addresses, of which the second accepts nothing.
fn resolve(name: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    match name {
        "a.example" => Ok((1..=3).map(|last| address(last, port)).collect()),
        _ => Err(format!("cannot resolve {name}: no such name")),
    }
}

fn accepts(address: SocketAddr) -> bool {
    address.ip() != self::address(2, 0).ip()
}

fn address(last: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, last], port))
}

fn endpoint(last: u8) -> Endpoint {
    Endpoint::Ip(address(last, 8080))
}

/// A script, loaded for `http://a.example:8080/x?y`.
fn load(file: &File) -> Result<Stage<'static>, ScriptError> {
    load_with(file, "http://a.example:8080/x?y", &[])
}

fn load_with(
    file: &File,
    url: &str,
    headers: &[(&[u8], &[u8])],
) -> Result<Stage<'static>, ScriptError> {
    let environment = Environment {
        resolve: &resolve,
        accepts: &accepts,
    };
    Stage::load(&file.0, &Url::parse(url).unwrap(), headers, environment)
}

fn set_up(stage: &Stage<'_>, threads: u32) -> Result<Vec<ThreadScript>, ScriptError> {
    let arguments = [b"http://a.example:8080/x?y".to_vec(), b"one".to_vec()];
    stage.setup(threads, &[endpoint(1), endpoint(3)], &arguments)
}

/// A script as its thread sees it; the test fails if it was reduced to one request.
fn running(thread: ThreadScript) -> Box<dyn Script> {
    match thread.requests {
        Requests::Script(script) => script,
        other => panic!("a script is needed while requests are made, not {other:?}"),
    }
}

/// One thread of a script.
fn single(name: &str, text: &str) -> (Stage<'static>, Box<dyn Script>) {
    let file = File::new(name, text);
    let stage = load(&file).unwrap();
    let threads = set_up(&stage, 1).unwrap();
    let script = threads.into_iter().next().map(running).unwrap();
    (stage, script)
}

/// The next request, its lines after the first one sorted: a Lua table has no order.
fn sent(script: &mut Box<dyn Script>) -> (String, Batch) {
    let mut bytes = Vec::new();
    let batch = script.request(&mut bytes).unwrap();
    (sorted(&bytes), batch)
}

fn sorted(bytes: &[u8]) -> String {
    let text = std::str::from_utf8(bytes).unwrap();
    let (head, content) = text.split_once("\r\n\r\n").unwrap();
    let mut lines: Vec<&str> = head.split("\r\n").collect();
    lines[1..].sort_unstable();
    format!("{}|{content}", lines.join("|"))
}

fn respond(
    script: &mut Box<dyn Script>,
    status: u16,
    fields: &[(&str, &str)],
    content: &str,
) -> Result<(), ScriptError> {
    let fields = fields.iter();
    let mut fields = fields.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    script.on_response(status, &mut fields, content.as_bytes())
}

/// A global of the state of `setup` and `done`.
fn global<T: FromLua>(stage: &Stage<'_>, name: &str) -> T {
    stage.main.lua.globals().get(name).unwrap()
}

/// Statistics of 1, 2, 2 and 10.
fn statistics() -> crate::dialect::wrk::statistics::Counters {
    let mut counters = crate::dialect::wrk::statistics::Counters::up_to(100);
    for value in [2, 10, 1, 2] {
        assert!(counters.record(value));
    }
    counters
}

fn done(stage: &Stage<'_>, summary: &Summary) -> Result<(), ScriptError> {
    stage.done(summary, &statistics(), &statistics())
}
