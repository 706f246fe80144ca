//! What a ClientHello offers.

use super::{
    Act, At, Case, FAILURE, GOES_ON, ILLEGAL, MISSING, OPEN, REFUSED, SEALED_OR_FAILURE,
    UNDECODABLE, UNDECODABLE_OR_ILLEGAL, VERSION, case, hello,
};
use crate::tls_alerts::hello::{
    ALPN, BASE_POINT, GROUPS, Hello, KEY_SHARE, P256, PRE_SHARED_KEY, SERVER_NAME, SIGNATURES,
    VERSIONS, X448, X25519, handshake, long, name, numbers16, record, shares, short, versions,
};

pub(super) fn versions_and_names() -> Vec<Case> {
    let usual = Hello::default;
    let fallback = |version| {
        let mut hello = Hello::of_version(version);
        hello.ciphers.push(0x5600);
        hello
    };
    vec![
        hello(
            "SSL 3.0 at most",
            "8446 4.2.1, D.5",
            VERSION,
            &Hello::of_version(0x0300),
        ),
        hello(
            "TLS 1.0 at most",
            "8446 D, 8996 4",
            VERSION,
            &Hello::of_version(0x0301),
        ),
        hello(
            "TLS 1.1 at most",
            "8446 D, 8996 5",
            VERSION,
            &Hello::of_version(0x0302),
        ),
        hello("TLS 1.2", "8446 D.2", GOES_ON, &Hello::of_version(0x0303)),
        case(
            At::Newer,
            "TLS 1.2 at most, to a server of 1.3",
            "8446 D.2",
            VERSION,
            Act::Bytes(Hello::of_version(0x0303).record()),
        ),
        case(
            At::Older,
            "TLS 1.3 alone, to a server of 1.2",
            "8446 4.2.1",
            VERSION,
            Act::Bytes(usual().with(VERSIONS, Some(versions(&[0x0304]))).record()),
        ),
        hello(
            "`supported_versions` of unknown ones alone",
            "8446 4.2.1",
            VERSION,
            &usual().with(VERSIONS, Some(versions(&[0x0305, 0x0a0a]))),
        ),
        hello(
            "`supported_versions` of TLS 1.1 alone",
            "8446 4.2.1",
            VERSION,
            &usual().with(VERSIONS, Some(versions(&[0x0302]))),
        ),
        hello(
            "`supported_versions` with half a number",
            "8446 6.2",
            UNDECODABLE,
            &usual().with(VERSIONS, Some(vec![3, 3, 4, 3])),
        ),
        hello(
            "an empty `supported_versions`",
            "8446 4.2.1, 6.2",
            UNDECODABLE,
            &usual().with(VERSIONS, Some(vec![0])),
        ),
        hello(
            "a fallback from TLS 1.3 to 1.2 (TLS_FALLBACK_SCSV)",
            "7507 3",
            &["fatal inappropriate_fallback, closed"],
            &fallback(0x0303),
        ),
        case(
            At::Older,
            "a fallback to the server's highest version",
            "7507 3",
            GOES_ON,
            Act::Bytes(fallback(0x0303).record()),
        ),
        case(
            At::Named,
            "a name that is refused",
            "6066 3",
            &["fatal unrecognized_name, closed"],
            Act::Bytes(usual().with(SERVER_NAME, Some(name("b.example"))).record()),
        ),
        hello(
            "an empty name",
            "6066 3",
            &[
                "fatal decode_error, closed",
                "fatal illegal_parameter, closed",
            ],
            &usual().with(SERVER_NAME, Some(name(""))),
        ),
        hello(
            "two names",
            "6066 3",
            &[
                "fatal decode_error, closed",
                "fatal illegal_parameter, closed",
            ],
            &usual().with(
                SERVER_NAME,
                Some(long(
                    &[&name("a.example")[2..], &name("b.example")[2..]].concat(),
                )),
            ),
        ),
        hello(
            "a name with a byte 0",
            "6066 3",
            OPEN,
            &usual().with(SERVER_NAME, Some(name("a\0.example"))),
        ),
    ]
}

