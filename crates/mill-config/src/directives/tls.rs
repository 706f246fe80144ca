//! Directives of TLS. TLS comes in a later version and `listen … ssl` is refused until then; so these cannot change an
//! answer, and a configuration that has them for other servers (Debian's does) is accepted.

use crate::directive::{Apply, Arity, Directive, HTTP_SERVER, Value};

const fn without_listener(name: &'static str) -> Directive {
    Directive {
        name,
        contexts: HTTP_SERVER,
        arity: Arity::AtLeast(1),
        default: None,
        doc: "Of TLS.",
        repeats: true,
        apply: Apply::WithoutEffect(
            Value::Text,
            "no listener speaks TLS yet (listen with ssl is refused)",
        ),
        unread: None,
    }
}

pub(crate) const DIRECTIVES: &[Directive] = &[
    without_listener("ssl_buffer_size"),
    without_listener("ssl_certificate"),
    without_listener("ssl_certificate_cache"),
    without_listener("ssl_certificate_compression"),
    without_listener("ssl_certificate_key"),
    without_listener("ssl_ciphers"),
    without_listener("ssl_client_certificate"),
    without_listener("ssl_conf_command"),
    without_listener("ssl_crl"),
    without_listener("ssl_dhparam"),
    without_listener("ssl_early_data"),
    without_listener("ssl_ecdh_curve"),
    without_listener("ssl_ech_file"),
    without_listener("ssl_ocsp"),
    without_listener("ssl_ocsp_cache"),
    without_listener("ssl_ocsp_responder"),
    without_listener("ssl_password_file"),
    without_listener("ssl_prefer_server_ciphers"),
    without_listener("ssl_protocols"),
    without_listener("ssl_session_cache"),
    without_listener("ssl_session_ticket_key"),
    without_listener("ssl_session_tickets"),
    without_listener("ssl_session_timeout"),
    without_listener("ssl_stapling"),
    without_listener("ssl_stapling_file"),
    without_listener("ssl_stapling_responder"),
    without_listener("ssl_stapling_verify"),
    without_listener("ssl_trusted_certificate"),
    without_listener("ssl_verify_client"),
    without_listener("ssl_verify_depth"),
];
