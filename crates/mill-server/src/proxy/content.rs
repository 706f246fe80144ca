//! A request's content on its way to an upstream server.

/// In memory.
mod memory;

/// Reading it into memory or a file.
mod store;

use super::CarrierOf;
use super::fault::Fault;
use super::http::{self, ContentFraming};
use crate::answer::Answer;
use crate::content::{Content, Pull};
use crate::exchange::{ContentError, Exchange, SendError};
use crate::local::{AnswerOf, FileOf, Local};
use crate::log::Text;
use crate::request::Request;
use crate::temporary_file::{TemporaryFile, TemporaryFileError};
use crate::variables;
use memory::Memory;
use mill_config::config::settings::PassSettings;
use mill_config::config::{LogLevel, PassProtocol, Variable};
use mill_http::decimal::emit_decimal;
use mill_http::h1::emit::{CHUNK_END, LAST_CHUNK, emit_chunk_head};
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use mill_runtime::payload::Payload;
use mill_runtime::race::{Either, race};
use mill_runtime::stream::Stream;
use mill_upstream::fastcgi;
use std::any::Any;
use std::fmt;
use std::future::ready;
use std::sync::Arc;
use store::NotStored;

/// What stands around the pieces of content on the way to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PieceFraming {
    None,
    /// The chunked coding of HTTP/1.1.
    Chunks,
    /// FastCGI's standard input, which is ended even without content.
    Records,
    /// None, and its end is the end of the stream: HTTP/2.
    UntilEnd,
}

/// The content, read whole before the first try (`proxy_request_buffering on`), or passed on as it arrives.
pub(super) enum RequestContent<E: Engine> {
    None,
    Buffered {
        memory: Memory,
        sent: usize,
    },
    /// Longer than `client_body_buffer_size`.
    InFile {
        file: TemporaryFile<FileOf<E>>,
        /// What is still to be sent in this try.
        rest: Content<FileOf<E>>,
    },
    Streamed {
        /// What had come before a server was chosen.
        first: Vec<u8>,
        /// Something was sent: it cannot be sent to another server.
        begun: bool,
    },
}

/// The request's content, as far as the protocol and the settings want it before a server is chosen.
pub(super) async fn read<X: Exchange>(
    protocol: PassProtocol,
    settings: &PassSettings,
    exchange: &mut X,
    request: &mut Request,
    local: &Local<X::Engine>,
) -> Result<RequestContent<X::Engine>, AnswerOf<X::Engine>> {
    let location = Arc::clone(&request.location);
    if let (PassProtocol::Http, Some(text)) = (protocol, &location.proxy_http.set_body) {
        // The client's content is read all the same: behind it is the next request.
        let own = RequestContent::gather(true, exchange, request, local).await?;
        request.kept_content = Some(Box::new(own));
        let mut bytes = Vec::new();
        variables::append(text, request, local, &mut bytes);
        return Ok(RequestContent::buffered(bytes));
    }
    if !settings.pass_request_body {
        return Ok(RequestContent::None);
    }
    let has_length = request.message.head.content_length.is_some();
    // Only HTTP/1.1 and FastCGI carry content of unknown length.
    let takes_any_length = match protocol {
        PassProtocol::Http => http::is_http11(&request.location.proxy_http),
        protocol => protocol == PassProtocol::Fastcgi,
    };
    let needs_length = !has_length && !takes_any_length;
    let buffers = settings.request_buffering || needs_length;
    let content = RequestContent::gather(buffers, exchange, request, local).await?;
    if let ContentFraming::Length(len) = content.framing(request)
        && !has_length
    {
        // The parameters tell programs how much they may read.
        let mut digits = Vec::new();
        emit_decimal(len, &mut digits);
        request.overrides.push((Variable::ContentLength, digits));
    }
    Ok(content)
}

impl<E: Engine> RequestContent<E> {
    fn buffered(bytes: Vec<u8>) -> Self {
        let memory = Memory::from(bytes);
        Self::Buffered { memory, sent: 0 }
    }

