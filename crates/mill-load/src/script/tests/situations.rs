//! The nine techniques of wrk's sample scripts, each in a script of our own.

use super::*;
use crate::script::Errors;
use core::time::Duration;

/// The head's fields that every request here has.
const HOST: &str = "Host: a.example:8080";

#[test]
fn addr_each_thread_goes_to_the_address_that_setup_chose() {
    let file = File::new(
        "addr",
        r"
        local addresses, turn = nil, 0
        function setup(thread)
           if not addresses then
              addresses = wrk.lookup(wrk.host, wrk.port)
              for i = #addresses, 1, -1 do
                 if not wrk.connect(addresses[i]) then table.remove(addresses, i) end
              end
           end
           turn = turn % #addresses + 1
           before = (before or '') .. tostring(thread.addr) .. ' '
           thread.addr = addresses[#addresses + 1 - turn]
        end
        function init() mine = tostring(wrk.thread.addr) end
        function done() end
        ",
    );
    let stage = load(&file).unwrap();
    let threads = set_up(&stage, 3).unwrap();
    let endpoints: Vec<Endpoint> = threads.into_iter().map(|thread| thread.endpoint).collect();
    assert_eq!(endpoints, [endpoint(3), endpoint(1), endpoint(3)]);
    let before: String = global(&stage, "before");
    assert_eq!(before, "192.0.2.1:8080 ".repeat(3));
}

#[test]
fn auth_a_token_from_a_response_is_sent_from_then_on() {
    let (_stage, mut script) = single(
        "auth",
        r"
        local token, path = nil, '/login'
        function request() return wrk.format('GET', path) end
        function response(status, headers, body)
           if status == 200 and not token then
              token = headers['X-Token'] .. body
              path = '/inside'
              wrk.headers['X-Token'] = token
           end
        end
        ",
    );
    assert!(script.wants_responses());
    let login = format!("GET /login HTTP/1.1|{HOST}|");
    assert_eq!(sent(&mut script).0, login);
    respond(&mut script, 403, &[("X-Token", "no")], "").unwrap();
    assert_eq!(sent(&mut script).0, login);
    let fields = [("X-Token", "a"), ("Other", "x"), ("X-Token", "b")];
    respond(&mut script, 200, &fields, "c").unwrap();
    assert_eq!(
        sent(&mut script).0,
        format!("GET /inside HTTP/1.1|{HOST}|X-Token: bc|")
    );
}

#[test]
fn counter_each_request_differs_and_none_is_lost() {
    let (_stage, mut script) = single(
        "counter",
        r"
        local counter = 0
        request = function()
           wrk.headers['X-Counter'] = counter
           counter = counter + 1
           return wrk.format(nil, '/' .. counter - 1)
        end
        ",
    );
    for count in 0..3 {
        let (text, batch) = sent(&mut script);
        let expected = format!("GET /{count} HTTP/1.1|{HOST}|X-Counter: {count}|");
        assert_eq!((text, batch), (expected, Batch::ONE));
    }
    assert!(!script.wants_responses());
    assert_eq!(script.delay(), Ok(Duration::ZERO));
}

#[test]
fn delay_is_in_milliseconds() {
    let (_stage, mut script) = single(
        "delay",
        "local n = 0; function delay() n = n + 1; return ({10, '20', 0.5, nil, 0})[n] end",
    );
    let waits: Vec<u128> = (0..5)
        .map(|_| script.delay().unwrap().as_micros())
        .collect();
    assert_eq!(waits, [10_000, 20_000, 500, 0, 0]);
    let expected = format!("GET /x?y HTTP/1.1|{HOST}|");
    assert_eq!(sent(&mut script).0, expected);
    assert_eq!(sent(&mut script).0, expected);
}

#[test]
fn pipeline_several_requests_in_a_string_have_as_many_responses() {
    let (_stage, mut script) = single(
        "pipeline",
        r"
        function init()
           local each = {}
           for i, path in ipairs { '/a', '/b', '/c' } do each[i] = wrk.format('POST', path, nil, '12') end
           three, one, head = table.concat(each), wrk.format(), wrk.format('HEAD')
        end
        local n = 0
        function request() n = n + 1; return ({ three, three, one, head, three })[n] end
        ",
    );
    let batches: Vec<(u32, bool)> = (0..5)
        .map(|_| sent(&mut script).1)
        .map(|batch| (batch.responses, batch.is_head))
        .collect();
    assert_eq!(
        batches,
        [(3, false), (3, false), (1, false), (1, true), (3, false)]
    );
}

#[test]
fn post_a_request_of_the_table_is_rendered_once() {
    let file = File::new(
        "post",
        r"
        wrk.method = 'POST'
        wrk.body = 'a=b&c=d'
        wrk.headers['Content-Type'] = 'text/plain'
        ",
    );
    let stage = load(&file).unwrap();
    for thread in set_up(&stage, 2).unwrap() {
        assert_eq!(thread.endpoint, endpoint(1));
        let Requests::Mix(mix) = thread.requests else {
            panic!("no script is needed while the same request is sent");
        };
        let [(rendered, _)] = mix.as_slice() else {
            panic!("one request, not {}", mix.len());
        };
        assert_eq!(
            sorted(&rendered.bytes),
            format!("POST /x?y HTTP/1.1|Content-Length: 7|Content-Type: text/plain|{HOST}|a=b&c=d")
        );
    }
}

#[test]
fn report_done_sees_the_figures() {
    let file = File::new(
        "report",
        r"
        function done(summary, latency, requests)
           local e = summary.errors
           local percentiles = {}
           for i, p in ipairs { 50, 90, 99.999 } do percentiles[i] = latency:percentile(p) end
           local v1, n1 = latency(2)
           local v2, n2 = requests(9)
           report = table.concat({
              summary.duration, summary.requests, summary.bytes,
              e.connect, e.read, e.write, e.status, e.timeout,
              latency.min, latency.max, latency.mean, string.format('%.3f', latency.stdev), #latency,
              table.concat(percentiles, '/'), v1, n1, v2, n2, tostring(latency.other),
           }, ' ')
           kept = latency
        end
        ",
    );
    let stage = load(&file).unwrap();
    set_up(&stage, 1).unwrap();
    let summary = Summary {
        duration: Duration::from_millis(1500),
        requests: 7,
        bytes: 1 << 40,
        errors: Errors {
            connect: 1,
            read: 2,
            write: 3,
            status: 4,
            timeout: 5,
        },
    };
    done(&stage, &summary).unwrap();
    let report: String = global(&stage, "report");
    assert_eq!(
        report,
        "1500000 7 1099511627776 1 2 3 4 5 1 10 3.75 4.193 3 2/10/10 2 2 0 0 nil"
    );
    // The figures belong to the caller, and a script that keeps them cannot read them later.
    let late = stage.main.lua.load("return kept.min").eval::<u64>();
    assert!(late.is_err());
}

#[test]
fn setup_values_go_to_the_threads_and_come_back() {
    let file = File::new(
        "setup",
        r"
        local threads = {}
        function setup(thread)
           table.insert(threads, thread)
           thread:set('id', #threads)
           thread:set('words', { 'a', { b = 'c' } })
        end
        function init(arguments)
           requests, responses = 0, 0
           mine = id .. words[1] .. words[2].b .. arguments[0] .. arguments[1] .. #arguments
        end
        function request() requests = requests + 1; return wrk.request() end
        function response() responses = responses + 1 end
        function done()
           report = ''
           for _, thread in ipairs(threads) do
              report = report .. thread:get('mine') .. thread:get('requests') .. thread:get('responses') .. ';'
           end
        end
        ",
    );
    let stage = load(&file).unwrap();
    let mut threads = set_up(&stage, 2).unwrap().into_iter().map(running);
    let (mut first, mut second) = (threads.next().unwrap(), threads.next().unwrap());
    sent(&mut first);
    let worker = std::thread::spawn(move || {
        sent(&mut second);
        sent(&mut second);
        respond(&mut second, 200, &[], "").unwrap();
        second
    });
    drop(worker.join().unwrap());
    done(&stage, &Summary::default()).unwrap();
    let report: String = global(&stage, "report");
    let url = "http://a.example:8080/x?y";
    assert_eq!(report, format!("1ac{url}one110;2ac{url}one121;"));
}

#[test]
fn stop_a_script_stops_its_thread_once_it_runs() {
    let (_stage, mut script) = single(
        "stop",
        r"
        local counter = 1
        function init() wrk.thread:stop() end
        function response()
           if counter == 3 then wrk.thread:stop() end
           counter = counter + 1
        end
        ",
    );
    for count in 0..3 {
        assert!(!script.has_stopped(), "{count}");
        respond(&mut script, 200, &[], "").unwrap();
    }
    assert!(script.has_stopped());
}
