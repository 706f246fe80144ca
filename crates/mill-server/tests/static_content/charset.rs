//! `charset`, `charset_types`, `override_charset`, `source_charset`: what `Content-Type` says.

use crate::server::Server;

/// Checks the second part of each answer, the content type.
fn check(server: &Server, asked: &str, expected: &str) {
    let answer = server.ask(asked);
    let content_type = answer.split(" | ").nth(1).unwrap_or_default();
    assert_eq!(content_type, expected, "{asked}: {answer}");
}

#[test]
fn the_character_set_is_named_wherever_text_is_sent() {
    let server = Server::new(
        "charset utf-8;
         location /css { default_type text/css; return 200 x; }
         location /200 { return 200 text; }
         location /404 { return 404 text; }
         location /301 { return 301 /a; }
         location /302 { return 302 /a; }
         location /303 { return 303 /a; }
         location /308 { return 308 /a; }
         location /off/ { alias /srv/; charset off; }
         location /if/ { alias /srv/; if ($arg_off) { charset off; } }
         location /page/ { error_page 404 /long.html; }
         location /moved/ { error_page 404 =301 /long.html; }
         location /status { stub_status; }
         location /list/ { alias /srv/dir/; index none; autoindex on; }",
    );
    check(&server, "GET /a.txt", "text/plain; charset=utf-8");
    check(&server, "GET /dir/", "text/html; charset=utf-8");
    check(&server, "HEAD /a.txt", "text/plain; charset=utf-8");
    check(&server, "GET /missing", "text/html; charset=utf-8");
    check(&server, "GET /css", "text/css");
    check(&server, "GET /200", "text/plain; charset=utf-8");
    check(&server, "GET /404", "text/plain; charset=utf-8");
    check(&server, "GET /301", "text/html");
    check(&server, "GET /302", "text/html");
    check(&server, "GET /303", "text/html; charset=utf-8");
    check(&server, "GET /308", "text/html; charset=utf-8");
    check(&server, "GET /off/a.txt", "text/plain");
    check(&server, "GET /if/a.txt", "text/plain; charset=utf-8");
    check(&server, "GET /if/a.txt?off=1", "text/plain");
    check(&server, "GET /page/", "text/html; charset=utf-8");
    check(&server, "GET /moved/", "text/html");
    check(&server, "GET /status", "text/plain; charset=utf-8");
    check(&server, "GET /list/", "text/html; charset=utf-8");
    check(
        &server,
        "GET /a.txt | Range: bytes=0-1",
        "text/plain; charset=utf-8",
    );
    let parts = server.ask("GET /a.txt | Range: bytes=0-0,2-2");
    let named = "\r\nContent-Type: text/plain; charset=utf-8\r\n";
    assert_eq!(parts.matches(named).count(), 2, "{parts}");
    let etag = "\"6955b900-a\"";
    check(
        &server,
        &format!("GET /a.txt | If-None-Match: {etag}"),
        "modified Thu, 01 Jan 2026 00:00:00 GMT",
    );
}

#[test]
fn a_type_counts_with_its_parameters() {
    let server = Server::new(
        "charset utf-8; gzip on; gzip_types text/plain; gzip_min_length 1;
         location /own { default_type 'text/plain; charset=koi8-r'; return 200 text; }
         location /all { charset_types *; default_type 'text/plain; charset=koi8-r'; return 200 text; }
         location /css { charset_types text/css; default_type text/css; return 200 text; }
         location /html { charset_types text/css; default_type text/html; return 200 text; }
         location /plain { charset_types text/css; default_type text/plain; return 200 text; }
         location /zip { return 200 text; }
         location /empty { charset_types *; default_type ''; return 200 text; }",
    );
    let zipped = "Content-Encoding: gzip";
    let check_zip = |asked: &str, content_type: &str, is_zipped: bool| {
        let asked = format!("GET {asked} | Accept-Encoding: gzip");
        check(&server, &asked, content_type);
        assert_eq!(server.ask(&asked).contains(zipped), is_zipped, "{asked}");
    };
    check_zip("/own", "text/plain; charset=koi8-r", false);
    check_zip("/all", "text/plain; charset=koi8-r; charset=utf-8", false);
    check_zip("/css", "text/css; charset=utf-8", false);
    check_zip("/html", "text/html; charset=utf-8", true);
    check_zip("/plain", "text/plain", true);
    check_zip("/zip", "text/plain; charset=utf-8", true);
    check(&server, "GET /empty", "text");
}

#[test]
fn a_variable_may_name_it() {
    let server = Server::new("charset $arg_c; source_charset koi8-r;");
    let other = Server::new("charset $arg_c; add_header X-Type $sent_http_content_type;");
    check(&other, "GET /a.txt?c=abc", "text/plain; charset=abc");
    check(&other, "GET /a.txt?c=", "text/plain");
    check(&other, "GET /a.txt", "text/plain");
    let answer = other.ask("GET /a.txt?c=abc");
    assert!(answer.contains("X-Type: text/plain |"), "{answer}");

    check(&server, "GET /a.txt?c=KOI8-R", "text/plain; charset=KOI8-R");
    check(&server, "GET /a.txt", "text/plain");
    assert_eq!(server.last_error(), "");
    check(&server, "GET /a.txt?c=utf-8", "text/plain");
    assert_eq!(
        server.last_error(),
        "error no \"charset_map\" between the charsets \"koi8-r\" and \"utf-8\" \
         while sending response to client"
    );
}

#[test]
fn xml_has_a_character_set_of_its_own() {
    let xml = "autoindex on; autoindex_format xml; location = /none/a { return 200; }";
    let with = |directives: &str| Server::new(&format!("{directives} {xml}"));
    let own = "text/xml; charset=utf-8";
    check(&with(""), "GET /none/", own);
    check(&with("charset koi8-r;"), "GET /none/", own);
    check(
        &with("charset UTF-8; override_charset on;"),
        "GET /none/",
        "text/xml; charset=UTF-8",
    );
    let server = with("charset koi8-r; override_charset on;");
    check(&server, "GET /none/", own);
    assert_eq!(
        server.last_error(),
        "error no \"charset_map\" between the charsets \"utf-8\" and \"koi8-r\""
    );
    let json = Server::new("charset utf-8; autoindex on; autoindex_format json;");
    check(&json, "GET /none/", "application/json");
}

#[test]
fn a_listing_in_utf_8_counts_characters() {
    let name = "ü".repeat(30);
    let listed = |directives: &str| {
        let server = Server::new(&format!("autoindex on; {directives}"));
        server.world.files().write(&format!("/srv/none/{name}"), "");
        server.content_of("GET /none/?c=Utf-8")
    };
    let whole = format!(">{name}</a>{:>21}", ' ');
    let cut = format!(">{}\u{fffd}..&gt;</a> ", "ü".repeat(23));
    for directives in ["charset utf-8;", "charset $arg_c;"] {
        assert!(listed(directives).contains(&whole), "{directives}");
    }
    for directives in ["", "charset koi8-r;", "charset utf-8; source_charset $uri;"] {
        assert!(listed(directives).contains(&cut), "{directives}");
    }
}