    /// Leaves the content for another location, if the request goes on to one.
    pub(super) fn keep_for(self, request: &mut Request) {
        if request.content_taken && request.kept_content.is_none() && self.can_be_repeated() {
            request.kept_content = Some(Box::new(self));
        }
    }

    /// Gives the memory back: no server needs the content any more.
    pub(super) fn release(self, local: &Local<E>) {
        if let Self::Buffered { memory, .. } = self {
            memory.release(local);
        }
    }

    /// What an earlier location has read. It is refused if that was passed on as it came: without it the server would wait
    /// for content, or take the next request for it.
    fn take_kept(request: &mut Request, local: &Local<E>) -> Result<Self, AnswerOf<E>> {
        let kept = request.kept_content.take();
        if let Some(Ok(mut kept)) = kept.map(<Box<dyn Any>>::downcast::<Self>) {
            kept.rewind();
            return Ok(*kept);
        }
        let text = format_args!("the request's content was passed on by another location already");
        local.log_error(Some(request), LogLevel::Error, text);
        Err(Answer::Status(Status::BAD_GATEWAY))
    }

    /// Reads the content, if it is to be buffered.
    pub(super) async fn gather<X: Exchange<Engine = E>>(
        buffers: bool,
        exchange: &mut X,
        request: &mut Request,
        local: &Local<E>,
    ) -> Result<Self, AnswerOf<E>> {
        let head = &request.message.head;
        if !head.has_body() || request.content_refused {
            return Ok(Self::None);
        }
        if std::mem::replace(&mut request.content_taken, true) {
            return Self::take_kept(request, local);
        }
        if head.content_length == Some(0) {
            return Ok(Self::buffered(Vec::new()));
        }
        if !buffers {
            let present = Self::present(exchange, request).await;
            if let Ok(Self::Buffered { memory, .. }) = &present {
                store::keep_in_memory(memory, request);
            }
            return present.map_err(|error| Answer::without_content(error, request, local));
        }
        let (memory, file) = match store::store(exchange, request, local).await {
            Ok(stored) => stored,
            Err(NotStored::Missing(error)) => {
                return Err(Answer::without_content(error, request, local));
            }
            Err(NotStored::File(error)) => {
                local.log_error(Some(request), LogLevel::Crit, format_args!("{error}"));
                return Err(Answer::Status(Status::INTERNAL_SERVER_ERROR));
            }
        };
        let Some(file) = file else {
            return Ok(Self::Buffered { memory, sent: 0 });
        };
        Ok(Self::InFile {
            rest: whole(&file),
            file,
        })
    }

    /// Content that is passed on as it comes: as nginx, up to `client_body_buffer_size` of what has come is read before a
    /// server is chosen. If that is all of it, its length is known, and it can be sent to another server.
    async fn present<X: Exchange<Engine = E>>(
        exchange: &mut X,
        request: &Request,
    ) -> Result<Self, ContentError> {
        let room = usize::try_from(request.location.client_body.buffer_size).unwrap_or(usize::MAX);
        let mut bytes = Vec::new();
        let is_whole = |bytes: &Vec<u8>| {
            let announced = request.message.head.content_length;
            announced.is_some_and(|len| len <= bytes.len() as u64)
        };
        while bytes.len() < room && !is_whole(&bytes) {
            let most = (room - bytes.len()).min(PIECE_BYTES);
            let reading = exchange.content(request, most, |piece| bytes.extend_from_slice(piece));
            match race(reading, ready(())).await {
                Either::First(Ok(true)) => {}
                Either::First(Ok(false)) => return Ok(Self::buffered(bytes)),
                Either::First(Err(error)) => return Err(error),
                Either::Second(()) => break,
            }
        }
        if is_whole(&bytes) {
            return Ok(Self::buffered(bytes));
        }
        let (first, begun) = (bytes, false);
        Ok(Self::Streamed { first, begun })
    }

