//! /proc/net/netstat and /proc/net/snmp: pairs of lines, names and values, each after the name of its table.

/// The value of `name` in the table `table`.
pub(crate) fn value(text: &str, table: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| {
        let (of, fields) = line.split_once(':')?;
        (of == table).then_some(fields)
    });
    let (names, values) = (lines.next()?, lines.next()?);
    let position = names.split_ascii_whitespace().position(|own| own == name)?;
    values.split_ascii_whitespace().nth(position)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
TcpExt: SyncookiesSent ListenOverflows ListenDrops
TcpExt: 0 12 15
IpExt: InNoRoutes InOctets
IpExt: 4 5
Tcp: RtoAlgorithm MaxConn OutSegs RetransSegs
Tcp: 1 -1 123456789012 34
";

    #[test]
    fn values_stand_under_their_names() {
        let check = |table, name, expected| assert_eq!(value(TEXT, table, name), expected);
        check("TcpExt", "ListenOverflows", Some(12));
        check("TcpExt", "ListenDrops", Some(15));
        check("IpExt", "InOctets", Some(5));
        check("Tcp", "OutSegs", Some(123_456_789_012));
        check("Tcp", "RetransSegs", Some(34));
        check("Tcp", "MaxConn", None);
        check("Tcp", "ListenDrops", None);
        check("Udp", "InDatagrams", None);
    }

    #[test]
    fn truncated_tables_have_no_value() {
        assert_eq!(value("Tcp: A B\nTcp: 1", "Tcp", "B"), None);
        assert_eq!(value("Tcp: A B", "Tcp", "A"), None);
        assert_eq!(value("", "Tcp", "A"), None);
    }
}
