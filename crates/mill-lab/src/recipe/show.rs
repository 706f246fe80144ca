//! What `lab list` and `lab show` print: which recipes there are, and what one of them will do.

use super::{
    Resolved, SIZES, Setup, SystemKind, Tool, Tune, diagram, embedded, resolve, value_name,
};
use crate::plan::{Plan, Trial};
use std::fmt::Write;
use std::time::Duration;

/// One line of `lab list`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    pub id: String,
    /// Of the catalogue: `N1`, `N2`.
    pub rows: Vec<String>,
    /// The document it comes from, if it comes from one.
    pub seed: Option<String>,
    pub title: String,
}

/// The recipes that come with Millstream, those for a first look first, then in the order of the catalogue's rows.
pub fn list() -> Vec<Listing> {
    let resolved = embedded::ids().filter_map(|id| resolve(id, "", &[]).ok());
    let listings = resolved.map(|resolved| Listing {
        id: resolved.recipe.id,
        rows: resolved.recipe.rows,
        seed: resolved.recipe.seed,
        title: resolved.recipe.title,
    });
    listings.collect()
}

/// Columns of a terminal.
const WIDTH: usize = 80;

/// The question of a recipe, what will be run, how long that takes, and where.
pub fn show(resolved: &Resolved, plan: &Plan) -> String {
    let mut text = String::new();
    heading(&mut text, resolved);
    axes(&mut text, resolved);
    sizes(&mut text, resolved, plan);
    systems(&mut text, resolved);
    let there = |trial: &&Trial| !trial.is_absent;
    if let Some(first) = plan.trials.iter().find(there).or(plan.trials.first()) {
        section(&mut text, "Topology");
        text.push_str(&indented(&diagram(&first.setup.topology)));
        tuning(&mut text, &first.setup.tune);
        commands(&mut text, first);
    }
    absences(&mut text, resolved);
    text
}

fn heading(text: &mut String, resolved: &Resolved) {
    let recipe = &resolved.recipe;
    let mut origin = recipe.rows.join(" ");
    if let Some(seed) = &recipe.seed {
        let gap = if origin.is_empty() { "" } else { ", " };
        let _ = write!(origin, "{gap}seed {seed}");
    }
    let origin = if origin.is_empty() {
        origin
    } else {
        format!(" ({origin})")
    };
    text.push_str(&wrapped(
        &format!("{}: {}{origin}", recipe.id, recipe.title),
        0,
        0,
    ));
    text.push('\n');
    text.push_str(&wrapped(&recipe.question, 2, 2));
    for note in &recipe.notes {
        text.push_str(&wrapped(&format!("- {note}"), 2, 4));
    }
}

fn axes(text: &mut String, resolved: &Resolved) {
    section(text, "Axes");
    let axes = resolved.axes();
    let width = widest(axes.iter().map(|axis| axis.name.as_str()));
    for axis in &axes {
        let values: Vec<&str> = axis
            .values
            .iter()
            .map(|value| value.name.as_str())
            .collect();
        let line = format!("{:<width$}  {}", axis.name, values.join("  "));
        text.push_str(&wrapped(&line, 2, width + 4));
    }
    for skip in &resolved.recipe.skip {
        let values = skip.iter().map(|(axis, value)| {
            let names = super::value_names(value).join(" or ");
            format!("{axis} {names}")
        });
        let values: Vec<String> = values.collect();
        text.push_str(&wrapped(
            &format!("without {}", values.join(" with ")),
            2,
            4,
        ));
    }
}

/// A line for each size; that of the selected one comes from the plan itself.
fn sizes(text: &mut String, resolved: &Resolved, plan: &Plan) {
    section(text, "Sizes");
    let _ = writeln!(
        text,
        "    {:<12}{:>8}{:>8}{:>8}  at most",
        "", "points", "blocks", "trials"
    );
    let asked = &resolved.asked;
    let mut names: Vec<&str> = SIZES.to_vec();
    if !names.contains(&asked.size.as_str()) {
        names.push(&asked.size);
    }
    for size in names {
        if size == asked.size {
            size_line(text, size, true, resolved, plan);
            continue;
        }
        if asked.name.is_empty() {
            continue;
        }
        let other = resolve(&asked.name, size, &asked.sets);
        let other = other.and_then(|other| Ok((Plan::of(&other, plan.cores())?, other)));
        match other {
            Ok((plan, other)) => size_line(text, size, false, &other, &plan),
            Err(error) => text.push_str(&wrapped(&format!("{size}: {error}"), 4, 6)),
        }
    }
    if let Some(width) = resolved.recipe.repeat.half_width {
        let line = format!(
            "More blocks follow, up to {}, until every comparison is known to {} %.",
            resolved.recipe.repeat.blocks_max,
            width * 100.0
        );
        text.push_str(&wrapped(&line, 2, 2));
    }
    if resolved.recipe.repeat.until_decided {
        let line = format!(
            "More blocks follow, up to {}, of the points of targets that are open yet.",
            resolved.recipe.repeat.blocks_max
        );
        text.push_str(&wrapped(&line, 2, 2));
    }
}

