//! The report as HTML tables. It has fewer numbers than the text report.

use super::arguments::Html;
use super::report::Outcome;
use super::statistics::{Times, round_ms};
use std::io::{self, Write};

/// Writes the report.
pub(super) fn emit(outcome: &Outcome<'_>, html: &Html, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(&[b"\n\n<table ", &*html.table, b">\n"].concat())?;
    let mut table = Table { html, out };
    subject(outcome, &mut table)?;
    counts(outcome, &mut table)?;
    rates(outcome, &mut table)?;
    if let Some(times) = &outcome.times {
        self::times(times, outcome.rows.len() as u64, &mut table)?;
    }
    table.out.write_all(b"</table>\n")
}

/// A table in progress.
struct Table<'a> {
    html: &'a Html,
    out: &'a mut dyn Write,
}

impl Table<'_> {
    /// Two columns each for a label and its value.
    fn pair(&mut self, label: &str, value: &[u8]) -> io::Result<()> {
        let cells = "><th colspan=2 {cell}>{label}:</th><td colspan=2 {cell}>{value}</td>";
        self.row(cells, label, value)
    }

    fn number(&mut self, label: &str, value: &str) -> io::Result<()> {
        self.pair(label, value.as_bytes())
    }

    /// A value that belongs to the one above it.
    fn below(&mut self, value: &str) -> io::Result<()> {
        let cells = "><td colspan=2 {cell}>&nbsp;</td><td colspan=2 {cell}>{value}</td>";
        self.row(cells, "", value.as_bytes())
    }

    fn times(&mut self, label: &str, times: [u64; 3]) -> io::Result<()> {
        let mut cells = String::from("><th {cell}>{label}:</th>");
        for time in times {
            cells.push_str(&format!("<td {{cell}}>{time:>5}</td>"));
        }
        self.row(&cells, label, b"")
    }

    fn headings(&mut self) -> io::Result<()> {
        let title = "><th {cell} colspan=4>Connection Times (ms)</th>";
        self.row(title, "", b"")?;
        let columns = "><th {cell}>&nbsp;</th> <th {cell}>min</th>   <th {cell}>avg</th>   \
                       <th {cell}>max</th>";
        self.row(columns, "", b"")
    }

    /// A row of cells: `{cell}` stands for a cell's attributes, `{label}` and `{value}` for the texts.
    fn row(&mut self, cells: &str, label: &str, value: &[u8]) -> io::Result<()> {
        let mut line = [b"<tr ", &*self.html.row].concat();
        for piece in cells.split('{') {
            let (name, rest) = piece.split_once('}').unwrap_or(("", piece));
            line.extend_from_slice(match name {
                "cell" => &self.html.cell,
                "label" => label.as_bytes(),
                "value" => value,
                _ => b"",
            });
            line.extend_from_slice(rest.as_bytes());
        }
        line.extend_from_slice(b"</tr>\n");
        self.out.write_all(&line)
    }
}

fn subject(outcome: &Outcome<'_>, table: &mut Table<'_>) -> io::Result<()> {
    let url = &outcome.options.url;
    table.pair("Server Software", outcome.server)?;
    table.pair("Server Hostname", &url.host)?;
    table.number("Server Port", &url.port.to_string())?;
    table.pair("Document Path", &url.path)?;
    if outcome.options.any_length {
        table.number("Document Length", "Variable")
    } else {
        table.number(
            "Document Length",
            &format!("{} bytes", outcome.document_len),
        )
    }
}

fn counts(outcome: &Outcome<'_>, table: &mut Table<'_>) -> io::Result<()> {
    let (options, counts) = (outcome.options, &outcome.counts);
    let taken = format!("{:.3} seconds", outcome.seconds());
    table.number("Concurrency Level", &options.concurrency.to_string())?;
    table.number("Time taken for tests", &taken)?;
    table.number("Complete requests", &counts.done.to_string())?;
    table.number("Failed requests", &counts.failed().to_string())?;
    if counts.failed() > 0 {
        // ab's table has no column for failures to receive.
        let kinds = format!(
            "   (Connect: {}, Length: {}, Exceptions: {})",
            counts.connect, counts.length, counts.exceptions
        );
        table.row("><td colspan=4 {cell} >{value}</td>", "", kinds.as_bytes())?;
    }
    if counts.non_2xx > 0 {
        table.number("Non-2xx responses", &counts.non_2xx.to_string())?;
    }
    if options.keep_alive {
        table.number("Keep-Alive requests", &counts.kept_alive.to_string())?;
    }
    let bytes = |count: u64| format!("{count} bytes");
    table.number("Total transferred", &bytes(outcome.bytes_received))?;
    if options.body.is_some() {
        table.number("Total body sent", &outcome.bytes_sent.to_string())?;
    }
    table.number("HTML transferred", &bytes(outcome.content_bytes))
}

fn rates(outcome: &Outcome<'_>, table: &mut Table<'_>) -> io::Result<()> {
    let Some(rates) = outcome.rates() else {
        return Ok(());
    };
    let (received, sent) = (outcome.bytes_received, outcome.bytes_sent);
    let kib = |bytes, what| format!("{:.2} kb/s {what}", rates.kib_per_second(bytes));
    let per_second = format!("{:.2}", rates.per_second(outcome.counts.done));
    table.number("Requests per second", &per_second)?;
    table.number("Transfer rate", &kib(received, "received"))?;
    if outcome.options.body.is_some() {
        table.below(&kib(sent, "sent"))?;
        table.below(&kib(received + sent, "total"))?;
    }
    Ok(())
}

