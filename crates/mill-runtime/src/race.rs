//! Waiting for the first of two futures, or for both, within one task. The deadlines that both state count.

use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;

/// Which of two was first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Either<A, B> {
    First(A),
    Second(B),
}

/// Waits until one of them is ready; the other one is dropped. `first` wins where both are.
pub async fn race<A, B>(first: A, second: B) -> Either<A::Output, B::Output>
where
    A: Future,
    B: Future,
{
    let (mut first, mut second) = (pin!(first), pin!(second));
    poll_fn(move |context| {
        if let Poll::Ready(output) = first.as_mut().poll(context) {
            return Poll::Ready(Either::First(output));
        }
        second.as_mut().poll(context).map(Either::Second)
    })
    .await
}

/// Waits until both are ready.
pub async fn both<A, B>(first: A, second: B) -> (A::Output, B::Output)
where
    A: Future,
    B: Future,
{
    let (mut first, mut second) = (pin!(first), pin!(second));
    let (mut first_output, mut second_output) = (None, None);
    poll_fn(move |context| {
        if first_output.is_none() {
            first_output = ready(first.as_mut().poll(context));
        }
        if second_output.is_none() {
            second_output = ready(second.as_mut().poll(context));
        }
        match (first_output.take(), second_output.take()) {
            (Some(first), Some(second)) => Poll::Ready((first, second)),
            (first, second) => {
                (first_output, second_output) = (first, second);
                Poll::Pending
            }
        }
    })
    .await
}

fn ready<T>(polled: Poll<T>) -> Option<T> {
    match polled {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

#[cfg(test)]
mod tests;
