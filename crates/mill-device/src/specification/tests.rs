//! Texts in, specifications or messages out.

use super::*;
use mill_tcp::config::{Algorithm, EcnMode};
use std::time::Duration;

/// The shortest valid specification, with more options appended.
fn parse(more: &str) -> Result<Specification, SpecificationError> {
    Specification::parse(&format!("tap:ms0,address=10.77.0.2/24{more}"))
}

fn check_refused(text: &str, expected: &str) {
    let message = Specification::parse(text).unwrap_err().to_string();
    assert_eq!(message, expected, "{text}");
}

fn check_value_refused(more: &str, expected: &str) {
    let message = parse(more).unwrap_err().to_string();
    assert_eq!(message, expected, "{more}");
}

#[test]
fn a_device_and_an_address_are_all_it_takes() {
    let specification = parse("").unwrap();
    assert_eq!(specification.device.to_string(), "ms0");
    assert_eq!((specification.mtu(), specification.offload), (1500, true));
    assert_eq!(specification.tcp, Config::default());
    let config = specification.host_config([7; 16]);
    assert_eq!(config.addresses, specification.addresses);
    assert!(config.routes.is_empty());
}

/// Server and load generator share the secret of the boot: the timestamps that one process of a machine sends would
/// otherwise seem old to peers of the next one.
#[test]
fn hosts_of_one_machine_share_the_secret_of_the_boot_and_no_other() {
    let specification = parse("").unwrap();
    let [one, other] = [(); 2].map(|()| specification.drawn_host_config().unwrap());
    assert!(one.boot_secret.is_some());
    assert_eq!(one.boot_secret, other.boot_secret);
    assert_ne!(one.secret, other.secret);
}

#[test]
fn every_option_is_stored() {
    let text = "tap:mill.0,address=10.77.0.2/24,address=fd00::2/64,host=10.77.0.1/24,host=fd00::1/64,\
                gateway=10.77.0.1,gateway=fd00::1,mtu=9000,offload=off,pcap=/tmp/a.pcap,congestion=reno,\
                hystart=off,slow-start-after-idle=off,initial-window=4,window-scaling=off,timestamps=off,sack=off,ecn=ask,\
                receive-buffer=64k,rto-min=1s,delayed-ack=5ms,msl=1s,mtu-probing=on,connections=10,\
                half-open=0,time-wait=5,loss=1%,reorder=0.5%,duplicate=0.0001%,corrupt=100%,seed=7";
    let found = Specification::parse(text).unwrap();
    assert_eq!((found.addresses.len(), found.host.len()), (2, 2));
    let config = found.host_config([0; 16]);
    let targets: Vec<_> = config.routes.iter().map(|route| route.target.len).collect();
    assert_eq!(targets, [0, 0]);
    assert_eq!((found.mtu(), found.offload), (9000, false));
    assert_eq!(found.pcap, Some(PathBuf::from("/tmp/a.pcap")));
    let tcp = &found.tcp;
    assert_eq!(tcp.congestion, Algorithm::Reno);
    assert_eq!(tcp.ecn, EcnMode::Ask);
    assert_eq!(tcp.initial_window_segments, 4);
    assert!(!tcp.slow_start_after_idle);
    assert!(!tcp.window_scaling && !tcp.timestamps && !tcp.sack && !tcp.hystart && tcp.mtu_probing);
    assert_eq!(tcp.receive_buffer_bytes_max, 65536);
    assert_eq!(
        (tcp.rto_min, tcp.msl),
        (Duration::from_secs(1), Duration::from_secs(1))
    );
    assert_eq!(tcp.delayed_ack, Duration::from_millis(5));
    let limits = &found.limits;
    assert_eq!(
        (
            limits.connections_max,
            limits.half_open_max,
            limits.time_wait_max
        ),
        (10, 0, 5)
    );
    let expected = Impairment {
        loss_ppm: 10_000,
        reorder_ppm: 5_000,
        duplicate_ppm: 1,
        corrupt_ppm: 1_000_000,
        seed: 7,
    };
    assert_eq!(found.impairment, expected);
}