/// ab divides sums that it has rounded, and subtracts rounded numbers.
fn times(times: &Times, count: u64, table: &mut Table<'_>) -> io::Result<()> {
    let (connect, total) = (&times.connect, &times.total);
    let average = |sum| round_ms(sum).checked_div(count).unwrap_or(0);
    let connect = [
        round_ms(connect.min),
        average(connect.sum),
        round_ms(connect.max),
    ];
    let total = [round_ms(total.min), average(total.sum), round_ms(total.max)];
    let mut processing = total;
    for (processing, connect) in processing.iter_mut().zip(connect) {
        *processing = processing.saturating_sub(connect);
    }
    table.headings()?;
    table.times("Connect", connect)?;
    table.times("Processing", processing)?;
    table.times("Total", total)
}

#[cfg(test)]
mod tests {
    use super::super::arguments::{Options, parse};
    use super::super::recorder::{Counts, Row};
    use super::super::statistics::measure;
    use super::*;
    use core::time::Duration;

    fn options(line: &str) -> Options {
        let arguments: Vec<Vec<u8>> = line.split(' ').map(Vec::from).collect();
        *parse(&arguments, &|_| Ok(b"x".to_vec())).outcome.unwrap()
    }

    #[test]
    fn tables_are_abs_to_the_byte() {
        let options = options("-n 2 -c 2 -k -p f -x border=1 -y class=r -z c http://a/p");
        let row = |connect_us, total_us| Row {
            connect_us,
            total_us,
            ..Row::default()
        };
        let mut rows = [row(400, 1_400), row(2_000, 7_000)];
        let outcome = Outcome {
            secured: None,
            times: measure(&mut rows),
            rows: &rows,
            options: &options,
            server: b"srv/1",
            document_len: 12,
            taken: Duration::from_millis(500),
            counts: Counts {
                done: 2,
                length: 1,
                non_2xx: 1,
                kept_alive: 2,
                ..Counts::default()
            },
            bytes_received: 1024,
            content_bytes: 24,
            bytes_sent: 512,
            unserved: None,
        };
        let mut out = Vec::new();
        emit(&outcome, options.html.as_ref().unwrap(), &mut out).unwrap();
        let expected = "

<table border=1>
<tr class=r><th colspan=2 c>Server Software:</th><td colspan=2 c>srv/1</td></tr>
<tr class=r><th colspan=2 c>Server Hostname:</th><td colspan=2 c>a</td></tr>
<tr class=r><th colspan=2 c>Server Port:</th><td colspan=2 c>80</td></tr>
<tr class=r><th colspan=2 c>Document Path:</th><td colspan=2 c>/p</td></tr>
<tr class=r><th colspan=2 c>Document Length:</th><td colspan=2 c>12 bytes</td></tr>
<tr class=r><th colspan=2 c>Concurrency Level:</th><td colspan=2 c>2</td></tr>
<tr class=r><th colspan=2 c>Time taken for tests:</th><td colspan=2 c>0.500 seconds</td></tr>
<tr class=r><th colspan=2 c>Complete requests:</th><td colspan=2 c>2</td></tr>
<tr class=r><th colspan=2 c>Failed requests:</th><td colspan=2 c>1</td></tr>
<tr class=r><td colspan=4 c >   (Connect: 0, Length: 1, Exceptions: 0)</td></tr>
<tr class=r><th colspan=2 c>Non-2xx responses:</th><td colspan=2 c>1</td></tr>
<tr class=r><th colspan=2 c>Keep-Alive requests:</th><td colspan=2 c>2</td></tr>
<tr class=r><th colspan=2 c>Total transferred:</th><td colspan=2 c>1024 bytes</td></tr>
<tr class=r><th colspan=2 c>Total body sent:</th><td colspan=2 c>512</td></tr>
<tr class=r><th colspan=2 c>HTML transferred:</th><td colspan=2 c>24 bytes</td></tr>
<tr class=r><th colspan=2 c>Requests per second:</th><td colspan=2 c>4.00</td></tr>
<tr class=r><th colspan=2 c>Transfer rate:</th><td colspan=2 c>2.00 kb/s received</td></tr>
<tr class=r><td colspan=2 c>&nbsp;</td><td colspan=2 c>1.00 kb/s sent</td></tr>
<tr class=r><td colspan=2 c>&nbsp;</td><td colspan=2 c>3.00 kb/s total</td></tr>
<tr class=r><th c colspan=4>Connection Times (ms)</th></tr>
<tr class=r><th c>&nbsp;</th> <th c>min</th>   <th c>avg</th>   <th c>max</th></tr>
<tr class=r><th c>Connect:</th><td c>    0</td><td c>    1</td><td c>    2</td></tr>
<tr class=r><th c>Processing:</th><td c>    1</td><td c>    3</td><td c>    5</td></tr>
<tr class=r><th c>Total:</th><td c>    1</td><td c>    4</td><td c>    7</td></tr>
</table>
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