pub(super) fn offers() -> Vec<Case> {
    let usual = Hello::default;
    let ciphers = |ciphers: &[u16]| Hello {
        ciphers: ciphers.to_vec(),
        ..Hello::default()
    };
    let share = |group, key: &[u8]| usual().with(KEY_SHARE, Some(shares(&[(group, key.to_vec())])));
    let compressions = |mut hello: Hello, all: &[u8]| {
        hello.compressions = all.to_vec();
        hello
    };
    let doubled = |kind: u16, content: Vec<u8>| {
        let mut hello = Hello::default();
        hello.extensions.push((kind, content));
        hello
    };
    vec![
        hello(
            "unknown ciphers alone",
            "8446 4.1.1",
            FAILURE,
            &ciphers(&[0x1399, 0xc0ff]),
        ),
        hello(
            "no ciphers",
            "8446 4.1.2, 6.2",
            &[
                "fatal decode_error, closed",
                "fatal illegal_parameter, closed",
            ],
            &ciphers(&[]),
        ),
        hello(
            "ciphers of CBC alone in TLS 1.2",
            "5246 7.4.1.3",
            FAILURE,
            &Hello {
                ciphers: vec![0xc009, 0x002f],
                ..Hello::of_version(0x0303)
            },
        ),
        hello(
            "ciphers of RSA alone, to a key of ECDSA",
            "5246 7.4.1.3",
            FAILURE,
            &Hello {
                ciphers: vec![0xc02f],
                ..Hello::of_version(0x0303)
            },
        ),
        hello(
            "no group in common",
            "8446 4.1.1",
            FAILURE,
            &share(X448, &[7; 56]).with(GROUPS, Some(numbers16(&[X448]))),
        ),
        hello(
            "no group in common in TLS 1.2",
            "8422 4",
            FAILURE,
            &Hello::of_version(0x0303).with(GROUPS, Some(numbers16(&[0x1234]))),
        ),
        hello(
            "no signature in common",
            "8446 4.2.3",
            SEALED_OR_FAILURE,
            &usual().with(SIGNATURES, Some(numbers16(&[0x0807]))),
        ),
        hello(
            "no `signature_algorithms`",
            "8446 9.2",
            MISSING,
            &usual().with(SIGNATURES, None),
        ),
        hello(
            "no `supported_groups`",
            "8446 9.2",
            MISSING,
            &usual().with(GROUPS, None),
        ),
        hello(
            "no `key_share`",
            "8446 9.2",
            MISSING,
            &usual().with(KEY_SHARE, None),
        ),
        hello(
            "a key share of 31 bytes for X25519",
            "8446 4.2.8.2",
            ILLEGAL,
            &share(X25519, &[7; 31]),
        ),
        hello(
            "a key share of 0 bytes",
            "8446 4.2.8",
            &[
                "fatal decode_error, closed",
                "fatal illegal_parameter, closed",
            ],
            &share(X25519, &[]),
        ),
        hello(
            "a key share of X25519 that makes a secret of 0",
            "8446 7.4.2",
            REFUSED,
            &share(X25519, &[0; 32]),
        ),
        hello(
            "a key share that is no point of P-256",
            "8446 4.2.8.2",
            ILLEGAL,
            &share(P256, &[&[4][..], &[7; 64]].concat()).with(GROUPS, Some(numbers16(&[P256]))),
        ),
        hello(
            "a compressed point of P-256",
            "8446 4.2.8.2",
            ILLEGAL,
            &share(P256, &[&[2][..], &[7; 32]].concat()).with(GROUPS, Some(numbers16(&[P256]))),
        ),
        hello(
            "two key shares of a group",
            "8446 4.2.8",
            OPEN,
            &usual().with(
                KEY_SHARE,
                Some(shares(&[
                    (X25519, BASE_POINT.to_vec()),
                    (X25519, BASE_POINT.to_vec()),
                ])),
            ),
        ),
        hello(
            "a key share of a group that is not offered",
            "8446 4.2.8",
            OPEN,
            &usual().with(GROUPS, Some(numbers16(&[P256]))),
        ),
        hello(
            "an extension twice",
            "8446 4.2",
            REFUSED,
            &doubled(SERVER_NAME, name("a.example")),
        ),
        hello(
            "an unknown extension",
            "8446 4.1.2",
            GOES_ON,
            &doubled(0xfafa, vec![1, 2, 3]),
        ),
        hello("`pre_shared_key` before others", "8446 4.2.11", ILLEGAL, &{
            let mut hello = usual();
            let content = [
                long(&[&*long(&[7; 32]), &[0; 4]].concat()),
                long(&short(&[9; 32])),
            ]
            .concat();
            hello.extensions.insert(0, (45, vec![1, 1]));
            hello.extensions.insert(0, (PRE_SHARED_KEY, content));
            hello
        }),
        hello(
            "`pre_shared_key` without `psk_key_exchange_modes`",
            "8446 4.2.9",
            MISSING,
            &{
                let content = [
                    long(&[&*long(&[7; 32]), &[0; 4]].concat()),
                    long(&short(&[9; 32])),
                ]
                .concat();
                doubled(PRE_SHARED_KEY, content)
            },
        ),
        hello("more binders than keys", "8446 4.2.11", REFUSED, &{
            let binders = long(&[short(&[9; 32]), short(&[9; 32])].concat());
            let mut hello = doubled(45, vec![1, 1]);
            hello.extensions.push((
                PRE_SHARED_KEY,
                [long(&[&*long(&[7; 32]), &[0; 4]].concat()), binders].concat(),
            ));
            hello
        }),
        hello(
            "compression offered with TLS 1.3",
            "8446 4.1.2",
            ILLEGAL,
            &compressions(usual(), &[1, 0]),
        ),
        hello(
            "no null compression with TLS 1.3",
            "8446 4.1.2",
            ILLEGAL,
            &compressions(usual(), &[1]),
        ),
        hello(
            "no null compression with TLS 1.2",
            "5246 7.4.1.2",
            REFUSED,
            &compressions(Hello::of_version(0x0303), &[1]),
        ),
        hello(
            "compression beside none with TLS 1.2",
            "5246 7.4.1.2",
            GOES_ON,
            &compressions(Hello::of_version(0x0303), &[1, 0]),
        ),
        hello(
            "a session id of 33 bytes",
            "8446 4.1.2, 6.2",
            UNDECODABLE_OR_ILLEGAL,
            &Hello {
                session_id: vec![5; 33],
                ..usual()
            },
        ),
        hello(
            "ALPN without a protocol in common",
            "7301 3.2",
            &[
                "fatal no_application_protocol, closed",
                "ServerHello, closed",
            ],
            &usual().with(ALPN, Some(long(&short(b"smtp")))),
        ),
        hello(
            "ALPN with an empty name",
            "7301 3.1",
            UNDECODABLE_OR_ILLEGAL,
            &usual().with(ALPN, Some(long(&[0]))),
        ),
        hello(
            "ALPN without a name",
            "7301 3.1",
            UNDECODABLE_OR_ILLEGAL,
            &usual().with(ALPN, Some(long(&[]))),
        ),
    ]
}

