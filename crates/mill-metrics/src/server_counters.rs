//! Everything the server counts, one field each.

use crate::counter::counters;

counters! {
    /// The counts of one worker; or, after [`ServerCounters::merge`], of all of them.
    ///
    /// A worker keeps one by value and adds to its fields. A connection never leaves its worker, so every gauge is the
    /// worker's own and never falls below zero.
    pub struct ServerCounters {
        /// Connections taken from a listening socket.
        connections_accepted: Counter of Connections,
        /// Accepted connections that were served: all but those closed at once because
        /// `worker_connections` was reached.
        connections_handled: Counter of Connections,
        /// Open client connections, the idle ones among them.
        connections_active: Gauge of Connections,
        /// Connections on which a request head is being read.
        connections_reading: Gauge of Connections,
        /// Connections on which a request is being handled or its response sent.
        connections_writing: Gauge of Connections,
        /// Connections kept alive that wait for their next request.
        connections_waiting: Gauge of Connections,
        /// Connections that the client reset while a request was being handled.
        connections_reset: Counter of Connections,

        /// Requests whose head began to arrive, refused ones included.
        requests: Counter of Requests,
        /// Interim responses: 100 Continue and its kin.
        responses_1xx: Counter of Responses,
        /// Responses with a status from 200 to 299.
        responses_2xx: Counter of Responses,
        /// Responses with a status from 300 to 399.
        responses_3xx: Counter of Responses,
        /// Responses with a status from 400 to 499.
        responses_4xx: Counter of Responses,
        /// Responses with a status from 500 to 599.
        responses_5xx: Counter of Responses,
        /// Requests whose connection was closed in the place of a response: status 444 in the access log.
        closed_unanswered: Counter of Requests,
        /// Octets of heads and content that were sent to clients.
        bytes_sent: Counter of Bytes,

        /// Sessions of `stream`: connections that are passed on as they are.
        sessions: Counter of Connections,
        /// Sessions that were refused: by `deny`, or because of what the client has sent first (status 400 to 499).
        sessions_refused: Counter of Connections,
        /// Sessions that failed: no server could be reached, or a handshake failed (status 500 to 599).
        sessions_failed: Counter of Connections,
        /// Octets that clients of sessions have sent.
        session_bytes_received: Counter of Bytes,
        /// Octets that clients of sessions were sent.
        session_bytes_sent: Counter of Bytes,

        /// Refused: the request line is not one (RFC 9112 3).
        refused_request_line: Counter of Requests,
        /// Refused: the path of the target has a bad escape, or leaves the root (400).
        refused_target: Counter of Requests,
        /// Refused: a field line is malformed (RFC 9112 5), a bare CR or LF for example.
        refused_field_line: Counter of Requests,
        /// Refused: no `Host` where one must be, or several, or one that is no host (RFC 9112 3.2).
        refused_host: Counter of Requests,
        /// Refused: the length of the content is ambiguous (RFC 9112 6.3), which is how requests
        /// are smuggled.
        refused_framing: Counter of Requests,
        /// Refused: a chunk has no proper size or no proper end (RFC 9112 7.1).
        refused_chunk: Counter of Requests,
        /// Refused: a method that what answers here does not know (405); not where a server behind says so.
        refused_method: Counter of Requests,
        /// Refused: a transfer coding that is not implemented (501).
        refused_coding: Counter of Requests,
        /// Refused: an HTTP version that is not spoken (505).
        refused_version: Counter of Requests,
        /// Refused: no proper header of the PROXY protocol where one must be (`listen … proxy_protocol`).
        refused_proxy_header: Counter of Connections,
        /// Refused: by `deny`, `limit_except` or `internal`.
        refused_access: Counter of Requests,
        /// Requests with an absolute target whose `Host` names another host: that of the target holds (RFC 9112 3.2.2).
        overruled_host: Counter of Requests,
        /// Requests to servers, for answers that a cache may keep, that came with a field which some applications obey
        /// in the place of host, scheme, target or method: `X-Forwarded-Host`, `X-Original-URL` and their like.
        overriding_fields: Counter of Requests,

        /// `worker_connections` reached: the connection was closed unserved.
        limit_worker_connections: Counter of Connections,
        /// `large_client_header_buffers` exceeded by the request line (414) or the field lines.
        limit_header_buffers: Counter of Requests,
        /// `client_max_body_size` exceeded (413).
        limit_body_size: Counter of Requests,
        /// Requests that had to wait for `limit_req`.
        limit_req_delayed: Counter of Requests,
        /// Requests beyond `limit_req`.
        limit_req_rejected: Counter of Requests,
        /// Requests, and sessions of `stream`, beyond `limit_conn`.
        limit_conn_rejected: Counter of Requests,
        /// `keepalive_requests` or `keepalive_time` reached: the connection was closed after its
        /// response.
        limit_keepalive: Counter of Connections,
        /// Tries at upstream servers that were given up because 16 interim answers were followed by another one.
        limit_upstream_interims: Counter of Events,
        /// `client_header_timeout` passed before the head was complete (408).
        timeout_header: Counter of Connections,
        /// `client_body_timeout` passed between two reads of the content (408).
        timeout_body: Counter of Connections,
        /// `send_timeout` passed while the client took nothing.
        timeout_send: Counter of Connections,
        /// `keepalive_timeout` passed on an idle connection.
        timeout_keepalive: Counter of Connections,

        /// TLS handshakes that were completed, those that resumed a session among them.
        tls_handshakes: Counter of Connections,
        /// TLS handshakes that resumed a session, and so needed no signature.
        tls_handshakes_resumed: Counter of Connections,
        /// TLS handshakes that failed, for the reason in the error log, or that the client broke off.
        tls_handshakes_failed: Counter of Connections,
        /// TLS handshakes that waited for a later turn: `ssl_handshakes_per_turn`.
        tls_handshakes_deferred: Counter of Connections,
        /// TLS handshakes whose early data was taken: a request came before their end.
        tls_early_data_accepted: Counter of Connections,
        /// TLS handshakes whose early data was refused; the client sends it again behind the handshake.
        tls_early_data_rejected: Counter of Connections,
        /// TLS records that could not be opened, or must not come where they came; the connection was closed.
        tls_records_refused: Counter of Events,
        /// New TLS keys that the client or the number of records asked for.
        tls_key_updates: Counter of Events,

        /// Connections that speak HTTP/2.
        http2_connections: Counter of Connections,
        /// Streams of HTTP/2 that clients have reset.
        http2_resets: Counter of Requests,
        /// Streams of HTTP/2 that were reset because of what the client sent on them.
        http2_stream_errors: Counter of Requests,
        /// Connections that were ended because of what the client sent: GOAWAY with an error.
        http2_connection_errors: Counter of Connections,
        /// Those of them that cost more than a client may: ENHANCE_YOUR_CALM.
        http2_calmed: Counter of Connections,

        /// Requests beyond `request_rate` of `frang`.
        frang_request_rate: Counter of Requests,
        /// Requests beyond `request_burst` of `frang`.
        frang_request_burst: Counter of Requests,
        /// Connections refused by `tcp_connection_rate` of `frang`.
        frang_tcp_connection_rate: Counter of Connections,
        /// Connections refused by `tcp_connection_burst` of `frang`.
        frang_tcp_connection_burst: Counter of Connections,
        /// Connections refused by `concurrent_tcp_connections` of `frang`.
        frang_concurrent_tcp_connections: Counter of Connections,
        /// TLS handshakes beyond `tls_connection_rate` of `frang`; their connections were closed.
        frang_tls_connection_rate: Counter of Connections,
        /// TLS handshakes beyond `tls_connection_burst` of `frang`; their connections were closed.
        frang_tls_connection_burst: Counter of Connections,
        /// Connections that ended before their TLS handshake, or were refused for that, beyond
        /// `tls_incomplete_connection_rate` of `frang`.
        frang_tls_incomplete_connection_rate: Counter of Connections,
        /// Requests refused by `http_uri_len` of `frang`.
        frang_http_uri_len: Counter of Requests,
        /// Requests refused by `http_hdr_len` of `frang`.
        frang_http_hdr_len: Counter of Requests,
        /// Requests refused by `http_header_cnt` of `frang`.
        frang_http_header_cnt: Counter of Requests,
        /// Requests refused by `http_body_len` of `frang`.
        frang_http_body_len: Counter of Requests,
        /// Requests refused by `http_header_chunk_cnt` of `frang`.
        frang_http_header_chunk_cnt: Counter of Requests,
        /// Requests refused by `http_body_chunk_cnt` of `frang`.
        frang_http_body_chunk_cnt: Counter of Requests,
        /// Requests refused by `http_methods` of `frang`.
        frang_http_methods: Counter of Requests,
        /// Requests refused by `http_method_override_allowed` of `frang`.
        frang_http_method_override: Counter of Requests,
        /// Requests refused by `http_ct_required` of `frang`.
        frang_http_ct_required: Counter of Requests,
        /// Requests refused by `http_ct_vals` of `frang`.
        frang_http_ct_vals: Counter of Requests,
        /// Requests refused by `http_strict_host_checking` of `frang`.
        frang_http_strict_host: Counter of Requests,
        /// Answers beyond `http_resp_code_block` of `frang`; their connections were closed.
        frang_http_resp_code_block: Counter of Requests,
        /// Connections and requests beyond a `tls_fingerprint` of `frang`.
        frang_tls_fingerprint: Counter of Events,
        /// Requests beyond an `http_fingerprint` of `frang`, those among them that begin a connection.
        frang_http_fingerprint: Counter of Events,
        /// Requests refused by `http_uri_brange` and its like of `frang`.
        frang_brange: Counter of Requests,
        /// Requests refused by `http_allow_empty_body_content_type` of `frang`.
        frang_type_without_content: Counter of Requests,
        /// Requests refused by `http_post_validate` of `frang`.
        frang_http_post_validate: Counter of Requests,
        /// Answers of `challenge_cookie` to requests without its cookie: redirects and pages that set it.
        challenges_sent: Counter of Responses,
        /// Requests beyond `max_misses=` of `challenge_cookie`; their connections were closed.
        challenges_missed: Counter of Requests,
        /// Requests without the cookie of `challenge_cookie` that no page could answer, and no cache: 403.
        challenges_refused: Counter of Requests,
        /// Connections that were closed because their client is blocked (`ip_block` of `frang`).
        frang_blocked_connections: Counter of Connections,

        /// Log lines dropped because the queue to the writer was full or the disk refused them.
        log_lines_lost: Counter of Lines,
        /// Times that accepting paused because no descriptor was left: raise
        /// `worker_rlimit_nofile`.
        accept_pauses: Counter of Events,
        /// Files that turned out shorter than their announced length while being sent; the
        /// connection was closed so that the client sees it.
        files_truncated: Counter of Events,
        /// Requests that were answered with 503, or whose answers were cut off, because the queue of requests that wait
        /// for a disk was full (`max_queue` of `thread_pool`).
        files_refused: Counter of Events,
        /// Files that could not be read while being sent, for the reason in the error log; the
        /// connection was closed so that the client sees it.
        files_unreadable: Counter of Events,
        /// Answers of upstream servers that ended early after their head was passed on; the connection was closed so that
        /// the client sees it.
        upstream_answers_cut: Counter of Events,
    }
}

