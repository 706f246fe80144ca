//! Every error of a script is reported in one line, with file and line where there are any.

use super::*;

/// `expected` follows the path of the script.
#[track_caller]
fn check(error: Result<(), ScriptError>, file: &File, expected: &str) {
    let message = error.unwrap_err().0;
    let path = file.0.display().to_string();
    let rest = message.strip_prefix(&path);
    assert_eq!(rest, Some(expected), "{message}");
}

/// A script a line, `\n` for its ends of lines, and its message.
fn cases(text: &str) -> impl Iterator<Item = (String, &str)> {
    text.lines().map(|line| {
        let (script, expected) = line.split_once(" => ").unwrap();
        (script.replace(r"\n", "\n"), expected)
    })
}

/// The error until all threads are set up.
fn prepared(file: &File) -> Result<(), ScriptError> {
    set_up(&load(file)?, 2).map(drop)
}

#[test]
fn a_script_that_cannot_be_set_up_is_reported_with_its_line() {
    for (text, expected) in cases(SETUP) {
        let file = File::new("prepare", &text);
        check(prepared(&file), &file, expected);
    }
    let file = File::new("prepare", "\u{1b}LJ\u{2}");
    check(
        prepared(&file),
        &file,
        ": attempt to load a binary chunk (mode is 't')",
    );
}

/// Scripts that fail until their threads are set up.
const SETUP: &str = r#"x = = 1 => :1: unexpected symbol near '='
\nerror('oops') => :2: oops
error('oops', 0) => : oops
local x = nil\nx.y = 1 => :2: attempt to index local 'x' (a nil value)
function setup()\n  error('in setup') end => :2: in setup
function init()\n\n  nothing() end => :3: attempt to call global 'nothing' (a nil value)
function request() return nil end => : request() has to return a string, not nil
function request() return 1.5 end => : request() has to return a string, not number
function request() return 'GET /' end => : request() makes no HTTP request: incomplete request at 1:6 of the request
function request()\n return x .. 'a' end => :2: attempt to concatenate global 'x' (a nil value)
wrk.method = '' => : request() makes no HTTP request: no request line at 1:1 of the request
wrk.headers = nil => : bad argument #1 to 'pairs' (table expected, got nil)
wrk = nil => : table expected, got nil
\nwrk.lookup('b.example', 80) => :2: cannot resolve b.example: no such name
wrk.lookup({}, 80) => :1: wrk.lookup takes a name, not a table
wrk.lookup('a.example', 'gopher') => :1: the service "gopher" is not known: give a port, or http or https
\nwrk.connect('a') => :2: wrk.connect takes an address of wrk.lookup
function setup(t)\n t.addr = 'a' end => :2: thread.addr has to be an address that wrk.lookup returned, not a string
function setup(t)\n t.name = 'a' end => :2: cannot set 'name' on thread
function setup(t)\n t:set('f', print) end => :2: cannot transfer 'function' to thread
function setup(t)\n t.set('f', 1) end => :2: bad argument: userdata expected, got string
local f = function() return wrk.format(nil, nil, 5) .. '' end\nfunction request()\n return f() end => :1: attempt to index local 'fields' (a number value)
require 'ffi' => : the module ffi is not available to scripts
error(setmetatable({}, { __tostring = function() return 'message' end })) => : message"#;

#[test]
fn a_script_that_cannot_be_read_is_reported_with_its_name() {
    let file = File(PathBuf::from("/nonexistent/a.lua"));
    let message = load(&file).unwrap_err().0;
    assert!(
        message.starts_with("cannot read the script /nonexistent/a.lua: No such file"),
        "{message}"
    );
}

#[test]
fn a_script_that_fails_while_requests_are_made_is_reported_with_its_line() {
    let act = |script: &mut Box<dyn Script>| {
        script.delay()?;
        script.request(&mut Vec::new())?;
        respond(script, 200, &[("A", "b")], "c")?;
        script.request(&mut Vec::new()).map(drop)
    };
    for (text, expected) in cases(RUNNING) {
        let file = File::new("run", &text);
        let stage = load(&file).unwrap();
        let mut script = running(set_up(&stage, 1).unwrap().remove(0));
        check(act(&mut script), &file, expected);
    }
}

/// Scripts that fail while requests are made.
const RUNNING: &str = r#"function delay()\n error('in delay') end => :2: in delay
function delay() return -1 end => : delay() has to return a number of milliseconds, not -1
function delay() return 0/0 end => : delay() has to return a number of milliseconds, not NaN
function delay() return 1/0 end => : delay() has to return a number of milliseconds, not inf
function delay() return 'soon' end => : delay() has to return a number of milliseconds, not soon
function delay() return true end => : delay() has to return a number of milliseconds, not true
function response()\n\n error('in response') end => :3: in response
local n = 0\nfunction request() n = n + 1; if n > 1 then error('later') end; return wrk.format() end => :2: later
local n = 0; function request() n = n + 1; if n < 2 then return wrk.format() end end => : request() has to return a string, not nil
local n = 0; function request() n = n + 1; return wrk.format(n > 1 and 'HEAD') .. wrk.format() end => : HEAD can't be pipelined with other methods
function response()\n wrk.lookup('a.example', 80) end => :2: wrk.lookup can be called while the script is loaded, in setup, init and done, but not while requests are made"#;

#[test]
fn a_script_that_fails_in_done_is_reported_with_its_line() {
    for (text, expected) in cases(DONE) {
        let file = File::new("done", &text);
        let stage = load(&file).unwrap();
        set_up(&stage, 1).unwrap();
        check(done(&stage, &Summary::default()), &file, expected);
    }
}

/// Scripts that fail in `done`.
const DONE: &str = r#"function done()\n error('in done') end => :2: in done
function done(s, l)\n l:percentile('many') end => :2: bad argument: number expected, got string
function done(s, l)\n l.max = 1 end => :2: attempt to index local 'l' (a userdata value)"#;