fn size_line(text: &mut String, size: &str, this: bool, resolved: &Resolved, plan: &Plan) {
    let _ = writeln!(
        text,
        "  {} {:<12}{:>8}{:>8}{:>8}  {}",
        if this { "*" } else { " " },
        size,
        resolved.points().len(),
        resolved.recipe.repeat.blocks,
        plan.trials.len(),
        times(plan)
    );
}

/// How long a plan takes; where cells are missing here, also how long it would take where they are not.
fn times(plan: &Plan) -> String {
    let (here, all) = (time(plan.estimate()), time(plan.estimate_of_all()));
    if here == all {
        here
    } else {
        format!("{here}; {all} with all cells")
    }
}

/// `35 s`, `4 min`, `2 h 10 min`.
fn time(duration: Duration) -> String {
    let seconds = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    match seconds {
        0..=99 => format!("{seconds} s"),
        100..=5399 => format!("{} min", (seconds + 30) / 60),
        _ => {
            let minutes = (seconds + 30) / 60;
            format!("{} h {} min", minutes / 60, minutes % 60)
        }
    }
}

fn systems(text: &mut String, resolved: &Resolved) {
    section(text, "Systems");
    let systems = &resolved.recipe.system;
    let width = widest(systems.keys().map(String::as_str));
    for (name, system) in systems {
        let word = |key: &str| system.get(key).map(value_name);
        let mut parts = vec![word("title").unwrap_or_default()];
        parts.extend(word("stands_for").map(|other| format!("stands for {other}")));
        parts.extend(word("upstream").map(|other| format!("in front of {other}")));
        let needs = system.get("needs").and_then(toml::Value::as_array);
        for need in needs.into_iter().flatten().filter_map(toml::Value::as_str) {
            parts.push(need_in_words(need));
        }
        let line = format!("{name:<width$}  {}", parts.join("; "));
        text.push_str(&wrapped(&line, 2, width + 4));
    }
}

fn need_in_words(need: &str) -> String {
    match need.split_once(':') {
        Some(("not-built", what)) => format!("not built yet: {what}"),
        Some(("out-of-scope", what)) => format!("out of scope: {what}"),
        Some(("open-files", count)) => format!("needs {count} open files in a process"),
        Some(("memory", bytes)) => format!("needs {bytes} bytes of memory"),
        Some(("module", what)) => format!("needs the kernel module {what}"),
        Some((_, what)) => format!("needs {what}"),
        None => format!("needs {need}"),
    }
}

/// What is changed on the machine meanwhile.
fn tuning(text: &mut String, tune: &Tune) {
    let counts = [
        (
            tune.sysctl.len() + tune.server_sysctl.len() + tune.client_sysctl.len(),
            "sysctl",
            "sysctls",
        ),
        (
            tune.files.len() + tune.interface.files.len(),
            "file of /sys or /proc",
            "files of /sys or /proc",
        ),
        (
            tune.interface.rings.len()
                + tune.interface.coalesce.len()
                + tune.interface.offloads.len(),
            "interface setting",
            "interface settings",
        ),
    ];
    let mut parts: Vec<String> = counts
        .iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, one, many)| format!("{count} {}", if *count == 1 { one } else { many }))
        .collect();
    let affinity = &tune.affinity;
    if affinity.irq.is_some() || !affinity.rps.is_empty() || !affinity.xps.is_empty() {
        parts.push(String::from("CPUs for interrupts and packets"));
    }
    if !tune.stop_services.is_empty() {
        parts.push(format!(
            "stopped if they run: {}",
            tune.stop_services.join(", ")
        ));
    }
    if parts.is_empty() {
        return;
    }
    section(text, "Changed while it runs, and put back at the end");
    text.push_str(&wrapped(&parts.join("; "), 2, 2));
}

