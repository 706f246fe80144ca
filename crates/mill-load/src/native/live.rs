//! Progress during a run: a block that is redrawn on a terminal, else one line an interval.

use crate::native::options::Options;
use crate::native::recorder::Interval;
use crate::native::series::{Period, Series};
use crate::native::terminal::Terminal;
use crate::native::units;
use crate::platform::Watch;
use core::time::Duration;
use std::io::Write;

/// Watches a run, keeps the time series, and shows each period when it closes. Errors of the output do not affect the
/// run.
pub(super) struct Live<'a> {
    pub(super) series: Series,
    screen: Screen<'a>,
}

/// Where and how it is shown.
pub(super) struct Screen<'a> {
    err: &'a mut dyn Write,
    form: Form,
    duration: Option<Duration>,
    requests: Option<u64>,
    warm_up: Duration,
    offered: Option<f64>,
    /// The last rates, oldest first.
    rates: Vec<f64>,
    answered: u64,
    failed: u64,
    /// Lines of the block that are on the screen.
    drawn: usize,
    /// The end of the period that was shown last.
    shown: Duration,
    /// The end of the last period with an answer.
    last_answer: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Silent,
    Lines,
    Block { columns: usize },
}

impl<'a> Live<'a> {
    pub(super) fn new(
        threads: u32,
        options: &Options,
        terminal: Terminal,
        err: &'a mut dyn Write,
    ) -> Self {
        Self {
            series: Series::new(threads, options.interval),
            screen: Screen::new(options, terminal, err),
        }
    }

    /// Erases the block and returns the series.
    pub(super) fn finish(mut self) -> Series {
        self.screen.clear();
        self.series
    }
}

impl Watch<Interval> for Live<'_> {
    fn on_begin(&mut self) {
        self.screen.begin();
    }

    fn on_interval(&mut self, thread: u32, elapsed: Duration, interval: Interval) {
        if let Some(period) = self.series.on_interval(thread, elapsed, &interval) {
            self.screen.show(period);
        }
    }
}

impl<'a> Screen<'a> {
    pub(super) fn new(options: &Options, terminal: Terminal, err: &'a mut dyn Write) -> Self {
        let form = match (options.quiet, terminal.screen_columns) {
            (true, _) => Form::Silent,
            (false, None) => Form::Lines,
            (false, Some(columns)) => Form::Block {
                columns: usize::from(columns),
            },
        };
        Self {
            err,
            form,
            duration: options.duration,
            requests: options.requests,
            warm_up: options.warm_up,
            offered: options.rate,
            rates: Vec::new(),
            answered: 0,
            failed: 0,
            drawn: 0,
            shown: Duration::ZERO,
            last_answer: Duration::ZERO,
        }
    }

    /// The run has begun, and there are no figures yet.
    pub(super) fn begin(&mut self) {
        let warm_up = units::given(self.warm_up);
        match self.form {
            Form::Silent => {}
            Form::Lines if self.warm_up.is_zero() => {}
            Form::Lines => self.write(&format!("warming up for {warm_up}\n")),
            Form::Block { columns } if self.warm_up.is_zero() => {
                let bar = self.bar(Duration::ZERO);
                self.draw(columns, &[bar]);
            }
            Form::Block { columns } => {
                self.draw(columns, &[format!("  warming up for {warm_up}")]);
            }
        }
    }

    pub(super) fn show(&mut self, period: &Period) {
        self.answered += period.answered;
        self.failed += period.failed;
        if period.answered > 0 {
            self.last_answer = period.end;
        }
        let rate = period.per_second(period.answered);
        self.rates.push(rate);
        if self.rates.len() > SPARKS {
            self.rates.remove(0);
        }
        let is_due = period.end.saturating_sub(self.shown) * 10 >= SHOWN_EVERY * 9;
        let is_first = self.shown.is_zero();
        match self.form {
            Form::Silent => return,
            Form::Lines if !is_due && !is_first => return,
            Form::Lines => self.line(period, rate),
            Form::Block { columns } => self.block(columns, period, rate),
        }
        self.shown = period.end;
    }

    /// Erases the block.
    pub(super) fn clear(&mut self) {
        if self.drawn > 0 {
            let up = format!("\x1b[{}A\r\x1b[J", self.drawn);
            self.write(&up);
            self.drawn = 0;
        }
    }

    fn line(&mut self, period: &Period, rate: f64) {
        let text = format!(
            "{:>7} {:>12}  {:<40}  errors {}  open {}\n",
            seconds(period.end),
            units::rate(rate),
            self.latencies(period, |latency| format!("{latency:>8}"), "  "),
            units::count(period.failed),
            units::count(period.open),
        );
        self.write(&text);
    }

