//! Requests byte by byte, and answers by tables of records, each in pieces of every size.

use super::*;
use crate::params::ParamName;
use mill_http::h1::response::RequestKind;

/// A record of the request 1, with padding.
fn record(kind: u8, content: &[u8], padding: u8) -> Vec<u8> {
    let [high, low] = u16::try_from(content.len()).unwrap().to_be_bytes();
    let mut out = vec![1, kind, 0, 1, high, low, padding, 0];
    out.extend_from_slice(content);
    out.extend(std::iter::repeat_n(b'p', padding.into()));
    out
}

/// Records of an answer, in a short spelling: `O` and `E` before text on standard output and error, `.` for the end of
/// the request. The padding grows with each record.
fn answer(script: &[&str]) -> Vec<u8> {
    let records = script.iter().zip(0..).map(|(text, padding)| {
        let (kind, content) = text.split_at(1);
        match kind {
            "O" => record(STDOUT, content.as_bytes(), padding),
            "E" => record(STDERR, content.as_bytes(), padding),
            _ => record(END_REQUEST, &[0; 8], padding),
        }
    });
    records.collect::<Vec<_>>().concat()
}

/// What an answer came to, in one line: status, content, standard error, how it ended.
fn read(
    bytes: &[u8],
    step: usize,
    request: RequestKind,
    keep_conn: bool,
) -> Result<String, FastcgiFault> {
    let (mut stderr, mut head_bytes, mut content) = (Vec::new(), Vec::new(), Vec::new());
    let mut reading = AnswerHead::new(request, 64);
    let mut at = 0;
    let head = loop {
        if at == bytes.len() {
            return Ok("more".to_owned());
        }
        let piece = &bytes[at..(at + step).min(bytes.len())];
        let found = reading.on_bytes(piece, &mut head_bytes, |text| {
            stderr.extend_from_slice(text);
        });
        let (taken, head) = found?;
        at += taken;
        assert!(head.is_some() || taken == piece.len());
        if let Some(head) = head {
            assert_eq!(head.len, head_bytes.len());
            break head;
        }
    };
    let mut body = reading.into_body(&head, keep_conn);
    while at < bytes.len() && !body.is_complete() {
        let piece = &bytes[at..(at + step).min(bytes.len())];
        let (content, stderr) = (&mut content, &mut stderr);
        let taken = body.on_bytes(
            piece,
            |bytes| content.extend_from_slice(bytes),
            |text| stderr.extend_from_slice(text),
        )?;
        assert!(taken.complete || taken.consumed == piece.len());
        at += taken.consumed;
    }
    let end = match (body.is_complete(), body.has_surplus(), body.may_be_kept()) {
        (false, ..) => "open",
        (true, true, _) => "surplus",
        (true, false, true) => "keep",
        (true, false, false) => "close",
    };
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (content, stderr) = (text(content), text(stderr));
    Ok(format!("{} {content:?} {stderr:?} {end}", head.status))
}

#[track_caller]
fn check_of(request: RequestKind, keep_conn: bool, bytes: &[u8], expected: &str) {
    for step in 1..=bytes.len() {
        let found = read(bytes, step, request, keep_conn);
        let found = found.unwrap_or_else(|fault| fault.to_string());
        assert_eq!(found, expected, "in pieces of {step}");
    }
}

#[track_caller]
fn check(script: &[&str], expected: &str) {
    check_of(RequestKind::Other, true, &answer(script), expected);
}

#[test]
fn a_request_is_laid_out_as_in_nginx() {
    let mut params = Vec::new();
    emit_param(ParamName::Literal(b"A"), b"bc", &mut params);
    emit_param(ParamName::Field(b"X-Y"), &[b'v'; 128], &mut params);
    emit_param(ParamName::Literal(&[b'n'; 127]), b"", &mut params);
    let sizes = [
        b"\x01\x02Abc\x08\x80\0\0\x80HTTP_X_Y".as_slice(),
        &[b'v'; 128],
        b"\x7f\0",
        &[b'n'; 127],
    ];
    assert_eq!(params, sizes.concat());
    let mut out = Vec::new();
    emit_head(true, b"\x01\x02Abc", &mut out);
    let expected = [
        b"\x01\x01\0\x01\0\x08\0\0\0\x01\x01\0\0\0\0\0".as_slice(),
        b"\x01\x04\0\x01\0\x05\x03\0\x01\x02Abc\0\0\0",
        b"\x01\x04\0\x01\0\0\0\0",
    ];
    assert_eq!(out, expected.concat());
    let mut out = Vec::new();
    emit_head(false, b"", &mut out);
    assert_eq!(
        out,
        b"\x01\x01\0\x01\0\x08\0\0\0\x01\0\0\0\0\0\0\x01\x04\0\x01\0\0\0\0"
    );
}

