//! Words as nginx 1.22.1 reads them (recorded from a running one).

use super::*;

fn lexer(text: &str) -> Lexer {
    let path = Some(Text::from("FILE"));
    Lexer::new(Arc::new(SourceText {
        path,
        bytes: text.as_bytes().to_vec(),
    }))
}

/// The tokens of a text: words in brackets, then what ended them.
fn tokens(text: &str) -> String {
    let mut lexer = lexer(text);
    let mut shown = String::new();
    loop {
        match lexer.next_token() {
            Ok(Token::End) => return shown,
            Ok(Token::BlockEnd) => shown.push('}'),
            Ok(Token::Statement(statement)) => {
                for word in &statement.words {
                    shown.push_str(&format!("[{}]", word.bytes.escape_ascii()));
                }
                shown.push(if statement.opens_block { '{' } else { ';' });
            }
            Err(error) => return format!("{shown}!{}:{}", error.message, error.line),
        }
    }
}

#[test]
fn words_are_read_as_nginx_reads_them() {
    let check = |word: &str, expected: &str| {
        assert_eq!(
            tokens(&format!("x {word};")),
            format!("[x][{expected}];"),
            "{word}"
        );
    };
    check(r#""a b""#, "a b");
    check(r#"'a "b" c'"#, r#"a \"b\" c"#);
    check(r#""a\"b""#, r#"a\"b"#);
    check(r#"a\"b"#, r#"a\"b"#);
    check(r"'a\'b'", r"a\'b");
    check(r"a\ b", r"a\\ b");
    check(r"a\;b", r"a\\;b");
    check(r"a\{b", r"a\\{b");
    check(r#""a\tb\nc\rd""#, r"a\tb\nc\rd");
    check(r"a\tb", r"a\tb");
    check(r"a\xb", r"a\\xb");
    check(r"a\\b", r"a\\b");
    check("a#b", "a#b");
    check(r##""#a""##, "#a");
    check("${args}x", "${args}x");
    check(r#""${args}{""#, "${args}{");
    check("a}b", "a}b");
    check(r#"a"b"#, r#"a\"b"#);
    check("a)b", "a)b");
    check("\"a\nb\"", r"a\nb");
    check(r"\#a", r"\\#a");
    check(r"\\", r"\\");
    check("''", "");
}

#[test]
fn statements_blocks_and_comments_are_distinguished() {
    let check = |text: &str, expected: &str| assert_eq!(tokens(text), expected, "{text}");
    check("", "");
    check("# only a comment", "");
    check("a;b ;c\t;\r\n", "[a];[b];[c];");
    check("a{b{c;}}", "[a]{[b]{[c];}}");
    check("a # comment ; {\n b;", "[a][b];");
    check("if ($a = \"b\"){}", "[if][($a][=][b][)]{}");
    check("x \"a\");", "[x][a][)];");
    check("x ${a{b};", "[x][${a]{[b}];");
    check(";", "!unexpected \";\":1");
    check("a }", "!unexpected \"}\":1");
    check("x \"a\"b;", "!unexpected \"b\":1");
    check(
        "a\nb",
        "!unexpected end of file, expecting \";\" or \"}\":2",
    );
    check(
        "'a\n\nb",
        "!unexpected end of file, expecting \";\" or \"}\":3",
    );
}

#[test]
fn words_know_their_place_and_statements_their_last_line() {
    let mut lexer = lexer("\n  root\n\"/a b\"\n;");
    let Ok(Token::Statement(statement)) = lexer.next_token() else {
        panic!("no statement")
    };
    assert_eq!(statement.line, 4);
    assert_eq!(statement.name().span, 3..7);
    assert_eq!(statement.arg(1).span, 8..14);
}

#[test]
fn a_word_of_4095_bytes_is_read_and_a_longer_one_refused() {
    let word = |len: usize| format!("{};", "a".repeat(len));
    assert_eq!(tokens(&word(4095)).len(), 4098);
    assert!(tokens(&word(4097)).starts_with("!too long parameter \"aaaaaaaaaa...\" started:1"));
}
