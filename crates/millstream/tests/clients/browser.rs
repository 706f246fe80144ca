//! Chromium, with a page of 200 objects.

use crate::namespace::{output_of, text_of};
use crate::server::wait_for;
use crate::stage::{Stage, on_every_network};
use std::fmt::Write;
use std::fs;

on_every_network!(load_page);

/// Objects of the page: so many images, styles and scripts.
const IMAGES: usize = 150;
const STYLES: usize = 25;
const SCRIPTS: usize = 25;

fn load_page(stage: &Stage<'_>) {
    write_page(stage);
    let program = "chromium-headless-shell";
    if std::process::Command::new(program)
        .arg("--version")
        .output()
        .is_err()
    {
        println!("skipped: {program} is not installed");
        return;
    }
    let rules = format!("--host-resolver-rules=MAP a.example {}", stage.host());
    let profile = format!("--user-data-dir={}", stage.site.path("profile").display());
    let words = [
        "-s",
        "KILL",
        "60",
        program,
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--ignore-certificate-errors",
        &rules,
        &profile,
        "--dump-dom",
        "https://a.example/page.html",
    ];
    // A new address ends the load of a page (ERR_NETWORK_CHANGED), and addresses of links come a second or two after them.
    let tentative = || stage.at_client(|| text_of("ip", &["-6", "address", "show", "tentative"]));
    wait_for(|| tentative().is_empty());
    let output = stage.at_client(|| output_of("timeout", &words));
    let page = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    let expected = format!(
        "page by h2, {IMAGES} images, {STYLES} styles, {SCRIPTS} scripts, {} objects by h2",
        IMAGES + STYLES + SCRIPTS
    );
    let title = page.split_once("<title>").map(|(_, behind)| behind);
    let title = title.and_then(|behind| behind.split_once("</title>"));
    assert_eq!(
        title.map(|(title, _)| title),
        Some(&*expected),
        "{complaint}"
    );
    stage.assert_carried();
}

/// `page.html`, which says in its title what of it has arrived and is right: each image has a width of its own, each style
/// colours one element, and each script counts.
fn write_page(stage: &Stage<'_>) {
    let write = |name: &str, text: &str| fs::write(stage.site.path(name), text).unwrap();
    let (mut head, mut body) = (String::new(), String::new());
    for number in 0..STYLES {
        let rule = format!("#s{number} {{ color: rgb({number}, 1, 2); }}");
        write(&format!("style{number}.css"), &rule);
        writeln!(head, "<link rel=stylesheet href=style{number}.css>").unwrap();
        writeln!(body, "<i id=s{number}>style</i>").unwrap();
    }
    for number in 0..IMAGES {
        let width = number + 1;
        let hue = number * 360 / IMAGES;
        // A comment makes some of them longer than a window of HTTP/2.
        let filler = "x".repeat(if number % 50 == 49 {
            100_000
        } else {
            number * 20
        });
        let image = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"20\"><!-- {filler} -->\
             <rect width=\"{width}\" height=\"20\" fill=\"hsl({hue},80%,50%)\"/></svg>"
        );
        write(&format!("image{number}.svg"), &image);
        writeln!(body, "<img src=image{number}.svg>").unwrap();
    }
    for number in 0..SCRIPTS {
        write(&format!("script{number}.js"), "scripts += 1;");
        writeln!(body, "<script src=script{number}.js></script>").unwrap();
    }
    let page = format!(
        "<!doctype html><title>loading</title><script>let scripts = 0;</script>\n{head}<body>{body}<script>{REPORT}</script>"
    );
    write("page.html", &page);
}

const REPORT: &str = "
addEventListener('load', () => {
  const images = [...document.images].filter((image, at) => image.naturalWidth === at + 1).length;
  const styles = [...document.querySelectorAll('i')]
    .filter((element, at) => getComputedStyle(element).color === `rgb(${at}, 1, 2)`).length;
  const page = performance.getEntriesByType('navigation')[0].nextHopProtocol;
  const objects = performance.getEntriesByType('resource').filter((entry) => entry.nextHopProtocol === 'h2').length;
  document.title = `page by ${page}, ${images} images, ${styles} styles, ${scripts} scripts, ${objects} objects by h2`;
});
";
