//! Tempesta FW's directives as data: where each may stand, how often, with how many values, and whether it opens a block.

use super::entry::Directive;
use crate::diagnostic::Diagnostic;
use crate::resolve::Applied;
use crate::suggest;

/// A set of places, as letters.
pub(super) type Places = &'static str;

/// Where a directive stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Top,
    Group,
    Vhost,
    Location,
    Chain,
    Sticky,
    Limits,
    /// `frang_limits` in a vhost or location.
    InnerLimits,
    HealthCheck,
    Fingerprints,
}

impl Place {
    /// Its letter in the table.
    const fn letter(self) -> char {
        match self {
            Self::Top => 't',
            Self::Group => 'g',
            Self::Vhost => 'v',
            Self::Location => 'l',
            Self::Chain => 'c',
            Self::Sticky => 's',
            Self::Limits => 'f',
            Self::InnerLimits => 'i',
            Self::HealthCheck => 'h',
            Self::Fingerprints => 'p',
        }
    }
}

/// Names of the places for advice, by letter.
const PLACE_NAMES: [(char, &str); 9] = [
    ('t', "outside all blocks"),
    ('g', "srv_group"),
    ('v', "vhost"),
    ('l', "location"),
    ('s', "sticky"),
    ('f', "frang_limits outside all vhosts"),
    ('i', "frang_limits of a vhost or location"),
    ('h', "health_check"),
    ('p', "tft or tfh"),
];

/// One directive.
pub(super) struct Specification {
    pub(super) name: &'static str,
    places: Places,
    repeats: bool,
    /// Fewest and most values.
    values: (usize, usize),
    /// It takes `key=value` parameters.
    parameters: bool,
    is_block: bool,
}

/// No upper bound of values: Tempesta FW's own is the size of an entry.
const MANY: usize = usize::MAX;

/// A directive without a block that stands once in a block.
const fn once(
    name: &'static str,
    places: Places,
    values: (usize, usize),
    parameters: bool,
) -> Specification {
    Specification {
        name,
        places,
        repeats: false,
        values,
        parameters,
        is_block: false,
    }
}

/// One that may repeat.
const fn many(
    name: &'static str,
    places: Places,
    values: (usize, usize),
    parameters: bool,
) -> Specification {
    Specification {
        name,
        places,
        repeats: true,
        values,
        parameters,
        is_block: false,
    }
}

/// One with a block.
const fn block(
    name: &'static str,
    places: Places,
    values: usize,
    repeats: bool,
    parameters: bool,
) -> Specification {
    Specification {
        name,
        places,
        repeats,
        values: (values, values),
        parameters,
        is_block: true,
    }
}

