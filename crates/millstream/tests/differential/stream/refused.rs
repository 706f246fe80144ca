//! Configurations that are refused.

use super::load_module;
use crate::content::Directory;
use crate::server::{Program, command_of};
use std::fs;

/// Each in the main context.
const TEXTS: &[&str] = &[
    "stream { server { listen 127.0.0.1:1; } }",
    "stream { server { proxy_pass 127.0.0.1:2; } }",
    "stream { server { listen 1; proxy_pass 127.0.0.1; } }",
    "stream { server { listen 1; proxy_pass nosuch.invalid:1; } }",
    "stream { server { listen 1; proxy_pass u; } }",
    "stream { server { listen 1; proxy_pass unix:; } }",
    "stream { upstream u { } server { listen 1; proxy_pass u; } }",
    "stream { upstream u { server 127.0.0.1; } server { listen 1; proxy_pass u; } }",
    "stream { upstream u { server 127.0.0.1:2 backup; } server { listen 1; proxy_pass u; } }",
    "stream { upstream u { server 127.0.0.1:2 route=a; } }",
    "stream { upstream u { server 127.0.0.1:2 drain; } }",
    "stream { upstream u { server 127.0.0.1:2 weight=0; } }",
    "stream { upstream u { server 127.0.0.1:2 max_fails=x; } }",
    "stream { upstream u { server 127.0.0.1:2; ip_hash; } }",
    "stream { upstream u { server 127.0.0.1:2; keepalive 4; } }",
    "stream { upstream u { server 127.0.0.1:2; } server { listen 1; proxy_pass u:3; } }",
    "stream { upstream u { server 127.0.0.1:2; } upstream u { server 127.0.0.1:2; } }",
    "stream { upstream u { hash; server 127.0.0.1:2; } }",
    "stream { upstream u { hash a b; server 127.0.0.1:2; } }",
    "stream { upstream u { least_conn; hash $remote_addr; server 127.0.0.1:2; } }",
    "stream { upstream u { random three; server 127.0.0.1:2; } }",
    "stream { upstream u { random two x; server 127.0.0.1:2; } }",
    "stream { server { listen 1; return a; } server { listen 1; return a; } }",
    "stream { server { listen 1; listen *:1; return a; } }",
    "stream { server { listen 1 default_server; return a; } }",
    "stream { server { listen 1 nosuch; return a; } }",
    "stream { server { listen 1 backlog=x; return a; } }",
    "stream { server { listen 1 so_keepalive=x; return a; } }",
    "stream { server { listen [::]:1 ipv6only=ox; return a; } }",
    "stream { server { listen 1 rcvbuf=x; return a; } }",
    "stream { server { listen 1 ssl; return a; } }",
    "stream { server { listen unix:; return a; } }",
    "stream { server { listen 0; return a; } }",
    "stream { server { listen 70000; return a; } }",
    "stream { server { listen :1; return a; } }",
    "stream { server { listen nosuch.invalid:1; return a; } }",
    "stream { server { listen 1; proxy_pass 127.0.0.1:2; proxy_pass 127.0.0.1:2; } }",
    "stream { server { listen 1; return a; return a; } }",
    "stream { server { listen 1; set a b; return a; } }",
    "stream { server { listen 1; set $remote_addr b; return a; } }",
    "stream { server { listen 1; return a; proxy_timeout x; } }",
    "stream { server { listen 1; return a; proxy_connect_timeout 1x; } }",
    "stream { server { listen 1; return a; proxy_half_close x; } }",
    "stream { server { listen 1; return a; proxy_upload_rate x; } }",
    "stream { server { listen 1; return a; proxy_bind x; } }",
    "stream { server { listen 1; return a; proxy_bind 127.0.0.1 x; } }",
    "stream { server { listen 1; return a; proxy_next_upstream error; } }",
    "stream { server { listen 1; return a; proxy_next_upstream_tries x; } }",
    "stream { server { listen 1; return a; proxy_protocol maybe; } }",
    "stream { server { listen 1; return a; preread_buffer_size x; } }",
    "stream { server { listen 1; return a; ssl_preread maybe; } }",
    "stream { server { listen 1; return a; ssl_alpn; } }",
    "stream { server { listen 1; return a; access_log /dev/null; } }",
    "stream { server { listen 1; return a; access_log /dev/null combined; } }",
    "stream { server { listen 1; return a; allow x; } }",
    "stream { server { listen 1; return a; set_real_ip_from nosuch.invalid; } }",
    "stream { server { listen 1; return a; root /; } }",
    "stream { server { listen 1; return a; gzip on; } }",
    "stream { server { listen 1; location / { } } }",
    "stream { proxy_pass a; }",
    "stream { listen 1; }",
    "stream { resolver; }",
    "stream { variables_hash_max_size x; }",
    "stream { map $a { } }",
    "stream { map a $remote_addr { } }",
    "stream { map $protocol $a { x y z; } server { listen 1; return $a; } }",
    "stream { split_clients $remote_addr $a { 50% x; 60% y; } }",
    "stream { split_clients $remote_addr $a { 0% x; } }",
    "stream { split_clients $remote_addr $a { 5 x; } }",
    "stream { split_clients $remote_addr $a { 1.234% x; } }",
    "stream { split_clients $remote_addr $a { * x; 5% y; } }",
    "stream { split_clients $remote_addr $a { 50% x; 50% y; * z; } }",
    "stream { split_clients $remote_addr a { 5% x; } }",
    "stream { geo a { default x; } }",
    "stream { geo a $b { default x; } }",
    "stream { geo $a { 10.0.0.0/33 x; } }",
    "stream { geo $a { 10.0.0.1/8 x; } }",
    "stream { geo $a { nonsense x; } }",
    "stream { geo $a { 10.0.0.0/8 x y; } }",
    "stream { geo $a { 10.0.0.0/8 x; 10.0.0.0/8 y; } }",
    "stream { geo $a { delete 10.0.0.0/8; } }",
    "stream { geo $a { 10.0.0.0/8 x; ranges; } }",
    "stream { geo $a { ranges; 10.0.0.0/8 x; } }",
    "stream { geo $a { ranges; 10.0.0.9-10.0.0.1 x; } }",
    "stream { geo $a { ranges; 10.0.0.0-10.0.0.9 x; 10.0.0.5-10.0.0.12 y; } }",
    "stream { geo $a { ranges; 10.0.0.0-10.0.0.9 x; 9.0.0.0-11.0.0.0 y; } }",
    "stream { geo $a { ranges; 10.0.0.0-10.0.0.9 x; 10.0.0.0-10.0.0.9 y; } }",
    "stream { geo $a { ranges; delete 10.0.0.0-10.0.0.9; } }",
    "stream { limit_conn_zone $remote_addr zone=a:10m; server { listen 1; return a; limit_conn a 0; } }",
    "stream { limit_conn_zone $remote_addr zone=a:10m; server { listen 1; return a; limit_conn a x; } }",
    "stream { limit_conn_zone $remote_addr zone=a:10m; server { listen 1; return a; limit_conn a 65536; } }",
    "stream { limit_conn_zone $remote_addr zone=a:10m; limit_conn a 1; limit_conn a 2; }",
    "stream { limit_conn_zone $remote_addr zone=a; }",
    "stream { limit_conn_zone $remote_addr zone=a:x; }",
    "stream { limit_conn_zone $remote_addr zone=a:1k; }",
    "stream { limit_conn_zone $remote_addr nosuch=a; }",
    "stream { limit_conn_zone $remote_addr zone=a:10m; limit_conn_zone $protocol zone=a:10m; }",
    "stream { limit_conn_log_level debug; }",
    "stream { limit_conn_dry_run x; }",
    "stream { } stream { }",
    "stream { server { listen 1; return a; }",
    "http { ssl_preread on; }",
    "http { server { proxy_timeout 1s; } }",
    "stream { server { listen 1; proxy_ssl on; proxy_ssl_verify on; proxy_pass 127.0.0.1:2; } }",
    // And one that is taken.
    "stream { server { listen 1; listen [::1]:1; proxy_pass 127.0.0.1:2; } }",
];

/// What a program says of each: its warnings and its error, without process numbers.
pub(super) fn say(program: Program) -> Vec<(&'static str, Vec<String>)> {
    let directory = Directory::new();
    let out = directory.path();
    let all = TEXTS.iter().map(|text| {
        let conf = out.join("nginx.conf");
        let module = load_module();
        let whole = format!("{module} pid pid; error_log error.log; events {{ }}\n{text}\n");
        fs::write(&conf, whole).unwrap();
        let mut command = command_of(program, out);
        command.arg("-t").arg("-p").arg(out).arg("-c").arg(&conf);
        let output = command.args(["-e", "error.log"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let lines = said.lines().filter_map(|line| {
            let (_, told) = line
                .split_once("[emerg] ")
                .or_else(|| line.split_once("[warn] "))?;
            // nginx tells its process number where a log is open already.
            let told = match told.split_once(": ") {
                Some((number, rest)) if number.contains('#') => rest,
                _ => told,
            };
            Some(told.replace(&conf.display().to_string(), "CONF"))
        });
        (*text, lines.collect())
    });
    all.collect()
}
