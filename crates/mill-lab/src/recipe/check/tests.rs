//! Mistakes, and their messages.

use super::*;
use crate::recipe::embedded;
use crate::store::fixtures::Scratch;

/// A recipe without a mistake, with places where others may be put.
const RECIPE: &str = r#"
title = "t"
question = "q?"
[for]
workers = [1, 2]
rx = [{ name = "poll", hz = 7000 }, { name = "interrupt", hz = 0 }]
[size.seed]
for.workers = [1, 2, 28]
[content."1kb.bin"]
bytes = 1000
[system.nginx]
title = "nginx"
kind = "nginx"
factors = { server = "nginx", allocator = "glibc" }
[system.jemalloc]
parent = "nginx"
allocator = "jemalloc"
factors = { allocator = "jemalloc" }
[system.own]
title = "Millstream"
kind = "millstream"
factors = { server = "millstream", allocator = "glibc" }
[load]
tool = "wrk"
args = "-d 1s ${url}"
path = "/1kb.bin?x"
"#;

/// The mistakes of the recipe with `more` at its end, or with a part replaced (`old => new`).
fn mistakes(more: &str) -> Vec<String> {
    let text = match more.split_once(" => ") {
        Some((old, new)) => {
            assert!(RECIPE.contains(old), "{old}");
            RECIPE.replace(old, new)
        }
        None => format!("{RECIPE}{more}"),
    };
    match Resolved::parse("t.toml", &text, "") {
        Ok(resolved) => {
            let errors = check(&resolved);
            errors.into_iter().map(|error| error.problem).collect()
        }
        Err(error) => vec![error.problem],
    }
}

fn expect(more: &str, expected: &[&str]) {
    assert_eq!(mistakes(more), expected, "{more}");
}

#[test]
fn every_embedded_recipe_is_without_mistakes() {
    let errors: Vec<String> = embedded::ids()
        .flat_map(check_all)
        .map(|error| error.to_string())
        .collect();
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}

#[test]
fn a_comparison_changes_one_factor_and_names_it() {
    let compare = |from: &str, to: &str, factor: &str| {
        format!("[[compare]]\nfrom = \"{from}\"\nto = \"{to}\"\nfactor = \"{factor}\"\n")
    };
    expect(&compare("nginx", "jemalloc", "allocator"), &[]);
    expect(&compare("nginx", "own", "server"), &[]);
    expect(
        &compare("jemalloc", "own", "server"),
        &["two factors change at once: allocator, server; compare in two steps"],
    );
    expect(
        &compare("nginx", "own", "stack"),
        &["between `nginx` and `own` the server changes, not the stack"],
    );
    expect(
        &compare("nginx", "nginx", "server"),
        &["`nginx` is compared with itself"],
    );
    expect(
        &compare("ngnix", "own", "server"),
        &["on the axis `system`: there is no value `ngnix`; did you mean `nginx`?"],
    );
    expect(
        &format!("{}axis = \"rx\"\n", compare("poll", "interrupt", "rx")),
        &[],
    );
    expect(
        &format!(
            "{}at = {{ system = \"own\" }}\n",
            compare("nginx", "own", "server")
        ),
        &["`at` can't fix `system`: it is the axis that is compared"],
    );
    expect(
        &format!(
            "{}metrics = [\"request_per_s\"]\n",
            compare("nginx", "own", "server")
        ),
        &["there is no metric `request_per_s`; did you mean `requests_per_s`?"],
    );
}

#[test]
fn a_difference_that_factors_keep_quiet_is_found() {
    let compare = "[[compare]]\nfrom = \"nginx\"\nto = \"x\"\nfactor = \"FACTOR\"\n[system.x]\nparent = \"nginx\"\n";
    let of = |factor: &str| compare.replace("FACTOR", factor);
    expect(
        &format!(
            "{}allocator = \"mimalloc\"\nfactors = {{ server = \"x\" }}\n",
            of("server")
        ),
        &["the allocator changes too, from glibc to mimalloc; compare in two steps"],
    );
    expect(
        &format!(
            "{}allocator = \"mimalloc\"\nargs = [\"-q\"]\nfactors = {{ allocator = \"mimalloc\" }}\n",
            of("allocator")
        ),
        &["`nginx` and `x` differ in `args` too, and the allocator is said to be all that changes"],
    );
    expect(
        &of("server"),
        &["`nginx` and `x` have the same `factors`; say in [system.x.factors] what is different"],
    );
}

