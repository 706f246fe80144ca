//! The list of `-V`: which modules of nginx's build are supported, and which are not.

use mill_config::directive::Status;
use mill_config::directives;

/// A module, with one of its directives.
struct Module {
    /// As in `configure`'s options after `--with-` or `--without-`.
    name: &'static str,
    directive: &'static str,
    /// Whether nginx has it by default: then its absence is listed, else its presence.
    usual: bool,
}

const fn usual(name: &'static str, directive: &'static str) -> Module {
    Module {
        name,
        directive,
        usual: true,
    }
}

const fn extra(name: &'static str, directive: &'static str) -> Module {
    Module {
        name,
        directive,
        usual: false,
    }
}

/// The modules that `configure --help` of nginx 1.22 lists and that have a directive of their own.
const MODULES: &[Module] = &[
    usual("http_charset_module", "charset"),
    usual("http_gzip_module", "gzip"),
    usual("http_ssi_module", "ssi"),
    usual("http_userid_module", "userid"),
    usual("http_access_module", "allow"),
    usual("http_auth_basic_module", "auth_basic"),
    usual("http_mirror_module", "mirror"),
    usual("http_autoindex_module", "autoindex"),
    usual("http_geo_module", "geo"),
    usual("http_map_module", "map"),
    usual("http_split_clients_module", "split_clients"),
    usual("http_referer_module", "valid_referers"),
    usual("http_rewrite_module", "rewrite"),
    usual("http_proxy_module", "proxy_pass"),
    usual("http_fastcgi_module", "fastcgi_pass"),
    usual("http_uwsgi_module", "uwsgi_pass"),
    usual("http_scgi_module", "scgi_pass"),
    usual("http_grpc_module", "grpc_pass"),
    usual("http_memcached_module", "memcached_pass"),
    usual("http_limit_conn_module", "limit_conn_status"),
    usual("http_limit_req_module", "limit_req"),
    usual("http_empty_gif_module", "empty_gif"),
    usual("http_browser_module", "modern_browser"),
    extra("http_ssl_module", "ssl_certificate"),
    extra("http_v2_module", "http2_max_concurrent_streams"),
    extra("http_realip_module", "set_real_ip_from"),
    extra("http_addition_module", "add_before_body"),
    extra("http_sub_module", "sub_filter"),
    extra("http_dav_module", "dav_methods"),
    extra("http_flv_module", "flv"),
    extra("http_mp4_module", "mp4"),
    extra("http_gunzip_module", "gunzip"),
    extra("http_gzip_static_module", "gzip_static"),
    extra("http_auth_request_module", "auth_request"),
    extra("http_random_index_module", "random_index"),
    extra("http_secure_link_module", "secure_link"),
    extra("http_slice_module", "slice"),
    extra("http_stub_status_module", "stub_status"),
    extra("stream", "stream"),
    extra("stream_ssl_module", "ssl_alpn"),
    extra("stream_realip_module", "set_real_ip_from"),
    extra("stream_ssl_preread_module", "ssl_preread"),
    usual("stream_limit_conn_module", "limit_conn"),
    usual("stream_geo_module", "geo"),
    usual("stream_split_clients_module", "split_clients"),
];

impl Module {
    fn is_here(&self) -> bool {
        let directive = directives::all().find(|known| known.name == self.directive);
        directive.is_some_and(|directive| directive.status() == Status::Supported)
    }
}

/// The arguments of `configure` for an nginx with the same modules.
pub(crate) fn configure_arguments() -> String {
    let mut arguments = vec![String::from("--with-threads")];
    for module in MODULES {
        match (module.usual, module.is_here()) {
            (true, false) => arguments.push(format!("--without-{}", module.name)),
            (false, true) => arguments.push(format!("--with-{}", module.name)),
            _ => {}
        }
    }
    arguments.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_module_has_a_directive_that_is_known() {
        for module in MODULES {
            let known = directives::all().any(|known| known.name == module.directive);
            assert!(known, "{} by {}", module.name, module.directive);
        }
    }

    #[test]
    fn missing_and_additional_modules_are_listed() {
        let arguments = configure_arguments();
        assert!(arguments.contains(" --without-http_ssi_module "));
        assert!(arguments.contains(" --with-http_gzip_static_module"));
        assert!(arguments.contains(" --with-http_ssl_module"));
        assert!(arguments.contains(" --with-http_v2_module"));
        assert!(!arguments.contains("http_flv_module"));
        assert!(!arguments.contains("http_gzip_module"));
    }
}
