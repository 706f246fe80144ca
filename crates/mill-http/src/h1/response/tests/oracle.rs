//! Generated and mutated responses, compared with httparse and a simple implementation of RFC 9112 6.3.

use super::*;

const SEED: u64 = 0x6d69_6c6c_6c6f_6164;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).unwrap()
    }

    fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }
}

fn generate(random: &mut Random) -> String {
    let end = ["\r\n", "\n"];
    let mut head = random.of(&["", "", "", "\r\n", "\n\r\n"]).to_string();
    let version = random.of(&["HTTP/1.1 ", "HTTP/1.1 ", "HTTP/1.0 "]);
    let status = random.of(&[
        "200", "200", "206", "404", "500", "100", "101", "204", "304", "999",
    ]);
    let phrase = random.of(&["", " ", " OK", " Not Found", " \u{e4}\tb"]);
    head += &format!("{version}{status}{phrase}{}", random.of(&end));
    for _ in 0..random.below(8) {
        let name = random.of(&[
            "Server",
            "Date",
            "ETag",
            "X",
            "Content-Type",
            "Accept-Ranges",
            "x_y!#$%",
            "Content-Length",
            "content-length",
            "Transfer-Encoding",
            "TRANSFER-ENCODING",
            "Connection",
            "CoNNection",
            "Connectiom",
        ]);
        let value = random.of(&[
            "",
            "5",
            "5",
            "5, 5",
            "0",
            "123456789",
            "x",
            "chunked",
            "gzip, chunked",
            "chunked, gzip",
            "close",
            "keep-alive",
            "keep-alive, Upgrade",
            "nginx/1.22.1",
            "\u{e4}\u{fc}",
            "Sat, 21 Nov 2026 04:46:01 GMT",
            "a\tb:c",
            "\"a,b\"",
        ]);
        let blank = random.of(&["", " ", " ", "\t "]);
        head += &format!(
            "{name}:{blank}{value}{}{}",
            random.of(&["", "", " \t"]),
            random.of(&end)
        );
    }
    head + random.of(&end)
}