    pub(super) fn framing(&self, request: &Request) -> ContentFraming {
        match self {
            Self::None => ContentFraming::None,
            Self::Buffered { memory, .. } => ContentFraming::Length(memory.len() as u64),
            Self::InFile { file, .. } => ContentFraming::Length(file.len),
            Self::Streamed { .. } => match request.message.head.content_length {
                Some(len) => ContentFraming::Length(len),
                None => ContentFraming::Chunked,
            },
        }
    }

    /// What stands around its pieces.
    pub(super) fn pieces(&self, protocol: PassProtocol, request: &Request) -> PieceFraming {
        match (self, protocol) {
            (_, PassProtocol::Fastcgi) => PieceFraming::Records,
            (Self::Streamed { .. }, _) if request.message.head.content_length.is_none() => {
                match http::is_http2(protocol, request) {
                    true => PieceFraming::UntilEnd,
                    false => PieceFraming::Chunks,
                }
            }
            _ => PieceFraming::None,
        }
    }

    /// Whether it can be sent again, to another server.
    pub(super) const fn can_be_repeated(&self) -> bool {
        !matches!(self, Self::Streamed { begun: true, .. })
    }

    /// Whether it is passed on as it arrives.
    pub(super) const fn is_streamed(&self) -> bool {
        matches!(self, Self::Streamed { .. })
    }

    /// What had come of content that is passed on as it arrives; it is begun then.
    pub(super) fn take_first(&mut self) -> Option<Vec<u8>> {
        match self {
            Self::Streamed { first, begun } => {
                *begun = true;
                Some(std::mem::take(first))
            }
            _ => None,
        }
    }

    /// Gives it back.
    pub(super) fn put_first(&mut self, bytes: Vec<u8>) {
        if let Self::Streamed { first, .. } = self {
            *first = bytes;
        }
    }

    /// Makes it ready to be sent from its beginning.
    pub(super) fn rewind(&mut self) {
        match self {
            Self::Buffered { sent, .. } => *sent = 0,
            Self::InFile { file, rest } => *rest = whole(file),
            Self::None | Self::Streamed { .. } => {}
        }
    }

    /// How many bytes of it may wait for the server before more of it is handed over.
    pub(super) const fn queued_bytes_max(&self) -> u64 {
        match self {
            Self::None => 0,
            Self::Buffered { .. } | Self::InFile { .. } | Self::Streamed { .. } => {
                PIECE_BYTES as u64
            }
        }
    }

    /// Hands the next piece over to the stream; false when there is none.
    pub(super) async fn send_piece<X: Exchange<Engine = E>>(
        &mut self,
        stream: &CarrierOf<E>,
        local: &Local<E>,
        exchange: &mut X,
        request: &Request,
        pieces: PieceFraming,
    ) -> Result<bool, Fault> {
        match self {
            Self::None => Ok(false),
            Self::Buffered { memory, sent } => {
                let rest = memory.at(*sent);
                *sent += match pieces {
                    PieceFraming::None if !rest.is_empty() => stream.write_some(rest),
                    _ => {
                        let piece = rest.get(..pieces.bytes_max()).unwrap_or(rest);
                        pieces.write(stream, local, Payload::Copy(piece));
                        piece.len()
                    }
                };
                let more = *sent < memory.len();
                if !more {
                    pieces.write_end(stream);
                }
                Ok(more)
            }
            Self::InFile { file, rest } => {
                let copies = !request.location.files.sendfile || !stream.sends_files();
                let most = match pieces {
                    // The engine sends a range of the file by itself.
                    PieceFraming::None if !copies => FILE_PIECE_BYTES,
                    _ => pieces.bytes_max() as u64,
                };
                let pull = Pull {
                    local,
                    most,
                    copies,
                    read_most: most,
                };
                match rest.next(&pull).await {
                    Ok(Some(piece)) => pieces.write(stream, local, piece),
                    Ok(None) => {}
                    Err(error) => {
                        log_unreadable(error, file, request, local);
                        return Err(Fault::NotSpelled);
                    }
                }
                rest.put_back_buffer(local);
                let more = !rest.is_exhausted();
                if !more {
                    pieces.write_end(stream);
                }
                Ok(more)
            }
            Self::Streamed { first, begun } => {
                *begun = true;
                if !first.is_empty() {
                    for piece in first.chunks(pieces.bytes_max()) {
                        pieces.write(stream, local, Payload::Copy(piece));
                    }
                    *first = Vec::new();
                    return Ok(true);
                }
                let mut piece = local.take_buffer();
                let filled = &mut piece;
                let more = exchange
                    .content(request, pieces.bytes_max(), |bytes| {
                        filled.extend_from_slice(bytes)
                    })
                    .await;
                if let Ok(true) = more {
                    pieces.write(stream, local, Payload::Copy(&piece));
                } else if more == Ok(false) {
                    pieces.write_end(stream);
                }
                local.put_buffer(piece);
                more.map_err(Fault::Content)
            }
        }
    }
}

