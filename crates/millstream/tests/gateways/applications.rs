//! The configurations that applications in PHP recommend, with pages in the place of theirs.

use crate::programs::Programs;
use crate::servers::Servers;
use std::fs;

/// Says what it was asked.
const INDEX: &str = "<?php $s = $_SERVER; header('X-Powered-By: app'); header('X-Page: index');
    if (str_contains($s['REQUEST_URI'], 'absent')) http_response_code(404);
    echo $s['REQUEST_METHOD'], '|', $s['REQUEST_URI'], '|', $s['SCRIPT_NAME'], '|', $s['PATH_INFO'] ?? '', '|',
    $s['QUERY_STRING'], '|', strlen(file_get_contents('php://input')), '|', $s['front_controller_active'] ?? '';";

/// Both servers with the configuration of an application; `None` if a program is missing.
fn serve(configuration: &str) -> Option<(Programs, Servers)> {
    let mut programs = Programs::new(&["php-fpm", "nginx"])?;
    let www = programs.directory.join("www");
    for directory in [
        "wp-admin",
        "uploads",
        "config",
        ".git",
        ".well-known/acme-challenge",
    ] {
        fs::create_dir_all(www.join(directory)).unwrap();
    }
    for (name, text) in [
        ("index.php", INDEX),
        ("remote.php", INDEX),
        ("wp-admin/index.php", INDEX),
        ("uploads/evil.php", INDEX),
        ("style.css", "a { color: red }\n"),
        ("config/config.php", "<?php echo 'secret';"),
        (".git/config", "secret"),
        (".well-known/acme-challenge/token", "token"),
    ] {
        fs::write(www.join(name), text).unwrap();
    }
    programs.php_fpm();
    let servers = programs.servers(configuration);
    Some((programs, servers))
}

/// Asks both servers; each row is a request line without version, the status, and a text of the answer.
fn compare(servers: &Servers, rows: &[(&str, &str, &str)]) {
    for (request, status, text) in rows {
        servers.compare(&format!("{request} HTTP/1.1\r\n"), "", status, text);
    }
}

const MOVED: &str = "301 Moved Permanently";
const FORBIDDEN: &str = "403 Forbidden";
const NOT_FOUND: &str = "404 Not Found";

#[test]
fn wordpress_is_served_as_by_nginx() {
    let Some((_programs, servers)) = serve(include_str!("applications/wordpress.conf")) else {
        return;
    };
    compare(
        &servers,
        &[
            ("GET /", "200 OK", "GET|/|/index.php|||0|"),
            ("HEAD /", "200 OK", "X-Page: index"),
            (
                "GET /2024/02/a-post/?p=1",
                "200 OK",
                "|/2024/02/a-post/?p=1|/index.php||p=1|",
            ),
            (
                "GET /a%20b/%C3%A9?x=%26",
                "200 OK",
                "|/a%20b/%C3%A9?x=%26|/index.php||x=%26|",
            ),
            ("GET /wp-admin", MOVED, "Location: http://a/wp-admin/"),
            ("GET /wp-admin/", "200 OK", "|/wp-admin/index.php|"),
            (
                "GET /index.php/path/info?q",
                "200 OK",
                "|/index.php/path/info?q|/index.php|",
            ),
            ("GET /none.php", NOT_FOUND, "404 Not Found"),
            ("GET /absent", NOT_FOUND, "|/absent|"),
            ("GET /uploads/evil.php", FORBIDDEN, "403"),
            ("GET /.git/config", FORBIDDEN, "403"),
            (
                "GET /style.css",
                "200 OK",
                "Expires: Thu, 31 Dec 2037 23:55:55 GMT",
            ),
            ("GET /none.css", NOT_FOUND, "404 Not Found"),
            ("GET /robots.txt", NOT_FOUND, "404 Not Found"),
        ],
    );
    let post = "POST /wp-comments-post HTTP/1.1\r\nContent-Length: 5\r\n";
    servers.compare(
        post,
        "a=b&c",
        "200 OK",
        "POST|/wp-comments-post|/index.php|||5|",
    );
}

