//! One configuration with its requests.

/// The text between two `===`.
#[derive(Debug, Default)]
pub(crate) struct Case {
    pub(crate) title: String,
    /// The directives of the `server` block.
    pub(crate) directives: String,
    /// The other directives of the `http` block.
    pub(crate) http_directives: String,
    pub(crate) exchanges: Vec<Exchange>,
}

/// A request, and the lines of its answer and of the logs.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) request: String,
    pub(crate) answer: String,
}

impl Case {
    pub(crate) fn parse(text: &str) -> Vec<Self> {
        let mut cases: Vec<Self> = Vec::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            if let Some(title) = line.strip_prefix("=== ") {
                cases.push(Self {
                    title: String::from(title),
                    ..Self::default()
                });
                continue;
            }
            let case = cases.last_mut().expect("a title comes first");
            match line.split_at(1) {
                (">", request) => case.exchanges.push(Exchange {
                    request: String::from(request.trim_start()),
                    answer: String::new(),
                }),
                ("<" | "!" | "&", _) => {
                    let exchange = case.exchanges.last_mut().expect("a request comes first");
                    exchange.answer += &format!("{line}\n");
                }
                ("@", directive) => case.http_directives += &format!("{directive}\n"),
                _ => case.directives += &format!("{line}\n"),
            }
        }
        assert!(!cases.is_empty(), "there are cases");
        cases
    }
}
