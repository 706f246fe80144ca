//! Counts of frames that cost more than they say.

use super::error::ErrorCode;
use super::limits::{Limits, PERIOD_SECONDS};

/// What a peer has sent in the current period.
#[derive(Debug, Default)]
pub(super) struct Abuse {
    period: u64,
    pings: u32,
    settings: u32,
    priorities: u32,
    window_updates: u32,
    empty_frames: u32,
    /// Not of a period: answers make up for resets.
    resets: u32,
    answered: bool,
    refused_streams: u32,
}

/// A frame of which there may be so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cost {
    Ping,
    Settings,
    Priority,
    WindowUpdate,
    EmptyFrame,
    Reset,
    RefusedStream,
}

impl Abuse {
    /// Counts one; the error is that there were too many.
    pub(super) fn count(
        &mut self,
        cost: Cost,
        limits: &Limits,
        now_seconds: u64,
    ) -> Result<(), ErrorCode> {
        let period = now_seconds / PERIOD_SECONDS;
        if period != self.period {
            *self = Self {
                period,
                resets: self.resets,
                answered: self.answered,
                refused_streams: self.refused_streams,
                ..Self::default()
            };
        }
        let (count, most) = match cost {
            Cost::Ping => (&mut self.pings, limits.pings),
            Cost::Settings => (&mut self.settings, limits.settings),
            Cost::Priority => (&mut self.priorities, limits.priorities),
            Cost::WindowUpdate => (&mut self.window_updates, limits.window_updates),
            Cost::EmptyFrame => (&mut self.empty_frames, limits.empty_frames),
            Cost::Reset => (&mut self.resets, limits.resets),
            Cost::RefusedStream => (&mut self.refused_streams, limits.refused_streams),
        };
        *count += 1;
        if *count > most {
            return Err(ErrorCode::ENHANCE_YOUR_CALM);
        }
        Ok(())
    }

    /// Content passes: programs that measure the path by it send a PING for each piece of it, and grant windows.
    pub(super) fn allow_one(&mut self) {
        self.pings = self.pings.saturating_sub(1);
        self.window_updates = self.window_updates.saturating_sub(1);
    }

    /// A stream was answered whole.
    pub(super) fn reward(&mut self) {
        self.refused_streams = 0;
        self.answered = !self.answered;
        if self.answered {
            self.resets = self.resets.saturating_sub(1);
        }
    }
}
