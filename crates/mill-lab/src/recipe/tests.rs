//! Recipes from text to setups.

use super::*;
use crate::record::Point;

/// A recipe that has all that a recipe must have, and `more`.
fn text(more: &str) -> String {
    format!(
        r#"title = "t"
question = "q?"
[vars]
duration = "2s"
connections = 50
[system.nginx]
title = "nginx"
kind = "nginx"
config = "root ${{root}}; try_files $uri;"
[system.own]
parent = "nginx"
title = "Millstream"
kind = "millstream"
[load]
tool = "wrk"
args = "-c ${{connections}} -d ${{duration}} ${{url}}"
{more}"#
    )
}

fn parse(more: &str, sets: &[&str]) -> Result<Resolved, RecipeError> {
    let sets: Vec<String> = sets.iter().copied().map(String::from).collect();
    first(finish(&Document::text("t.toml", &text(more)), "", &sets))
}

fn point(words: &str) -> Point {
    let pairs = words.split_whitespace();
    let pairs = pairs.filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(axis, value)| (String::from(axis), String::from(value)))
        .collect()
}

fn setup(more: &str, sets: &[&str], at: &str) -> Result<Setup, RecipeError> {
    Ok(parse(more, sets)?.setup(&point(at))?.0)
}

fn points(more: &str, sets: &[&str]) -> Vec<String> {
    let resolved = parse(more, sets).unwrap();
    let axes: Vec<String> = resolved.axes().into_iter().map(|axis| axis.name).collect();
    let name = |point: &Point| {
        let values: Vec<&str> = axes.iter().map(|axis| point[axis].as_str()).collect();
        values.join(" ")
    };
    resolved.points().iter().map(name).collect()
}

