//! What must hold of any configuration. Used by the fuzz target and by the ordinary test that
//! replays the corpus.
//!
//! An input is several files, with a form feed (0x0c) between them: nginx.conf, mime.types beside
//! it, a file in conf.d, and the text of `-g`.

use std::cell::Cell;
use std::net::IpAddr;

use mill_config::config::LogLevel;
use mill_config::diagnostic::SourcePosition;
use mill_config::{Bundle, Diagnostic, Failure, Loaded, Memory, Options, Recording, Source};
use mill_config::{SourceError, load};

/// Panics if loading breaks a promise on `input`.
pub(crate) fn check(input: &[u8]) {
    let mut files = input.splitn(4, |byte| *byte == 0x0c);
    let mut memory = Memory::new();
    let mut texts: Vec<&[u8]> = Vec::new();
    for path in PATHS {
        if let Some(text) = files.next() {
            memory = memory.with(path, text);
            texts.push(text);
        }
    }
    let options = Options {
        globals: files.next().unwrap_or_default().to_vec(),
        ..Options::default()
    };
    texts.push(&options.globals);

    let source = Recording::new(Counting {
        inner: memory,
        reads: Cell::new(0),
    });
    let loaded = load(&source, &options);
    let diagnostics = match &loaded {
        Ok(loaded) => loaded.remarks.iter().collect(),
        Err(failure) => {
            assert_eq!(failure.error.level, LogLevel::Emerg);
            diagnostics_of(failure)
        }
    };
    for diagnostic in diagnostics {
        points_into_a_text(diagnostic, &texts, &options.globals);
        is_fit_for_a_terminal(diagnostic);
    }
    replay_gives_the_same(&loaded, source.into_bundle(), &options);
}

const PATHS: [&str; 3] = [
    "/etc/nginx/nginx.conf",
    "/etc/nginx/mime.types",
    "/etc/nginx/conf.d/a.conf",
];

/// Readings of files that an input may cause. The deepest chain of includes has 64, and is
/// followed twice when a variable is shadowed late; besides, each file names others, once in
/// `include x;`, which is ten bytes.
const READS_MAX: usize = 10_000;

/// A source that ends what would not end.
#[derive(Debug)]
struct Counting {
    inner: Memory,
    reads: Cell<usize>,
}

impl Source for Counting {
    fn read(&self, path: &[u8]) -> Result<Vec<u8>, SourceError> {
        self.reads.set(self.reads.get() + 1);
        assert!(self.reads.get() <= READS_MAX, "files are read without end");
        self.inner.read(path)
    }

    fn glob(&self, pattern: &[u8]) -> Result<Vec<Vec<u8>>, SourceError> {
        self.inner.glob(pattern)
    }

    fn resolve(&self, host: &[u8]) -> Vec<IpAddr> {
        self.inner.resolve(host)
    }
}

fn diagnostics_of(failure: &Failure) -> Vec<&Diagnostic> {
    failure.remarks.iter().chain([&failure.error]).collect()
}

/// What a diagnostic shows is a line of a text that was read, and the word lies in it.
fn points_into_a_text(diagnostic: &Diagnostic, texts: &[&[u8]], globals: &[u8]) {
    let text = match &diagnostic.place {
        SourcePosition::File { path, line } => {
            let index = PATHS.iter().position(|known| path == known);
            let text = texts[index.expect("the place is one of the files")];
            assert!((1..=lines_of(text).count()).contains(&count(*line)));
            Some(text)
        }
        SourcePosition::CommandLine => Some(globals),
        SourcePosition::None => None,
    };
    let Some(snippet) = &diagnostic.snippet else {
        return;
    };
    let shows = |text: &[u8]| lines_of(text).nth(count(snippet.line) - 1) == Some(&*snippet.text);
    match text {
        Some(text) => assert!(shows(text), "{diagnostic:?}"),
        None => assert!(texts.iter().any(|text| shows(text)), "{diagnostic:?}"),
    }
    // The caret may stand behind the last byte, where something is missing.
    assert!(snippet.len > 0 && snippet.column <= snippet.text.len());
    let end = snippet.column + snippet.len;
    assert!(
        end <= snippet.text.len().max(snippet.column + 1),
        "{diagnostic:?}"
    );
}

/// Lines without their ends, as editors show them.
fn lines_of(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

fn count(line: u32) -> usize {
    usize::try_from(line).expect("u32 fits")
}

fn is_fit_for_a_terminal(diagnostic: &Diagnostic) {
    let shown = diagnostic.render("nginx");
    let begin = format!("nginx: [{}] ", diagnostic.level.name());
    assert!(shown.starts_with(&begin), "{shown:?}");
    assert!(shown.ends_with('\n'));
}

/// The worker process, which reads the master's bundle, gets what the master got.
fn replay_gives_the_same(first: &Result<Loaded, Box<Failure>>, bundle: Bundle, options: &Options) {
    let bytes = bundle.encode();
    let bundle = Bundle::decode(&bytes).expect("what was encoded can be decoded");
    let second = load(&bundle, options);
    assert_eq!(format!("{first:?}"), format!("{second:?}"));
}