/// All of them.
#[rustfmt::skip]
pub(super) const TABLE: &[Specification] = &[
    many("listen", "t", (1, 1), true),
    once("keepalive_timeout", "t", (1, 1), false),
    once("max_concurrent_streams", "t", (1, 1), false),
    once("client_ws_timeout", "t", (1, 1), false),
    once("client_mem", "t", (1, 2), false),
    once("client_db", "t", (1, 1), false),
    once("client_tbl_size", "t", (1, 1), false),
    once("client_lru_size", "t", (1, 1), false),
    once("sessions_db", "t", (1, 1), false),
    once("sessions_tbl_size", "t", (1, 1), false),
    once("filter_db", "t", (1, 1), false),
    once("filter_tbl_size", "t", (1, 1), false),
    once("http_max_header_list_size", "t", (1, 1), false),
    once("ctrl_frame_rate_multiplier", "t", (1, 1), false),
    once("window_update_frame_rate_multiplier", "t", (1, 1), false),
    once("http_allow_empty_body_content_type", "t", (0, 1), false),
    many("tls_certificate", "tv", (1, 1), false),
    many("tls_certificate_key", "tv", (1, 1), false),
    many("tls_tickets", "tv", (0, 1), true),
    many("tls_match_any_server_name", "tv", (0, 1), false),
    many("server", "tg", (1, 1), true),
    once("sched", "tg", (1, 4), true),
    once("server_queue_size", "tg", (1, 1), false),
    once("server_forward_timeout", "tg", (1, 1), false),
    once("server_forward_retries", "tg", (1, 1), false),
    once("server_retry_nonidempotent", "tg", (0, 0), false),
    once("server_connect_retries", "tg", (1, 1), false),
    once("health", "tg", (1, 1), false),
    once("grace_shutdown_time", "t", (1, 1), false),
    block("srv_group", "t", 1, true, false),
    block("health_check", "t", 1, true, false),
    once("request", "h", (1, 1), false),
    once("request_url", "h", (1, 1), false),
    once("resp_code", "h", (1, MANY), false),
    once("resp_crc32", "h", (1, 1), false),
    once("timeout", "h", (1, 1), false),
    many("server_failover_http", "t", (3, 3), false),
    once("health_stat", "t", (1, MANY), false),
    once("health_stat_server", "t", (1, MANY), false),
    once("apm_stats", "t", (0, 0), true),
    block("vhost", "t", 1, true, false),
    block("location", "tv", 2, true, false),
    once("proxy_pass", "vl", (1, 1), true),
    block("http_chain", "t", MANY, true, false),
    once("cache", "t", (1, 1), false),
    once("cache_db", "t", (1, 1), false),
    once("cache_size", "t", (1, 1), false),
    once("cache_methods", "t", (0, MANY), false),
    once("cache_ttl", "t", (1, 1), false),
    many("cache_bypass", "tvl", (2, MANY), false),
    many("cache_fulfill", "tvl", (2, MANY), false),
    once("cache_use_stale", "tvl", (1, MANY), false),
    many("cache_control_ignore", "tvl", (1, MANY), false),
    many("cache_resp_hdr_del", "tvl", (1, MANY), false),
    once("cache_purge", "t", (0, MANY), false),
    once("cache_purge_acl", "t", (0, MANY), false),
    many("nonidempotent", "tvl", (3, 3), false),
    many("req_hdr_add", "tvl", (2, 2), false),
    many("req_hdr_set", "tvl", (1, 2), false),
    many("resp_hdr_add", "tvl", (2, 2), false),
    many("resp_hdr_set", "tvl", (1, 2), false),
    once("hdr_via", "t", (1, 1), false),
    many("response_body", "t", (2, 2), false),
    many("block_action", "t", (2, 3), false),
    once("http_post_validate", "tvl", (0, 0), false),
    once("http_uri_brange", "t", (1, MANY), false),
    once("http_token_brange", "t", (1, MANY), false),
    once("http_qetoken_brange", "t", (1, MANY), false),
    once("http_nctl_brange", "t", (1, MANY), false),
    once("http_ctext_vchar_brange", "t", (1, MANY), false),
    once("http_xff_brange", "t", (1, MANY), false),
    once("http_cookie_brange", "t", (1, MANY), false),
    once("http_etag_brange", "t", (1, MANY), false),
    block("sticky", "tv", 0, true, false),
    once("cookie", "s", (0, 1), true),
    once("cookie_options", "s", (0, MANY), true),
    once("learn", "s", (0, 0), true),
    once("secret", "s", (1, 1), false),
    once("sess_lifetime", "s", (1, 1), false),
    once("sticky_sessions", "s", (0, 1), false),
    once("js_challenge", "s", (0, 1), true),
    block("frang_limits", "tvl", 0, true, false),
    once("ip_block", "f", (1, 1), false),
    once("request_rate", "f", (1, 2), false),
    once("request_burst", "f", (1, 1), false),
    once("tcp_connection_rate", "f", (1, 2), false),
    once("tcp_connection_burst", "f", (1, 1), false),
    once("concurrent_tcp_connections", "f", (1, 1), false),
    once("tls_connection_rate", "f", (1, 1), false),
    once("tls_connection_burst", "f", (1, 1), false),
    once("tls_incomplete_connection_rate", "f", (1, 1), false),
    once("client_header_timeout", "f", (1, 1), false),
    once("client_body_timeout", "f", (1, 1), false),
    once("http_header_chunk_cnt", "f", (1, 1), false),
    once("http_body_chunk_cnt", "f", (1, 1), false),
    once("http_hdr_len", "f", (1, 1), false),
    once("http_header_cnt", "f", (1, 1), false),
    once("http_uri_len", "fi", (1, 1), false),
    once("http_body_len", "fi", (1, 1), false),
    once("http_strict_host_checking", "fi", (0, 1), false),
    once("http_ct_required", "fi", (0, 1), false),
    once("http_trailer_split_allowed", "fi", (0, 1), false),
    once("http_method_override_allowed", "fi", (0, 1), false),
    once("http_methods", "fi", (1, MANY), false),
    once("http_ct_vals", "fi", (1, MANY), false),
    once("http_resp_code_block", "fil", (3, MANY), false),
    many("whitelist_mark", "t", (1, MANY), false),
    block("tft", "t", 0, false, true),
    block("tfh", "t", 0, false, true),
    many("hash", "p", (3, 3), false),
    many("access_log", "t", (1, MANY), true),
    once("mmap_log_buffer_size", "t", (1, 1), false),
];

