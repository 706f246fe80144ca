//! Random locations that pass requests on.

use super::draw::Draw;

/// The groups of servers that locations pass to.
pub(crate) const UPSTREAMS: &str = "
upstream kept { server %ORIGIN%; keepalive 4; }
upstream hashed { hash $arg_n; server %ORIGIN% max_fails=0; server %SECOND% max_fails=0; }
upstream refusing { hash $arg_n; server 127.0.0.1:1 max_fails=0; server %ORIGIN% max_fails=0; server %SECOND% max_fails=0; }
upstream reserve { server 127.0.0.1:1 max_fails=0; server %SECOND% max_fails=0 backup; }
upstream dead { server 127.0.0.1:1 max_fails=0; server 127.0.0.1:2 max_fails=0; }
";

/// What is passed where: targets for `location /LN/`.
const TARGETS: &[&str] = &[
    "http://UP",
    "http://UP",
    "http://UP",
    "http://UP/",
    "http://UP/",
    "http://UP/x/y/",
    "http://UP/x",
    "http://UP$uri$is_args$args",
    "http://UP/v$request_uri",
    "http://UP/e%20f/",
];

const GROUPS: &[&str] = &[
    "%ORIGIN%", "%ORIGIN%", "%ORIGIN%", "kept", "kept", "hashed", "hashed", "refusing", "reserve",
    "dead",
];

/// Each is in a location with a chance of [`SETTING_PERCENT`].
const SETTINGS: &[&str] = &[
    "proxy_buffering off;",
    "proxy_request_buffering off;",
    "client_body_buffer_size 1k;",
    "client_max_body_size 300;",
    "proxy_set_header Host $host;",
    "proxy_set_header X-Real-IP $remote_addr; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;",
    "proxy_set_header Accept-Encoding ''; proxy_set_header X-Two \"$arg_n $request_method\";",
    "proxy_set_header User-Agent ''; proxy_set_header Cookie $http_cookie;",
    "proxy_pass_request_headers off;",
    "proxy_set_body \"n=$arg_n\";",
    "proxy_method PUT;",
    "proxy_hide_header X-Own; proxy_hide_header ETag;",
    "proxy_pass_header X-Accel-Expires; proxy_pass_header X-Pad;",
    "proxy_ignore_headers X-Accel-Redirect X-Accel-Limit-Rate X-Accel-Buffering;",
    "proxy_ignore_headers X-Accel-Charset X-Accel-Expires Expires Cache-Control Set-Cookie Vary;",
    "proxy_intercept_errors on; error_page 404 410 /errors/404.html; error_page 500 503 =200 /errors/50x.html;",
    "proxy_intercept_errors on; error_page 400 401 403 404 500 = @named; error_page 302 = @named;",
    "error_page 502 504 /errors/50x.html;",
    "error_page 502 504 = @second;",
    "proxy_next_upstream error timeout http_500 http_502 http_503 http_404;",
    "proxy_next_upstream off;",
    "proxy_next_upstream error timeout invalid_header non_idempotent http_429 http_403; proxy_next_upstream_tries 2;",
    "proxy_redirect off;",
    "proxy_redirect http://origin.example/ /mine/; proxy_redirect ~^/path/(.*)$ /other/$1;",
    "proxy_cookie_domain origin.example $host; proxy_cookie_path / /c/; proxy_cookie_flags ~. httponly;",
    "add_header X-Added \"$upstream_status $upstream_http_x_own\"; add_header X-Always y always;",
    "expires 1h;",
    "charset utf-8; charset_types text/plain text/css;",
    "default_type text/css;",
    "max_ranges 0;",
    "chunked_transfer_encoding off;",
    "proxy_ignore_client_abort on;",
    "etag off; if_modified_since before;",
    "limit_rate 4m;",
    "keepalive_timeout 0;",
    "output_buffers 1 1k; postpone_output 0;",
    "add_trailer T \"$upstream_status\";",
    "proxy_max_temp_file_size 0;",
    "proxy_headers_hash_max_size 1024;",
    "proxy_buffer_size 1k; proxy_buffers 2 1k; proxy_busy_buffers_size 1k;",
];

const SETTING_PERCENT: usize = 7;

/// A location `/LN/`.
pub(crate) fn draw(draw: &mut Draw, number: usize) -> String {
    let (group, target) = (draw.pick(GROUPS), draw.pick(TARGETS));
    let mut target = target.replace("UP", group);
    let mut settings = draw.some(SETTING_PERCENT, SETTINGS);
    if draw.percent(55) {
        settings.push("proxy_http_version 1.1;");
        if draw.percent(70) {
            settings.push("proxy_set_header Connection '';");
        }
    }
    if draw.percent(10) {
        settings.push("gzip on; gzip_types text/plain text/css; gzip_min_length 20; gzip_proxied any; gzip_vary on;");
    }
    let is_exact_path = target.matches('/').count() == 2 && !target.contains('$');
    let mut name = format!("/L{number}/");
    match draw.below(10) {
        0 => settings.push("rewrite ^/L[0-9]+/(.*)$ /re/$1 break;"),
        1 => {
            name = format!("~ ^/L{number}/(.*)$");
            target = format!("http://{group}/m/$1?$args");
        }
        2 if is_exact_path => name = format!("~* ^/l{number}/"),
        _ => {}
    }
    let settings = without_repetition(&settings);
    format!("location {name} {{ proxy_pass {target}; {settings} }}\n")
}

/// Of settings with the same directive only the first may stand, where a directive may stand once.
fn without_repetition(settings: &[&str]) -> String {
    const MANY: &[&str] = &["proxy_set_header", "error_page", "proxy_hide_header"];
    let mut text = String::new();
    for setting in settings {
        let names = setting
            .split("; ")
            .map(|one| one.split(' ').next().unwrap());
        let mut names = names.filter(|name| !MANY.contains(name));
        if names.all(|name| !text.contains(&format!("{name} "))) {
            text.push_str(setting);
            text.push(' ');
        }
    }
    text
}
