//! Tests of boards.

use super::*;

/// A board in memory as if it were mapped; for the rest of the test's process.
fn mapped(workers: usize) -> Board {
    let words: Vec<AtomicU64> = (0..Board::words(workers))
        .map(|_| AtomicU64::new(0))
        .collect();
    Board::mapped(Vec::leak(words), 77)
}

fn copy(board: &Board) -> Vec<u64> {
    let words = board.all().iter();
    words.map(|word| word.load(Ordering::Relaxed)).collect()
}

#[test]
fn nothing_shown_reads_as_zero() {
    let board = Board::in_memory(2);
    assert_eq!(board.server_counters(), ServerCounters::default());
    assert_eq!(board.workers().count(), 2);
    assert_eq!(mapped(2).workers().count(), 0);
}

#[test]
fn the_last_published_figures_are_read_in_every_field() {
    let mut figure = 100;
    let mut next = |_| {
        figure += 1;
        figure
    };
    let server = ServerCounters::from_values([0; ServerCounters::COUNT].map(&mut next));
    let stack = StackCounters::from_values([0; StackCounters::COUNT].map(&mut next));
    let board = mapped(3);
    let beginning = Beginning {
        place: 1,
        thread: 4711,
        has_stack: true,
        at_ns: 5,
    };
    board.begin_worker(2, beginning);
    let place = board.place(2).unwrap();
    place.show_turn(10, false);
    place.show_turn(20, true);
    place.show_server(&server);
    place.show_stack(&stack);
    let parked = board.parked_until(2).unwrap();
    parked.store(99, Ordering::Relaxed);
    let expected = WorkerFigures {
        number: 2,
        has_ended: false,
        beginning,
        turn_at_ns: 20,
        turns: 2,
        turns_busy: 1,
        parked_until_ns: 99,
        server,
        stack: Some(stack),
    };
    assert_eq!(board.workers().nth(2), Some(expected));
    let (process, workers) = parse(&copy(&board)).unwrap();
    assert_eq!((process, workers.get(2)), (77, Some(&expected)));
    assert_eq!(place.server(), server);
    board.end_worker(2);
    assert!(board.workers().nth(2).unwrap().has_ended);
    assert_eq!(board.place(3).map(|place| place.0.len()), None);
}

#[test]
fn the_figures_of_all_workers_add_up_and_no_one_writes_to_another() {
    let board = Board::in_memory(3);
    for (number, requests) in (0..).zip([1, 10, 100]) {
        let shown = ServerCounters {
            requests,
            ..Default::default()
        };
        board.place(number).unwrap().show_server(&shown);
    }
    let sum = board.server_counters();
    assert_eq!(
        sum,
        ServerCounters {
            requests: 111,
            ..Default::default()
        }
    );
}

#[test]
fn a_reader_on_another_thread_never_sees_a_counter_fall() {
    const TURNS: u64 = 10_000;
    let board = Board::in_memory(1);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for requests in 1..=TURNS {
                let shown = ServerCounters {
                    requests,
                    ..Default::default()
                };
                board.place(0).unwrap().show_server(&shown);
            }
        });
        let mut seen = 0;
        while seen < TURNS {
            let now = board.server_counters().requests;
            assert!(now >= seen, "{now} after {seen}");
            seen = now;
        }
    });
}

#[test]
fn malformed_boards_are_refused_and_wrong_lengths_are_harmless() {
    assert_eq!(parse(&[]), Err(NoBoard));
    assert_eq!(parse(&[0; 4096]), Err(NoBoard));
    let board = mapped(1);
    board.begin_worker(0, Beginning::default());
    let mut words = copy(&board);
    words.truncate(HEADER_WORDS + 3);
    assert_eq!(parse(&words).unwrap().1.len(), 1);
    words[Header::Used as usize] = u64::MAX;
    assert_eq!(parse(&words).unwrap().1.len(), 1);
    words[Header::Fingerprint as usize] ^= 1;
    assert_eq!(parse(&words), Err(NoBoard));
}

#[test]
fn two_workers_never_share_a_pair_of_cache_lines() {
    assert_eq!(PLACE_WORDS * size_of::<u64>() % 128, 0);
    assert_eq!(HEADER_WORDS * size_of::<u64>() % 128, 0);
}