#[test]
fn long_parameters_are_several_records_of_one_stream() {
    let params = vec![b'x'; 65528 + 3];
    let mut out = Vec::new();
    emit_head(false, &params, &mut out);
    let mut rest = &out[16..];
    let mut found = Vec::new();
    let mut lens = Vec::new();
    while !rest.is_empty() {
        assert_eq!(rest[..4], [1, PARAMS, 0, 1]);
        let len = usize::from(u16::from_be_bytes([rest[4], rest[5]]));
        found.extend_from_slice(&rest[8..8 + len]);
        rest = &rest[8 + len + usize::from(rest[6])..];
        lens.push(len);
    }
    assert_eq!((lens, found), (vec![65528, 3, 0], params));
}

#[test]
fn standard_input_is_padded_to_eight_bytes() {
    for len in [
        1,
        7,
        8,
        9,
        STDIN_CONTENT_BYTES_MAX - 1,
        STDIN_CONTENT_BYTES_MAX,
    ] {
        let mut out = Vec::new();
        emit_stdin_begin(len, &mut out);
        let padding = stdin_padding(len);
        assert_eq!(out[..4], [1, STDIN, 0, 1]);
        assert_eq!(usize::from(u16::from_be_bytes([out[4], out[5]])), len);
        assert_eq!(usize::from(out[6]), padding.len());
        assert_eq!((len + padding.len()) % 8, 0);
        assert!(padding.len() < 8);
    }
    assert_eq!(STDIN_END, [1, STDIN, 0, 1, 0, 0, 0, 0]);
}

#[test]
fn an_answer_is_read_from_records_of_any_size() {
    check(
        &["OStatus: 404 No\r\n\r\nnothing", "O", "."],
        "404 \"nothing\" \"\" keep",
    );
    check(
        &["OX: ", "Oy\r", "O\n\r", "O\n", "Oa", "Ob", "O", "E", "."],
        "200 \"ab\" \"\" keep",
    );
    check(&["O\n", "."], "200 \"\" \"\" keep");
    check(
        &["Ewarn", "OX: y\n", "Eing", "O\nabc", "E!", "O", "."],
        "200 \"abc\" \"warning!\" keep",
    );
    check(&["OContent-Length: 3\n\nabc", "."], "200 \"abc\" \"\" keep");
    check(&["OX: y\n"], "more");
    check(&["E", "Ex"], "more");
    check(&["O\nab", "Oc"], "200 \"abc\" \"\" open");
    check(&["O\nab", "O"], "200 \"ab\" \"\" open");
    let cut = answer(&["O\nab", "O", ".", "."]);
    check_of(
        RequestKind::Other,
        true,
        &cut[..cut.len() - 1],
        "200 \"ab\" \"\" keep",
    );
}

#[test]
fn without_keep_conn_standard_output_ends_the_answer() {
    let bytes = answer(&["O\nabc", "O"]);
    check_of(RequestKind::Other, false, &bytes, "200 \"abc\" \"\" close");
    let bytes = answer(&["O\nabc", "."]);
    check_of(RequestKind::Other, false, &bytes, "200 \"abc\" \"\" close");
}

#[test]
fn content_has_the_length_that_the_head_announces() {
    let early = "upstream prematurely closed FastCGI stdout";
    check(&["OContent-Length: 4\n\nabc", "O", "."], early);
    check(
        &["OContent-Length: 4\n\nabc", "."],
        "upstream prematurely closed FastCGI request",
    );
    check(
        &["OContent-Length: 2\n\nabc", "O", "."],
        "200 \"ab\" \"\" surplus",
    );
    check(
        &["OStatus: 304\n\n", "Oa", "O", "."],
        "304 \"\" \"\" surplus",
    );
    check(&["OStatus: 204\n\n", "O", "."], "204 \"\" \"\" keep");
    let head = answer(&["OContent-Length: 9\n\nabc", "O", "."]);
    check_of(RequestKind::Head, true, &head, "200 \"\" \"\" keep");
}

