//! Groups of settings are shared between blocks unless a block has one of their directives.

use std::sync::Arc;

use mill_config::config::{Config, Instruction, Location, Server, Settings};
use mill_config::{Memory, Options, load};

fn config(http: &str) -> Config {
    let source = Memory::new().with(
        "/etc/nginx/nginx.conf",
        format!("events {{}} http {{ {http} }}"),
    );
    match load(&source, &Options::default()) {
        Ok(loaded) => loaded.config,
        Err(failure) => panic!("{}", failure.error.render("nginx")),
    }
}

fn servers(config: &Config) -> &[Arc<Server>] {
    let http = config.http.as_ref();
    &http.expect("the configuration has an http block").servers
}

fn location<'a>(server: &'a Server, path: &str) -> &'a Location {
    let found = server.locations.find(path.as_bytes(), &mut Vec::new());
    found.expect("the location exists")
}

/// The groups of this list that are the same in memory, by their names.
fn shared(a: &Settings, b: &Settings) -> String {
    let mut names = Vec::new();
    macro_rules! compare {
        ($($group:ident)*) => {$(
            if Arc::ptr_eq(&a.$group, &b.$group) {
                names.push(stringify!($group));
            }
        )*};
    }
    compare!(http2 tls client_header client_body connection limit_rate limit_req limit_conn access frang challenge rewrite files);
    compare!(open_file autoindex error_page mime charset headers gzip);
    compare!(real_ip resolver proxy proxy_http proxy_tls grpc grpc_http grpc_tls fastcgi fastcgi_params uwsgi uwsgi_params uwsgi_tls scgi scgi_params);
    compare!(proxy_cache fastcgi_cache uwsgi_cache scgi_cache caching slice);
    compare!(memcached memcached_content log stream);
    names.join(" ")
}

/// Everything.
const ALL: &str = "http2 tls client_header client_body connection limit_rate limit_req limit_conn access frang challenge rewrite files open_file \
                   autoindex error_page mime charset headers gzip real_ip resolver proxy proxy_http proxy_tls grpc grpc_http grpc_tls fastcgi fastcgi_params uwsgi uwsgi_params uwsgi_tls scgi scgi_params proxy_cache fastcgi_cache uwsgi_cache scgi_cache caching slice memcached memcached_content log stream";

fn all_but(groups: &str) -> String {
    let mine: Vec<&str> = groups.split(' ').collect();
    let others = ALL.split(' ').filter(|name| !mine.contains(name));
    others.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_block_without_directives_shares_all_groups_with_the_enclosing_block() {
    let config = config(
        "gzip on; server { root /a; location /b { location /b/c { } limit_except GET { } \
         if ($arg_a) { } } } server { }",
    );
    let [first, second] = servers(&config) else {
        panic!("two servers");
    };
    let outer = location(first, "/b");
    assert_eq!(shared(outer, &first.location), ALL);
    assert_eq!(shared(location(first, "/b/c"), outer), ALL);
    let limit = outer.limit_except.as_ref().expect("limit_except is there");
    assert_eq!(shared(&limit.location, outer), ALL);
    let [
        Instruction::If {
            location: Some(inner),
            ..
        },
    ] = &outer.instructions[..]
    else {
        panic!("{:?}", outer.instructions);
    };
    assert_eq!(shared(inner, outer), ALL);
    assert_eq!(
        shared(&second.location, &first.location),
        all_but("files"),
        "servers share what http says"
    );
}

#[test]
fn a_directive_separates_its_own_group_only() {
    let check = |directive: &str, groups: &str| {
        let config = config(&format!("server {{ location /a {{ {directive} }} }}"));
        let server = &servers(&config)[0];
        let found = shared(location(server, "/a"), &server.location);
        assert_eq!(found, all_but(groups), "{directive}");
    };
    check("client_max_body_size 2m;", "client_body");
    check("keepalive_timeout 5s 5s;", "connection");
    check("tcp_nodelay off;", "connection");
    check("limit_rate 10k;", "limit_rate");
    check("limit_req_status 429;", "limit_req");
    check("limit_conn_status 429;", "limit_conn");
    check("allow all;", "access");
    check("internal;", "access");
    check("rewrite_log on;", "rewrite");
    check("alias /b;", "files");
    check("index a;", "files");
    check("disable_symlinks on;", "open_file");
    check("autoindex on;", "autoindex");
    check("error_page 404 /404;", "error_page");
    check("types { }", "mime");
    check("default_type a/b;", "mime");
    check("challenge_cookie a;", "challenge");
    check("charset utf-8;", "charset");
    check("add_header A b;", "headers");
    check("gzip_types *;", "gzip");
    check("access_log off;", "log");
    check("proxy_buffers 9 4k;", "proxy");
    check("proxy_set_header A b;", "proxy_http");
    check("fastcgi_buffering off;", "fastcgi");
    check("gzip on; etag off;", "gzip headers");
    // These are fields of the location itself, or have no effect.
    check("try_files a b;", "");
    check("stub_status;", "");
    check("aio on;", "");
}

#[test]
fn a_separated_group_keeps_the_outer_blocks_other_values() {
    let config = config(
        "gzip on; gzip_comp_level 7; gzip_types a/b; \
         server { client_header_timeout 7s; location /a { gzip_comp_level 8; } }",
    );
    let server = &servers(&config)[0];
    let (outer, inner) = (&server.location.gzip, &location(server, "/a").gzip);
    assert_eq!((outer.comp_level, inner.comp_level), (7, 8));
    assert!(outer.enabled && inner.enabled);
    assert_eq!(outer.types, inner.types);
    let timeout = location(server, "/a").client_header.timeout;
    assert_eq!(timeout.as_secs(), 7);
}

#[test]
fn a_location_costs_one_pointer_a_group() {
    let groups = ALL.split_ascii_whitespace().count();
    assert_eq!(size_of::<Settings>(), groups * size_of::<usize>());
    let many = (0..1000).map(|index| format!("location /{index}/ {{ }} "));
    let config = config(&format!("server {{ {} }}", many.collect::<String>()));
    let server = &servers(&config)[0];
    let sharing = server
        .locations
        .iter()
        .filter(|location| shared(location, &server.location) == ALL);
    assert_eq!(sharing.count(), 1000);
}
