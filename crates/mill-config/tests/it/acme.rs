//! `acme_…`: what is taken, and what is said of the rest.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use mill_config::config::Config;
use mill_config::config::acme::{AccountKey, AcmeChallenge, AcmeIssuer, AcmeKey};
use mill_config::{Memory, Options, load};
use std::sync::Arc;

const SYSTEM: &str = "/etc/ssl/certs/ca-certificates.crt";
const URI: &str = "uri https://ca.example/dir;";

fn source(http: &str) -> Memory {
    let text = format!("events {{}} http {{\n{http}\n}}");
    Memory::new()
        .with("/etc/nginx/nginx.conf", text)
        .with("/etc/nginx/hmac", "c2VjcmV0\n")
        .with(SYSTEM, "roots")
}

fn config_of(source: &Memory) -> Config {
    match load(source, &Options::default()) {
        Ok(loaded) => loaded.config,
        Err(failure) => panic!("{}", failure.error.render("nginx")),
    }
}

fn config(http: &str) -> Config {
    config_of(&source(http))
}

fn issuers(config: &Config) -> &[Arc<AcmeIssuer>] {
    &config.http.as_ref().unwrap().acme_issuers
}

/// The message about a configuration with a resolver, and the line.
fn check(http: &str, expected: &str) {
    let source = source(&format!("resolver 127.0.0.1;\n{http}"));
    let failure = load(&source, &Options::default()).map(drop).unwrap_err();
    let said = failure
        .error
        .line()
        .replace("/etc/nginx/nginx.conf", "FILE");
    assert_eq!(said, format!("[emerg] {expected}"), "{http}");
}

#[test]
fn an_issuer_has_the_modules_defaults() {
    let config = config(&format!("resolver 127.0.0.1; acme_issuer a {{ {URI} }}"));
    let [issuer] = issuers(&config) else {
        panic!("one issuer");
    };
    assert_eq!(issuer.uri, "https://ca.example/dir");
    assert_eq!(issuer.account_key, AccountKey::Kind(AcmeKey::Ecdsa256));
    assert_eq!(issuer.challenge, AcmeChallenge::Http01);
    let state_path = issuer.state_path.as_ref().unwrap();
    assert!(state_path.ends_with(b"/acme_a"), "{}", state_path.display());
    assert_eq!(&*issuer.trusted.as_ref().unwrap().name, SYSTEM.as_bytes());
    assert!(!issuer.accepts_terms && !issuer.common_name_in_csr);
    assert!(issuer.name_servers.is_some());
}

#[test]
fn an_issuer_says_how_it_is_asked() {
    let config = config(
        "acme_issuer a { uri https://192.0.2.1:14000/dir; account_key rsa:3072; challenge tls-alpn;
         contact a@example.com; contact https://example.com/contact; external_account_key kid hmac;
         preferred_chain \"Root X\"; profile short require; ssl_verify off; state_path off;
         accept_terms_of_service; common_name_in_csr on; }",
    );
    let [issuer] = issuers(&config) else {
        panic!("one issuer");
    };
    assert_eq!(issuer.account_key, AccountKey::Kind(AcmeKey::Rsa3072));
    assert_eq!(issuer.challenge, AcmeChallenge::TlsAlpn01);
    assert_eq!(
        issuer.contacts,
        ["mailto:a@example.com", "https://example.com/contact"]
    );
    let key = issuer.external_key.as_ref().unwrap();
    assert_eq!((key.0.as_str(), key.1.as_str()), ("kid", "c2VjcmV0"));
    assert_eq!(issuer.preferred_chain.as_deref(), Some("Root X"));
    assert_eq!(issuer.profile, Some((String::from("short"), true)));
    assert!(issuer.trusted.is_none() && issuer.state_path.is_none());
    assert!(issuer.accepts_terms && issuer.common_name_in_csr);
    // An address needs no resolver.
    assert!(issuer.name_servers.is_none());
}

#[test]
fn names_are_those_of_the_server_unless_others_are_written() {
    let config = config(&format!(
        "resolver 127.0.0.1; acme_issuer a {{ {URI} }}
         server {{ server_name .A.example 192.0.2.1 ~^b; acme_certificate a; }}
         server {{ server_name c.example; acme_certificate a d.example [2001:db8::1] key=ecdsa:384; }}
         server {{ listen 81; server_name a.example; acme_certificate a www.a.example a.example 192.0.2.1; }}"
    ));
    let [issuer] = issuers(&config) else {
        panic!("one issuer");
    };
    let names: Vec<&[String]> = issuer.orders.iter().map(|order| &order.names[..]).collect();
    let first = ["www.a.example", "a.example", "192.0.2.1"].map(String::from);
    let second = ["d.example", "2001:db8::1"].map(String::from);
    assert_eq!(names, [&first[..], &second[..]]);
    assert_eq!(issuer.orders[1].key, AcmeKey::Ecdsa384);
    // What is wanted twice is ordered once.
    let servers = &config.http.as_ref().unwrap().servers;
    let of = |index: usize| servers[index].acme.as_ref().unwrap();
    assert!(Arc::ptr_eq(of(0), of(2)) && !Arc::ptr_eq(of(0), of(1)));
}

