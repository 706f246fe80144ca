//! A file that can't be written is reported before the run; old content stays until there is a new one.

use super::*;
use crate::native::sample_results::with_outcome;
use std::path::PathBuf;

/// A temporary folder of one test, removed when it ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("mill-load-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn each_file_gets_its_form_and_longer_old_content_goes() {
    let folder = Folder::new("forms");
    let json = folder.file("a.json");
    std::fs::write(&json, "x".repeat(1 << 20)).unwrap();
    let (hlog, svg) = (folder.file("a.hlog"), folder.file("a.svg"));
    let line = format!("--json {json} --hlog {hlog} --csv - --svg {svg} http://a/");
    with_outcome(&line, |outcome| {
        let files = Files::open(&outcome.options.outputs).unwrap();
        assert_eq!(std::fs::metadata(&json).unwrap().len(), 1 << 20);
        let mut out = Vec::new();
        assert_eq!(files.write(outcome, &mut out), Vec::<String>::new());
        assert!(out.starts_with(b"unix_s,begin_s,"));
        assert!(json::parse(&std::fs::read(&json).unwrap()).is_ok());
        assert!(std::fs::read(&hlog).unwrap().starts_with(b"#[Logged with"));
        assert!(std::fs::read(&svg).unwrap().ends_with(b"</svg>\n"));
    });
}

#[test]
fn a_file_that_cannot_be_written_is_named_before_the_run() {
    let folder = Folder::new("missing");
    let outputs = Outputs {
        hlog: Some(folder.file("none/a.hlog")),
        ..Outputs::default()
    };
    let Refused(why) = Files::open(&outputs).unwrap_err();
    assert!(
        why.starts_with("--hlog ") && why.contains("No such file"),
        "{why}"
    );
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    struct Out(io::ErrorKind);
    impl Write for Out {
        fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    with_outcome("--csv - http://a/", |outcome| {
        let write = |kind| {
            let files = Files::open(&outcome.options.outputs).unwrap();
            files.write(outcome, &mut Out(kind)).len()
        };
        assert_eq!(write(io::ErrorKind::BrokenPipe), 0);
        assert_eq!(write(io::ErrorKind::StorageFull), 1);
    });
}