/// RFC 9112 6.3 and 9.3 over the list of fields, as literally as possible.
fn expected(
    request: RequestKind,
    status: u16,
    minor: u8,
    fields: &[httparse::Header<'_>],
) -> Result<(Framing, bool), ResponseFault> {
    let list = |name: &str| {
        let lines = fields
            .iter()
            .filter(|field| field.name.eq_ignore_ascii_case(name));
        let values: Vec<_> = lines
            .map(|field| String::from_utf8_lossy(field.value))
            .collect();
        let joined = values.join(",").to_ascii_lowercase();
        let all = joined.split(',').map(|element| element.trim().to_string());
        (
            values.len(),
            all.filter(|element| !element.is_empty())
                .collect::<Vec<_>>(),
        )
    };
    let (lengths, length_values) = list("content-length");
    let (codings, coding_values) = list("transfer-encoding");
    let (_, options) = list("connection");
    let has_empty = fields
        .iter()
        .any(|field| field.name.eq_ignore_ascii_case("content-length") && field.value.is_empty());
    let framing = if request == RequestKind::Head || matches!(status, 100..=199 | 204 | 304) {
        Framing::None
    } else if request == RequestKind::Connect && matches!(status, 200..=299) {
        Framing::UntilClose
    } else if codings > 0 {
        match coding_values.last().map(String::as_str) {
            Some("chunked") => Framing::Chunked,
            Some(coding) if coding.split(';').next().map(str::trim_end) == Some("chunked") => {
                return Err(ResponseFault::ChunkedParameters);
            }
            _ => Framing::UntilClose,
        }
    } else if lengths > 0 {
        let numbers: Result<Vec<u64>, _> =
            length_values.iter().map(|value| value.parse()).collect();
        match numbers.ok().filter(|_| !has_empty) {
            None => return Err(ResponseFault::ContentLength),
            Some(numbers) if numbers.iter().any(|number| *number != numbers[0]) => {
                return Err(ResponseFault::ContentLengthsDiffer);
            }
            Some(numbers) => Framing::Length(numbers[0]),
        }
    } else {
        Framing::UntilClose
    };
    let has = |option: &str| options.iter().any(|said| said == option);
    let keep_alive = !has("close")
        && (minor == 1 || has("keep-alive"))
        && framing != Framing::UntilClose
        && status != 101
        && (codings == 0 || (lengths == 0 && minor == 1));
    Ok((framing, keep_alive))
}

/// Whether httparse accepts the head too; then both results must agree.
fn agrees(bytes: &[u8], request: RequestKind, context: &str) -> bool {
    let mut fields = [httparse::EMPTY_HEADER; 32];
    let mut oracle = httparse::Response::new(&mut fields);
    let found = parse(bytes, request);
    match oracle.parse(bytes) {
        Ok(httparse::Status::Complete(len)) => {
            let (status, minor) = (oracle.code.unwrap(), oracle.version.unwrap());
            if status < 100 {
                assert_eq!(found, Err(ResponseFault::StatusCode), "{context}");
                return true;
            }
            let judged = expected(request, status, minor, oracle.headers);
            let head = match (found, judged) {
                (Ok(Some(head)), Ok(judged)) => {
                    assert_eq!((head.framing, head.keep_alive), judged, "{context}");
                    head
                }
                // A length that is a list with a mistake and a difference has two faults.
                (Err(_), Err(_)) => return true,
                other => panic!("{other:?}: {context}"),
            };
            assert_eq!((head.status, head.len), (status, len), "{context}");
            assert_eq!(head.version == Version::Http11, minor == 1, "{context}");
            let theirs = oracle
                .headers
                .iter()
                .map(|field| (field.name.as_bytes(), field.value));
            assert!(head.fields(bytes).eq(theirs), "{context}");
            true
        }
        Ok(httparse::Status::Partial) => {
            assert!(!matches!(found, Ok(Some(_))), "{found:?}: {context}");
            true
        }
        Err(_) => false,
    }
}

fn kind(random: &mut Random) -> RequestKind {
    [
        RequestKind::Other,
        RequestKind::Other,
        RequestKind::Head,
        RequestKind::Connect,
    ][random.below(4)]
}

#[test]
fn generated_responses_agree_with_httparse_and_the_slow_reading() {
    let mut random = Random(SEED);
    for round in 0..5_000 {
        let head = generate(&mut random);
        let request = kind(&mut random);
        let context = format!("seed {SEED:#x}, round {round}, {request:?}: {head:?}");
        assert!(agrees(head.as_bytes(), request, &context), "{context}");
        let (slowly, _) = parse_slowly(head.as_bytes(), request, &ResponseRules::lenient());
        assert_eq!(slowly, parse(head.as_bytes(), request), "{context}");
        let ends = head.replace("\r\n", "\n").replace('\n', "\r\n");
        strict_reading_agrees(ends.as_bytes(), request, &context);
    }
}

/// Strict reading does not depend on the split, and agrees with lenient reading on what it accepts.
fn strict_reading_agrees(bytes: &[u8], request: RequestKind, context: &str) {
    let rules = ResponseRules::default();
    let found = parse_response_head(bytes, request, &rules);
    assert_eq!(parse_slowly(bytes, request, &rules).0, found, "{context}");
    if let Ok(Some(_)) = found {
        strict::check_accepted(bytes, request, found);
    }
}

#[test]
fn mutated_responses_never_panic_and_do_not_depend_on_the_split() {
    const INTERESTING: &[u8] = b"\r\n :\t\0,;0159HTcx\x01\x7f\x80\xff";
    let mut random = Random(SEED);
    let mut agreed = 0;
    for round in 0..20_000 {
        let mut bytes = generate(&mut random).into_bytes();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len());
            match random.below(3) {
                0 => bytes[at] = INTERESTING[random.below(INTERESTING.len())],
                1 => bytes.insert(at, INTERESTING[random.below(INTERESTING.len())]),
                _ => drop(bytes.remove(at)),
            }
            if bytes.is_empty() {
                bytes.push(b'H');
            }
        }
        let request = kind(&mut random);
        let text = String::from_utf8_lossy(&bytes);
        let context = format!("seed {SEED:#x}, round {round}, {request:?}: {text:?}");
        agreed += usize::from(agrees(&bytes, request, &context));
        let (slowly, _) = parse_slowly(&bytes, request, &ResponseRules::lenient());
        assert_eq!(slowly, parse(&bytes, request), "{context}");
        strict_reading_agrees(&bytes, request, &context);
    }
    assert!(agreed > 5_000, "the oracle judged {agreed} of them only");
}

#[test]
fn random_bytes_never_panic() {
    let mut random = Random(SEED);
    for _ in 0..5_000 {
        let begin = random.of(&["", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\nContent-Length:"]);
        let noise = (0..random.below(64)).map(|_| u8::try_from(random.below(256)).unwrap());
        let noise: Vec<u8> = noise.collect();
        let bytes = [begin.as_bytes(), &noise].concat();
        let whole = parse(&bytes, RequestKind::Other);
        let (slowly, _) = parse_slowly(&bytes, RequestKind::Other, &ResponseRules::lenient());
        assert_eq!(slowly, whole, "{bytes:?}");
        let mut body = ResponseBody::new(Framing::Chunked, &ResponseRules::lenient());
        if let Ok(step) = body.on_bytes(&noise) {
            assert!(step.consumed <= noise.len() && step.content <= step.consumed);
        }
    }
}
