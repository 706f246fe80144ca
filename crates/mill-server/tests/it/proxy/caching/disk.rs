//! What is kept in a folder: behind memory, and behind the process.

use super::super::origin::{Act, ok};
use super::{Cached, content, field, text, with};
use crate::proxy::get;
use std::time::Duration;

/// Room for two answers of 40,000 bytes in memory.
const SMALL: &str = "/cache levels=1:2 keys_zone=one:1m memory=100k inactive=2h";

const SITE: &str = "
    location / { proxy_pass http://app; proxy_cache_valid 200 1h; proxy_cache_key $uri; proxy_cache_purge $arg_purge;
                 cache_tags Surrogate-Key; }";

/// An answer that says for which request it is.
fn long(request: &str) -> String {
    let target = request.split(' ').nth(1).unwrap_or_default();
    target.repeat(40_000 / target.len())
}

fn cached(path: &str) -> Cached {
    let mut cached = Cached::with_path(1, path, SITE, |_, request| vec![ok(&long(request))]);
    cached.pass(1);
    cached
}

impl Cached {
    /// The zone begins anew with the same folder, as another process would.
    fn restart(&mut self, path: &str, directives: &str) {
        // What is to be written has time.
        self.pass(2);
        self.server.adopt(&text(path, directives));
        self.pass(2);
    }

    /// The files of objects in the folder.
    fn files(&self) -> Vec<String> {
        let mut found = Vec::new();
        let files = self.server.files();
        for first in files.names("/cache") {
            if first.len() > 2 {
                continue;
            }
            for second in files.names(&format!("/cache/{first}")) {
                let folder = format!("/cache/{first}/{second}");
                let names = files.names(&folder).into_iter();
                found.extend(names.map(|name| format!("{folder}/{name}")));
            }
        }
        found
    }

    fn purges(&self) -> usize {
        self.server.files().names("/cache/purges").len()
    }
}

/// The same with another size of memory: another zone.
fn other() -> String {
    SMALL.replace("memory=100k", "memory=101k")
}

#[test]
fn what_memory_has_no_room_for_is_read_from_disk() {
    for workers in [1, 2] {
        let mut cached =
            Cached::with_path(workers, SMALL, SITE, |_, request| vec![ok(&long(request))]);
        let paths: Vec<String> = (0..8).map(|number| format!("/{number}")).collect();
        for path in &paths {
            assert_eq!(cached.outcome(path), "MISS");
            cached.pass(1);
        }
        for path in paths.iter().chain(&paths) {
            let answer = cached.ask(&get(path));
            assert_eq!(field(&answer, "X-Cache"), "HIT", "{path}");
            assert_eq!(content(&answer), long(&format!("GET {path}")));
        }
        assert_eq!(cached.asked(), 8);
        assert_eq!(cached.files().len(), 8);
    }
}

#[test]
fn what_was_kept_is_there_after_a_restart() {
    let mut cached = cached(SMALL);
    let before = cached.ask(&get("/a"));
    cached.restart(&other(), SITE);
    let after = cached.ask(&get("/a"));
    assert_eq!(field(&after, "X-Cache"), "HIT");
    assert_eq!(content(&after), content(&before));
    assert!(cached.server.has_logged("1 files of an earlier process"));
    // As old as it is.
    cached.pass(3600);
    assert_eq!(cached.outcome("/a"), "EXPIRED");
    assert_eq!(cached.asked(), 2);
}

#[test]
fn a_purge_is_in_effect_on_disk_and_after_a_restart() {
    let tagged = |number: usize, request: &str| {
        let tags = format!("Surrogate-Key: t{}\r\n", number % 2);
        vec![with(&tags, &long(request))]
    };
    let check = |request: &str, gone: &[&str]| {
        let mut cached = Cached::with_path(1, SMALL, SITE, tagged);
        let paths = ["/a/0", "/a/1", "/b/2", "/b/3"];
        for path in paths {
            cached.outcome(path);
            cached.pass(1);
        }
        assert!(cached.ask(request).starts_with("HTTP/1.1 204"), "{request}");
        for restarts in [false, true] {
            if restarts {
                cached.restart(&other(), SITE);
            }
            for path in paths.into_iter().filter(|path| !gone.contains(path)) {
                assert_eq!(cached.outcome(path), "HIT", "{request}: {path}");
            }
        }
        for path in gone {
            assert_eq!(cached.outcome(path), "MISS", "{request}: {path}");
        }
        cached.pass(5);
        assert_eq!(cached.purges(), 0, "it is carried out, and forgotten");
    };
    check(&get("/a/0?purge=1"), &["/a/0"]);
    check(&get("/b/*?purge=1"), &["/b/2", "/b/3"]);
    check(
        &get("/x?purge=1").replace("\r\n\r\n", "\r\nSurrogate-Key: t1\r\n\r\n"),
        &["/a/1", "/b/3"],
    );
}

