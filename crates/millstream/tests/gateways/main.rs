//! FastCGI, uwsgi, SCGI and memcached with real programs behind: the same requests through nginx and through Millstream,
//! answers compared.
//!
//! All sockets are UNIX-domain ones in a directory of the test's own. Without one of the programs (`setup/ensure test`
//! installs them) a test says so and passes.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "names what was not tested")]

/// Configurations of applications.
mod applications;

/// Records that are no answer, or not all of it.
mod records;

/// What is behind: processes in a directory.
mod programs;

/// The two servers, and what is asked of both.
mod servers;

use programs::Programs;
use servers::Servers;

/// The usual location of PHP, with PATH_INFO.
const PHP: &str = r"
    location ~ [^/]\.php(/|$) {
        fastcgi_split_path_info ^(.+?\.php)(/.*)$;
        fastcgi_index index.php;
        include /etc/nginx/fastcgi_params;
        fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
        fastcgi_param PATH_INFO $fastcgi_path_info;
        fastcgi_pass unix:%DIR%/php;
        %KEEP%
    }
    location /folder/ {
        fastcgi_index index.php;
        include /etc/nginx/fastcgi_params;
        fastcgi_param SCRIPT_FILENAME $document_root/$fastcgi_script_name;
        fastcgi_pass unix:%DIR%/php;
    }
    location /raw/ { fastcgi_param NONE x; fastcgi_pass unix:%DIR%/none; }";

/// What is asked of PHP, whatever runs it.
fn ask_php(servers: &Servers) {
    servers.compare(
        "GET /show.php?a=b HTTP/1.1\r\nX-Y: z\r\n",
        "",
        "200 OK",
        "show.php||a=b|z|",
    );
    servers.compare(
        "GET /show.php/p/q HTTP/1.1\r\n",
        "",
        "200 OK",
        "show.php|/p/q||-|",
    );
    servers.compare("GET /folder/ HTTP/1.1\r\n", "", "200 OK", "in a folder");
    servers.compare("GET /gone.php HTTP/1.1\r\n", "", "404 Not Found", "gone");
    servers.compare(
        "GET /moved.php HTTP/1.1\r\n",
        "",
        "302 Found",
        "Location: /x",
    );
    servers.compare("HEAD /show.php HTTP/1.1\r\n", "", "200 OK", "");
    let content = "a".repeat(100_000);
    let length = "POST /show.php HTTP/1.1\r\nContent-Length: 100000\r\n";
    servers.compare(length, &content, "200 OK", "|100000|100000");
    let chunked = "POST /show.php HTTP/1.1\r\nTransfer-Encoding: chunked\r\n";
    servers.compare(chunked, "3\r\nabc\r\n0\r\n\r\n", "200 OK", "|3|3");
    servers.compare(
        "GET /large.php HTTP/1.1\r\n",
        "",
        "200 OK",
        &"0123456789\n".repeat(9),
    );
    servers.compare("GET /length.php HTTP/1.1\r\n", "", "200 OK", "exactly");
    servers.compare(
        "GET /missing.php HTTP/1.1\r\n",
        "",
        "404 Not Found",
        "Content-Type: text/html",
    );
    servers.compare(
        "GET /raw/ HTTP/1.1\r\n",
        "",
        "502 Bad Gateway",
        "502 Bad Gateway",
    );
}

#[test]
fn php_cgi_answers_as_behind_nginx() {
    let Some(mut programs) = Programs::new(&["php-cgi", "nginx"]) else {
        return;
    };
    programs.php_cgi();
    ask_php(&programs.servers(&PHP.replace("%KEEP%", "")));
}

#[test]
fn php_fpm_answers_as_behind_nginx_on_kept_connections() {
    let Some(mut programs) = Programs::new(&["php-fpm", "nginx"]) else {
        return;
    };
    programs.php_fpm();
    ask_php(&programs.servers(&PHP.replace("%KEEP%", "fastcgi_keep_conn on;")));
}

#[test]
fn standard_error_of_php_is_logged_as_by_nginx() {
    let Some(mut programs) = Programs::new(&["php-cgi", "nginx"]) else {
        return;
    };
    programs.php_cgi();
    let servers = programs.servers(&PHP.replace("%KEEP%", "fastcgi_catch_stderr caught;"));
    servers.compare("GET /warn.php?quiet HTTP/1.1\r\n", "", "200 OK", "warned");
    let line = "FastCGI sent in stderr: \"quiet\" while reading response header from upstream";
    servers.both_log(line);
    servers.compare(
        "GET /warn.php?caught HTTP/1.1\r\n",
        "",
        "502 Bad Gateway",
        "502",
    );
}

