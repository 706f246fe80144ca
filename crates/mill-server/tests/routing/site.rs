//! A worker's shared part over simulated files.

use crate::recorder::local::{self, ADDRESS, message_of};
use crate::recorder::{Recorder, whole};
use mill_server::local::{FileOf, Local};
use mill_server::log::LogSender;
use mill_server::response::Response;
use mill_sim::engine::SimEngine;
use mill_sim::world::World;
use std::cell::Cell;
use std::rc::Rc;

/// Every case has these files.
const FILES: [(&str, &str); 8] = [
    ("/srv/index.html", "index\n"),
    ("/srv/a.txt", "file a\n"),
    ("/srv/404.html", "custom 404\n"),
    ("/srv/50x.html", "custom 50x\n"),
    ("/srv/dir/index.html", "dir index\n"),
    ("/srv/dir/b.txt", "file b\n"),
    ("/srv/other/r/x.txt", "other x\n"),
    ("/srv/sp dir/x", "x"),
];

/// One configuration in force.
pub(crate) struct Site {
    world: World,
    local: Rc<Local<SimEngine>>,
    logs: LogSender,
    /// How many lines of the error log and of the access log were shown.
    errors_seen: Cell<usize>,
    accesses_seen: Cell<usize>,
}

impl Site {
    pub(crate) fn new(directives: &str, http_directives: &str) -> Self {
        let world = World::new(1);
        for (path, content) in FILES {
            world.files().write(path, content);
        }
        world.files().create_directory("/srv/empty");
        let text = format!(
            "error_log /error.log notice; events {{ }}
            http {{
                access_log off;
                types {{ text/html html; text/plain txt; image/png png; }}
                default_type text/plain;
                {http_directives}
                server {{ listen {ADDRESS}; root /srv; {directives} }}
            }}"
        );
        let (local, logs) = local::start(&world, &text, |_| 0);
        Self {
            world,
            local,
            logs,
            errors_seen: Cell::new(0),
            accesses_seen: Cell::new(0),
        }
    }

    /// Answers `METHOD TARGET [VERSION] | FIELD: VALUE | …`; there is a `Host: a` unless another one or `-Host` is
    /// given.
    pub(crate) fn ask(&self, line: &str) -> String {
        let recorder = self.handle(line);
        let is_head = recorder.is_head;
        let mut shown = match recorder.answer {
            None => String::from("< closed\n"),
            Some(response) => self.show(is_head, response),
        };
        self.local.log.end_of_turn(self.world.now());
        let lines = self.logs.lines("/error.log");
        for line in lines.iter().skip(self.errors_seen.replace(lines.len())) {
            shown += &format!("! {}\n", message_of(line));
        }
        let lines = self.logs.lines("/access.log");
        for line in lines.iter().skip(self.accesses_seen.replace(lines.len())) {
            shown += &format!("& {line}\n");
        }
        shown
    }

    /// Whether the answer may be kept for the same request.
    pub(crate) fn is_pure(&self, line: &str) -> bool {
        self.handle(line).pure
    }

    fn handle(&self, line: &str) -> Recorder {
        let mut parts = line.split(" | ");
        let mut text = String::from(parts.next().unwrap_or_default());
        if !text.contains(" HTTP/") {
            text += " HTTP/1.1";
        }
        let mut fields: Vec<&str> = parts.collect();
        let has_host = fields.iter().any(|field| field.starts_with("Host:"));
        let host_wanted = !has_host && !fields.contains(&"-Host");
        fields.retain(|field| *field != "-Host");
        if host_wanted {
            fields.push("Host: a");
        }
        text += "\r\n";
        for field in fields {
            text += &format!("{field}\r\n");
        }
        text += "\r\n";
        local::handle(text, &self.world, &self.local)
    }

    /// `STATUS [-> LOCATION] TYPE [close] CONTENT`, as a client would see it.
    fn show(&self, is_head: bool, response: Response<FileOf<SimEngine>>) -> String {
        let mut shown = format!("< {}", response.status.on_the_wire().0);
        if let Some(location) = &response.location {
            shown += &format!(" -> {}", String::from_utf8_lossy(location));
        }
        let kind = response.content_type.as_deref().unwrap_or(b"-");
        let kind = String::from_utf8_lossy(kind);
        shown += &format!(" {kind}");
        if response.close {
            shown += " close";
        }
        let text = if is_head || response.status.has_no_content() {
            String::new()
        } else {
            let content = whole(response, &self.local);
            String::from_utf8(content).expect("the files are text")
        };
        if text.starts_with("<html>") {
            shown += " (page)";
        } else {
            shown += &format!(" \"{}\"", text.replace('\n', "\\n"));
        }
        shown.push('\n');
        shown
    }
}
