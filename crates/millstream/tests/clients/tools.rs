//! curl's and h2load's uploads and large answers; their small ones are in `secured`.

use crate::namespace::{output_of, text_of};
use crate::stage::{Stage, on_every_network};
use std::fs;

on_every_network!(transfer);

fn transfer(stage: &Stage<'_>) {
    let large = fs::read(stage.site.path("large.bin")).unwrap();
    let upload = format!("@{}", stage.site.path("large.bin").display());
    let host = stage.host();
    for (way, scheme) in [("--http2", "https"), ("--http2-prior-knowledge", "http")] {
        for path in ["behind", "streamed"] {
            for more in [&["-HExpect:"][..], &["-HTransfer-Encoding: chunked"]] {
                let url = format!("{scheme}://{host}/{path}/echo");
                let words = [
                    "-sSk",
                    "--max-time",
                    "25",
                    way,
                    "--data-binary",
                    &upload,
                    &url,
                ];
                let words = [&words[..], more].concat();
                let output = stage.at_client(|| output_of("curl", &words));
                let complaint = String::from_utf8_lossy(&output.stderr);
                assert!(output.stdout == large, "{words:?}: {complaint}");
            }
        }
        // HTTP/2 is what h2load speaks in clear too.
        let small = stage.site.path("index.html").display().to_string();
        for (count, path, options) in [
            ("8", "large.bin", &["-c", "2", "-m", "4"][..]),
            ("300", "behind/echo", &["-c", "4", "-m", "20", "-d", &small]),
            ("3000", "zero", &["-c", "4", "-m", "100"]),
        ] {
            let url = format!("{scheme}://{host}/{path}");
            let words = [&["-n", count], options, &[&url]].concat();
            let report = stage.at_client(|| text_of("h2load", &words));
            let expected = format!("{count} succeeded, 0 failed, 0 errored, 0 timeout");
            assert!(report.contains(&expected), "{words:?}: {report}");
        }
    }
    stage.assert_carried();
}