#[test]
fn a_kept_certificate_is_read_with_the_configuration() {
    let text = format!(
        "resolver 127.0.0.1; acme_issuer a {{ {URI} state_path /var/acme; }}
         server {{ server_name a.example; acme_certificate a; }}"
    );
    let order = Arc::clone(&issuers(&config(&text))[0].orders[0]);
    assert_eq!(order.saved, None);
    assert!(order.id.starts_with("a.example-"));
    let half = source(&text).with(order.certificate_path(b"/var/acme"), "chain");
    assert_eq!(issuers(&config_of(&half))[0].orders[0].saved, None);
    let both = half.with(order.key_path(b"/var/acme"), "key");
    let saved = issuers(&config_of(&both))[0].orders[0]
        .saved
        .clone()
        .unwrap();
    assert_eq!((&*saved.0, &*saved.1), (&b"chain"[..], &b"key"[..]));
}

#[test]
fn what_cannot_be_an_issuer_is_refused_where_it_stands() {
    let issuer =
        |inside: &str, expected: &str| check(&format!("acme_issuer a {{\n{inside}\n}}"), expected);
    issuer("", "\"uri\" is missing in acme_issuer \"a\" in FILE:3");
    issuer(
        "uri http://a/dir;",
        "invalid uri \"http://a/dir\" in FILE:4",
    );
    issuer(
        "uri https:///dir;",
        "invalid uri \"https:///dir\" in FILE:4",
    );
    issuer("urk x;", "unknown directive \"urk\" in FILE:4");
    issuer(
        "uri a b;",
        "invalid number of arguments in \"uri\" in FILE:4",
    );
    issuer(
        "challenge dns-01;",
        "unsupported challenge: dns-01 in FILE:4",
    );
    issuer(
        "account_key rsa:1024;",
        "unsupported key \"rsa:1024\" in FILE:4",
    );
    issuer(
        "account_key none.pem;",
        "cannot load account key \"none.pem\": BIO_new_file() failed (2: No such file or directory) in FILE:4",
    );
    issuer(
        "external_account_key kid data:+;",
        "invalid base64url encoded value in FILE:4",
    );
    issuer("profile a b;", "invalid value \"b\" in FILE:4");
    issuer(
        "challenge http; challenge http;",
        "\"challenge\" directive is duplicate in FILE:4",
    );
    check(
        &format!("acme_issuer a {{ {URI} }}\nacme_issuer a {{ {URI} }}"),
        "duplicate acme_issuer \"a\" in FILE:4",
    );
    check(
        "acme_shared_zone zone=a;",
        "invalid zone \"zone=a\" in FILE:3",
    );
    check(
        "acme_shared_zone zone=a:1k;",
        "zone \"zone=a:1k\" is too small in FILE:3",
    );
    check(
        "acme_shared_zone a:1m;",
        "\"acme_shared_zone\" directive must have \"zone\" parameter in FILE:3",
    );
}

#[test]
fn what_cannot_be_ordered_is_refused_where_it_stands() {
    let order = |inside: &str, expected: &str| {
        check(
            &format!("acme_issuer a {{ {URI} }}\nserver {{\n{inside}\n}}"),
            expected,
        );
    };
    order(
        "server_name b; acme_certificate x;",
        "issuer \"x\" is missing in FILE:5",
    );
    order(
        "acme_certificate a;",
        "\"acme_certificate\": no identifiers found in \"server_name\" in FILE:5",
    );
    order(
        "server_name *.b.example;\nacme_certificate a;",
        "\"acme_certificate\": invalid server name \"*.b.example\": neither http-01 nor tls-alpn-01 proves a wildcard in FILE:5",
    );
    order(
        "acme_certificate a b..c;",
        "invalid server name \"b..c\": a label of it is empty in FILE:5",
    );
    order(
        "acme_certificate a b_/;",
        "invalid server name \"b_/\": it is no host name in FILE:5",
    );
    order(
        "acme_certificate a key=dsa;",
        "unsupported key \"key=dsa\" in FILE:5",
    );
    order(
        "acme_certificate a b; acme_certificate a c;",
        "\"acme_certificate\" directive is duplicate in FILE:5",
    );
}

#[test]
fn a_name_of_an_authority_needs_a_resolver() {
    let text = format!("acme_issuer a {{ {URI} }}");
    let failure = load(&source(&text), &Options::default())
        .map(drop)
        .unwrap_err();
    let expected =
        "[emerg] acme_issuer \"a\": \"resolver\" is not configured in /etc/nginx/nginx.conf:2";
    assert_eq!(failure.error.line(), expected);
}
