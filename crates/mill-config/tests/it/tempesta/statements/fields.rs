//! Fields and contents.

use super::{block, check, check_line};
use crate::tempesta::translated;

#[test]
fn fields_are_set_added_and_removed() {
    let text = "cache 0; server 10.0.0.1;
        req_hdr_set Host b.c; req_hdr_set Cookie; req_hdr_add X-Via me;
        resp_hdr_set Server; resp_hdr_set X-A \"1 2\"; resp_hdr_add X-B $3;";
    check(
        text,
        "location / {",
        "location / {
            proxy_pass http://default;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_set_header Upgrade $tempesta_upgrade;
            proxy_set_header Connection $tempesta_connection;
            proxy_set_header Host b.c;
            proxy_set_header Cookie \"\";
            proxy_set_header X-Via $tempesta_field_1;
            proxy_hide_header Server;
            proxy_hide_header X-A;
            add_header X-A \"1 2\" always;
            add_header X-B \"${tempesta_dollar}3\" always;
        }",
    );
    check(
        text,
        "map $http_x_via $tempesta_field_1 {",
        "map $http_x_via $tempesta_field_1 {
            \"\" me;
            default \"$http_x_via, me\";
        }",
    );
}

#[test]
fn a_location_takes_whole_lists_from_outside() {
    let text = "cache 0; srv_group g { server 10.0.0.1; } req_hdr_set X-Out 1;
        vhost v { proxy_pass g; req_hdr_set X-In 2; location eq /l { proxy_pass g; req_hdr_set X-Loc 3; } }
        vhost w { proxy_pass g; }
        http_chain { host == w -> w; -> v; }";
    let translated = translated(text);
    for (place, own) in [
        ("@vhost.v", "X-In 2"),
        ("@vhost.v.1", "X-Loc 3"),
        ("@vhost.w", "X-Out 1"),
    ] {
        let lines = block(&translated, &format!("location {place} {{"));
        let fields: Vec<&str> = lines
            .lines()
            .filter_map(|line| line.trim().strip_prefix("proxy_set_header X-"))
            .filter(|line| !line.starts_with("Forwarded"))
            .collect();
        assert_eq!(
            fields,
            [format!("{};", own.strip_prefix("X-").unwrap())],
            "{place}"
        );
    }
}

#[test]
fn hdr_via_names_us_to_both_sides() {
    let text = "cache 0; server 10.0.0.1; hdr_via me;";
    check_line(text, "proxy_set_header Via $tempesta_via;");
    check_line(text, "add_header Via \"1.1 me\" always;");
    check(
        text,
        "map $http_via $tempesta_via {",
        "map $http_via $tempesta_via {
            \"\" \"$tempesta_received me\";
            default \"$http_via, $tempesta_received me\";
        }",
    );
}

#[test]
fn files_stand_for_pages_of_errors() {
    let text = "response_body 404 /e/404.html; response_body 5* /e/5.html;";
    check_line(text, "error_page 404 /.tempesta/1;");
    check_line(
        text,
        "error_page 500 501 502 503 504 505 506 507 /.tempesta/2;",
    );
    check(
        text,
        "location = /.tempesta/2 {",
        "location = /.tempesta/2 {
            internal;
            default_type text/html;
            alias /e/5.html;
        }",
    );
}