#[test]
fn a_purge_just_before_the_end_of_the_process_is_not_undone() {
    let mut cached = cached(SMALL);
    cached.outcome("/a");
    cached.pass(2);
    let whole = cached.files();
    let bytes = cached.server.files().read(&whole[0]);
    cached.ask(&get("/a?purge=1"));
    // It ends before the file is removed.
    cached.server.files().write(&whole[0], bytes);
    assert_eq!(cached.purges(), 1);
    cached.server.adopt(&text(&other(), SITE));
    cached.pass(5);
    assert_eq!(cached.outcome("/a"), "MISS");
}

#[test]
fn where_purges_cannot_be_read_all_is_purged() {
    let mut cached = cached(SMALL);
    cached.outcome("/a");
    cached.ask(&get("/b?purge=1"));
    cached.pass(2);
    cached.server.files().set_readable("/cache/purges", false);
    cached.restart(&other(), SITE);
    assert_eq!(cached.outcome("/a"), "MISS");
}

#[test]
fn a_damaged_file_is_a_miss_and_is_removed() {
    let check = |damage: &dyn Fn(&mut Vec<u8>)| {
        let mut cached = cached(SMALL);
        cached.outcome("/a");
        cached.pass(2);
        let [file] = cached.files().try_into().unwrap();
        let mut bytes = cached.server.files().read(&file);
        damage(&mut bytes);
        cached.server.files().write(&file, &bytes);
        cached.restart(&other(), SITE);
        let answer = cached.ask(&get("/a"));
        assert_eq!(field(&answer, "X-Cache"), "MISS");
        assert_eq!(content(&answer), long("GET /a"));
        assert!(cached.server.has_logged("is removed: "));
        cached.pass(2);
        assert_eq!(cached.files().len(), 1, "that of the new answer");
        assert_ne!(cached.files(), [file]);
    };
    check(&|bytes| bytes.truncate(20_000));
    check(&|bytes| bytes.truncate(10));
    check(&|bytes| bytes.push(0));
    check(&|bytes| bytes[0] ^= 1);
    check(&|bytes| bytes[5000] ^= 1);
    check(&|bytes| *bytes.last_mut().unwrap() ^= 1);
}

#[test]
fn a_file_that_was_removed_from_outside_is_a_miss() {
    let mut cached = cached(SMALL);
    cached.outcome("/a");
    cached.restart(&other(), SITE);
    for file in cached.files() {
        cached.server.files().remove(&file);
    }
    assert_eq!(cached.outcome("/a"), "MISS");
    assert_eq!(cached.outcome("/a"), "HIT");
}

#[test]
fn files_never_take_more_than_max_size() {
    let mut cached = cached(&format!("{SMALL} max_size=200k"));
    for number in 0..40 {
        assert_eq!(cached.outcome(&format!("/{number}")), "MISS");
        cached.pass(1);
        assert!(
            cached.files().len() <= 5,
            "200 KiB are five files of 40 KiB"
        );
    }
    assert!(cached.server.files().disk_bytes_peak() <= 200 * 1024);
    assert_eq!(cached.outcome("/39"), "HIT");
    assert_eq!(cached.outcome("/1"), "MISS");
    // What is used stays.
    for number in 40..60 {
        assert_eq!(cached.outcome("/39"), "HIT");
        cached.outcome(&format!("/{number}"));
        cached.pass(2);
    }
    cached.restart(&format!("{} max_size=200k", other()), SITE);
    assert_eq!(cached.outcome("/39"), "HIT");
}

