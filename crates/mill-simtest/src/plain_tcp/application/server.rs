//! A server over the plain TCP: as much HTTP as a world's clients speak.

use super::{Said, head_len};
use crate::content;
use crate::talk::{POST_ANSWER, POST_PATH};

#[derive(Debug, Default)]
pub(super) struct Server {
    /// Bytes of a head that is not complete.
    head: Vec<u8>,
    /// Bytes of content that are still to come.
    content_left: usize,
    closes: bool,
}

impl Server {
    pub(super) fn act(&mut self, mut unread: &[u8], finished: bool) -> Said {
        let mut said = Said::default();
        while !unread.is_empty() && !self.closes {
            if self.content_left > 0 {
                let taken = self.content_left.min(unread.len());
                unread = &unread[taken..];
                self.content_left -= taken;
                if self.content_left == 0 {
                    answer(POST_ANSWER.as_bytes(), &mut said.bytes);
                }
                continue;
            }
            let before = self.head.len();
            self.head.extend(unread);
            let Some(end) = head_len(&self.head) else {
                break;
            };
            unread = &unread[end - before..];
            self.head.truncate(end);
            let head = String::from_utf8_lossy(&std::mem::take(&mut self.head)).into_owned();
            self.on_head(&head, &mut said);
        }
        // A client that breaks off in the middle of a request gets no answer to it.
        said.closes = self.closes || finished;
        said
    }

    fn on_head(&mut self, head: &str, said: &mut Said) {
        self.closes = head.contains("\r\nConnection: close\r\n");
        let path = head.split(' ').nth(1).unwrap_or_default();
        if path == POST_PATH {
            let len = head.split("\r\nContent-Length: ").nth(1);
            let len = len.and_then(|rest| rest.split("\r\n").next());
            self.content_left = len.and_then(|len| len.parse().ok()).unwrap_or(0);
        } else if path == "/small" {
            answer(b"small", &mut said.bytes);
        } else if let Some((number, len)) = file_of(path) {
            answer(content::of(number, len), &mut said.bytes);
        } else {
            said.resets = true;
        }
    }
}

fn file_of(path: &str) -> Option<(u32, usize)> {
    let (number, len) = path.strip_prefix('/')?.split_once('-')?;
    Some((number.parse().ok()?, len.parse().ok()?))
}

fn answer(content: &[u8], into: &mut Vec<u8>) {
    let len = content.len();
    into.extend(format!("HTTP/1.1 200 OK\r\nContent-Length: {len}\r\n\r\n").as_bytes());
    into.extend(content);
}
