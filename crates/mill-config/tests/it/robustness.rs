//! Whatever the bytes are, parsing ends with a configuration or an error, never with a panic.

use mill_config::{Bundle, Memory, Options, load};

/// A configuration with a bit of everything, to be corrupted.
const WHOLE: &str = r#"
user a b; worker_processes auto; worker_cpu_affinity auto 0101; error_log stderr info; env A=b;
events { worker_connections 10; use epoll; multi_accept on; debug_connection 10.0.0.0/8; }
http {
  include mime.types; types { text/html html; } log_format m escape=json '$uri "${host}" $arg_a';
  access_log /a m buffer=4k flush=1s if=$http_x; open_log_file_cache max=10 min_uses=2;
  map $host $y { hostnames; default 0; *.a.org 1; ~^(?<n>x+)$ $n; } gzip on; gzip_types *;
  server { listen 80 default_server backlog=5 so_keepalive=1s:2s:3; server_name .a.org ~^(.+)$ b.*;
    if ($uri ~* "\.(gif)$") { return 301 https://$host/$1; } rewrite ^/(.*)\? /x?$1? last;
    location = /a { alias /b; expires modified +1d; } location ~ ^/(?<u>\w+)/ { root /$u; }
    location /n/ { limit_except GET { deny all; allow 10.0.0.0/8; } try_files $uri/ =404;
      if (!-f $request_filename) { set $z "a\"b\n"; break; } error_page 404 =200 @f; }
    location @f { add_header A "$y" always; return 200 'x'; } } }
"#;

/// The same for what passes requests on.
const PASSING: &str = r#"
events { }
http {
  resolver 127.0.0.1 [::1]:54 valid=30s ipv6=off; set_real_ip_from 10.0.0.0/8; real_ip_header proxy_protocol;
  upstream a { zone z 64k; hash $uri consistent; server 127.0.0.1:81 weight=2 max_conns=3 fail_timeout=1m;
    server unix:/a.sock down; server a.b service=s resolve route=r; keepalive 16 local; queue 9 timeout=5s;
    sticky cookie c domain=$host path=/ expires=1h httponly samesite=lax; }
  upstream b { least_time header inflight; server [::1]:82 slow_start=5s; server [::1]:83 backup; }
  upstream c { random two least_time=last_byte; state /s.conf; }
  match m { status ! 300-399 500; header A ~ "a+"; header ! B; body !~ "c"; require $upstream_http_a; }
  server { listen 80 proxy_protocol; status_zone s; location /a/ { proxy_pass http://a/b?c; health_check match=m port=9;
      proxy_redirect ~*^/(?<x>.) /$x; proxy_cookie_flags ~a secure samesite=$arg_a; proxy_cookie_domain .a .b;
      proxy_set_header Host $proxy_host; proxy_next_upstream error http_502; proxy_bind $remote_addr transparent;
      proxy_buffers 4 8k; proxy_temp_path /t 1 2; proxy_store_access user:rw all:r; proxy_limit_rate 1m;
      if ($arg_a) { proxy_pass http://unix:/a; } limit_except GET { proxy_pass http://localhost:1; } }
    location ~ \.php(/|$) { fastcgi_split_path_info ^(.+\.php)(/.+)$; fastcgi_param A $fastcgi_path_info if_not_empty;
      fastcgi_pass $arg_b:9000; } location /u { uwsgi_pass uwsgi://localhost:1; uwsgi_modifier1 9; }
    location /m { set $memcached_key $uri; memcached_pass b; } location /api/ { millstream_api write=on; } } }
"#;

/// The same for caches.
const CACHING: &str = r#"
events { }
http {
  proxy_cache_path /c levels=1:2 use_temp_path=off keys_zone=c:1m inactive=1h max_size=1g min_free=1m memory=8m loader_sleep=1ms
    manager_files=9 purger=on purger_threshold=5ms; cache_status "a b"; cache_tags Cache-Tag; cache_rules rfc9111;
  server { listen 80; proxy_cache $arg_c; proxy_cache_valid 1m; proxy_cache_valid 404 any 5s; proxy_cache_methods POST;
    location / { proxy_cache c; proxy_cache_key $host$uri; proxy_cache_use_stale error updating http_500; slice 1m;
      proxy_cache_bypass $arg_a 0; proxy_no_cache $http_a; proxy_cache_purge $arg_p; proxy_cache_lock_age 1s; }
    location /f { fastcgi_cache f; cache_targeted CDN-Cache-Control; cache_object_max 1g; proxy_store on; } }
  fastcgi_cache_path /f keys_zone=f:8k; fastcgi_cache_key $request_uri; uwsgi_cache off; }
"#;

/// xorshift64*: the same sequence for the same seed everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let value = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(value).expect("31 bits fit") % limit.max(1)
    }
}

fn spoil(text: &mut Vec<u8>, random: &mut Random) {
    const PIECES: &[&[u8]] = &[
        b"{",
        b"}",
        b";",
        b"\"",
        b"'",
        b"\\",
        b"$",
        b"${",
        b"#",
        b"\n",
        b" ",
        b"(",
        b")",
        b"~",
        b"\0",
        b"\xff",
        b"include mime.types;",
        b"location / {",
        b"if ($a) {",
        b"99999999999999999999",
        b"[",
        b"*",
        b"(?=a)",
        b"\\1",
        b"map $a $b {",
        b"@",
        b"=",
        b"-1",
    ];
    for _ in 0..=random.next(6) {
        let at = random.next(text.len());
        match random.next(4) {
            0 => {
                let end = (at + random.next(20)).min(text.len());
                text.drain(at..end);
            }
            1 => {
                let byte = u8::try_from(random.next(256)).expect("it is below 256");
                if let Some(place) = text.get_mut(at) {
                    *place = byte;
                }
            }
            2 => {
                let piece = PIECES[random.next(PIECES.len())];
                text.splice(at..at, piece.iter().copied());
            }
            _ => {
                let end = (at + random.next(200)).min(text.len());
                let copy = text[at..end].to_vec();
                let to = random.next(text.len());
                text.splice(to..to, copy);
            }
        }
    }
}

#[test]
fn corrupted_configurations_never_panic() {
    let seed = 0x5eed_0001;
    println!("seed {seed:#x}");
    let mut random = Random(seed);
    for round in 0..3000 {
        let whole = [WHOLE, PASSING, CACHING][round % 3];
        let mut text = whole.as_bytes().to_vec();
        spoil(&mut text, &mut random);
        let source = Memory::new()
            .with("/etc/nginx/nginx.conf", &text)
            .with("/etc/nginx/mime.types", "types { a b; }");
        match load(&source, &Options::default()) {
            Ok(loaded) => {
                for remark in loaded.remarks {
                    remark.render("nginx");
                }
            }
            Err(failure) => {
                let text = failure.error.render("nginx");
                assert!(text.starts_with("nginx: [emerg] "), "round {round}: {text}");
            }
        }
    }
}

#[test]
fn every_beginning_of_a_configuration_is_answered() {
    for whole in [WHOLE, PASSING, CACHING] {
        for len in 0..=whole.len() {
            let source = Memory::new()
                .with("/etc/nginx/nginx.conf", &whole.as_bytes()[..len])
                .with("/etc/nginx/mime.types", "types { a b; }");
            let is_whole = whole[..len].trim_end().ends_with('}');
            let result = load(&source, &Options::default());
            assert!(is_whole || result.is_err(), "{len}");
            assert!(result.is_ok() || len + 1 < whole.len(), "{len}");
        }
    }
}

#[test]
fn deep_nesting_ends_with_an_error() {
    let text = format!(
        "events {{}} http {{ server {{ {}",
        "location / { ".repeat(100_000)
    );
    let source = Memory::new().with("/etc/nginx/nginx.conf", text);
    let failure = load(&source, &Options::default()).unwrap_err();
    assert!(
        failure.error.message.starts_with("more than 100 blocks"),
        "{:?}",
        failure.error
    );
}

#[test]
fn arbitrary_bytes_are_no_bundle() {
    let mut random = Random(0x5eed_0002);
    for _ in 0..1000 {
        let mut bytes = b"MBC1".to_vec();
        for _ in 0..random.next(64) {
            bytes.push(u8::try_from(random.next(4)).unwrap());
        }
        // Decoding may succeed by chance; then it is the same again.
        if let Some(bundle) = Bundle::decode(&bytes) {
            assert_eq!(bundle.encode(), bytes);
        }
    }
}