#[test]
fn a_smaller_limit_is_kept_after_the_start() {
    let mut cached = cached(SMALL);
    for number in 0..8 {
        cached.outcome(&format!("/{number}"));
        cached.pass(1);
    }
    cached.restart(&format!("{} max_size=120k", other()), SITE);
    assert_eq!(cached.files().len(), 3, "120 KiB are three files of 40 KiB");
}

#[test]
fn files_go_where_the_file_system_has_less_free_than_it_should() {
    let mut cached = cached(&format!("{SMALL} min_free=100k"));
    cached.server.files().set_disk_bytes_max(230_000);
    for number in 0..8 {
        cached.outcome(&format!("/{number}"));
        cached.pass(2);
        let files = cached.files().len();
        assert_eq!(files, (number + 1).min(3), "three leave 100 KiB free");
    }
    assert_eq!(cached.outcome("/7"), "HIT");
    // Others take room, and no answer is written meanwhile.
    cached.server.files().set_disk_bytes_max(190_000);
    cached.pass(3);
    assert_eq!(cached.files().len(), 2);
    // Without any file there would still be too little.
    cached.server.files().set_disk_bytes_max(90_000);
    cached.pass(3);
    assert_eq!(cached.files().len(), 0);
    assert_eq!(cached.outcome("/8"), "MISS");
    cached.pass(3);
    assert_eq!(cached.files().len(), 0);
    cached.server.files().set_disk_bytes_max(usize::MAX);
    assert_eq!(cached.outcome("/9"), "MISS");
    cached.pass(3);
    assert_eq!(cached.files().len(), 1);
    assert!(
        !cached.server.has_logged("statvfs"),
        "{:?}",
        cached.server.error_log()
    );
}

#[test]
fn a_full_disk_costs_hits_and_nothing_else() {
    let mut cached = cached(SMALL);
    cached.server.files().set_disk_bytes_max(60_000);
    for number in 0..4 {
        let path = format!("/{number}");
        let answer = cached.ask(&get(&path));
        assert_eq!(content(&answer), long(&format!("GET {path}")));
        cached.pass(1);
    }
    assert_eq!(cached.files().len(), 1);
    let lines = cached.server.error_log().into_iter();
    let told = lines.filter(|line| line.contains("cache \"one\": pwrite() \"/cache/temporary/"));
    assert_eq!(told.count(), 1, "not once for each");
    assert!(cached.server.files().names("/cache/temporary").is_empty());
    cached.server.files().set_disk_bytes_max(usize::MAX);
    cached.outcome("/5");
    cached.pass(2);
    assert_eq!(cached.files().len(), 2);
}

#[test]
fn variants_are_told_apart_on_disk() {
    let script = |_: usize, request: &str| {
        let at = request.find("X-Kind: ").expect("each request has it");
        let kind: String = request[at + 8..].chars().take(1).collect();
        vec![with("Vary: X-Kind\r\n", &kind.repeat(40_000))]
    };
    let mut cached = Cached::with_path(1, SMALL, SITE, script);
    let ask = |cached: &mut Cached, kind: &str| {
        let request = get("/a").replace("\r\n\r\n", &format!("\r\nX-Kind: {kind}\r\n\r\n"));
        let answer = cached.ask(&request);
        assert_eq!(content(&answer), kind.repeat(40_000));
        cached.pass(1);
        field(&answer, "X-Cache").to_owned()
    };
    for kind in ["a", "b", "c", "d"] {
        assert_eq!(ask(&mut cached, kind), "MISS");
    }
    for restarts in [false, true] {
        if restarts {
            cached.restart(&other(), SITE);
        }
        for kind in ["a", "b", "c", "d", "a"] {
            assert_eq!(ask(&mut cached, kind), "HIT");
        }
    }
    assert_eq!(ask(&mut cached, "e"), "MISS");
}

#[test]
fn a_newer_answer_takes_the_place_of_the_file_of_the_one_before() {
    let script = |number: usize, _: &str| vec![ok(&number.to_string().repeat(40_000))];
    let site = SITE.replace("200 1h", "200 10s");
    let mut cached = Cached::with_path(1, SMALL, &site, script);
    assert_eq!(cached.outcome("/a"), "MISS");
    cached.pass(20);
    assert_eq!(cached.outcome("/a"), "EXPIRED");
    cached.pass(2);
    assert_eq!(cached.files().len(), 1);
    cached.restart(&other(), &site);
    let answer = cached.ask(&get("/a"));
    assert_eq!(
        (field(&answer, "X-Cache"), &content(&answer)[..3]),
        ("HIT", "111")
    );
}