#[test]
fn the_table_has_the_defaults() {
    for option in options::all() {
        if matches!(option.default, "needed" | "none") {
            continue;
        }
        let mut set = parse("").unwrap();
        option.value.set(&mut set, option.default).unwrap();
        let unset = parse("").unwrap();
        assert_eq!(format!("{set:?}"), format!("{unset:?}"), "{}", option.name);
    }
}

#[test]
fn an_impaired_wire_carries_packets() {
    assert!(parse(",loss=0%").unwrap().offload);
    assert!(!parse(",loss=1%,offload=on").unwrap().offload);
}

const FORMS: &str = "a device is written as \"tap:ms0\", \"af_xdp:eth0\", \"memif:/run/mill.sock\" or \"dpdk:0000:03:00.0\"";

#[test]
fn arguments_of_dpdks_device_end_with_the_first_option() {
    let check = |text: &str, name: &str, arguments: &str| {
        let parsed = Specification::parse(text).unwrap();
        let Device::Dpdk { port } = &parsed.device else {
            panic!("{text}");
        };
        assert_eq!(
            (port.name.as_str(), port.arguments.as_str()),
            (name, arguments),
            "{text}"
        );
        assert_eq!(parsed.addresses.len(), 1, "{text}");
    };
    let address = "address=10.0.0.1/24";
    check(&format!("dpdk:03:00.0,{address}"), "0000:03:00.0", "");
    check(
        &format!("dpdk:vdev=net_tap0,iface=t0,mac=fixed,{address},mtu=1400"),
        "net_tap0",
        "iface=t0,mac=fixed",
    );
    // Names of options of other devices are DPDK's here.
    check(
        &format!("dpdk:vdev=net_memif0,role=server,id=1,profile=wan,{address}"),
        "net_memif0",
        "role=server,id=1",
    );
    let refused = Specification::parse("dpdk:03:00.0,adress=10.0.0.1/24").unwrap_err();
    let expected = "the stack needs an address of its own, as in \"address=10.77.0.2/24\"; \"adress=10.0.0.1/24\" is left to DPDK";
    assert!(refused.to_string().starts_with(expected), "{refused}");
    let refused = Specification::parse(&format!("dpdk:03:00.0,{address},iface=eth0")).unwrap_err();
    assert!(
        refused.to_string().starts_with("\"iface\" is no option"),
        "{refused}"
    );
}

#[test]
fn a_bridge_passes_short_frames_and_has_cores_of_its_own() {
    let refused = |more: &str| {
        let text = format!("dpdk:03:00.0,address=10.0.0.1/24,{more}");
        Specification::parse(&text)
            .err()
            .map(|error| error.to_string())
    };
    let check = |more: &str, expected: &str| {
        let refused = refused(more).unwrap();
        assert!(refused.starts_with(expected), "{refused}");
    };
    check("bridge=on,mtu=1501", "mtu=1501 is more than the bridge");
    check(
        "core=3",
        "\"core\" says where the bridge to a port of DPDK runs",
    );
    for good in ["mtu=9000", "bridge=on,core=3", "bridge=on,mtu=1500"] {
        assert_eq!(refused(good), None);
    }
    let own = Specification::parse("dpdk:03:00.0,address=10.0.0.1/24,mtu=9000").unwrap();
    assert!(own.behind_bridge().is_err());
    let own = Specification::parse("tap:ms0,address=10.0.0.1/24,mtu=9000").unwrap();
    assert!(own.behind_bridge().is_ok());
}

#[test]
fn a_port_carries_as_many_workers_as_it_has_queues_and_a_bridge_one() {
    let attachments = |more: &str, workers: u32| {
        let text = format!("dpdk:03:00.0,address=10.0.0.1/24{more}");
        let mut specification = Specification::parse(&text).unwrap();
        specification.workers.count = workers;
        specification.attachments()
    };
    for (more, workers, expected) in [
        ("", 1, 1),
        ("", 3, 3),
        ("", 65, 64),
        (",queue-pairs=2", 3, 2),
        (",queue-pairs=2", 1, 1),
        (",bridge=on", 3, 1),
        (",bridge=on,queue-pairs=2", 3, 1),
    ] {
        assert_eq!(attachments(more, workers), expected, "{more} {workers}");
    }
}

