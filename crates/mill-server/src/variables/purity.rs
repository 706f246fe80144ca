//! What a kept answer may depend on.
//!
//! A kept answer is given again for the same listener, host, method, target and `Accept-Encoding`, as long as the one
//! file behind it is the same. So it may depend on these, on the configuration, and on nothing else:
//!
//! | where | what makes a request impure |
//! | --- | --- |
//! | the server | a listener whose servers depend on the local address |
//! | `allow`, `deny` | any: the client's address |
//! | `set_real_ip_from` | a location with settings of its own: what logs a hot answer has the server's |
//! | `limit_req` | a key that is not made anew of what `hot/limits.rs` lists |
//! | `limit_conn` | any |
//! | `if (-f …)` | any: files other than the one that is sent |
//! | `try_files` | a missing first candidate: it may be created later |
//! | errors | a status of 400 or more: it is logged, and may depend on a missing file |
//! | `rewrite_log`, unset variables | each log line |
//! | redirects | the local address in place of a missing host |
//! | `stub_status`, `millstream_metrics` | any |
//! | variables | all except those that [`is_pure`](crate::variables::purity::is_pure) lists |
//!
//! Handlers and filters add their own: missing index files, conditions, ranges, `expires`.

use crate::request::Request;
use mill_config::config::Variable;

/// Marks the request as impure if the variable depends on more than an answer's key.
pub fn taint(variable: &Variable, request: &mut Request) {
    if !is_pure(variable) && !is_of_hit(variable, request) {
        request.pure = false;
    }
}

/// Whether it says of an answer from a cache only that it is one: it is the same again.
fn is_of_hit(variable: &Variable, request: &Request) -> bool {
    let says = matches!(
        variable,
        Variable::UpstreamCacheStatus | Variable::UpstreamCacheKey
    );
    says && request.is_cache_hit()
}

/// Whether a variable has the same value for every request with the same key and configuration. A user variable counts
/// as pure: the variables that it is made from mark the request.
pub fn is_pure(variable: &Variable) -> bool {
    match variable {
        Variable::Http(name) => **name == *b"accept_encoding",
        Variable::User(_)
        | Variable::Absent(_)
        | Variable::Arg(_)
        | Variable::Args
        | Variable::QueryString
        | Variable::IsArgs
        | Variable::Uri
        | Variable::DocumentUri
        | Variable::RequestUri
        | Variable::RequestMethod
        | Variable::Host
        | Variable::Scheme
        | Variable::Https
        | Variable::ServerName
        | Variable::ServerPort
        | Variable::DocumentRoot
        | Variable::RequestFilename
        | Variable::Hostname
        | Variable::NginxVersion
        | Variable::LimitRate
        | Variable::SentHttp(_)
        | Variable::Status => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_in_the_key_is_impure() {
        let check = |name: &str, pure: bool| {
            let variable = Variable::builtin(name.as_bytes()).unwrap();
            assert_eq!(is_pure(&variable), pure, "{name}");
        };
        for name in [
            "uri",
            "args",
            "arg_x",
            "host",
            "http_accept_encoding",
            "sent_http_etag",
        ] {
            check(name, true);
        }
        for name in [
            "remote_addr",
            "binary_remote_addr",
            "http_host",
            "http_user_agent",
            "cookie_a",
            "time_local",
            "msec",
            "request",
            "request_id",
            "server_protocol",
            "server_addr",
            "realpath_root",
            "connection",
            "remote_user",
            "proxy_protocol_addr",
            "proxy_protocol_server_port",
            "proxy_protocol_tlv_authority",
        ] {
            check(name, false);
        }
    }
}