#[test]
fn all_that_ask_for_the_same_file_wait_for_one_reading() {
    for workers in [1, 2] {
        let mut cached =
            Cached::with_path(workers, SMALL, SITE, |_, request| vec![ok(&long(request))]);
        cached.outcome("/a");
        cached.restart(&other(), SITE);
        cached.server.files().set_latency(Duration::from_millis(50));
        let before = cached.server.files().calls().open;
        let clients: Vec<_> = (0..8)
            .map(|_| {
                let client = cached.server.connect();
                client.send(get("/a"));
                client
            })
            .collect();
        cached.pass(1);
        for client in &clients {
            let answer = String::from_utf8_lossy(&client.received()).into_owned();
            assert_eq!(field(&answer, "X-Cache"), "HIT");
            assert_eq!(content(&answer), long("GET /a"));
        }
        assert_eq!(cached.server.files().calls().open, before + 1);
        assert_eq!(cached.asked(), 1);
    }
}

#[test]
fn what_nothing_asks_for_is_removed_after_its_time() {
    let mut cached = cached(&SMALL.replace("inactive=2h", "inactive=1m"));
    cached.outcome("/a");
    cached.outcome("/b");
    cached.pass(40);
    assert_eq!(cached.outcome("/a"), "HIT");
    assert_eq!(cached.files().len(), 2);
    cached.pass(40);
    assert_eq!(cached.files().len(), 1, "use in memory counts, too");
    cached.pass(60);
    assert_eq!(cached.files().len(), 0);
}

#[test]
fn a_folder_of_another_program_is_left_alone_and_told() {
    let mut cached = cached(SMALL);
    let foreign = "/cache/c/29/b7f54b2df7773722d382f4809d65029c";
    cached.server.files().write(foreign, "nginx's");
    cached.server.files().write("/cache/notes.txt", "mine");
    cached.restart(&other(), SITE);
    assert!(
        cached
            .server
            .has_logged("1 files in \"/cache\" are of another program")
    );
    assert_eq!(cached.server.files().read(foreign), b"nginx's");
    assert_eq!(cached.server.files().read("/cache/notes.txt"), b"mine");
}

#[test]
fn files_that_a_killed_process_has_not_finished_are_removed() {
    let mut cached = cached(SMALL);
    cached
        .server
        .files()
        .write("/cache/temporary/0123456789abcdef", "half");
    cached.pass(100);
    assert_eq!(cached.server.files().names("/cache/temporary").len(), 1);
    cached.pass(60);
    assert_eq!(cached.server.files().names("/cache/temporary").len(), 0);
}

#[test]
fn without_a_disk_nothing_is_written() {
    let mut cached = cached(&format!("{SMALL} disk=off"));
    cached.outcome("/a");
    cached.pass(2);
    assert!(cached.server.files().names("/cache").is_empty());
}

#[test]
fn an_answer_that_was_renewed_is_as_fresh_after_a_restart() {
    let script = |number: usize, request: &str| match number {
        0 => vec![with(
            "ETag: \"1\"\r\nCache-Control: max-age=10\r\n",
            &long(request),
        )],
        _ => vec![super::super::origin::send(
            "HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\nCache-Control: max-age=100\r\n\r\n",
        )] as Vec<Act>,
    };
    let site = SITE.replace(
        "proxy_cache_valid",
        "proxy_cache_revalidate on; proxy_cache_valid",
    );
    let mut cached = Cached::with_path(1, SMALL, &site, script);
    assert_eq!(cached.outcome("/a"), "MISS");
    cached.pass(20);
    assert_eq!(cached.outcome("/a"), "REVALIDATED");
    cached.restart(&other(), &site);
    cached.pass(20);
    assert_eq!(cached.outcome("/a"), "HIT");
    assert_eq!((cached.asked(), cached.files().len()), (2, 1));
}
