//! HPACK (RFC 7541) beside another implementation of it, Python's.

use mill_http::h2::hpack::{Decoder, Encoder, Indexing, TABLE_BYTES};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// Python, with a decoder and an encoder of one connection.
struct Other {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Other {
    fn new() -> Self {
        let mut child = Command::new("/usr/bin/python3")
            .arg(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/tests/process/http2/header_blocks.py"
            ))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self {
            child,
            input,
            output: BufReader::new(output),
        }
    }

    fn ask(&mut self, task: &Value) -> Value {
        writeln!(self.input, "{task}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Numbers that a seed determines (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap() % bound
    }

    fn text(&mut self, len_max: usize, bytes: u8) -> Vec<u8> {
        let len = self.below(len_max);
        let first = if bytes == u8::MAX { 0 } else { b' ' };
        (0..len)
            .map(|_| first + u8::try_from(self.below(usize::from(bytes))).unwrap())
            .collect()
    }

    /// Fields of which many come again, some with any bytes at all.
    fn fields(&mut self) -> Fields {
        const NAMES: [&str; 8] = [
            ":path",
            ":status",
            "accept",
            "cookie",
            "x-one",
            "x-two",
            "x-three",
            "set-cookie",
        ];
        (0..self.below(12))
            .map(|_| {
                let name = match self.below(6) {
                    0 => self.text(40, 95),
                    _ => NAMES[self.below(NAMES.len())].as_bytes().to_vec(),
                };
                let value = match self.below(6) {
                    0 => self.text(500, u8::MAX),
                    1 | 2 => self.text(30, 95),
                    _ => format!("value-{}", self.below(20)).into_bytes(),
                };
                (name, value)
            })
            .collect()
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2);
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    pairs.map(pair).collect()
}

fn shown(fields: &Fields) -> Value {
    let pairs = fields
        .iter()
        .map(|(name, value)| json!([hex(name), hex(value)]));
    pairs.collect()
}

fn decode(decoder: &mut Decoder, block: &[u8]) -> Option<Fields> {
    let mut fields = Fields::new();
    let taken = decoder.decode(block, |name, value| {
        fields.push((name.to_vec(), value.to_vec()));
    });
    taken.is_ok().then_some(fields)
}

#[test]
fn header_blocks_mean_the_same_to_another_implementation_both_ways() {
    let seed = 7541;
    println!("seed {seed}");
    let mut numbers = Numbers(seed);
    let mut other = Other::new();
    let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(TABLE_BYTES));
    let mut blocks = Vec::new();
    for round in 0..400 {
        let fields = numbers.fields();
        let mut block = Vec::new();
        if numbers.below(10) == 0 {
            encoder.set_bytes_max(numbers.below(TABLE_BYTES + 1));
        }
        encoder.begin(&mut block);
        for (name, value) in &fields {
            let indexing = [Indexing::Kept, Indexing::NotKept, Indexing::Never][numbers.below(3)];
            encoder.field(name, value, indexing, &mut block);
        }
        let answer = other.ask(&json!({ "task": "decode", "block": hex(&block) }));
        assert_eq!(answer, shown(&fields), "block {round}: {}", hex(&block));
        blocks.push(block);

        let fields = numbers.fields();
        let marked: Vec<Value> = (fields.iter())
            .map(|(name, value)| json!([hex(name), hex(value), numbers.below(4) == 0]))
            .collect();
        let size = [TABLE_BYTES, 0, 100, 1000][numbers.below(4)];
        let huffman = numbers.below(2) == 0;
        let task = json!({ "task": "encode", "size": size, "huffman": huffman, "fields": marked });
        let block = bytes(other.ask(&task).as_str().unwrap());
        let found = decode(&mut decoder, &block);
        assert_eq!(found, Some(fields), "block {round}: {}", hex(&block));
        blocks.push(block);
    }
    // Broken ones, each on a connection of its own.
    let (mut malformed, mut different) = (0, Vec::new());
    for block in blocks.iter_mut().filter(|block| !block.is_empty()) {
        for _ in 0..3 {
            let place = numbers.below(block.len());
            block[place] ^= 1 << numbers.below(8);
        }
        let found = decode(&mut Decoder::new(TABLE_BYTES), block);
        let expected = other.ask(&json!({ "task": "decode alone", "block": hex(block) }));
        malformed += usize::from(found.is_none());
        let found = found.as_ref().map_or(Value::Null, shown);
        if found != expected {
            different.push(format!("{}\n-{expected}\n+{found}", hex(block)));
        }
    }
    assert!(malformed > 100, "{malformed}");
    assert!(
        different.is_empty(),
        "{} of {}: {}",
        different.len(),
        blocks.len(),
        different[0]
    );
}
