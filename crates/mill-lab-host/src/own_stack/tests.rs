//! Reports on an unavailable stack, and on a load that used the kernel's.

use super::*;

const XDP: &str = "protocol  size sockets\nXDP       1088      0      -1   NI\n";
const FIRST: &str = "         0          0 4294967295\n";
const ALL: &str = "CapEff:\t000001ffffffffff\n";

#[test]
fn what_af_xdp_lacks_is_named() {
    let check = |status: &str, map: &str, protocols: &str, expected: Option<&str>| {
        let said = Rights::parse(status, map).lacks_for_xdp(protocols);
        assert_eq!(said.as_deref(), expected, "{status}{map}{protocols}");
    };
    let not_here = |what: &str| format!("not on this machine: needs {what}");
    check(ALL, FIRST, XDP, None);
    check(
        ALL,
        FIRST,
        "TCP 1\n",
        Some(&not_here("a kernel with AF_XDP (CONFIG_XDP_SOCKETS)")),
    );
    check(
        ALL,
        "0 1000 1\n",
        XDP,
        Some(&not_here(
            "the first user namespace, since programs in the kernel are for it alone",
        )),
    );
    check(
        "CapEff:\t0000000000000000\n",
        FIRST,
        XDP,
        Some(&not_here(
            "CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF, CAP_PERFMON",
        )),
    );
    // Network and administration, as before CAP_BPF.
    check("CapEff:\t0000000000203000\n", FIRST, XDP, None);
    check(
        "CapEff:\t0000008000003000\n",
        FIRST,
        XDP,
        Some(&not_here("CAP_PERFMON")),
    );
    check(
        "",
        FIRST,
        XDP,
        Some(&not_here(
            "CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF, CAP_PERFMON",
        )),
    );
}

#[test]
fn a_load_that_the_kernel_had_is_found() {
    let setup = |system: &str, load: &str| -> Setup {
        let text = format!(
            "[system]\ntitle = 't'\nkind = 'millstream'\nstack = '{system}'\n\
             [load]\ntool = 'millstream wrk'\nargs = '${{url}}'\nstack = '{load}'\n"
        );
        toml::from_str(&text).unwrap()
    };
    let figures = |server: f64, client: f64| -> Figures {
        [
            ("requests", 100_000.0),
            ("tcp.server.passive_opens", server),
            ("tcp.client.active_opens", client),
            // Both sides answer stray segments.
            ("tcp.server.segments_in", 7.0),
            ("tcp.client.segments_in", 7.0),
        ]
        .map(|(name, value)| (String::from(name), value))
        .into()
    };
    let space = Host::Namespace(String::from("ms1-s"));
    let check = |setup: &Setup, host: &Host, figures: &Figures, expected: Option<&str>| {
        let said = astray(setup, host, figures);
        let side = said
            .as_deref()
            .and_then(|text| text.strip_prefix("the kernel's TCP of the "))
            .and_then(|text| text.split(' ').next());
        assert_eq!(side, expected, "{said:?}");
    };
    let xdp = "af_xdp:ms0";
    let both = setup(xdp, xdp);
    check(&both, &space, &figures(0.0, 0.0), None);
    check(&both, &space, &figures(1.0, 0.0), Some("server"));
    check(&both, &space, &figures(0.0, 1.0), Some("client"));
    check(&setup(xdp, ""), &space, &figures(0.0, 50.0), None);
    check(&setup("", xdp), &space, &figures(50.0, 0.0), None);
    check(&both, &Host::Local, &figures(50.0, 50.0), None);
    check(&both, &space, &Figures::new(), None);
}

#[test]
fn the_device_is_the_part_before_the_first_comma() {
    for (stack, expected) in [
        ("af_xdp:ms0", ("af_xdp", "ms0")),
        ("tap:ms0,address=10.0.0.2/24", ("tap", "ms0")),
        ("memif:/run/x.sock,role=master", ("memif", "/run/x.sock")),
        ("tap", ("tap", "")),
    ] {
        assert_eq!(device(stack), expected);
    }
    let missing = std::env::temp_dir().join("no-such-memif.sock");
    let memif = |role| format!("memif:{},role={role}", missing.display());
    assert!(!is_there(&memif("master"), &Host::Local));
    assert!(is_there(&memif("slave"), &Host::Local));
    assert!(!is_there("tap:no-such-if", &Host::Local));
    assert!(!is_there("af_xdp:no-such-if", &Host::Local));
}

#[test]
fn both_ends_of_a_pair_complete_their_frames_where_a_port_of_dpdk_is_on_it() {
    let offloads = |kind: &str, stack: &str| {
        let text = format!(
            "[topology]\nkind = '{kind}'\n[tune.interface.offloads]\ngro = true\n\
             [system]\ntitle = 't'\nkind = 'millstream'\nstack = '{stack}'\n\
             [load]\ntool = 'wrk'\nargs = '${{url}}'\n"
        );
        let setup: Setup = toml::from_str(&text).unwrap();
        tuning(&setup).interface.offloads
    };
    let dpdk = offloads(
        "veth",
        "dpdk:vdev=net_af_packet0,iface=ms0,address=10.0.0.2/24",
    );
    let off: Vec<&str> = dpdk
        .iter()
        .filter_map(|(name, is_on)| (!is_on).then_some(name.as_str()))
        .collect();
    assert_eq!(off, ["gso", "tso", "tx"]);
    assert_eq!(dpdk.len(), 4);
    // A card's link is a link.
    assert_eq!(offloads("ssh", "dpdk:0000:03:00.0").len(), 1);
    assert_eq!(offloads("veth", "af_xdp:ms0").len(), 1);
}
