//! What tools print, and the own pair with itself.

use super::*;

#[test]
fn ping_and_iperf_are_read() {
    let text = "5 packets transmitted, 5 received, 0% packet loss, time 4099ms\n\
                rtt min/avg/max/mdev = 0.043/0.060/0.068/0.012 ms\n";
    let trips = Trips::parse(text).unwrap();
    assert!((trips.mean - 0.000_060).abs() < 1e-12, "{trips:?}");
    assert!((trips.stdev - 0.000_012).abs() < 1e-12, "{trips:?}");
    assert_eq!(ping("round-trip min/avg/max = 0.1/0.2/0.3 ms\n"), None);
    let text = "\
[  5]   0.00-1.00   sec  1.09 GBytes  9.34 Gbits/sec    0   1.10 MBytes
[  5]   0.00-10.00  sec  10.9 GBytes  9.35 Gbits/sec   20             sender
[  5]   0.00-10.00  sec  10.9 GBytes  9.33 Gbits/sec                  receiver
";
    assert_eq!(received(text), Some(9.33));
    for text in [
        "",
        "min/avg/max = x ms",
        "Gbits/sec receiver",
        "iperf3: error",
    ] {
        assert_eq!(
            (Trips::parse(text), received(text), total(text)),
            (None, None, None)
        );
    }
}

/// A writer that sends each line to a channel.
struct Lines(std::sync::mpsc::Sender<String>, Vec<u8>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.1.extend(bytes);
        while let Some(end) = self.1.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.1.drain(..=end).collect();
            let _ = self
                .0
                .send(String::from_utf8_lossy(&line).trim().to_owned());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().copied().map(String::from).collect()
}

#[test]
fn the_pair_measures_the_path_to_itself() {
    let (say, heard) = std::sync::mpsc::channel();
    // The thread ends with its seconds, or with the test's process.
    std::thread::spawn(move || {
        tool(
            &words(&["serve", "127.0.0.1:0", "60"]),
            &mut Lines(say, Vec::new()),
        )
    });
    let said = heard.recv().unwrap();
    let port = said.strip_prefix("listening ").unwrap();
    let address = format!("127.0.0.1:{port}");

    let mut out = Vec::new();
    assert_eq!(tool(&words(&["rtt", &address, "20"]), &mut out), 0);
    let trips = Trips::parse(&String::from_utf8(out).unwrap()).unwrap();
    assert!(trips.min > 0.0 && trips.min <= trips.mean && trips.mean <= trips.max);

    let mut out = Vec::new();
    assert_eq!(tool(&words(&["bulk", &address, "0.05"]), &mut out), 0);
    assert!(total(&String::from_utf8(out).unwrap()).unwrap() > 0.0);
}

#[test]
fn arguments_that_are_no_probe_are_refused_with_a_reason() {
    for line in [
        &["rtt"][..],
        &[],
        &["rtt", "nowhere", "1"],
        &["serve", "127.0.0.1:0", "x"],
    ] {
        let mut out = Vec::new();
        assert_eq!(tool(&words(line), &mut out), 1, "{line:?}");
        assert!(String::from_utf8(out).unwrap().starts_with("error: "));
    }
}