impl PieceFraming {
    const fn bytes_max(self) -> usize {
        match self {
            Self::None | Self::Chunks | Self::UntilEnd => PIECE_BYTES,
            Self::Records => fastcgi::STDIN_CONTENT_BYTES_MAX,
        }
    }

    /// Writes a piece of at most `bytes_max` bytes.
    fn write<E: Engine>(
        self,
        stream: &CarrierOf<E>,
        local: &Local<E>,
        piece: Payload<'_, FileOf<E>>,
    ) {
        if piece.is_empty() {
            return;
        }
        let len = piece.len();
        let mut begin = local.take_buffer();
        match self {
            Self::None | Self::UntilEnd => stream.write(piece),
            Self::Chunks => {
                emit_chunk_head(len, &mut begin);
                stream.write(Payload::Copy(&begin));
                stream.write(piece);
                stream.write(Payload::Copy(CHUNK_END));
            }
            Self::Records => {
                let len = usize::try_from(len).unwrap_or(usize::MAX);
                fastcgi::emit_stdin_begin(len, &mut begin);
                stream.write(Payload::Copy(&begin));
                stream.write(piece);
                stream.write(Payload::Copy(fastcgi::stdin_padding(len)));
            }
        }
        local.put_buffer(begin);
    }

    fn write_end(self, stream: &impl Stream) {
        match self {
            Self::None => {}
            Self::UntilEnd => stream.shutdown(),
            Self::Chunks => stream.write(Payload::Copy(LAST_CHUNK)),
            Self::Records => stream.write(Payload::Copy(&fastcgi::STDIN_END)),
        }
    }
}

fn whole<File: Clone>(file: &TemporaryFile<File>) -> Content<File> {
    Content::file(file.file.clone(), 0, file.len)
}

fn log_unreadable<E: Engine>(
    error: SendError,
    file: &TemporaryFile<FileOf<E>>,
    request: &Request,
    local: &Local<E>,
) {
    let log = |line| local.log_error(Some(request), LogLevel::Crit, line);
    match error {
        SendError::Unreadable(error) => {
            let path = file.path.clone();
            let error = TemporaryFileError { path, error };
            log(format_args!("{error} while sending request to upstream"));
        }
        _ => log(format_args!("\"{}\" got shorter", Text(&file.path))),
    }
}

impl<E: Engine> fmt::Debug for RequestContent<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => formatter.write_str("no content"),
            Self::Buffered { memory, .. } => write!(formatter, "{} bytes", memory.len()),
            Self::InFile { file, .. } => write!(formatter, "{} bytes in a file", file.len),
            Self::Streamed { .. } => formatter.write_str("streamed content"),
        }
    }
}

/// Bytes of a piece that is read and passed on at once.
const PIECE_BYTES: usize = 64 * 1024;

/// Bytes of a file that are handed over at once where they are not copied.
const FILE_PIECE_BYTES: u64 = 1024 * 1024;