#[test]
fn every_embedded_recipe_has_setups_at_all_sizes() {
    let mut problems = Vec::new();
    for id in embedded::ids() {
        for size in SIZES {
            let resolved = match resolve(id, size, &[]) {
                Ok(resolved) => resolved,
                Err(error) => {
                    problems.push(format!("{id} {size}: {error}"));
                    continue;
                }
            };
            assert_eq!(resolved.recipe.id, id);
            assert!(!resolved.points().is_empty(), "{id} {size} has no points");
            for point in resolved.points() {
                if let Err(error) = resolved.setup(&point) {
                    problems.push(format!("{id} {size} {point:?}: {error}"));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn a_kept_recipe_reads_as_the_one_it_was() {
    for id in embedded::ids() {
        let resolved = resolve(id, "seed", &[]).unwrap();
        let again = Resolved::parse("recipe.toml", &resolved.emit(), "seed").unwrap();
        assert_eq!(again.recipe, resolved.recipe, "{id}");
        assert_eq!(again.points(), resolved.points(), "{id}");
        for point in resolved.points() {
            assert_eq!(
                again.setup(&point),
                resolved.setup(&point),
                "{id} {point:?}"
            );
        }
    }
}

#[test]
fn axes_stand_in_order_with_the_systems_innermost() {
    let check = |more: &str, sets: &[&str], expected: &[&str]| {
        assert_eq!(points(more, sets), expected, "{more} {sets:?}");
    };
    check("", &[], &["nginx", "own"]);
    check(
        "[for]\nworkers = [1, 2]\n",
        &[],
        &["1 nginx", "1 own", "2 nginx", "2 own"],
    );
    check(
        "[for]\nsystem = [\"own\"]\nworkers = [1, 2]\n",
        &[],
        &["own 1", "own 2"],
    );
    check(
        "[[skip]]\nworkers = [2, 4]\nsystem = \"own\"\n[for]\nworkers = [1, 2, 4]\n",
        &[],
        &["1 nginx", "1 own", "2 nginx", "4 nginx"],
    );
    let rows = "[for]\nrx = [{ name = \"poll\", hz = 7000 }, { name = \"interrupt\", hz = 0 }]\n";
    check(rows, &["rx=poll", "system=own"], &["poll own"]);
    check(
        "[for]\nworkers = [1, 2]\n",
        &["workers=4", "system=nginx"],
        &["4 nginx"],
    );
}

#[test]
fn variables_keep_their_types_and_become_text_where_text_is_wanted() {
    let more = r#"processes = "${n}"
ramp_s = "${half}"
prime = "${n}"
[topology]
cpus = { server = "${n}" }
[content."${n}kb.bin"]
bytes = "${n}000"
[for]
n = [{ name = "two", n2 = 2 }, 3]
"#;
    let error = setup(more, &[], "n=3 system=nginx").unwrap_err();
    assert_eq!(error.place, "t.toml:18:1");
    assert!(
        error
            .problem
            .starts_with("`load.ramp_s`: there is no variable `half`"),
        "{error}"
    );
    let whole = more
        .replace("${half}", "1.5")
        .replace("\"1.5\"", "1.5")
        .replace("\"${n}000\"", "7");
    let setup = setup(&whole, &[], "n=3 system=nginx").unwrap();
    assert_eq!(setup.load.processes, 3);
    assert_eq!(setup.load.prime.as_deref(), Some("3"));
    assert_eq!(setup.topology.cpus.server.as_deref(), Some("3"));
    assert_eq!(setup.content["3kb.bin"].bytes, 7);
}

#[test]
fn text_is_replaced_but_for_the_machine_and_nginx() {
    let check = |config: &str, expected: &str| {
        let set = format!("system.nginx.config={config}");
        let setup = setup("", &["vars.duration=${connections}s", &set], "system=nginx").unwrap();
        assert_eq!(setup.system.config.as_deref(), Some(expected), "{config}");
        assert_eq!(setup.load.args, "-c 50 -d 50s ${url}");
    };
    check(
        "root ${root}; try_files $uri;",
        "root ${root}; try_files $uri;",
    );
    check("a ${connections} $$ $${b} $", "a 50 $ ${b} $");
    check("${duration}${connections}", "50s50");
}

#[test]
fn a_system_has_what_its_parent_has_and_its_own_name() {
    let setup = setup("", &["system.nginx.port=81"], "system=own").unwrap();
    assert_eq!(setup.system.name, "own");
    assert_eq!(setup.system.title, "Millstream");
    assert_eq!(setup.system.port, 81);
    assert_eq!(setup.system.kind, SystemKind::Millstream);
}

#[test]
fn upstreams_come_nearest_first() {
    let more = "[system.cache]\ntitle = \"c\"\nkind = \"nginx\"\nupstream = \"own\"\n\
                [system.outer]\ntitle = \"o\"\nkind = \"nginx\"\nupstream = \"cache\"\n";
    let resolved = parse(more, &[]).unwrap();
    let (setup, upstreams) = resolved.setup(&point("system=outer")).unwrap();
    assert_eq!(setup.system.name, "outer");
    let names: Vec<&str> = upstreams
        .iter()
        .map(|system| system.name.as_str())
        .collect();
    assert_eq!(names, ["cache", "own"]);
    let error = parse(more, &["system.own.upstream=outer"])
        .unwrap()
        .setup(&point("system=outer"))
        .unwrap_err();
    assert_eq!(
        error.problem,
        "upstreams go round in a circle: outer -> cache -> own -> outer"
    );
}

#[test]
fn probes_of_other_systems_are_left_out() {
    let more = "[[probe]]\nkind = \"path\"\n[[probe]]\nkind = \"top\"\nsystems = [\"own\"]\n";
    let count = |at: &str| setup(more, &[], at).unwrap().probe.len();
    assert_eq!((count("system=nginx"), count("system=own")), (1, 2));
}

#[test]
fn a_size_overrides_the_recipe_and_the_command_line_the_size() {
    let more = "[repeat]\nblocks = 9\n[size.smoke]\nvars.duration = \"1s\"\nrepeat.blocks = 3\n\
                [size.tiny]\nrepeat.blocks = 1\n";
    let blocks = |size: &str, sets: &[&str]| {
        let sets: Vec<String> = sets.iter().copied().map(String::from).collect();
        let document = Document::text("t.toml", &text(more));
        first(finish(&document, size, &sets)).map(|resolved| resolved.recipe.repeat.blocks)
    };
    assert_eq!(blocks("", &[]), Ok(3));
    assert_eq!(blocks("smoke", &["repeat.blocks=4"]), Ok(4));
    assert_eq!(blocks("seed", &[]), Ok(9));
    assert_eq!(blocks("tiny", &[]), Ok(1));
    let error = blocks("smok", &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "t.toml: there is no size `smok`; there are smoke, standard, seed, tiny"
    );
}

#[test]
fn the_command_line_names_keys_variables_and_axes() {
    let more = "[for]\nworkers = [1]\n[tune]\nsysctl = { \"net.core.somaxconn\" = 1 }\n";
    let check = |set: &str, key: &[&str], expected: &str| {
        let resolved = parse(more, &[set]).unwrap();
        let mut value = &toml::Value::Table(resolved.table);
        for key in key {
            value = &value[*key];
        }
        assert_eq!(value.to_string(), expected, "{set}");
    };
    check("duration=5s", &["vars", "duration"], "\"5s\"");
    check("vars.connections=7", &["vars", "connections"], "7");
    check("workers=1,2", &["for", "workers"], "[1, 2]");
    check("for.workers=[4]", &["for", "workers"], "[4]");
    check("workers=auto", &["for", "workers"], "[\"auto\"]");
    check(
        "system=own,nginx",
        &["for", "system"],
        "[\"own\", \"nginx\"]",
    );
    check("title=a b", &["title"], "\"a b\"");
    check(
        "load.args=-t 1 ${url}",
        &["load", "args"],
        "\"-t 1 ${url}\"",
    );
    let sysctl = ["tune", "sysctl", "net.core.somaxconn"];
    check("tune.sysctl.net.core.somaxconn=9", &sysctl, "9");
    check("tune.sysctl.\"net.core.somaxconn\"=9", &sysctl, "9");
    check("topology.mtu=9000", &["topology", "mtu"], "9000");
}

#[test]
fn a_slip_on_the_command_line_is_named_with_what_was_meant() {
    let more = "[for]\nworkers = [1]\nrx = [{ name = \"poll\" }]\n";
    for case in [
        "duratoin=5s => `duratoin` is no key, no variable and no axis of this recipe; did you mean `duration`?",
        "laod.args=5s => `laod` is no key of a recipe; did you mean `load`?",
        "for.worker=1 => this recipe has no axis `worker`; did you mean `workers`?",
        "system=ngnix => this recipe has no system `ngnix`; did you mean `nginx`?",
        "rx=pol => the axis `rx` has no value `pol`; did you mean `poll`?",
        "load.agrs=x => unknown key `agrs` in `load`; did you mean `args`?",
        "repeat.blocks=many => `repeat.blocks`: invalid type: string \"many\", expected a whole number that is not negative",
        "load.tool=wrok => `load.tool` can't be `wrok`; did you mean `wrk`?",
        "workers => give a key and a value, as in `--set repeat.blocks=3`",
        "=1 => `` is no key; keys are words joined by dots",
        "size.smoke=1 => sizes, parents and ids are not set on the command line; name a size with `--size`",
    ] {
        let (set, expected) = case.split_once(" => ").unwrap();
        let error = parse(more, &[set]).and_then(|resolved| resolved.setup(&resolved.points()[0]));
        assert_eq!(
            error.unwrap_err().to_string(),
            format!("--set {set}: {expected}")
        );
    }
}

#[test]
fn a_mistake_in_a_recipe_is_shown_in_its_line() {
    for case in [
        "[topolgy]\nmtu = 1\n => t.toml:17:2: unknown key `topolgy`; did you mean `topology`?",
        "[topology]\nmut = 1\n => t.toml:18:1: unknown key `mut` in `topology`; did you mean `mtu`?",
        "[topology]\nkind = \"vet\"\n => t.toml:18:1: `topology.kind` can't be `vet`; did you mean `veth`?",
        "[system.nginx.start]\nargs = []\n => t.toml:18:1: unknown key `args` in `system.nginx.start`; did you mean `argv`?",
        "[[compare]]\nfrom = \"nginx\"\nfactor = \"server\"\n => t.toml:17:1: `to` is missing in `compare.0`",
        "[for]\nworkers = []\n => t.toml:18:1: the axis `workers` needs a list with at least one value",
        "[for]\nworkers = [1, 1]\n => t.toml:18:15: `1` stands in the axis `workers` twice",
        "[for]\nport = [1]\n => t.toml:18:1: `port` is set by the machine; choose another name",
        "[tune.sysctl]\n\"a.${b}\" = 1\n => t.toml:18:1: `tune.sysctl.a.${b}`: there is no variable `b`; add it to [vars], or write `$${b}` for the characters themselves",
        "path = \"${conections}\"\n => t.toml:17:1: `load.path`: there is no variable `conections`; did you mean `${connections}`?",
        "[size.smoke]\nvars = { connections = \"${duration}\", duration = \"${connections}\" }\n => t.toml:16:1: `load.args`: variables go round in a circle: connections -> duration -> connections",
        "[system.x]\nparent = \"y\"\n[system.y]\nparent = \"x\"\n => t.toml:20:1: parents go round in a circle: x -> y -> x",
    ] {
        let (more, expected) = case.split_once(" => ").unwrap();
        let at = point("system=nginx");
        let setup = parse(more, &[]).and_then(|resolved| resolved.setup(&at));
        assert_eq!(setup.unwrap_err().to_string(), expected);
    }
}

#[test]
fn large_answers_are_judged_by_their_transfer() {
    // Of a short run of few large answers a part is under way at its end, which a count of whole answers leaves out.
    for id in ["bench-serve", "bench-bypass"] {
        let resolved = resolve(id, "full", &[]).unwrap();
        let is_judged = |target: &&Target| {
            let over = target.over.as_ref().and_then(|over| over.get("system"));
            target.metric == "requests_per_s" && over.is_some_and(|it| it.as_str() == Some("nginx"))
        };
        for target in resolved.recipe.target.iter().filter(is_judged) {
            let points = resolved.points().into_iter();
            for point in points.filter(|point| matches(point, &target.at)) {
                let (setup, _) = resolved.setup(&point).unwrap();
                assert!(
                    setup.content["body.html"].bytes < 100_000,
                    "{id}: {point:?}"
                );
            }
        }
    }
}