    fn block(&mut self, columns: usize, period: &Period, rate: f64) {
        let offered = self.offered.map_or_else(String::new, |offered| {
            format!("  of {}", units::rate(offered))
        });
        let lines = [
            self.bar(period.end),
            format!(
                "  rate     {:<12} {}{offered}",
                units::rate(rate),
                self.sparks()
            ),
            format!(
                "  latency  {}",
                self.latencies(period, |latency| format!("{latency:<8}"), "   ")
            ),
            format!(
                "  errors   {:<12} connections {}",
                units::count(self.failed),
                units::count(period.open)
            ),
        ];
        self.draw(columns, &lines);
    }

    /// The latencies of a period; without an answer there are none, and a zero would be read as a fast server.
    fn latencies(
        &self,
        period: &Period,
        column: impl Fn(String) -> String,
        between: &str,
    ) -> String {
        if period.answered == 0 {
            let due = |rate: f64| rate * period.length().as_secs_f64();
            if self.offered.is_some_and(|rate| due(rate) < DUE_MIN) {
                // Perhaps no request was due.
                return String::from("-");
            }
            let silent = period.end.saturating_sub(self.last_answer);
            return format!("no answer for {}", seconds(silent));
        }
        let figures = [
            ("p50", period.p50),
            ("p99", period.p99),
            ("max", period.max),
        ];
        figures
            .map(|(name, latency)| format!("{name} {}", column(units::duration(latency))))
            .join(between)
    }

    /// The progress of the run: by time, by requests, or only the elapsed time.
    fn bar(&self, elapsed: Duration) -> String {
        let by_time = self
            .duration
            .map(|whole| elapsed.as_secs_f64() / whole.as_secs_f64());
        let by_requests = self
            .requests
            .map(|whole| ratio(self.answered + self.failed, whole));
        let done = by_time.into_iter().chain(by_requests).reduce(f64::max);
        let done = done.unwrap_or(0.0).clamp(0.0, 1.0);
        // Filled up to the place that is reached: compared as numbers, no cast needed.
        let bar: String = (0_u32..BAR)
            .map(|place| {
                if f64::from(place) + 0.5 < done * f64::from(BAR) {
                    '━'
                } else {
                    '╌'
                }
            })
            .collect();
        let of = match (self.duration, self.requests) {
            (Some(whole), _) => format!(" of {}", units::given(whole)),
            (None, Some(whole)) => format!(
                ", {} of {} requests",
                units::count(self.answered),
                units::count(whole)
            ),
            (None, None) => String::new(),
        };
        format!("  {bar}  {}{of}", seconds(elapsed))
    }

    /// The last rates as bars, the highest at full height; lower bars are aligned at the top, not the bottom.
    fn sparks(&self) -> String {
        let top = self.rates.iter().copied().fold(0.0, f64::max);
        let height = |rate: f64| {
            let level = if top > 0.0 { rate / top } else { 0.0 };
            let above = |index: &u32| level * 8.0 > f64::from(*index) + 0.5;
            (1..8_u32).filter(above).count()
        };
        let bars = self.rates.iter().map(|rate| {
            let bar = SPARK_BARS.get(height(*rate));
            bar.copied().unwrap_or(' ')
        });
        bars.collect()
    }

    /// Draws over the previous block, each line truncated to the screen.
    fn draw(&mut self, columns: usize, lines: &[String]) {
        let mut text = String::new();
        if self.drawn > 0 {
            text.push_str(&format!("\x1b[{}A\r", self.drawn));
        }
        for line in lines {
            text.extend(line.chars().take(columns.saturating_sub(1)));
            text.push_str("\x1b[K\n");
        }
        text.push_str("\x1b[J");
        self.drawn = lines.len();
        self.write(&text);
    }

    /// An error of standard error is ignored: the run goes on.
    fn write(&mut self, text: &str) {
        let written = self.err.write_all(text.as_bytes());
        if written.and_then(|()| self.err.flush()).is_err() {
            self.form = Form::Silent;
            self.drawn = 0;
        }
    }
}

/// `7 s`, `0.25 s`: the elapsed time, without meaningless digits.
fn seconds(elapsed: Duration) -> String {
    let millis = (elapsed.as_micros() + 500) / 1000;
    let (seconds, rest) = (millis / 1000, millis % 1000);
    // A cut is a little late: times within a hundredth of a second after a whole one are rounded down.
    match rest {
        0..10 => format!("{seconds} s"),
        990.. => format!("{} s", seconds + 1),
        _ => format!("{seconds}.{:02} s", rest / 10),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a bar has thirty places")]
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// The minimum time between plain lines.
const SHOWN_EVERY: Duration = Duration::from_secs(1);

/// The minimum of due requests of an open loop in a period for a lack of answers to mean something.
const DUE_MIN: f64 = 2.0;

/// Places of the progress bar.
const BAR: u32 = 30;

/// Rates that the block shows.
const SPARKS: usize = 24;

const SPARK_BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

#[cfg(test)]
mod tests;
