//! Labels, sections and commands of quoted blocks.

use super::*;

const BLOCK: &str = "Running 1s test @ http://h:9090/x
  1 threads and 2 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.00ms    1.00ms   2.00ms   90.00%
    Req/Sec     1.00k     1.00     2.00k    90.00%
  100 requests in 1.00s, 1.00MB read
Requests/sec:    100.00
Transfer/sec:      1.00MB
";

#[test]
fn a_block_has_the_words_before_it() {
    let text = format!(
        "## One CPU\n\nThis sentence is about nothing in particular.\n\n**Nginx:**\n\n$ wrk -c2 -t1 -d1 http://h:9090/x\n{BLOCK}\
         \nThe results for Tempesta FW are:\n{BLOCK}\n## Two CPUs\nTempesta FW\n# ./wrk -c2 -t1 -d1 http://h/x\n{BLOCK}"
    );
    let (samples, problems) = of("page", &text);
    assert!(problems.is_empty(), "{problems:?}");
    let seen: Vec<(&str, &str, &str)> = samples
        .iter()
        .map(|sample| {
            (
                sample.section.as_str(),
                sample.label.as_str(),
                sample.place.as_str(),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("One CPU", "Nginx", "page:8"),
            ("One CPU", "Tempesta FW", "page:18"),
            ("Two CPUs", "Tempesta FW", "page:30"),
        ]
    );
    assert_eq!(samples[0].scope, "/x");
    assert!(samples[0].asked.is_some());
    assert!(samples[1].asked.is_none());
}

#[test]
fn a_block_that_breaks_off_is_a_problem_and_ends_before_the_next() {
    let half = BLOCK.lines().take(4).collect::<Vec<_>>().join("\n");
    let (samples, problems) = of("page", &format!("{half}\n{BLOCK}"));
    assert_eq!(samples.len(), 1);
    assert_eq!(problems.len(), 1);
    assert!(problems[0].1.contains("requests in"), "{problems:?}");
}

#[test]
fn a_label_that_comes_again_begins_a_section() {
    let text =
        format!("2 modules\n\nJava\n{BLOCK}\nNative\n{BLOCK}\n4 modules\n{BLOCK}\nNative\n{BLOCK}");
    let (samples, _) = of("page", &text);
    let seen: Vec<(&str, &str)> = samples
        .iter()
        .map(|sample| (sample.section.as_str(), sample.label.as_str()))
        .collect();
    assert_eq!(
        seen,
        [
            ("2 modules", "Java"),
            ("2 modules", "Native"),
            ("2 modules", "4 modules"),
            ("4 modules", "Native"),
        ]
    );
}
