//! Limits, and the form of requests.

use super::{check, check_line, check_no_line};
use crate::tempesta::translated;

#[test]
fn limits_have_the_defaults_of_tempesta_fw_where_there_are_any() {
    check_no_line("", "frang");
    check(
        "frang_limits { http_body_len 0x10; request_rate 20 5; http_ct_vals \"text/plain\" \"a;b\"; ip_block 010; }
         client_lru_size 500; block_action attack drop;",
        "frang {",
        "frang {
            concurrent_tcp_connections 1000;
            http_header_cnt 50;
            http_strict_host_checking on;
            http_method_override_allowed off;
            http_methods get post head;
            http_body_len 16;
            request_rate 20 5;
            http_ct_vals text/plain \"a;b\";
            ip_block 10;
            clients 500;
            action drop;
        }",
    );
    check(
        "frang_limits { http_methods PUT unknown; http_strict_host_checking false; http_header_cnt 0;
            concurrent_tcp_connections 0; http_method_override_allowed; http_trailer_split_allowed no; }
         block_action attack reply;",
        "frang {",
        "frang {
            http_body_len 1073741824;
            http_methods put unknown;
            http_strict_host_checking off;
            http_header_cnt 0;
            concurrent_tcp_connections 0;
            http_method_override_allowed on;
            http_trailer_split_allowed off;
            action reply;
        }",
    );
}

#[test]
fn marks_of_clients_without_limits_are_an_entry() {
    check(
        "whitelist_mark 1 0x10; frang_limits { request_rate 20; }",
        "frang {",
        "frang {
            concurrent_tcp_connections 1000;
            http_header_cnt 50;
            http_strict_host_checking on;
            http_method_override_allowed off;
            http_methods get post head;
            http_body_len 1073741824;
            request_rate 20;
            whitelist_mark 1 16;
            action drop;
        }",
    );
}

#[test]
fn checks_of_form_are_entries_of_frang_without_its_defaults() {
    check(
        "http_uri_brange 0x2f 97-0x7a; http_etag_brange 0x21; http_allow_empty_body_content_type false;
         block_action error drop;",
        "frang {",
        "frang {
            http_uri_brange 0x2f 0x61-0x7a;
            http_etag_brange 0x21;
            http_allow_empty_body_content_type off;
            error_action drop;
            action drop;
        }",
    );
    check_no_line(
        "http_allow_empty_body_content_type; block_action error reply;",
        "frang",
    );
    check_no_line(
        "block_action error drop; block_action error reply;",
        "frang",
    );
    check_line("client_ws_timeout 30;", "proxy_tunnel_timeout 30s;");
    check_no_line("client_ws_timeout 0;", "proxy_tunnel_timeout");
}

#[test]
fn posts_are_validated_and_their_type_is_cut() {
    let text =
        "cache 0; server 10.0.0.1; vhost default { location prefix /up { http_post_validate; } }";
    check(
        text,
        "location @vhost.default.1 {",
        "location @vhost.default.1 {
            proxy_pass http://default;
            frang {
                http_post_validate on;
            }
            proxy_set_header Content-Type $tempesta_content_type;
            proxy_set_header Host $http_host;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_set_header Upgrade $tempesta_upgrade;
            proxy_set_header Connection $tempesta_connection;
        }",
    );
    let map = "map $request_method:$content_type $tempesta_content_type {";
    assert!(translated(text).contains(map));
    check_no_line("server 10.0.0.1; vhost default { }", map);
    // Outside of vhosts it is for all of them.
    check_line(
        "http_post_validate; server 10.0.0.1; vhost default { }",
        "http_post_validate on;",
    );
}

#[test]
fn a_vhost_and_a_location_have_limits_of_their_own() {
    let text = "srv_group g { server 10.0.0.1; }
        vhost v { proxy_pass g;
            frang_limits { http_uri_len 10; http_methods get; }
            http_resp_code_block 404 5* 10 3;
            location prefix /a { proxy_pass g; frang_limits { http_methods post; } }
        }
        http_chain { -> v; }";
    let text = &text.replace("http_resp_code_block 404 5* 10 3;\n", "\n");
    check(
        text,
        "location @vhost.v.1 {",
        "location @vhost.v.1 {
            proxy_pass http://g;
            frang {
                http_methods post;
                http_uri_len 10;
            }
        }",
    );
    // Where a request is only handed on, nothing is asked of it.
    check(
        text,
        "location / {",
        "location / {
            frang {
                http_methods all;
                http_uri_len 0;
                http_body_len 0;
                http_strict_host_checking off;
                http_ct_required off;
                http_ct_vals all;
                http_method_override_allowed on;
                http_resp_code_block off;
            }
            return 418;
        }",
    );
}

#[test]
fn fingerprints_are_limits_of_kinds() {
    check(
        "tft storage_size=2M { hash deadbeef12345678 10 1000; } tfh { hash 1 0 0; hash 0a 3 4; }",
        "frang {",
        "frang {
            tls_fingerprint deadbeef12345678 10 1000;
            http_fingerprint 0000000000000001 0 0;
            http_fingerprint 000000000000000a 3 4;
            action drop;
        }",
    );
}
