//! Whole reports: well-formed, self-contained, small, and safe for any content of the findings.

use super::*;
use crate::findings::{Drawing, Picture};

/// That every element is closed, in the order in which they were opened, and attributes are quoted.
pub(super) fn check_balanced(text: &str) {
    const VOID: [&str; 4] = ["meta", "!doctype", "br", "link"];
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        let end = rest[start..].find('>').expect("an end of the tag") + start;
        let tag = &rest[start + 1..end];
        assert!(!tag.contains('<'), "a tag in a tag: {tag}");
        assert!(
            tag.matches('"').count().is_multiple_of(2),
            "quotes of {tag}"
        );
        rest = &rest[end + 1..];
        let name = tag.split([' ', '/']).next().unwrap_or_default();
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(
                open.pop(),
                Some(closed),
                "before {}",
                &rest[..rest.len().min(80)]
            );
        } else if !tag.ends_with('/') && !VOID.contains(&name) {
            open.push(name);
        }
    }
    assert_eq!(open, Vec::<&str>::new(), "left open");
}

/// Every place from which a browser would load something.
fn check_self_contained(page: &str) {
    for name in ["src=", "href=", "url(", "@import", "srcset="] {
        for part in page.split(name).skip(1) {
            let target = part.trim_start_matches(['"', '\'']);
            assert!(
                target.starts_with('#') || target.starts_with("data:"),
                "{name}{}",
                &target[..target.len().min(60)]
            );
        }
    }
    assert!(!page.contains("<script"), "a script");
}

fn folded(lines: usize) -> Picture {
    let folded = (0..lines)
        .map(|line| {
            let stack = format!(
                "nginx;main;part_{};step_{};function_{line}_[k]",
                line % 7,
                line % 1009
            );
            (stack, 1 + line as u64 % 5)
        })
        .collect();
    Picture {
        title: String::from("A long profile"),
        drawing: Drawing::Flame { folded },
        caption: String::new(),
    }
}

#[test]
fn a_page_is_well_formed_and_needs_nothing_else() {
    for findings in [example::jemalloc(), example::cookbook()] {
        let page = html(&findings);
        check_balanced(&page);
        check_self_contained(&page);
        let ids: Vec<&str> = page
            .split(" id=\"")
            .skip(1)
            .map(|part| part.split('"').next().unwrap_or_default())
            .collect();
        let mut once = ids.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), ids.len(), "an id twice: {ids:?}");
        for target in page.split("href=\"#").skip(1) {
            let target = target.split('"').next().unwrap_or_default();
            assert!(ids.contains(&target), "no {target}");
        }
    }
}

#[test]
fn a_page_without_anything_is_a_page() {
    let mut findings = example::jemalloc();
    findings.summary.clear();
    findings.noise = None;
    findings.comparisons.clear();
    findings.tables.clear();
    findings.charts.clear();
    findings.blocks.clear();
    findings.warnings.clear();
    findings.absences.clear();
    findings.notes.clear();
    findings.topology.clear();
    findings.tuned.clear();
    findings.commands.clear();
    findings.environment = crate::record::Environment::default();
    let page = html(&findings);
    check_balanced(&page);
    assert!(page.contains("Nothing was compared"), "{page}");
    assert!(!page.contains("id=\"tables\""), "{page}");
    assert_eq!(csv(&findings), []);
}

#[test]
fn huge_findings_make_a_page_below_two_megabytes() {
    let mut findings = example::jemalloc();
    findings.charts.push(folded(100_000));
    let page = html(&findings);
    assert!(page.len() < 1_000_000, "{}", page.len());
    // And when everything is too much at once.
    findings.charts.extend((0..12).map(|_| folded(20_000)));
    for _ in 0..8 {
        findings.charts.extend(example::jemalloc().charts);
        findings.tables.extend(findings.tables.clone());
    }
    findings.blocks[0].text = "one line of many\n".repeat(100_000);
    findings.blocks = vec![findings.blocks[0].clone(); 100];
    findings.tuned = vec![findings.tuned[0].clone(); 20_000];
    findings.comparisons = vec![findings.comparisons[0].clone(); 3_000];
    let page = html(&findings);
    assert!(page.len() < 2_000_000, "{}", page.len());
    assert!(page.contains("Left out to keep this page small"));
    check_balanced(&page);
}

#[test]
fn the_same_findings_give_the_same_bytes() {
    let findings = example::cookbook();
    assert_eq!(html(&findings), html(&findings));
    assert_eq!(markdown(&findings), markdown(&findings));
}