fn commands(text: &mut String, trial: &Trial) {
    section(text, "Commands of a trial");
    let values: Vec<String> = trial
        .point
        .iter()
        .map(|(axis, value)| format!("{axis} {value}"))
        .collect();
    text.push_str(&wrapped(&format!("at {}", values.join(", ")), 2, 4));
    let mut line = |role: &str, command: &str| {
        text.push_str(&wrapped(&format!("{role:<10}{command}"), 2, 12));
    };
    for upstream in &trial.upstreams {
        line("upstream", &upstream.title);
    }
    line("server", &server_command(&trial.setup));
    let load = &trial.setup.load;
    if load.tool == Tool::None {
        line("client", "none: probes only");
    } else {
        let times = match load.processes {
            1 => String::new(),
            more => format!("   ({more} processes)"),
        };
        let tool = load.binary.as_deref().unwrap_or(load.tool.name());
        let tool = match on_stack(&load.stack) {
            Some(stack) if load.is_run() => {
                format!("{} {tool}", by_run(load.runner.as_deref(), &stack))
            }
            Some(stack) => format!("{tool} {stack}"),
            None => String::from(tool),
        };
        if let Some(prime) = &load.prime {
            line("before", &format!("{tool} {prime}"));
        }
        line("client", &format!("{tool} {}{times}", load.args));
        line(
            "",
            &format!(
                "${{url}} is http://SERVER:{}{}",
                trial.setup.system.port, load.path
            ),
        );
    }
    for probe in &trial.setup.probe {
        let counters: Vec<String> = probe.counters.iter().map(word_of).collect();
        let what = [word_of(&probe.kind), counters.join(", ")].join(" ");
        line(
            "probe",
            &format!("{}, {} s", what.trim_end(), probe.seconds),
        );
    }
}

fn server_command(setup: &Setup) -> String {
    let system = &setup.system;
    let mut words: Vec<String> = match system.kind {
        SystemKind::Nginx => vec![
            system
                .binary
                .clone()
                .unwrap_or_else(|| String::from("nginx")),
        ],
        SystemKind::Millstream => {
            let binary = system.binary.clone();
            let binary = binary.unwrap_or_else(|| String::from("millstream"));
            vec![binary, String::from("serve")]
        }
        SystemKind::Command => {
            let start = system.start.as_ref();
            start.map(|start| start.argv.clone()).unwrap_or_default()
        }
    };
    if system.kind != SystemKind::Command {
        words.extend(["-c", "${run}/nginx.conf"].map(String::from));
    }
    words.extend(system.args.iter().cloned());
    match on_stack(&system.stack) {
        Some(stack) if system.is_run() => {
            words.insert(0, by_run(system.runner.as_deref(), &stack));
        }
        stack => words.extend(stack),
    }
    words.join(" ")
}

/// The words before those of a program that is not changed.
fn by_run(runner: Option<&str>, stack: &str) -> String {
    format!("{} run {stack} --", runner.unwrap_or("millstream"))
}

fn on_stack(stack: &str) -> Option<String> {
    (!stack.is_empty()).then(|| format!("--stack {stack}"))
}

/// A value of an enum as recipes spell it.
fn word_of(value: &impl serde::Serialize) -> String {
    toml::Value::try_from(value).map_or_else(|_| String::new(), |word| value_name(&word))
}

fn absences(text: &mut String, resolved: &Resolved) {
    if resolved.recipe.absent.is_empty() {
        return;
    }
    section(text, "Not as in the document");
    for absence in &resolved.recipe.absent {
        let line = format!(
            "- {}: {}; instead: {}",
            absence.what, absence.why, absence.instead
        );
        text.push_str(&wrapped(&line, 2, 4));
    }
}

fn section(text: &mut String, title: &str) {
    let _ = write!(text, "\n{title}\n");
}

fn widest<'a>(words: impl Iterator<Item = &'a str>) -> usize {
    words.map(|word| word.chars().count()).max().unwrap_or(0)
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

/// Lines of at most 80 columns, broken at blanks; the first and the following ones with their own indentation. Blanks at
/// the beginning of a column are kept.
fn wrapped(text: &str, first: usize, rest: usize) -> String {
    let mut out = String::new();
    let mut line = " ".repeat(first);
    let mut empty = true;
    for word in text.split(' ') {
        let long = line.chars().count() + 1 + word.chars().count() > WIDTH;
        if long && !empty && !word.is_empty() {
            out.push_str(line.trim_end());
            out.push('\n');
            line = " ".repeat(rest);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    out.push_str(line.trim_end());
    out.push('\n');
    out
}

#[cfg(test)]
mod tests;
