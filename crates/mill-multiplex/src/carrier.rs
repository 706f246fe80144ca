//! What carries a request: a connection of its own, or a stream of one that many share (HTTP/2).

use crate::call::Call;
use mill_runtime::stream::Stream;

/// Both carry the bytes of HTTP/1 or of another protocol of its kind, one request after the other; a call is closed behind one.
#[derive(Debug)]
pub enum Carrier<S: Stream> {
    Own(S),
    Call(Call<S>),
}

mill_runtime::stream_of_either!(Carrier: Own or Call);
