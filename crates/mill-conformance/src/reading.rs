//! Reading: splits, contiguous bytes, what is left unread.

use crate::content::{pattern, take_all};
use crate::serving::{echo, echo_messages, message};
use crate::story::Story;
use crate::{End, Server, Testbed};
use mill_runtime::payload::Payload;
use mill_runtime::stream::Stream;

pub fn a_message_split_at_every_byte_is_read_whole<T: Testbed>() {
    let sent = [message("hello"), message(""), message("world")].concat();
    let mut server = Server::<T>::start(|stream, _| echo_messages(stream));
    for split in 0..=sent.len() {
        let mut client = server.connect();
        client.send(&sent[..split]);
        for _ in 0..2 {
            server.turn();
        }
        client.send(&sent[split..]);
        client.finish();
        server.run_until("the end", || client.ended(End::Fin));
        assert_eq!(client.received, b"<hello><><world>", "split at {split}");
    }
}

pub fn each_byte_in_a_segment_of_its_own_makes_the_same_answer<T: Testbed>() {
    let mut server = Server::<T>::start(|stream, _| echo(stream));
    let mut client = server.connect();
    for byte in 0..20 {
        client.send([byte]);
        let so_far: Vec<u8> = (0..=byte).collect();
        server.run_until("the byte", || client.has(&so_far));
    }
}

pub fn several_segments_are_lent_in_one_piece<T: Testbed>() {
    let story = Story::default();
    let teller = story.clone();
    let mut server = Server::<T>::start(move |stream, _| {
        let teller = teller.clone();
        async move {
            assert_eq!(stream.readable(9).await.unwrap().unread, 9);
            for _ in 0..2 {
                teller.tell(stream.read(|bytes| (4, bytes.to_vec())));
            }
        }
    });
    let mut client = server.connect();
    for piece in ["one", "two", "six"] {
        client.send(piece);
        server.turn();
    }
    server.run_out();
    assert_eq!(story.told(), [b"onetwosix".to_vec(), b"wosix".to_vec()]);
}

pub fn what_is_left_is_kept_over_turns_and_over_the_reads_of_others<T: Testbed>() {
    let story = Story::default();
    let teller = story.clone();
    let mut server = Server::<T>::start(move |stream, _| {
        let teller = teller.clone();
        async move {
            for least in 1..=3 {
                stream.readable(least).await.unwrap();
                stream.read(|bytes| {
                    bytes.make_ascii_uppercase();
                    (0, ())
                });
            }
            assert_eq!(stream.readable(4).await.unwrap().unread, 4);
            teller.tell(take_all(&stream));
        }
    });
    let mut clients: [_; 3] = std::array::from_fn(|_| server.connect());
    let texts = ["abcd", "efgh", "ijkl"];
    for index in 0..4 {
        for (client, text) in clients.iter_mut().zip(texts) {
            client.send(&text[index..=index]);
        }
        for _ in 0..4 {
            server.turn();
        }
    }
    server.run_out();
    let mut told = story.told();
    told.sort();
    // The last byte of each was taken without having been looked at.
    assert_eq!(told, [b"ABCd", b"EFGh", b"IJKl"]);
}

pub fn a_long_content_is_read_whole_though_it_is_asked_for_at_once<T: Testbed>() {
    const LEN: usize = 1_000_003;
    let story = Story::default();
    let teller = story.clone();
    let mut server = Server::<T>::start(move |stream, _| {
        let teller = teller.clone();
        async move {
            assert!(stream.readable(LEN).await.unwrap().unread >= LEN);
            teller.tell(take_all(&stream));
        }
    });
    let mut client = server.connect();
    let content = pattern(LEN);
    let mut sent = 0;
    server.run_until("the content", || {
        sent += client.send_some(&content[sent..]);
        story.count() == 1
    });
    assert!(story.told() == [content]);
}

pub fn bytes_that_are_given_away_stay_what_they_are<T: Testbed>() {
    let story = Story::default();
    let teller = story.clone();
    let mut server = Server::<T>::start(move |stream, _| {
        let teller = teller.clone();
        async move {
            let mut pieces = Vec::new();
            loop {
                let unread = stream.readable(1).await.unwrap().unread;
                if unread == 0 {
                    break;
                }
                assert!(stream.take_received(unread + 1..=usize::MAX).is_none());
                assert_eq!(stream.read(|bytes| (0, bytes.len())), unread);
                // An engine need not give anything away.
                pieces.push(match stream.take_received(unread..=unread) {
                    Some(given) => Ok(given),
                    None => Err(take_all(&stream)),
                });
                assert_eq!(stream.read(|bytes| (0, bytes.len())), 0);
            }
            let mut all = Vec::new();
            for piece in &pieces {
                match piece {
                    Ok(given) => all.extend_from_slice(given),
                    Err(taken) => all.extend_from_slice(taken),
                }
            }
            teller.tell(all);
        }
    });
    let mut client = server.connect();
    let content = pattern(1_000_003);
    let mut sent = 0;
    server.run_until("the content", || {
        if sent < content.len() {
            sent += client.send_some(&content[sent..]);
            if sent == content.len() {
                client.finish();
            }
        }
        story.count() == 1
    });
    assert!(story.told() == [content]);
}

pub fn bytes_that_come_between_a_short_receive_and_the_wait_are_seen<T: Testbed>() {
    let mut server = Server::<T>::start(|stream, _| async move {
        stream.readable(1).await.unwrap();
        stream.read(|_| (1, ()));
        // The client's second byte arrives here, while epoll does not know the connection yet.
        stream.write(Payload::Copy(b"1"));
        stream.drained(0).await.unwrap();
        stream.write(Payload::Copy(b"wait"));
        stream.readable(1).await.unwrap();
        stream.write(Payload::Copy(&take_all(&stream)));
    });
    let mut client = server.connect();
    client.send("a");
    server.run_until("the first answer", || client.has(b"1wait"));
    client.send("b");
    server.run_until("the second", || client.has(b"1waitb"));
}

pub fn fin_that_comes_with_the_last_bytes_is_seen_after_a_short_receive<T: Testbed>() {
    let story = Story::default();
    let teller = story.clone();
    let mut server = Server::<T>::start(move |stream, _| {
        let teller = teller.clone();
        async move {
            loop {
                let readable = stream.readable(1).await.unwrap();
                teller.tell(take_all(&stream));
                if readable.unread == 0 {
                    // An engine may know it before, with the last bytes.
                    assert!(readable.finished);
                    return;
                }
            }
        }
    });
    // At once, and when epoll knows the connection already.
    for waits in [false, true] {
        let mut client = server.connect();
        if waits {
            server.run_until_tasks(1);
            server.turn();
        }
        client.send("abc");
        client.finish();
        server.run_until("the end", || client.ended(End::Fin));
    }
    let one = [b"abc".to_vec(), Vec::new()];
    assert_eq!(story.told(), [one.clone(), one].concat());
}

pub fn a_task_that_waits_for_nothing_is_ready_at_once_and_reads_nothing<T: Testbed>() {
    let mut server = Server::<T>::start(|stream, _| async move {
        assert_eq!(stream.readable(0).await.unwrap().unread, 0);
        assert!(take_all(&stream).is_empty());
        stream.write(Payload::Copy(b""));
        stream.drained(0).await.unwrap();
        assert_eq!((stream.sent(), stream.queued()), (0, 0));
    });
    let mut client = server.connect();
    server.run_until("the end", || client.ended(End::Fin));
}
