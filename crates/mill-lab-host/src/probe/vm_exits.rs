//! `perf kvm stat`: why virtual machines on this host exited to it.

use super::tool::{self, GRACE};
use super::{Looked, Scene};
use crate::host::{Host, Line};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Counts for `seconds` on the whole host.
pub(super) fn look(scene: &Scene, seconds: f64, looked: &mut Looked) {
    let data = scene.folder.join("perf.data.kvm");
    let result = report(&data, seconds, looked);
    let _ = fs::remove_file(&data);
    match result {
        Err(reason) => looked.miss("vm_exits", reason),
        Ok(text) => {
            for row in parse(&text) {
                let name = |what: &str| format!("vm_exits.{}.{what}", row.exit);
                looked.figure(name("samples"), row.samples);
                looked.figure(name("samples_percent"), row.samples_percent);
                looked.figure(name("time_percent"), row.time_percent);
                looked.figure(name("min"), row.min_s);
                looked.figure(name("max"), row.max_s);
                looked.figure(name("mean"), row.mean_s);
            }
            looked.keep(scene, "vm-exits.txt", text);
        }
    }
}

fn report(data: &Path, seconds: f64, looked: &mut Looked) -> Result<String, String> {
    if !Path::new("/dev/kvm").exists() {
        return Err(String::from(NEEDS_HOST));
    }
    let path = data.display().to_string();
    let span = format!("{seconds:.1}");
    let record = ["perf", "kvm", "--host", "stat", "record", "-a", "-o", &path];
    let mut line = Line::new(record);
    line.argv.extend(["--", "sleep", &span].map(String::from));
    looked.ran(&Host::Local, &line);
    let patience = Duration::from_secs_f64(seconds) + GRACE;
    tool::run(&Host::Local, &line, patience)?.or_complaint("perf kvm stat record")?;
    let line = Line::new(["perf", "kvm", "--host", "-i", &path, "stat", "report"]);
    looked.ran(&Host::Local, &line);
    let printed = tool::run(&Host::Local, &line, GRACE)?;
    let text = printed.out().into_owned();
    if parse(&text).is_empty() {
        return Err(format!("{NEEDS_HOST}; none came back while perf looked"));
    }
    Ok(text)
}

const NEEDS_HOST: &str = "needs a host that runs virtual machines (/dev/kvm and a guest)";

/// One exit reason.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    exit: String,
    samples: f64,
    samples_percent: f64,
    time_percent: f64,
    min_s: f64,
    max_s: f64,
    mean_s: f64,
}

/// Lines such as `HLT 1193  0.36%  95.74%  0.30us 1504068.39us 1192.90us ( +-   2.32% )`.
fn parse(text: &str) -> Vec<Row> {
    let percent = |word: &str| word.strip_suffix('%')?.parse::<f64>().ok();
    let micros = |word: &str| Some(word.strip_suffix("us")?.parse::<f64>().ok()? / 1e6);
    text.lines()
        .filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            Some(Row {
                exit: words.next()?.to_owned(),
                samples: words.next()?.parse().ok()?,
                samples_percent: percent(words.next()?)?,
                time_percent: percent(words.next()?)?,
                min_s: micros(words.next()?)?,
                max_s: micros(words.next()?)?,
                mean_s: micros(words.next()?)?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_report_are_rows() {
        let text = "\
Analyze events for all VMs, all VCPUs:

             VM-EXIT    Samples  Samples%     Time%    Min Time    Max Time         Avg time

  EXTERNAL_INTERRUPT    5073570    75.37%     1.71%      0.22us   4066.99us      0.84us ( +-   0.41% )
                 HLT     116283     1.73%    95.74%      0.30us 1504068.39us   1192.90us ( +-   2.32% )

Total Samples:6731852, Total events handled time:144885423.99us.
";
        let rows = parse(text);
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].exit, "EXTERNAL_INTERRUPT");
        assert_eq!(rows[0].samples, 5_073_570.0);
        assert!((rows[1].max_s - 1.504_068_39).abs() < 1e-9);
        assert_eq!(rows[1].time_percent, 95.74);
        assert_eq!(parse("HLT x 1% 1% 1us 1us 1us\nHLT 1\n\n"), []);
    }
}
