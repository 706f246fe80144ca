//! Limits, of quiet machines and busy ones.

use super::*;

fn figures(list: &[(&str, f64)]) -> Figures {
    let owned = |(name, value): &(&str, f64)| ((*name).to_owned(), *value);
    list.iter().map(owned).collect()
}

fn check(list: &[(&str, f64)], expected: Option<Side>) {
    let figures = figures(list);
    let side = judge(&figures, false).map(|limit| limit.side);
    assert_eq!(side, expected, "{figures:?}");
}

/// Both sides' CPUs: what is idle, and what their own processes used.
fn sides(server: (f64, f64), client: (f64, f64)) -> [(&'static str, f64); 6] {
    let others = |(idle, own): (f64, f64)| (100.0 - idle - own).max(0.0);
    [
        ("cpu.server.idle", server.0),
        ("cpu.server.own", server.1),
        ("cpu.server.others", others(server)),
        ("cpu.client.idle", client.0),
        ("cpu.client.own", client.1),
        ("cpu.client.others", others(client)),
    ]
}

#[test]
fn the_side_that_used_up_its_cpus_is_the_limit() {
    check(&sides((0.5, 99.0), (40.0, 58.0)), Some(Side::Server));
    check(&sides((40.0, 58.0), (5.0, 95.0)), Some(Side::Client));
    check(&sides((40.0, 58.0), (5.1, 94.9)), Some(Side::Nothing));
    check(&sides((1.0, 97.0), (1.0, 97.0)), Some(Side::Both));
    check(&sides((0.0, 90.0), (40.0, 58.0)), Some(Side::Server));
    check(&sides((0.0, 89.9), (40.0, 58.0)), Some(Side::Foreign));
    check(&sides((40.0, 50.0), (40.0, 58.0)), Some(Side::Foreign));
    check(&sides((40.0, 50.1), (40.0, 58.0)), Some(Side::Nothing));
    check(&[], None);
}

#[test]
fn a_cpu_that_waits_for_a_disk_is_not_busy() {
    let waits = [
        ("cpu.server.idle", 10.0),
        ("cpu.server.iowait", 70.0),
        ("cpu.server.own", 20.0),
        ("cpu.client.idle", 90.0),
        ("cpu.client.own", 10.0),
    ];
    check(&waits, Some(Side::Nothing));
}

#[test]
fn sides_that_share_cpus_are_the_limit_together_unless_one_has_them_all() {
    let shared = |server: f64, client: f64| {
        let figures = [
            ("cpu.server.idle", 0.0),
            ("cpu.server.own", server),
            ("cpu.server.other_side", client),
            ("cpu.client.idle", 0.0),
            ("cpu.client.own", client),
            ("cpu.client.other_side", server),
        ];
        judge(&self::figures(&figures), false).unwrap().side
    };
    assert_eq!(shared(60.0, 39.0), Side::Both);
    assert_eq!(shared(94.0, 5.0), Side::Server);
    assert_eq!(shared(5.0, 94.0), Side::Client);
    assert_eq!(shared(40.0, 20.0), Side::Foreign);
}

#[test]
fn busy_cpus_of_unknown_owners_have_no_limit() {
    let unknown = [
        ("cpu.server.idle", 0.0),
        ("cpu.client.idle", 50.0),
        ("cpu.client.own", 50.0),
    ];
    check(&unknown, Some(Side::Unknown));
    check(&[("requests_per_s", 1000.0)], Some(Side::Unknown));
}

#[test]
fn a_server_that_polls_is_not_known_to_be_the_limit() {
    let check = |unloaded: f64, polls: bool, idle: [f64; 2], expected: Side| {
        let mut figures = figures(&sides(
            (idle[0], 100.0 - idle[0]),
            (idle[1], 100.0 - idle[1]),
        ));
        figures.insert(String::from("process_cpu_unloaded.server"), unloaded);
        let side = judge(&figures, polls).map(|limit| limit.side);
        assert_eq!(side, Some(expected), "{figures:?} {polls}");
    };
    check(99.0, false, [0.0, 40.0], Side::Polling);
    check(50.0, false, [5.0, 5.1], Side::Polling);
    check(49.9, false, [0.0, 40.0], Side::Server);
    check(0.0, true, [0.0, 40.0], Side::Polling);
    check(99.0, true, [0.0, 5.0], Side::Both);
    check(99.0, true, [5.1, 40.0], Side::Nothing);
    check(99.0, true, [5.1, 5.0], Side::Client);
}

#[test]
fn a_full_link_is_said_before_busy_cpus() {
    let full = ("interface.server.utilisation_percent", 97.0);
    let mut all = sides((0.0, 100.0), (50.0, 50.0)).to_vec();
    all.push(full);
    check(&all, Some(Side::Link));
}

#[test]
fn failures_make_a_figure_invalid() {
    check(&[("failed_share", 0.2)], Some(Side::Invalid));
}

/// A busy machine: every division of each side's CPUs among itself, others, the hypervisor and idle time.
#[test]
fn no_side_is_named_the_limit_of_cpus_that_it_did_not_use_itself() {
    let parts = || [0_u32, 5, 10, 20, 40, 60, 85, 90, 95, 100].into_iter();
    let mut uses: Vec<[f64; 4]> = Vec::new();
    for own in parts() {
        for others in parts().take_while(|others| own + others <= 100) {
            for steal in [0, 5, 30] {
                if own + others + steal <= 100 {
                    let idle = 100 - own - others - steal;
                    uses.push([own, others, steal, idle].map(f64::from));
                }
            }
        }
    }
    let named = |name: &str, [own, others, steal, idle]: [f64; 4], figures: &mut Figures| {
        for (class, value) in [
            ("own", own),
            ("others", others),
            ("steal", steal),
            ("idle", idle),
        ] {
            figures.insert(format!("cpu.{name}.{class}"), value);
        }
    };
    let mut seen = std::collections::BTreeSet::new();
    for server in &uses {
        for client in &uses {
            let mut figures = Figures::new();
            named("server", *server, &mut figures);
            named("client", *client, &mut figures);
            let side = judge(&figures, false).unwrap().side;
            seen.insert(side);
            let (server_own, client_own) = (server[0] >= CPU_OWN, client[0] >= CPU_OWN);
            let holds = match side {
                Side::Server | Side::Polling => server_own,
                Side::Client => client_own,
                Side::Both => server_own && client_own,
                // Others had a part, so the limit is theirs.
                Side::Foreign => {
                    let taken = |side: &[f64; 4]| side[1] + side[2] > 100.0 - CPU_BUSY;
                    (taken(server) || taken(client)) && !(server_own && server[3] <= 5.0)
                }
                Side::Nothing => {
                    server[1] + server[2] < CPU_TAKEN && client[1] + client[2] < CPU_TAKEN
                }
                _ => false,
            };
            assert!(holds, "{side:?}: server {server:?}, client {client:?}");
        }
    }
    assert_eq!(seen.len(), 5, "{seen:?}");
}