impl ServerCounters {
    /// Counts one response by the class of its status. A status below 100 or above 599 is not
    /// counted: there is none on the wire.
    pub fn count_response(&mut self, status: u16) {
        let class = match status {
            100..=199 => &mut self.responses_1xx,
            200..=299 => &mut self.responses_2xx,
            300..=399 => &mut self.responses_3xx,
            400..=499 => &mut self.responses_4xx,
            500..=599 => &mut self.responses_5xx,
            _ => return,
        };
        *class = class.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::ServerCounters;
    use crate::{Kind, Unit};

    fn counted(status: u16) -> Vec<&'static str> {
        let mut counters = ServerCounters::default();
        counters.count_response(status);
        let values = counters.values();
        let named = ServerCounters::DESCRIPTIONS.iter().zip(values);
        named
            .filter(|(_, value)| *value != 0)
            .map(|(description, _)| description.name)
            .collect()
    }

    #[test]
    fn a_response_is_counted_in_the_class_of_its_status_only() {
        for (status, class) in [
            (100, "responses_1xx"),
            (199, "responses_1xx"),
            (200, "responses_2xx"),
            (299, "responses_2xx"),
            (300, "responses_3xx"),
            (399, "responses_3xx"),
            (400, "responses_4xx"),
            (499, "responses_4xx"),
            (500, "responses_5xx"),
            (599, "responses_5xx"),
        ] {
            assert_eq!(counted(status), [class], "status {status}");
        }
    }

    #[test]
    fn a_status_outside_the_classes_is_not_counted() {
        for status in [0, 99, 600, u16::MAX] {
            assert!(counted(status).is_empty(), "status {status}");
        }
    }

    #[test]
    fn every_name_is_unique_and_every_help_text_is_a_sentence() {
        let mut names = Vec::new();
        for description in ServerCounters::DESCRIPTIONS {
            assert!(
                !names.contains(&description.name),
                "{} is there twice",
                description.name
            );
            names.push(description.name);
            assert!(description.help.ends_with('.'), "{}", description.name);
        }
    }

    #[test]
    fn the_gauges_are_the_states_of_a_connection() {
        let gauges = ServerCounters::DESCRIPTIONS
            .iter()
            .filter(|d| d.kind == Kind::Gauge);
        let gauges: Vec<_> = gauges.map(|d| (d.name, d.unit)).collect();
        let states = ["active", "reading", "writing", "waiting"];
        let expected = states.map(|state| format!("connections_{state}"));
        assert!(
            gauges
                .iter()
                .map(|(name, _)| *name)
                .eq(expected.iter().map(String::as_str))
        );
        assert!(gauges.iter().all(|(_, unit)| *unit == Unit::Connections));
    }
}