#[test]
fn tables_and_charts_name_what_there_is() {
    let column =
        "columns = [{ title = \"c\", at = { system = \"own\" }, metric = \"requests_per_s\" }]\n";
    let table = |more: &str| format!("[[table]]\ntitle = \"T\"\n{more}");
    expect(&table(&format!("rows.axis = \"workers\"\n{column}")), &[]);
    expect(
        &table(&format!(
            "at = {{ workers = 28 }}\nrows.axes = [\"rx\", \"system\"]\n{column}"
        )),
        &[],
    );
    expect(
        &table(&format!(
            "at = {{ workers = 27 }}\nrows.axis = \"wrokers\"\n{column}"
        )),
        &[
            "on the axis `workers`: there is no value `27`; there are: 1, 2, 28",
            "there is no axis `wrokers`; did you mean `workers`?",
        ],
    );
    expect(
        &table("rows.axis = \"rx\"\ncolumns = [{ title = \"c\", change = true }]\n"),
        &[
            "`change` needs `over`: from what?",
            "the column `c` needs a `metric`, because the rows are points",
        ],
    );
    expect(
        &table(&format!(
            "rows.metrics = [\"latency_s.p99\", \"latncy_s.p50\"]\n{column}"
        )),
        &["there is no metric `latncy_s.p50`; did you mean `latency_s`?"],
    );
    expect(
        "[[chart]]\ntitle = \"${workers} ${rx}\"\neach = [\"workers\"]\nkind = \"lines\"\n",
        &[
            "a chart of this kind needs `x`: the axis along which it is drawn",
            "`${rx}` has no single value here; add `rx` to `each`, or fix it in `at`",
        ],
    );
    expect(
        "[[chart]]\ntitle = \"G\"\nkind = \"gains\"\n",
        &["gains are those of `[[compare]]`, and there is none"],
    );
}

#[test]
fn published_figures_stand_on_axes() {
    let published = |lines: &str, figures: &str| {
        format!(
            "[[published]]\nplace = \"Table 2\"\nmetric = \"requests_per_s\"\nlines = \"{lines}\"\n\
             columns = \"system\"\nfigures = \"\"\"\n{figures}\n\"\"\"\n"
        )
    };
    // A document measured at more numbers than are measured here.
    expect(&published("workers", "nginx own\n16 1 2"), &[]);
    expect(
        &published("rx", "nginx own\npol 1 2"),
        &["on the axis `rx`: there is no value `pol`; did you mean `poll`?"],
    );
    expect(
        &published("worker", "nginx own\n1 1 2"),
        &["there is no axis `worker`; did you mean `workers`?"],
    );
    expect(
        &published("workers", "nginx own\n1 1"),
        &["line 2 (`1`) has 1 figures for 2 columns; write `-` for a gap"],
    );
}

#[test]
fn systems_and_loads_can_be_started() {
    expect("", &[]);
    expect(
        "path = \"/1kb.bin?x\" => path = \"/1kb.bn\"",
        &["there is no file in [content] `1kb.bn`; did you mean `1kb.bin`?"],
    );
    expect(
        "-d 1s ${url} => -d 1s",
        &["the arguments never name the server; add `${url}`"],
    );
    expect(
        "tool = \"wrk\" => tool = \"none\"",
        &["without load and without `[[probe]]` nothing is measured"],
    );
    expect(
        "processes = 0\n",
        &["there has to be at least one client process"],
    );
    expect(
        "needs = [\"progam:wrk\", \"wrk\", \"file:\"]\n",
        &[
            "there is no kind of need `progam`; did you mean `program`?",
            "a need has a kind and a colon, as in `program:onload`",
            "`file:` of what?",
        ],
    );
    expect(
        "kind = \"millstream\" => kind = \"command\"",
        &["a command needs `start`: add [system.own.start] with `argv`"],
    );
    expect(
        "factors = { server = \"millstream\", allocator = \"glibc\" } => factors = { server = \"millstream\", allocator = \"glibc\" }\nside = \"client\"",
        &["only a system behind another runs on the client's side"],
    );
    expect(
        "[[probe]]\nkind = \"top\"\nsystems = [\"ngnix\"]\n",
        &["there is no system `ngnix`; did you mean `nginx`?"],
    );
}