#[test]
fn a_uwsgi_application_answers_as_behind_nginx() {
    let Some(mut programs) = Programs::new(&["uwsgi-core", "nginx"]) else {
        return;
    };
    programs.uwsgi();
    let servers = programs
        .servers("location / { include /etc/nginx/uwsgi_params; uwsgi_pass unix:%DIR%/uwsgi; }");
    let post = "POST /x/y?q=1 HTTP/1.1\r\nX-Y: z\r\nContent-Length: 5\r\n";
    servers.compare(post, "hello", "201 Made", "/x/y|q=1|z|5");
    let chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n";
    servers.compare(chunked, "3\r\nabc\r\n0\r\n\r\n", "201 Made", "/||-|3");
    servers.compare("HEAD / HTTP/1.1\r\n", "", "201 Made", "X-App: uwsgi");
}

#[test]
fn a_uwsgi_application_under_tls_answers_as_behind_nginx() {
    let Some(mut programs) = Programs::new(&["uwsgi-core", "nginx", "openssl"]) else {
        return;
    };
    programs.uwsgi_under_tls();
    let servers = programs.servers(
        "include /etc/nginx/uwsgi_params; uwsgi_ssl_verify on; uwsgi_ssl_name a.example;
         uwsgi_ssl_trusted_certificate %DIR%/uwsgi.pem; set $behind suwsgi://unix:%DIR%/suwsgi;
         location / { uwsgi_pass suwsgi://unix:%DIR%/suwsgi; }
         location /named { uwsgi_pass $behind; }
         location /wrong { uwsgi_pass suwsgi://unix:%DIR%/suwsgi; uwsgi_ssl_name b.example; }",
    );
    let post = "POST /x/y?q=1 HTTP/1.1\r\nX-Y: z\r\nContent-Length: 5\r\n";
    servers.compare(post, "hello", "201 Made", "/x/y|q=1|z|5");
    servers.compare("HEAD / HTTP/1.1\r\n", "", "201 Made", "X-App: uwsgi");
    servers.compare("GET /named HTTP/1.1\r\n", "", "201 Made", "/named||");
    servers.compare("GET /wrong HTTP/1.1\r\n", "", "502 Bad Gateway", "");
    servers.both_log("upstream SSL certificate does not match \"b.example\"");
}

#[test]
fn an_scgi_server_answers_as_behind_nginx() {
    let Some(mut programs) = Programs::new(&["python3", "nginx"]) else {
        return;
    };
    programs.scgi();
    let servers = programs
        .servers("location / { include /etc/nginx/scgi_params; scgi_pass unix:%DIR%/scgi; }");
    let post = "POST /x?q=1 HTTP/1.1\r\nX-Y: z\r\nContent-Length: 5\r\n";
    servers.compare(post, "hello", "202 Taken", "/x?q=1|z|5|1");
    let chunked = "POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n";
    servers.compare(chunked, "3\r\nabc\r\n0\r\n\r\n", "202 Taken", "/c|-|3|1");
    servers.compare("GET / HTTP/1.1\r\n", "", "202 Taken", "/|-|0|1");
}

#[test]
fn values_of_memcached_are_answers_as_behind_nginx() {
    let Some(mut programs) = Programs::new(&["memcached", "nginx"]) else {
        return;
    };
    programs.memcached(&[
        ("/a.txt", 0, "hello"),
        ("/b%20c", 2, "flagged"),
        ("/empty", 0, ""),
    ]);
    let servers = programs.servers(
        "types { text/plain txt; } default_type application/octet-stream;
         location / { set $memcached_key $uri; memcached_gzip_flag 2; memcached_pass unix:%DIR%/memcached; }
         location /unset { memcached_pass unix:%DIR%/memcached; }",
    );
    servers.compare("GET /a.txt HTTP/1.1\r\n", "", "200 OK", "hello");
    servers.compare(
        "GET /b%20c HTTP/1.1\r\n",
        "",
        "200 OK",
        "Content-Encoding: gzip",
    );
    servers.compare("GET /empty HTTP/1.1\r\n", "", "200 OK", "Content-Length: 0");
    servers.compare(
        "HEAD /a.txt HTTP/1.1\r\n",
        "",
        "200 OK",
        "Content-Length: 5",
    );
    servers.compare(
        "GET /none HTTP/1.1\r\n",
        "",
        "404 Not Found",
        "404 Not Found",
    );
    servers.both_log("key: \"/none\" was not found by memcached");
    servers.compare("GET /unset HTTP/1.1\r\n", "", "500 Internal", "500");
    servers.both_log("the \"$memcached_key\" variable is not set");
}