#[test]
fn a_worker_that_nothing_wakes_spins() {
    use mill_stack::polling::Polling;
    let check = |more: &str, polling, is_told| {
        let text = format!("dpdk:03:00.0,address=10.0.0.1/24{more}");
        let mut specification = Specification::parse(&text).unwrap();
        let told = specification.spin_if_woken();
        assert_eq!(
            (specification.polling, told.is_some()),
            (polling, is_told),
            "{more}"
        );
    };
    check("", Polling::Spin, false);
    check(",polling=spin", Polling::Spin, false);
    check(",polling=hz=1000", Polling::Rate(1000), false);
    check(",polling=interrupt", Polling::Spin, true);
    check(",profile=latency", Polling::Spin, true);
}

#[test]
fn a_port_has_an_ethernet_address_of_its_own_if_it_is_said() {
    let address = |more: &str| {
        let text = format!("dpdk:03:00.0,address=10.0.0.1/24{more}");
        crate::attach::memif::options(&Specification::parse(&text).unwrap()).address
    };
    assert_eq!(address(""), [2, 0xfe, 10, 0, 0, 1]);
    assert_eq!(
        address(",ethernet-address=3c:fd:fe:00:00:0A"),
        [0x3c, 0xfd, 0xfe, 0, 0, 10]
    );
}

#[test]
fn devices_that_are_none_get_an_answer() {
    check_refused("ms0", &format!("\"ms0\" is no device: {FORMS}"));
    check_refused("", &format!("\"\" is no device: {FORMS}"));
    check_refused("tun:ms0", &format!("\"tun\" is no kind of device: {FORMS}"));
    check_refused(
        "tap:ms0 address=10.0.0.1/8",
        "\"ms0 address=10.0.0.1/8\" is no name of a device: options stand behind a comma, as in \"tap:ms0,mtu=9000\"",
    );
    for name in [
        "",
        "sixteen-letters.",
        "a/b",
        "a b",
        "ms%d",
        ".",
        "..",
        "all",
        "default",
    ] {
        let message = Specification::parse(&format!("tap:{name},address=10.0.0.1/8")).unwrap_err();
        let message = message.to_string();
        assert!(
            message.contains("is no name of a device"),
            "{name}: {message}"
        );
    }
    assert!(Specification::parse("tap:fifteen-letters,address=10.0.0.1/8").is_ok());
}

#[test]
fn an_interface_needs_no_more_than_its_name() {
    let found = Specification::parse("af_xdp:eth0").unwrap();
    assert_eq!(found.device.kind(), "af_xdp");
    assert!(found.addresses.is_empty());
    let text = "af_xdp:eth0,queue=3,queue=0-1,mode=native,zero-copy=off,hugepages=off,receive-frames=512,transmit-frames=256,\
                ports=61000-65535,polling=spin,initial-window=20";
    let found = Specification::parse(text).unwrap();
    let expected = AfXdpSettings {
        queues: vec![0, 1, 3],
        mode: settings::Mode::Native,
        zero_copy: false,
        hugepages: false,
        receive_frames: 512,
        transmit_frames: 256,
        ports: 61000..=65535,
    };
    assert_eq!(found.af_xdp, expected);
    assert_eq!(found.polling, Polling::Spin);
    check_refused(
        "af_xdp:eth0,address=10.0.0.1/8",
        "\"address\" is no option of af_xdp: addresses, routes and the MTU are those that the interface has",
    );
    check_refused("af_xdp:eth0,loss=1%", "\"loss\" is no option of af_xdp");
    check_refused(
        "af_xdp:eth0,ports=5-4",
        "\"ports=5-4\" means nothing: a range of ports, as 10240-32767, is wanted",
    );
}

