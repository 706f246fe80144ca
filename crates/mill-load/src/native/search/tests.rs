//! Searches of simulated servers, whose capacity is known.

use super::*;
use crate::random::Random;

/// Runs a search to its end; `server` gives the result of a trial.
fn run(settings: Settings, mut server: impl FnMut(Trial) -> Outcome) -> Found {
    let mut search = Search::new(settings);
    while let Some(trial) = search.next() {
        assert!(trial.rate >= RATE_MIN && trial.rate <= search.settings.rate_max);
        search.on_result(server(trial));
    }
    search.found()
}

fn sharp(capacity: f64) -> impl FnMut(Trial) -> Outcome {
    move |trial| {
        if trial.rate <= capacity {
            Outcome::Kept
        } else {
            Outcome::Missed { excess: 10.0 }
        }
    }
}

/// A queue with one server (M/M/1): its p99 is ln(100) / (capacity − rate), and a trial of a finite time estimates it
/// with an error that falls with the root of its length.
fn queue(capacity: f64, limit: Duration, noise: f64, seed: u64) -> impl FnMut(Trial) -> Outcome {
    let mut random = Random::new(seed);
    move |trial| {
        if trial.rate >= capacity {
            return Outcome::NotSent;
        }
        let p99 = 100.0_f64.ln() / (capacity - trial.rate);
        let error = (random.unit() * 2.0 - 1.0) * noise / trial.duration.as_secs_f64().sqrt();
        let excess = p99 * (1.0 + error) / limit.as_secs_f64();
        if excess < 1.0 {
            Outcome::Kept
        } else {
            Outcome::Missed { excess }
        }
    }
}

#[test]
fn a_sharp_limit_is_found_to_the_precision_in_a_bounded_number_of_trials() {
    for capacity in [0.3, 7.0, 999.0, 1000.0, 1001.0, 12_345.0, 987_654.0] {
        for precision in [0.05, 0.02, 0.005] {
            let settings = Settings {
                precision,
                ..Settings::default()
            };
            let found = run(settings, sharp(capacity));
            let rate = found.rate.unwrap();
            assert!(
                rate <= capacity && rate >= capacity * (1.0 - 2.0 * precision),
                "{capacity}: {found:?}"
            );
            assert!(
                found.is_precise && found.limit == Limit::Objective,
                "{found:?}"
            );
            assert!(found.trials < 45, "{capacity} {precision}: {found:?}");
        }
    }
}

#[test]
fn a_server_that_answers_nothing_ends_the_search_at_once() {
    let found = run(Settings::default(), |_| Outcome::NoAnswer);
    assert_eq!(
        (found.rate, found.limit, found.trials),
        (None, Limit::NoAnswer, TRIES)
    );
    // It stops answering after a confirmed rate: that result stays.
    let mut trials = 0;
    let found = run(Settings::default(), |trial| {
        trials += 1;
        match trial.rate {
            _ if trials > 20 => Outcome::NoAnswer,
            rate if rate > 1500.0 => Outcome::Missed { excess: 9.0 },
            _ => Outcome::Kept,
        }
    });
    assert!(found.trials <= 22, "{found:?}");
}

#[test]
fn the_last_trial_is_long_and_the_others_are_short() {
    let mut trials = Vec::new();
    let mut server = sharp(5000.0);
    let settings = Settings::default();
    run(settings, |trial| {
        trials.push(trial.duration);
        server(trial)
    });
    let (last, others) = trials.split_last().unwrap();
    assert_eq!(*last, settings.long);
    assert!(others.iter().all(|duration| *duration == settings.short));
}

#[test]
fn a_queue_is_found_also_through_noise() {
    // p99 < 5 ms is met up to 20 000 − ln(100) / 5 ms = 19 079 requests a second.
    let limit = Duration::from_millis(5);
    let truth = 20_000.0 - 100.0_f64.ln() / 0.005;
    for seed in 0..200 {
        let found = run(Settings::default(), queue(20_000.0, limit, 0.3, seed));
        let rate = found.rate.unwrap();
        assert!((rate / truth - 1.0).abs() < 0.03, "{seed}: {found:?}");
        assert!(found.trials < 40, "{seed}: {found:?}");
    }
}

#[test]
fn a_goal_missed_once_by_noise_does_not_count() {
    let mut server = sharp(8000.0);
    let mut random = Random::new(3);
    let mut was_noise = false;
    let found = run(Settings::default(), |trial| {
        // One in five trials is disturbed, never two in a row.
        was_noise = !was_noise && random.unit() < 0.2;
        if was_noise {
            Outcome::Missed { excess: 40.0 }
        } else {
            server(trial)
        }
    });
    assert!(found.rate.unwrap() > 7800.0, "{found:?}");
}

#[test]
fn a_rate_that_only_short_trials_meet_is_not_the_result() {
    // Short trials meet 10 000, long ones 6000: a buffer fills up.
    let settings = Settings::default();
    let found = run(settings, |trial| {
        let capacity = if trial.duration == settings.long {
            6000.0
        } else {
            10_000.0
        };
        sharp(capacity)(trial)
    });
    let rate = found.rate.unwrap();
    assert!((5800.0..=6000.0).contains(&rate), "{found:?}");
    assert!(found.is_precise && found.trials < 60, "{found:?}");
}

#[test]
fn a_client_that_can_not_send_is_named_as_the_limit() {
    let found = run(Settings::default(), |trial| {
        if trial.rate <= 30_000.0 {
            Outcome::Kept
        } else {
            Outcome::NotSent
        }
    });
    assert_eq!(found.limit, Limit::Sending);
    assert!((29_000.0..=30_000.0).contains(&found.rate.unwrap()));
}

#[test]
fn the_highest_rate_that_may_be_tried_is_confirmed_too() {
    let settings = Settings {
        rate_max: 5000.0,
        ..Settings::default()
    };
    let found = run(settings, sharp(1e9));
    assert_eq!(
        (found.rate, found.limit, found.is_precise),
        (Some(5000.0), Limit::RateMax, true)
    );
    assert_eq!(found.trials, 5);
}

#[test]
fn a_server_that_never_keeps_it_or_answers_at_random_ends_the_search() {
    let found = run(Settings::default(), |_| Outcome::Missed { excess: 2.0 });
    assert_eq!((found.rate, found.is_precise), (None, false));
    assert!(found.trials < 40, "{found:?}");
    for seed in 0..100 {
        let mut random = Random::new(seed);
        let found = run(Settings::default(), |_| {
            if random.unit() < 0.5 {
                Outcome::Kept
            } else {
                Outcome::Missed { excess: 1.1 }
            }
        });
        assert!(found.trials <= TRIALS_MAX);
    }
}

#[test]
fn settings_beyond_reason_are_brought_back() {
    let settings = Settings {
        start: -5.0,
        rate_max: 0.0,
        precision: 0.0,
        ..Settings::default()
    };
    let found = run(settings, |_| Outcome::Kept);
    assert_eq!(found.rate, Some(RATE_MIN));
}
