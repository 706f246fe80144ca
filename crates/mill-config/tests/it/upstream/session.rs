//! `sticky` and `queue`.

use std::time::Duration;

use mill_config::Text;
use mill_config::config::{Sticky, StickyExpires, Template, UpstreamQueue, Variable};

use crate::upstream::{PATH, config, http, refused, warnings};

fn sticky(directive: &str) -> Sticky {
    let config = config(&format!("upstream a {{ server 127.0.0.1; {directive} }}"));
    let sticky = http(&config).upstreams[0].sticky.clone();
    sticky.expect("it is written")
}

#[test]
fn a_cookie_has_attributes() {
    let Sticky::Cookie(plain) = sticky("sticky cookie srv;") else {
        panic!("it is a cookie");
    };
    assert_eq!(plain.name, "srv");
    assert_eq!(
        (&plain.domain, &plain.path, plain.expires),
        (&None, &None, None)
    );
    assert!(!plain.httponly && !plain.secure && plain.samesite.is_none());
    let Sticky::Cookie(full) =
        sticky("sticky cookie srv expires=1h domain=.a.org path=/ httponly secure samesite=Lax;")
    else {
        panic!("it is a cookie");
    };
    let hour = StickyExpires::After(Duration::from_secs(3600));
    assert_eq!(full.expires, Some(hour));
    assert_eq!(full.domain, Some(Template::literal(".a.org")));
    assert_eq!(full.path, Some(Text::from("/")));
    assert!(full.httponly && full.secure);
    assert_eq!(full.samesite, Some(Template::literal("Lax")));
    assert!(matches!(
        sticky("sticky cookie srv expires=max samesite=$arg_a;"),
        Sticky::Cookie(cookie) if cookie.expires == Some(StickyExpires::Max)
    ));
}

#[test]
fn a_route_and_what_is_learnt_are_in_variables() {
    let cookie = |name: &str| Variable::Cookie(Text::from(name));
    assert_eq!(
        sticky("sticky route $cookie_r $uri;"),
        Sticky::Route(vec![cookie("r"), Variable::Uri])
    );
    let Sticky::Learn(learn) = sticky(
        "sticky learn create=$upstream_cookie_s lookup=$cookie_s lookup=$arg_s zone=z:1m timeout=1h header;",
    ) else {
        panic!("it learns");
    };
    assert_eq!(learn.create, [Variable::UpstreamCookie(Text::from("s"))]);
    let lookup = [cookie("s"), Variable::Arg(Text::from("s"))];
    assert_eq!(learn.lookup, lookup);
    assert_eq!((&learn.zone, learn.zone_bytes), (&Text::from("z"), 1 << 20));
    assert_eq!(learn.timeout, Duration::from_secs(3600));
    assert!(learn.after_head);
    assert!(matches!(
        sticky("sticky learn create=$uri lookup=$uri zone=z:1m;"),
        Sticky::Learn(learn) if learn.timeout == Duration::from_secs(600) && !learn.after_head
    ));
}

#[test]
fn sync_is_taken_with_a_warning_as_only_workers_share_sessions() {
    let learn = |sync: &str| {
        format!(
            "upstream a {{ server 127.0.0.1; sticky learn create=$uri lookup=$uri zone=z:1m{sync}; }}"
        )
    };
    assert!(warnings(&learn("")).is_empty());
    let warning = format!(
        "[warn] \"sync\" has no effect: all workers share the sessions, and other servers are not told of them in {PATH}:1"
    );
    assert_eq!(warnings(&learn(" sync")), [warning]);
}

#[test]
fn faults_in_sticky_are_told_in_the_words_of_nginx() {
    let check = |arguments: &str, expected: &str| {
        let line = refused(&format!(
            "upstream a {{ server 127.0.0.1; sticky {arguments}; }}"
        ));
        assert_eq!(
            line,
            format!("[emerg] {expected} in {PATH}:1"),
            "{arguments}"
        );
    };
    let refused = |arguments: &str, what: &str| {
        check(arguments, &format!("\"sticky\" directive {what}"));
    };
    check("hash x", "unknown parameter \"hash\"");
    check("cookie a b", "unknown parameter \"b\"");
    check("route a", "invalid variable name \"a\"");
    check("learn x", "unknown parameter \"x\"");
    refused("cookie \"\"", "empty cookie name");
    for parameter in [
        "domain=a",
        "path=/",
        "expires=1h",
        "httponly",
        "secure",
        "samesite=lax",
    ] {
        let name = parameter.split('=').next().unwrap_or_default();
        refused(
            &format!("cookie a {parameter} {parameter}"),
            &format!("parameter \"{name}\" is duplicate"),
        );
    }
    refused("cookie a domain=", "no value for \"domain\"");
    refused("cookie a path=", "no value for \"path\"");
    refused("cookie a expires=x", "invalid \"expires\" parameter value");
    refused(
        "cookie a samesite=x",
        "invalid \"samesite\" parameter value",
    );
    refused("learn zone=z:1m zone=z:1m", "duplicate zone");
    refused("learn zone=z", "zone size is not specified");
    refused("learn zone=:1m", "zone name is not specified");
    refused("learn zone=z:x", "invalid zone size");
    refused("learn zone=z:16k", "zone is too small");
    refused("learn timeout=1 timeout=1", "duplicate timeout");
    refused("learn timeout=0", "invalid timeout");
    refused(
        "learn create=x",
        "missing variable in the \"create\" parameter",
    );
    refused(
        "learn lookup=x",
        "missing variable in the \"lookup\" parameter",
    );
    refused("learn create=$uri", "\"lookup\" parameter is not specified");
    refused("learn lookup=$uri", "\"create\" parameter is not specified");
    refused(
        "learn lookup=$uri create=$uri",
        "\"zone\" parameter is not specified",
    );
    refused("cookie a; sticky cookie b", "is duplicate");
}

#[test]
fn a_queue_has_a_length_and_a_timeout() {
    let check = |arguments: &str, number: u32, seconds: u64| {
        let config = config(&format!(
            "upstream a {{ server 127.0.0.1; queue {arguments}; }}"
        ));
        let timeout = Duration::from_secs(seconds);
        let expected = UpstreamQueue { number, timeout };
        assert_eq!(
            http(&config).upstreams[0].queue,
            Some(expected),
            "{arguments}"
        );
    };
    check("10", 10, 60);
    check("1 timeout=70s", 1, 70);
    let fault = |arguments: &str, expected: &str| {
        let line = refused(&format!(
            "upstream a {{ server 127.0.0.1; queue {arguments}; }}"
        ));
        assert_eq!(
            line,
            format!("[emerg] {expected} in {PATH}:1"),
            "{arguments}"
        );
    };
    fault("0", "invalid value \"0\" in \"queue\" directive");
    fault("1 timeout=x", "invalid parameter \"timeout=x\"");
    fault("1 wait", "invalid parameter \"wait\"");
}