#[test]
fn a_memif_says_which_end_it_is() {
    let found =
        Specification::parse("memif:/run/x.sock,role=master,address=10.0.0.1/24,id=7").unwrap();
    assert_eq!(found.memif.role, Some(settings::Role::Master));
    assert_eq!((found.memif.id, found.mtu()), (7, 1500));
    assert!(Specification::parse("memif:@x,role=slave,address=10.0.0.1/24").is_ok());
    check_refused(
        "memif:/run/x.sock,address=10.0.0.1/24",
        "a memif has two ends: one says \"role=master\", the other \"role=slave\"",
    );
    for path in ["", "/", "x.sock", &"/".repeat(108)] {
        let message = Specification::parse(&format!("memif:{path}")).unwrap_err();
        let message = message.to_string();
        assert!(message.contains("is no socket"), "{path}: {message}");
    }
}

#[test]
fn when_to_look_for_frames_is_a_word_and_a_time() {
    let check = |text: &str, expected| {
        let found = parse(&format!(",polling={text}")).unwrap();
        assert_eq!(found.polling, expected, "{text}");
    };
    let micros = Duration::from_micros;
    check("interrupt", Polling::Interrupt);
    check("adaptive", Polling::Adaptive(micros(50)));
    check("adaptive=1us", Polling::Adaptive(micros(1)));
    check("adaptive=100ms", Polling::Adaptive(micros(100_000)));
    check("sleep-spin", Polling::SleepSpin(micros(50)));
    check("sleep-spin=2ms", Polling::SleepSpin(micros(2000)));
    check("spin", Polling::Spin);
    check("hz=1", Polling::Rate(1));
    check("hz=100000", Polling::Rate(100_000));
    for text in [
        "",
        "spin=5us",
        "hz",
        "hz=0",
        "hz=100001",
        "adaptive=0us",
        "adaptive=101ms",
        "sleep-spin=50",
        "sometimes",
    ] {
        let message = parse(&format!(",polling={text}")).unwrap_err().to_string();
        assert!(message.contains("means nothing"), "{text}: {message}");
    }
}

#[test]
fn typing_errors_get_an_answer() {
    check_value_refused(
        ",timestamp=on",
        "\"timestamp\" is no option of a stack, did you mean \"timestamps\"?",
    );
    for text in [",", ",,mtu=1500", ",=5"] {
        let expected = "between two commas, and behind the last, stands an option, as \"mtu=9000\"";
        check_value_refused(text, expected);
    }
    check_value_refused(
        ",mtu",
        "\"mtu\" needs a value: a number from 576 to 65521 is wanted",
    );
    check_value_refused(",mtu=1500,mtu=1500", "\"mtu\" stands twice");
    let message = parse(",frobnicate=1").unwrap_err().to_string();
    assert!(
        message.contains("there are address, host, gateway, mtu, "),
        "{message}"
    );
}

#[test]
fn values_that_mean_nothing_get_an_answer() {
    let check = |more: &str, wanted: &str| {
        let text = more.trim_start_matches(',');
        check_value_refused(
            more,
            &format!("\"{text}\" means nothing: {wanted} is wanted"),
        );
    };
    check(",sack=yes", "\"on\" or \"off\"");
    check(",congestion=vegas", "\"cubic\" or \"reno\" or \"bbr\"");
    check(",mtu=575", "a number from 576 to 65521");
    check(",mtu=65522", "a number from 576 to 65521");
    check(",rto-min=0ms", "a time from 1ms to 60s, as 200ms or 2s,");
    check(",rto-min=61s", "a time from 1ms to 60s, as 200ms or 2s,");
    check(",msl=30", "a time from 1ms to 240s, as 200ms or 2s,");
    check(",receive-buffer=4095", "a size from 4k to 1g");
    check(",receive-buffer=9999999m", "a size from 4k to 1g");
    for share in ["1", "100.1%", "-1%", ".%", "1.%", "0.00001%", "%"] {
        check(
            &format!(",loss={share}"),
            "a share from 0% to 100%, as 1% or 0.01%,",
        );
    }
    for prefix in [
        "10.0.0.1",
        "10.0.0.1/0",
        "10.0.0.1/33",
        "fd00::1/129",
        "x/8",
    ] {
        let wanted =
            "an address with the length of its network's prefix, as 10.77.0.2/24 or fd00::2/64,";
        check(&format!(",address={prefix}"), wanted);
    }
    check(",gateway=10.77.0.1/24", "an IP address");
    check(",seed=x", "a number");
    check(",pcap=", "the name of a file");
}