/// A second ClientHello.
pub(super) fn retries() -> Vec<Case> {
    let without = Hello::default().with(KEY_SHARE, Some(shares(&[])));
    let then = |name, clause, asked, second: Vec<u8>| {
        let act = Act::Then(without.record(), "HelloRetryRequest", second);
        case(At::Usual, name, clause, asked, act)
    };
    let illegal: &[&str] = &["HelloRetryRequest, fatal illegal_parameter, closed"];
    let other = Hello::default().with(KEY_SHARE, Some(shares(&[(P256, vec![7; 65])])));
    let changed = Hello {
        ciphers: vec![0x1303],
        ..Hello::default()
    };
    vec![
        then(
            "HelloRetryRequest, and the share that is asked for",
            "8446 4.1.4",
            &["HelloRetryRequest, ServerHello"],
            Hello::default().record(),
        ),
        then(
            "HelloRetryRequest, and the same ClientHello",
            "8446 4.1.2, 4.2.8",
            illegal,
            without.record(),
        ),
        then(
            "HelloRetryRequest, and the share of another group",
            "8446 4.2.8",
            illegal,
            other.record(),
        ),
        then(
            "HelloRetryRequest, and other ciphers",
            "8446 4.1.2",
            illegal,
            changed.record(),
        ),
        then(
            "HelloRetryRequest, and another message",
            "8446 4",
            &["HelloRetryRequest, fatal unexpected_message, closed"],
            record(22, &handshake(20, &[0; 32])),
        ),
    ]
}
