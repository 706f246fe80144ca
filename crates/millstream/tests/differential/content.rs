//! The files that are served: the same directory for both servers, so that dates and entity tags are the same.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::{self, File, FileTimes, Permissions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// A temporary directory of one test, removed at its end.
#[derive(Debug)]
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("millstream-differential-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // A directory without permissions can't be emptied by its owner.
        let closed = self.0.join("files/closed");
        let _ = fs::set_permissions(closed, Permissions::from_mode(0o700));
        // A failure only leaves files in /tmp.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// 2024-02-29T12:00:00Z, when everything was last modified.
const MODIFIED: Duration = Duration::from_secs(1_709_208_000);

/// Makes the tree at `root`.
pub(crate) fn make(root: &Path) {
    for directory in DIRECTORIES {
        fs::create_dir_all(root.join(directory)).unwrap();
    }
    for (name, content) in FILES {
        write(&root.join(name), content.as_bytes());
    }
    write(&root.join("small.txt"), &pattern(1000));
    write(&root.join("large.bin"), &pattern(100_000));
    let page = page();
    write(&root.join("page.html"), page.as_bytes());
    write(&root.join("page.css"), page.as_bytes());
    write(&root.join("page.bin"), page.as_bytes());
    write(&root.join("static.html"), page.as_bytes());
    write(&root.join("static.html.gz"), &gzip(page.as_bytes()));
    write(&root.join("onlygz.txt.gz"), &gzip(b"only compressed\n"));
    symlink("small.txt", root.join("link.txt")).unwrap();
    symlink("dir", root.join("linkdir")).unwrap();
    symlink("nowhere", root.join("dangling.txt")).unwrap();
    symlink("loop.txt", root.join("loop.txt")).unwrap();
    let fifo = Command::new("mkfifo").arg(root.join("fifo")).status();
    assert!(fifo.unwrap().success(), "mkfifo");
    for directory in DIRECTORIES {
        date(&root.join(directory));
    }
    date(root);
    close(&root.join("secret.txt"));
    close(&root.join("closed"));
}

const DIRECTORIES: &[&str] = &[
    "dir",
    "dir/sub",
    "noindex",
    "noindex/later",
    "empty",
    "sub/deep/er",
    "errors",
    "with space",
    "closed",
    "hosts/a",
    "hosts/b",
    "alias",
    "index",
];

const FILES: &[(&str, &str)] = &[
    ("index.html", "<html><body>index</body></html>\n"),
    ("empty.txt", ""),
    ("one.txt", "1"),
    ("a.txt", "the file a\n"),
    ("b.txt", "the file b\n"),
    ("digits.txt", "0123456789"),
    ("data.json", "{\"a\": 1}\n"),
    ("data.xml", "<a/>\n"),
    ("style.css", "a { color: red }\n"),
    ("picture.png", "\u{89}PNG not really\n"),
    ("noextension", "no extension\n"),
    ("strange.zzz", "strange extension\n"),
    ("UPPER.TXT", "upper case extension\n"),
    ("secret.txt", "unreadable to others\n"),
    (".hidden", "hidden\n"),
    ("with space.txt", "space\n"),
    ("with space/x.txt", "x in a directory with space\n"),
    ("100%.txt", "percent\n"),
    ("plus+.txt", "plus\n"),
    ("ümlaut.txt", "umlaut\n"),
    ("semi;colon.txt", "semicolon\n"),
    ("quo\"te.txt", "quote\n"),
    ("que?ry.txt", "question mark\n"),
    ("ha#sh.txt", "hash\n"),
    ("back\\slash.txt", "backslash\n"),
    ("am&p.txt", "ampersand\n"),
    ("les<s.txt", "less\n"),
    ("dir/index.html", "index of dir\n"),
    ("dir/file.txt", "file in dir\n"),
    ("dir/sub/file.txt", "file in dir/sub\n"),
    ("noindex/x.txt", "x\n"),
    (
        "noindex/a very long name that does not fit into the column of an index page.txt",
        "long\n",
    ),
    ("noindex/ümlaut <&>.txt", "odd\n"),
    ("noindex/co:lon.txt", "colon\n"),
    ("noindex/que?stion.txt", "question\n"),
    ("noindex/.hidden", "hidden\n"),
    ("sub/deep/er/file.txt", "deep\n"),
    ("errors/404.html", "our own 404\n"),
    ("errors/50x.html", "our own 50x\n"),
    ("errors/403.html", "our own 403\n"),
    ("hosts/a/index.html", "host a\n"),
    ("hosts/b/index.html", "host b\n"),
    ("alias/file.txt", "file behind an alias\n"),
    ("index/second.html", "the second index\n"),
    ("closed/file.txt", "in a closed directory\n"),
];

fn write(path: &Path, content: &[u8]) {
    fs::write(path, content).unwrap();
    date(path);
}

fn date(path: &Path) {
    let modified = SystemTime::UNIX_EPOCH + MODIFIED;
    let times = FileTimes::new()
        .set_modified(modified)
        .set_accessed(modified);
    File::open(path).unwrap().set_times(times).unwrap();
}

/// Makes something unreadable.
fn close(path: &Path) {
    fs::set_permissions(path, Permissions::from_mode(0o000)).unwrap();
}

/// Gives a directory to the user of the servers.
pub(crate) fn give(path: &Path, owner: u32) {
    chown(path, Some(owner), Some(owner)).unwrap();
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len)
        .map(|index| b'a' + u8::try_from(index / 7 % 26).unwrap())
        .collect()
}

fn page() -> String {
    let lines = (0..60).map(|number| format!("<p>line {number} of a page</p>\n"));
    format!(
        "<html><body>\n{}</body></html>\n",
        lines.collect::<String>()
    )
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}
