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
        let mut text = WHOLE.as_bytes().to_vec();
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
    for len in 0..=WHOLE.len() {
        let source = Memory::new()
            .with("/etc/nginx/nginx.conf", &WHOLE.as_bytes()[..len])
            .with("/etc/nginx/mime.types", "types { a b; }");
        let is_whole = WHOLE[..len].trim_end().ends_with('}');
        let result = load(&source, &Options::default());
        assert!(is_whole || result.is_err(), "{len}");
        assert!(result.is_ok() || len + 1 < WHOLE.len(), "{len}");
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
