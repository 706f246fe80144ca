//! Which server and which location answer: nginx's order, case by case.

use mill_config::config::{Config, Location, LocationName};
use mill_config::{Memory, Options, load};

fn config(http: &str) -> Config {
    let text = format!("events {{}}\nhttp {{ {http} }}");
    let source = Memory::new().with("/etc/nginx/nginx.conf", text);
    match load(&source, &Options::default()) {
        Ok(loaded) => loaded.config,
        Err(failure) => panic!("{}", failure.error.render("nginx")),
    }
}

fn shown(location: &Location) -> String {
    let text = String::from_utf8_lossy(location.name.text()).into_owned();
    let mark = match &location.name {
        LocationName::Exact(_) => "=",
        LocationName::Prefix {
            final_match: true, ..
        } => "^~",
        LocationName::Pattern(_) => "~",
        _ => "",
    };
    format!("{mark}{text}")
}

#[test]
fn locations_are_found_in_nginx_order() {
    let config = config(
        "server { \
         location = / { } location / { } location = /exact { } location /exact { } \
         location /docs/ { } location ^~ /images/ { } location ~* \\.(gif|jpg)$ { } \
         location ~ ^/docs/secret { } location /docs/deep/ { } location @named { } \
         location /nest { location /nest/in { } location = /nest/eq { } location ~ \\.in$ { } } \
         location ^~ /still { location ~ \\.php$ { } } \
         location ~ ^/re { location ~ \\.x$ { } } }",
    );
    let server = &config
        .http
        .as_ref()
        .expect("the configuration has an http block")
        .servers[0];
    let check = |path: &str, expected: &str| {
        let found = server.locations.find(path.as_bytes(), &mut Vec::new());
        let found = found.map_or_else(|| String::from("none"), |location| shown(location));
        assert_eq!(found, expected, "{path}");
    };
    check("/", "=/");
    check("/index.html", "/");
    check("/exact", "=/exact");
    check("/exact/", "/exact");
    check("/exactly", "/exact");
    check("/docs", "/");
    check("/docs/a", "/docs/");
    check("/docs/deep/a", "/docs/deep/");
    check("/docs/deep", "/docs/");
    check("/docs/a.GIF", "~\\.(gif|jpg)$");
    check("/docs/secret", "~^/docs/secret");
    check("/images/a.gif", "^~/images/");
    check("/images", "/");
    check("/nest", "/nest");
    check("/nest/inner", "/nest/in");
    check("/nest/eq", "=/nest/eq");
    check("/nest/eq.gif", "~\\.(gif|jpg)$");
    check("/nest/a.in", "~\\.in$");
    check("/still/a.php", "~\\.php$");
    check("/still/a.gif", "^~/still");
    check("/re/a", "~^/re");
    check("/re/a.x", "~\\.x$");
    check("no-slash", "none");
    assert!(server.named_location(b"@named").is_some());
    assert!(server.named_location(b"@other").is_none());
}

#[test]
fn captures_of_the_deciding_expression_are_left() {
    let config = config("server { location / { } location ~ ^/u/(\\w+)/(?<rest>.*)$ { } }");
    let server = &config
        .http
        .as_ref()
        .expect("the configuration has an http block")
        .servers[0];
    let mut captures = Vec::new();
    let location = server.locations.find(b"/u/joe/a/b", &mut captures).unwrap();
    assert_eq!(captures, [Some(0..10), Some(3..6), Some(7..10)]);
    let LocationName::Pattern(pattern) = &location.name else {
        panic!("{location:?}")
    };
    assert_eq!(pattern.named(), [(2, 0)]);
    server.locations.find(b"/other", &mut captures).unwrap();
    assert_eq!(captures.len(), 3);
}

#[test]
fn servers_are_found_by_name() {
    let config = config(
        "server { listen 80; server_name first; } \
         server { listen 80 default_server; server_name default; } \
         server { server_name exact.org WWW.Exact.org; } \
         server { server_name *.wild.org; } server { server_name .both.org; } \
         server { server_name *.deep.wild.org; } server { server_name mail.*; } \
         server { server_name ~^re(?<n>\\d+)\\.org$; } server { server_name ''; }",
    );
    let hosts = &config
        .http
        .as_ref()
        .expect("the configuration has an http block")
        .listeners[0]
        .hosts;
    let check = |host: &str, expected: &str| {
        let found = hosts.find(host.as_bytes(), &mut Vec::new());
        assert_eq!(found.name, expected, "{host}");
    };
    check("first", "first");
    check("unknown", "default");
    check("exact.org", "exact.org");
    check("EXACT.ORG.", "exact.org");
    check("www.exact.org", "exact.org");
    check("a.wild.org", "*.wild.org");
    check("wild.org", "default");
    check("x.deep.wild.org", "*.deep.wild.org");
    check("both.org", "both.org");
    check("a.b.both.org", "both.org");
    check("mail.example.com", "mail.*");
    check("re42.org", "~^re(?<n>\\d+)\\.org$");
    check("RE42.org", "~^re(?<n>\\d+)\\.org$");
    check("rex.org", "default");
    check("", "");
}
