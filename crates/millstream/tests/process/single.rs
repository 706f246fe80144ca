//! `master_process off`.

use crate::client::get;
use crate::site::{Site, free_address, send, wait_for, wait_until_ended};
use mill_sys::signal::Signal;

#[test]
fn one_process_is_reloaded_and_ended_like_two() {
    let site = Site::new();
    let (first, second) = (free_address(), free_address());
    let main = "master_process off;";
    site.configure(main, &format!("server {{ listen {first}; }}"));
    let process = site.start();
    site.wait_until_served(first);
    site.configure(
        main,
        &format!("server {{ listen {first}; listen {second}; }}"),
    );
    send(process, Signal::Hangup);
    site.wait_until_served(second);
    site.configure(main, "bogus;");
    send(process, Signal::Hangup);
    site.wait_for_log("unknown directive \"bogus\"");
    assert_eq!(get(first, "/").unwrap().status, 200);
    std::fs::rename(site.path("access.log"), site.path("access.old")).unwrap();
    send(process, Signal::User1);
    wait_for("a new log", || {
        site.path("access.log").exists().then_some(())
    });
    send(process, Signal::Quit);
    wait_until_ended(process);
    assert_eq!(site.master(), None, "the pid file is removed");
}