/// Checks name, place, block, number of values, parameters, and duplicates; `used` are the names that have occurred in
/// the block.
pub(super) fn check(
    directive: &Directive,
    place: Place,
    used: &mut Vec<&'static str>,
) -> Applied<&'static str> {
    let name = &directive.name;
    let Some(known) = TABLE
        .iter()
        .find(|known| known.name.as_bytes() == name.bytes)
    else {
        return Err(unknown(directive, place));
    };
    let shown = known.name;
    let refused = |what: &str| Err(name.error(format!("\"{shown}\" directive {what}")));
    if !known.places.contains(place.letter()) {
        let mut error = name.error(format!("\"{shown}\" directive is not allowed here"));
        let places = PLACE_NAMES
            .iter()
            .filter(|(letter, _)| known.places.contains(*letter));
        let places: Vec<&str> = places.map(|(_, name)| *name).collect();
        error.help = Some(format!("it may stand in: {}", places.join(", ")));
        return Err(error);
    }
    if directive.children.is_some() && !known.is_block {
        let message = format!("directive \"{shown}\" is not terminated by \";\"");
        return Err(name.error(message));
    }
    if directive.children.is_none() && known.is_block {
        let message = format!("directive \"{shown}\" has no opening \"{{\"");
        return Err(name.error(message));
    }
    // A chain's name may be left out.
    let fits = match known.values {
        (MANY, _) => directive.values.len() <= 1,
        (least, most) => (least..=most).contains(&directive.values.len()),
    };
    if !fits {
        let message = format!("invalid number of arguments in \"{shown}\" directive");
        return Err(name.error(message));
    }
    if let Some((key, _)) = directive.parameters.first()
        && !known.parameters
    {
        let message = format!("invalid parameter \"{}\"", key.display());
        return Err(key.error(message));
    }
    if used.contains(&shown) && !known.repeats {
        return refused("is duplicate");
    }
    used.push(shown);
    Ok(shown)
}

fn unknown(directive: &Directive, place: Place) -> Box<Diagnostic> {
    let name = &directive.name;
    let mut error = name.error(format!("unknown directive \"{}\"", name.display()));
    let here = TABLE
        .iter()
        .filter(|known| known.places.contains(place.letter()));
    let nearest = suggest::nearest(&name.bytes, here.map(|known| known.name))
        .or_else(|| suggest::nearest(&name.bytes, TABLE.iter().map(|known| known.name)));
    error.help = nearest.map(|nearest| format!("did you mean \"{nearest}\"?"));
    error
}