#[test]
fn laravel_is_served_as_by_nginx() {
    let Some((_programs, servers)) = serve(include_str!("applications/laravel.conf")) else {
        return;
    };
    compare(
        &servers,
        &[
            ("GET /", "200 OK", "GET|/|/index.php|||0|"),
            (
                "GET /users/1?a=b",
                "200 OK",
                "|/users/1?a=b|/index.php||a=b|",
            ),
            ("GET /style.css", "200 OK", "X-Frame-Options: SAMEORIGIN"),
            ("GET /absent/page", NOT_FOUND, "|/absent/page|"),
            ("GET /none.php", "200 OK", "|/none.php|/index.php|"),
            ("GET /index.php/x", "200 OK", "|/index.php/x|"),
            ("GET /.git/config", FORBIDDEN, "403"),
            ("GET /.well-known/acme-challenge/token", "200 OK", "token"),
            ("GET /favicon.ico", NOT_FOUND, "|/favicon.ico|"),
            ("DELETE /users/1", "200 OK", "DELETE|/users/1|"),
        ],
    );
    let put = "PUT /users/1 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n";
    servers.compare(
        put,
        "3\r\nabc\r\n0\r\n\r\n",
        "200 OK",
        "PUT|/users/1|/index.php|||3|",
    );
}

#[test]
fn nextcloud_is_served_as_by_nginx() {
    let Some((_programs, servers)) = serve(include_str!("applications/nextcloud.conf")) else {
        return;
    };
    compare(
        &servers,
        &[
            ("GET /", "200 OK", "|/index.php|"),
            (
                "GET /apps/files/?dir=/a",
                "200 OK",
                "|/index.php|/apps/files/|dir=/a|0|true",
            ),
            (
                "GET /index.php/apps/x",
                "200 OK",
                "|/index.php/apps/x|/index.php|/apps/x|",
            ),
            (
                "GET /remote.php/dav/files/a%20b",
                "200 OK",
                "|/remote.php|/dav/files/a b|",
            ),
            (
                "PROPFIND /remote.php/dav/",
                "200 OK",
                "PROPFIND|/remote.php/dav/|/remote.php|/dav/|",
            ),
            (
                "GET /remote/x",
                MOVED,
                "Location: http://a/remote.php/remote/x",
            ),
            (
                "GET /.well-known/caldav",
                MOVED,
                "Location: http://a/remote.php/dav/",
            ),
            (
                "GET /.well-known/webfinger?r=1",
                MOVED,
                "/index.php/.well-known/webfinger?r=1",
            ),
            ("GET /.well-known/acme-challenge/token", "200 OK", "token"),
            ("GET /config/config.php", NOT_FOUND, "404"),
            ("GET /.git/config", NOT_FOUND, "404"),
            ("GET /occ", NOT_FOUND, "404"),
            ("GET /none.php/x", "200 OK", "|/index.php|/none.php/x|"),
            (
                "GET /style.css",
                "200 OK",
                "Cache-Control: public, max-age=15778463",
            ),
            ("GET /core/none.js", "200 OK", "|/index.php|/core/none.js|"),
            ("GET /absent", NOT_FOUND, "404"),
        ],
    );
    let agent = "GET / HTTP/1.1\r\nUser-Agent: DavClnt\r\n";
    servers.compare(
        agent,
        "",
        "302 Moved Temporarily",
        "Location: http://a/remote.php/webdav/",
    );
    let upload = "PUT /remote.php/dav/f HTTP/1.1\r\nContent-Length: 100000\r\n";
    let content = "a".repeat(100_000);
    servers.compare(
        upload,
        &content,
        "200 OK",
        "PUT|/remote.php/dav/f|/remote.php|/dav/f||100000|",
    );
}