#[test]
fn skips_and_repeats_make_sense() {
    expect(
        "[[skip]]\nworkers = [1, 2]\n",
        &["no point is left: `skip` leaves all of them out"],
    );
    expect(
        "[[skip]]\nworker = 2\n[[skip]]\n",
        &[
            "no point is left: `skip` leaves all of them out",
            "there is no axis `worker`; did you mean `workers`?",
            "an empty entry would leave out every point",
        ],
    );
    expect(
        "[repeat]\nblocks = 0\nhalf_width = 2\nthreshold = -1\n",
        &[
            "there has to be at least one block",
            "`half_width` is a share: 0.02 is 2 %",
            "`threshold` is a share from 0 to 1",
        ],
    );
    expect(
        "[repeat]\nblocks = 30\nhalf_width = 0.1\n",
        &["`blocks_max` is 20, fewer than the 30 blocks there are anyway"],
    );
    expect(
        "[repeat]\nblocks = 30\nuntil_decided = true\n",
        &[
            "`blocks_max` is 20, fewer than the 30 blocks there are anyway",
            "`until_decided` is for targets with `over`, and there is none",
        ],
    );
}

#[test]
fn all_mistakes_of_a_file_are_found_at_once_in_its_order() {
    let folder = Scratch::new();
    let path = folder.0.join("mine.toml");
    let text = format!(
        "{RECIPE}[topology]\nmut = 1\nkind = \"vet\"\n[tune]\nlimits.nofiles = 1\n[size.standard]\nload.agrs = \"x\"\n"
    );
    std::fs::write(&path, text).unwrap();
    let errors: Vec<String> = check_all(&path.display().to_string())
        .iter()
        .map(|error| {
            error
                .to_string()
                .replace(&format!("{}/", folder.0.display()), "")
        })
        .collect();
    assert_eq!(
        errors,
        [
            "mine.toml:28:1: unknown key `mut` in `topology`; did you mean `mtu`?",
            "mine.toml:29:1: `topology.kind` can't be `vet`; did you mean `veth`?",
            "mine.toml:31:8: unknown key `nofiles` in `tune.limits`; did you mean `nofile`?",
            "mine.toml:33:6: unknown key `agrs` in `load`; did you mean `args`?",
        ]
    );
}

#[test]
fn a_stack_of_our_own_is_over_devices_that_there_are_and_of_others_programs_over_interfaces() {
    let run = "`millstream run`, which puts programs of others on our stack, takes `af_xdp:` only";
    let nothing = "there is nothing to run on a stack of our own";
    let ends = "a memif has two ends: either both sides are on it, or none; leave such points out with `[[skip]]`";
    let loopback =
        "AF_XDP takes an interface of its own, and loopback is none; `tap:` and `memif:` need none";
    let veth = "kind = \"millstream\" => kind = \"millstream\"\nstack = ";
    expect(&format!("{veth}\"tap:ms0,address=10.0.0.2/24\""), &[]);
    expect(&format!("{veth}\"af_xdp:${{interface}}\""), &[loopback]);
    expect(&format!("{veth}\"memif:/x\""), &[ends]);
    expect(&format!("{veth}\"dpdk:vdev=net_tap0\""), &[]);
    let found = mistakes(&format!("{veth}\"af-xdp:eth0\""));
    assert_eq!(
        found,
        ["there is no device `af-xdp`; did you mean `af_xdp`?"]
    );
    let nginx =
        |device: &str| format!("kind = \"nginx\" => kind = \"nginx\"\nstack = \"{device}:ms0\"");
    expect(&nginx("tap"), &[run]);
    expect(&nginx("af_xdp"), &[loopback]);
    let load = |tool: &str| format!("tool = \"wrk\" => tool = \"{tool}\"\nstack = \"tap:ms1\"");
    expect(&load("wrk"), &[run]);
    expect(&load("dpdk-httperf"), &[run, nothing]);
    expect(&load("millstream wrk"), &[]);
}

#[test]
fn a_stack_that_factors_keep_quiet_is_found() {
    let of = |factor: &str| {
        format!(
            "[[compare]]\nfrom = \"own\"\nto = \"x\"\nfactor = \"{factor}\"\n[system.x]\nparent = \"own\"\n\
             stack = \"tap:ms0\"\nfactors = {{ {factor} = \"other\" }}\n"
        )
    };
    expect(&of("stack"), &[]);
    expect(
        &of("server"),
        &["the network stack changes too; compare in two steps"],
    );
}
