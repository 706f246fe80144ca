//! `challenge_cookie`, `challenge_secret` and `challenge_script`: what they say, and what is refused.

use mill_config::config::challenge::{ChallengeCookie, PagePart};
use mill_config::config::{Config, Location};
use mill_config::{Memory, Options, Text, load};

fn loaded(http: &str) -> Result<Config, String> {
    let text = format!("events {{ }} http {{ {http} }}");
    let options = Options::default();
    let source = Memory::new()
        .with(&*options.conf_file(), &text)
        .with("/page.html", "a[% DELAY %]");
    match load(&source, &options) {
        Ok(loaded) => Ok(loaded.config),
        Err(failure) => Err(failure.error.message.clone()),
    }
}

/// Settings of the only server, and of its location `/inner`.
fn check(http: &str, look: impl Fn(&Location, &Location)) {
    let text = format!("server {{ listen 80; {http} }}");
    let config = loaded(&text).unwrap_or_else(|error| panic!("{error}\n{http}"));
    let http = config.http.expect("http");
    let server = &http.servers[0];
    let inner = server.locations.iter().next().unwrap_or(&server.location);
    look(&server.location, inner);
}

fn cookie(location: &Location) -> &ChallengeCookie {
    location.challenge.cookie.as_ref().expect("a cookie")
}

#[test]
fn a_cookie_is_for_all_paths_and_may_be_missed_once() {
    check("challenge_cookie c;", |server, _| {
        let expected = ChallengeCookie {
            name: Text::from("c"),
            attributes: Text::from("; Path=/"),
            misses_max: 1,
            lifetime_s: 0,
        };
        assert_eq!(cookie(server), &expected);
        assert!(server.challenge.script.is_none());
        assert!(server.challenge.secret.is_none());
    });
    check("", |server, _| assert!(server.challenge.cookie.is_none()));
}

#[test]
fn attributes_are_in_their_order_and_lifetime_is_one_where_none_is_said() {
    let check = |parameters: &str, expected: &str| {
        let text = format!("challenge_cookie c {parameters};");
        check(&text, |server, _| {
            let attributes = cookie(server).attributes.display().into_owned();
            assert_eq!(attributes, expected, "{parameters}");
        });
    };
    check("lifetime=1h", "; Path=/; Max-Age=3600");
    check("lifetime=1h attribute=max-age=5", "; max-age=5; Path=/");
    check(
        "attribute=Expires=never lifetime=1h",
        "; Expires=never; Path=/",
    );
    check("attribute=path=/a attribute=Secure", "; path=/a; Secure");
    check("attribute=Pathless", "; Pathless; Path=/");
}

#[test]
fn a_location_inherits_what_it_does_not_say() {
    let text = "challenge_cookie c max_misses=3; challenge_secret s;
                challenge_script delay_min=1s delay_range=500ms status=200 page=/page.html;
                location /inner { challenge_cookie d; }";
    check(text, |server, inner| {
        assert_eq!(
            (cookie(server).misses_max, cookie(inner).misses_max),
            (3, 1)
        );
        assert_eq!(cookie(inner).name, Text::from("d"));
        assert_eq!(inner.challenge.secret, Some(Text::from("s")));
        let script = inner.challenge.script.as_ref().expect("a script");
        assert_eq!(
            script.page,
            [PagePart::Text(Text::from("a")), PagePart::Delay]
        );
        let figures = (script.delay_min_ms, script.delay_range_ms, script.status);
        assert_eq!(figures, (1000, 500, 200));
    });
    let text = "challenge_cookie c; challenge_script delay_min=1 delay_range=1;
                location /inner { challenge_cookie off; challenge_script off; }";
    check(text, |server, inner| {
        assert!(inner.challenge.cookie.is_none() && inner.challenge.script.is_none());
        assert_eq!(
            server.challenge.script.as_ref().expect("a script").status,
            503
        );
    });
}

#[test]
fn what_is_wrong_is_refused() {
    let check = |text: &str, message: &str| {
        let error = loaded(&format!("server {{ {text} }}")).expect_err(text);
        assert!(error.contains(message), "{text}: {error}");
    };
    check("challenge_cookie a=b;", "invalid name of a cookie \"a=b\"");
    check("challenge_cookie \"\";", "invalid name of a cookie");
    check("challenge_cookie c off;", "invalid parameter \"off\"");
    check(
        "challenge_cookie c max_misses=-1;",
        "invalid parameter \"max_misses=-1\"",
    );
    check(
        "challenge_cookie c max_misses=4294967296;",
        "invalid parameter",
    );
    check(
        "challenge_cookie c lifetime=x;",
        "invalid parameter \"lifetime=x\"",
    );
    check(
        "challenge_cookie c lifetime=1 lifetime=2;",
        "\"lifetime\" is duplicate",
    );
    check(
        "challenge_cookie c attribute=;",
        "invalid parameter \"attribute=\"",
    );
    check("challenge_cookie c \"attribute=a;b\";", "invalid parameter");
    check("challenge_cookie c; challenge_cookie d;", "is duplicate");
    check("challenge_secret \"\";", "empty secret");
    check(
        "challenge_script delay_min=1;",
        "\"delay_range\" parameter is not specified",
    );
    check(
        "challenge_script delay_range=1;",
        "\"delay_min\" parameter is not specified",
    );
    check(
        "challenge_script delay_min=0 delay_range=1;",
        "invalid parameter \"delay_min=0\"",
    );
    check(
        "challenge_script delay_min=1 delay_range=86400001ms;",
        "invalid parameter",
    );
    check(
        "challenge_script delay_min=1 delay_min=1;",
        "\"delay_min\" is duplicate",
    );
    check(
        "challenge_script delay_min=1 delay_range=1 status=199;",
        "invalid parameter",
    );
    check(
        "challenge_script delay_min=1 delay_range=1 status=600;",
        "invalid parameter",
    );
    check(
        "challenge_script delay_min=1 delay_range=1 page=;",
        "invalid parameter",
    );
    check(
        "challenge_script delay_min=1 delay_range=1 page=/none;",
        "open() \"/none\" failed (2: No such file or directory)",
    );
}
