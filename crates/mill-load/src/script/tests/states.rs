//! The initial content of a state, and values between states.

use super::*;
use crate::script::thread::Thread;

/// What a script leaves in `v` after it was loaded.
#[track_caller]
fn check_loaded(name: &str, url: &str, headers: &[(&[u8], &[u8])], text: &str, expected: &str) {
    let file = File::new(name, text);
    let stage = load_with(&file, url, headers).unwrap();
    let value: String = global(&stage, "v");
    assert_eq!(value, expected, "{text}");
}

#[test]
fn the_table_describes_the_url_and_the_fields_of_the_command_line() {
    let all = "v = wrk.scheme .. ' ' .. wrk.host .. ' ' .. type(wrk.port) .. ' ' .. wrk.path .. ' ' .. wrk.method \
        .. ' ' .. tostring(wrk.body) .. ' ' .. tostring(wrk.thread) .. ' ' .. tostring(wrk.headers.A)";
    for (name, url, expected) in [
        (
            "full",
            "http://a:81/b?c",
            "http a string /b?c GET nil nil B",
        ),
        ("bare", "http://[::1]", "http ::1 nil / GET nil nil B"),
    ] {
        check_loaded(name, url, &[(b"A", b"B")], all, expected);
    }
}

#[test]
fn requests_are_formatted_from_arguments_and_table() {
    let check = |url: &str, headers: &[(&[u8], &[u8])], call: &str, expected: &str| {
        let text = format!("function request() return {call} end");
        let file = File::new("format", &text);
        let stage = load_with(&file, url, headers).unwrap();
        let thread = set_up(&stage, 1).unwrap().remove(0);
        assert_eq!(sent(&mut running(thread)).0, expected, "{call}");
    };
    let url = "http://a.example:81/p";
    let host = "Host: a.example:81";
    check(
        url,
        &[],
        "wrk.format()",
        &format!("GET /p HTTP/1.1|{host}|"),
    );
    check(
        url,
        &[],
        "wrk.format('PUT', '/q', { A = 1 }, 'xyz')",
        &format!("PUT /q HTTP/1.1|A: 1|Content-Length: 3|{host}|xyz"),
    );
    check(
        url,
        &[(b"Host", b"b"), (b"C", b"d")],
        "wrk.format()",
        "GET /p HTTP/1.1|C: d|Host: b|",
    );
    check(
        url,
        &[(b"host", b"b")],
        "wrk.format()",
        "GET /p HTTP/1.1|host: b|",
    );
    check(
        url,
        &[],
        "wrk.format(nil, nil, { Host = 'c', ['Content-Length'] = 9 })",
        "GET /p HTTP/1.1|Host: c|",
    );
    check(
        "http://[2001:db8::1]:81/",
        &[],
        "wrk.format()",
        "GET / HTTP/1.1|Host: [2001:db8::1]:81|",
    );
    check("http://a", &[], "wrk.format()", "GET / HTTP/1.1|Host: a|");
}

#[test]
fn format_leaves_host_and_length_in_the_table_it_was_given() {
    let (_stage, mut script) = single(
        "leaves",
        r"
        local fields = {}
        function request()
           wrk.format(nil, nil, fields, 'abc')
           return wrk.format(nil, '/' .. fields.Host .. fields['Content-Length'])
        end
        ",
    );
    let (text, _) = sent(&mut script);
    assert!(text.starts_with("GET /a.example:80803 HTTP/1.1|"), "{text}");
}

#[test]
fn lookup_finds_addresses_and_resolve_keeps_those_that_accept() {
    for (name, text, expected) in [
        (
            "number",
            "local a = wrk.lookup('a.example', 81); v = #a .. tostring(a[1]) .. tostring(a[3])",
            "3192.0.2.1:81192.0.2.3:81",
        ),
        (
            "service",
            "v = tostring(wrk.lookup('a.example', 'https')[1])",
            "192.0.2.1:443",
        ),
        (
            "resolve",
            "wrk.resolve('a.example', 'http'); v = #wrk.addrs .. tostring(wrk.addrs[2])",
            "2192.0.2.3:80",
        ),
        ("module", "v = tostring(require 'wrk' == wrk)", "true"),
        (
            "jit",
            "v = tostring(jit.status()) .. type(bit.band)",
            "truefunction",
        ),
    ] {
        check_loaded(name, "http://a/", &[], text, expected);
    }
}

#[test]
fn hooks_that_a_script_replaces_while_it_runs_are_called() {
    let (_stage, mut script) = single(
        "replaces",
        r"
        function request() return wrk.format('GET', '/1') end
        function response()
           request = function() return wrk.format('GET', '/2') end
           response = nil
        end
        ",
    );
    assert!(sent(&mut script).0.starts_with("GET /1 "));
    respond(&mut script, 200, &[], "").unwrap();
    assert!(sent(&mut script).0.starts_with("GET /2 "));
    respond(&mut script, 200, &[], "").unwrap();
}

#[test]
fn a_response_shows_its_own_fields_and_no_earlier_ones() {
    let (_stage, mut script) = single(
        "fields",
        r"
        local seen = ''
        function response(status, headers, body)
           local names = {}
           for name, value in pairs(headers) do names[#names + 1] = name .. '=' .. value end
           table.sort(names)
           seen = seen .. '/' .. status .. table.concat(names, ',') .. body
           headers.A = 'changed'
        end
        function request() return wrk.format('GET', seen) end
        ",
    );
    // The first request was made before any response.
    script.request(&mut Vec::new()).unwrap();
    respond(&mut script, 200, &[("A", "1"), ("B", "2")], "-").unwrap();
    respond(&mut script, 201, &[("A", "1")], "").unwrap();
    respond(&mut script, 202, &[], "").unwrap();
    respond(&mut script, 203, &[("C", "3"), ("B", "2"), ("A", "1")], "").unwrap();
    let (text, _) = sent(&mut script);
    let expected = "GET /200A=1,B=2-/201A=1/202/203A=1,B=2,C=3 HTTP/1.1|";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn modules_beside_the_script_are_found() {
    let module = File::new("module", "return { path = '/from-module' }");
    let text = format!(
        "package.path = '{}/?.lua'; wrk.path = require('{}').path; v = wrk.path",
        module.0.parent().unwrap().display(),
        module.0.file_stem().unwrap().display(),
    );
    check_loaded("requires", "http://a/", &[], &text, "/from-module");
}

#[test]
fn a_thousand_states_can_be_made() {
    let file = File::new("thousand", "function request() return wrk.format() end");
    let stage = load(&file).unwrap();
    let threads = set_up(&stage, 1000).unwrap();
    assert_eq!(threads.len(), 1000);
    let last = threads.into_iter().last().map(running);
    assert!(sent(&mut last.unwrap()).0.starts_with("GET /x?y "));
    // A state with the prelude and a small script, by Lua's own count.
    assert!(stage.main.lua.used_memory() < 200 << 10);
}

#[test]
fn a_threads_state_is_gone_with_its_stage_although_it_knows_its_thread() {
    let file = File::new(
        "gone",
        "function setup(t) thread = t end; function request() return wrk.format() end",
    );
    let stage = load(&file).unwrap();
    let threads = set_up(&stage, 1).unwrap();
    let userdata: mlua::AnyUserData = global(&stage, "thread");
    let state = userdata.borrow::<Thread>().unwrap().state().unwrap();
    let weak = state.weak();
    drop((state, userdata, threads));
    assert!(weak.try_upgrade().is_some(), "done would still see it");
    drop(stage);
    assert!(weak.try_upgrade().is_none());
}