#[test]
fn addresses_have_to_go_together() {
    check_refused(
        "tap:ms0,host=10.77.0.1/24",
        "the stack needs an address of its own, as in \"address=10.77.0.2/24\"",
    );
    check_value_refused(
        ",host=10.77.0.2/24",
        "10.77.0.2 is both the stack's address and the host's: they need one each",
    );
    check_value_refused(
        ",host=10.78.0.1/24",
        "host=10.78.0.1/24 is in the network of none of the stack's addresses, which it could not reach",
    );
    check_value_refused(
        ",host=fd00::1/64",
        "host=fd00::1/64 is in the network of none of the stack's addresses, which it could not reach",
    );
    check_value_refused(
        ",address=10.77.0.0/24",
        "10.77.0.0/24 is the address of its network, not of a machine in it",
    );
    check_value_refused(
        ",address=10.77.0.255/24",
        "10.77.0.255/24 is the broadcast address of its network",
    );
    check_value_refused(
        ",address=10.77.0.2/16",
        "the address 10.77.0.2 stands twice",
    );
    check_value_refused(
        ",host=10.77.0.1/24,host=10.77.0.1/24",
        "the address 10.77.0.1 stands twice",
    );
    assert!(parse(",address=10.77.0.3/24,host=10.77.0.1/24,host=10.77.0.4/24").is_ok());
    check_value_refused(
        ",address=::ffff:10.0.0.1/64",
        "::ffff:10.0.0.1/64 is an IPv4-mapped address: write 10.0.0.1",
    );
    check_value_refused(
        ",gateway=10.77.0.2",
        "gateway=10.77.0.2 is the stack's own address: a router is another machine",
    );
    assert!(parse(",address=10.78.0.0/31,host=10.78.0.1/31").is_ok());
    assert!(parse(",address=10.78.0.9/32").is_ok());
    for address in [
        "127.0.0.1/8",
        "224.0.0.1/8",
        "0.0.0.0/8",
        "::1/64",
        "ff02::1/64",
    ] {
        let message = parse(&format!(",address={address}"))
            .unwrap_err()
            .to_string();
        assert!(message.starts_with(address), "{message}");
    }
    check_value_refused(
        ",gateway=10.78.0.1",
        "gateway=10.78.0.1 is in the network of none of the stack's addresses",
    );
    check_value_refused(
        ",gateway=10.77.0.1,gateway=10.77.0.3",
        "gateway=10.77.0.3 is the second of its family: everything can go one way only",
    );
    check_value_refused(
        ",address=fd00::2/64,mtu=1279",
        "mtu=1279 is too small for IPv6, which needs 1280",
    );
    assert!(parse(",address=fd00::2/64,mtu=1280").is_ok());
}

#[test]
fn help_has_a_line_for_each_option() {
    let help = options::help();
    let headings = options::GROUPS.len();
    assert_eq!(help.lines().count(), options::all().count() + headings);
    assert!(help.contains("  mtu=576–65521 "), "{help}");
    assert!(help.contains("af_xdp: the receive queues"), "{help}");
}

#[test]
fn texts_describe_the_same_device_where_they_differ_in_what_is_each_stacks_own() {
    let same = |first: &str, second: &str| {
        let [first, second] = [first, second].map(|text| Specification::parse(text).unwrap());
        first.has_same_device(&second)
    };
    let device = "af_xdp:eth0";
    for other in [
        "polling=spin",
        "profile=balanced",
        "send-buffer=1m",
        "stacks=thread",
    ] {
        assert!(same(device, &format!("{device},{other}")), "{other}");
    }
    for other in ["queue=1", "receive-frames=1024", "ports=10240-20000"] {
        assert!(!same(device, &format!("{device},{other}")), "{other}");
    }
    assert!(!same(device, "af_xdp:eth1"));
    let tap = "tap:t0,address=10.0.0.1/24";
    assert!(same(tap, "tap:t0,polling=interrupt,address=10.0.0.1/24"));
    for other in [
        "tap:t0,address=10.0.0.2/24",
        "tap:t0,address=10.0.0.1/24,mtu=9000",
    ] {
        assert!(!same(tap, other), "{other}");
    }
}