#[test]
fn wrong_records_are_told_in_nginxs_words() {
    let check = |bytes: &[u8], expected: &str| {
        check_of(RequestKind::Other, true, bytes, expected);
    };
    check(
        b"\x02",
        "upstream sent unsupported FastCGI protocol version: 2",
    );
    check(
        b"HTTP/1.1 200 OK\r\n",
        "upstream sent unsupported FastCGI protocol version: 72",
    );
    check(b"\x01\x05", "upstream sent invalid FastCGI record type: 5");
    check(b"\x01\x0b", "upstream sent invalid FastCGI record type: 11");
    check(
        b"\x01\x06\x01",
        "upstream sent unexpected FastCGI request id high byte: 1",
    );
    check(
        b"\x01\x06\0\x02",
        "upstream sent unexpected FastCGI request id low byte: 2",
    );
    check(
        &answer(&["."]),
        "upstream sent unexpected FastCGI record: 3",
    );
    check(
        &answer(&["OX: y\n", "O"]),
        "upstream prematurely closed FastCGI stdout",
    );
    check(
        &answer(&["O\na", "O", "Ob"]),
        "upstream sent unexpected FastCGI record: 6",
    );
    check(
        &answer(&["Ono head\n"]),
        "upstream sent invalid header: field line has no name with a colon behind it",
    );
    let end = |content: &[u8]| [answer(&["O\n"]), record(END_REQUEST, content, 0)].concat();
    check(
        &end(&[0; 7]),
        "upstream sent FastCGI end request of 7 bytes",
    );
    check(&end(&[0; 9]), "200 \"\" \"\" keep");
    check(&end(&[0, 0, 0, 255, 0, 0, 0, 0]), "200 \"\" \"\" keep");
    check(
        &end(&[0, 0, 0, 0, 2, 0, 0, 0]),
        "upstream rejected FastCGI request with protocol status 2",
    );
}

#[test]
fn a_head_beyond_its_limit_is_a_fault_however_it_comes() {
    let line = "a".repeat(60);
    check(&[&format!("O{line}: "), "O\n\n"], "200 \"\" \"\" open");
    check(
        &[&format!("O{line}: b"), "O\n\n"],
        "upstream sent invalid header: head is longer than 64 bytes",
    );
    check(
        &[&format!("O{}", "a".repeat(500))],
        "upstream sent invalid header: head is longer than 64 bytes",
    );
}

#[test]
fn the_end_of_the_stream_completes_only_what_has_its_length() {
    let end = |request: RequestKind, head: &str| {
        let bytes = answer(&[&format!("O{head}\n")]);
        let mut reading = AnswerHead::new(request, 64);
        let found = reading.on_bytes(&bytes, &mut Vec::new(), |_| {});
        let mut body = reading.into_body(&found.unwrap().1.unwrap(), true);
        (
            body.on_end_of_stream().is_ok(),
            body.is_complete(),
            body.may_be_kept(),
        )
    };
    let cut = (false, false, false);
    let whole = (true, true, false);
    assert_eq!(end(RequestKind::Other, ""), cut);
    assert_eq!(end(RequestKind::Other, "Content-Length: 1\n"), cut);
    assert_eq!(end(RequestKind::Other, "Content-Length: 0\n"), whole);
    assert_eq!(end(RequestKind::Other, "Status: 204\n"), whole);
    assert_eq!(end(RequestKind::Head, ""), whole);
}

#[test]
fn the_end_of_a_request_tells_its_statuses() {
    let mut records = Records::new();
    let bytes = record(END_REQUEST, &[1, 2, 3, 4, 5, 0, 0, 0], 3);
    let end = EndRequest {
        app_status: 0x0102_0304,
        protocol_status: 5,
    };
    assert_eq!(
        records.on_bytes(&bytes),
        Ok((bytes.len(), RecordEvent::End(end)))
    );
}