/// Findings with this before every text, and instead of every optional one.
fn poisoned(findings: &Findings, poison: &str) -> Findings {
    let mut out = findings.clone();
    let all = |text: &mut String| *text = format!("{poison}{text}");
    let texts = [&mut out.question, &mut out.topology];
    texts.into_iter().chain(&mut out.origin).for_each(all);
    let lists = [&mut out.absences, &mut out.notes];
    lists.into_iter().flatten().for_each(all);
    out.summary.iter_mut().for_each(|it| all(&mut it.text));
    out.noise.iter_mut().for_each(|it| all(&mut it.text));
    for block in &mut out.blocks {
        let texts = [&mut block.title, &mut block.text];
        texts.into_iter().for_each(all);
    }
    for it in &mut out.warnings {
        let texts = [&mut it.lint, &mut it.text, &mut it.advice];
        texts.into_iter().chain(&mut it.more).for_each(all);
    }
    for key in &mut out.tuned {
        let texts = [&mut key.key, &mut key.wanted];
        texts.into_iter().for_each(all);
        key.before = Some(poison.to_owned());
        key.problem = Some(poison.to_owned());
    }
    for (system, lines) in &mut out.commands {
        all(system);
        for line in lines {
            let texts = [&mut line.role, &mut line.line];
            texts.into_iter().for_each(all);
        }
    }
    poison_run(&mut out, poison);
    poison_tables(&mut out, poison);
    let charts = out.charts.iter_mut();
    charts.for_each(|picture| poison_picture(picture, poison));
    out
}

fn poison_run(findings: &mut Findings, poison: &str) {
    let all = |text: &mut String| *text = format!("{poison}{text}");
    let run = &mut findings.run;
    let texts = [
        &mut run.id,
        &mut run.recipe,
        &mut run.title,
        &mut run.size,
        &mut run.millstream,
    ];
    let lists = run.overrides.iter_mut().chain(&mut run.command);
    texts.into_iter().chain(lists).for_each(all);
    run.commit.iter_mut().for_each(all);
    let environment = &mut findings.environment;
    let texts = [
        &mut environment.host,
        &mut environment.kernel,
        &mut environment.distribution,
        &mut environment.cpu,
        &mut environment.hypervisor,
    ];
    texts.into_iter().for_each(all);
    environment.governor = Some(poison.to_owned());
    environment.versions = [(poison.to_owned(), poison.to_owned())].into();
    environment.absent = [(poison.to_owned(), poison.to_owned())].into();
    let lists = [
        &mut environment.mitigations,
        &mut environment.interfaces,
        &mut environment.running,
        &mut environment.warnings,
    ];
    lists.into_iter().flatten().for_each(all);
}

fn poison_tables(findings: &mut Findings, poison: &str) {
    let all = |text: &mut String| *text = format!("{poison}{text}");
    for it in &mut findings.comparisons {
        let texts = [&mut it.title, &mut it.factor, &mut it.metric, &mut it.words];
        texts.into_iter().for_each(all);
        it.caution = Some(poison.to_owned());
    }
    for grid in &mut findings.tables {
        all(&mut grid.title);
        grid.head.iter_mut().chain(&mut grid.notes).for_each(all);
        for cell in grid.rows.iter_mut().flatten() {
            all(&mut cell.text);
            for small in [&mut cell.spread, &mut cell.published, &mut cell.mark] {
                *small = Some(poison.to_owned());
            }
        }
    }
}

fn poison_picture(picture: &mut Picture, poison: &str) {
    let all = |text: &mut String| *text = format!("{poison}{text}");
    [&mut picture.title, &mut picture.caption]
        .into_iter()
        .for_each(all);
    match &mut picture.drawing {
        Drawing::Lines {
            x,
            y,
            series,
            curves,
            ..
        } => {
            [&mut x.title, &mut y.title].into_iter().for_each(all);
            series
                .iter_mut()
                .chain(curves)
                .for_each(|it| all(&mut it.name));
        }
        Drawing::Bars { scale, bars, .. } => {
            all(&mut scale.title);
            bars.iter_mut().for_each(|bar| all(&mut bar.name));
        }
        Drawing::Stacks { parts, bars } => {
            parts.iter_mut().for_each(all);
            bars.iter_mut().for_each(|(name, _)| all(name));
        }
        Drawing::Flame { folded } => folded.iter_mut().for_each(|(stack, _)| {
            *stack = stack
                .split(';')
                .map(|name| format!("{poison}{name};"))
                .collect();
        }),
    }
}

#[test]
fn text_of_others_is_text_everywhere() {
    let poison = "<script src=x>'\"&\0\x1b</script>";
    for findings in [example::jemalloc(), example::cookbook()] {
        let mut findings = findings;
        findings.charts.push(example::bars());
        let findings = poisoned(&findings, poison);
        let page = html(&findings);
        assert!(!page.contains("<script"), "a script in the page");
        assert!(
            !page.contains(['\0', '\x1b']),
            "control characters in the page"
        );
        check_balanced(&page);
        let (text, files) = markdown(&findings);
        for (name, svg) in files {
            assert!(!svg.contains("<script"), "{name}");
            check_balanced(&svg);
            assert!(!name.contains(['/', '<', ' ']), "{name}");
        }
        let outside: String = text.split("```").step_by(2).collect();
        let outside: String = outside.split('`').step_by(2).collect();
        assert!(!outside.contains("<script"), "{outside}");
    }
}

#[test]
fn missing_columns_say_why_and_the_small_print_is_explained() {
    let page = html(&example::cookbook());
    for words in [
        "<small class=\"mark none\">not on this machine</small>",
        "<small class=\"mark none\">needs 8 cores</small>",
        "<span class=\"value\">21,890.7</span><small>± 1.2 %</small><small>0.61 of the document&#39;s</small>",
        "<dt>client-bound</dt>",
        "measured on other machines",
        "Interrupted: 31 of 48 trials",
    ] {
        assert!(page.contains(words), "{words}");
    }
}
