//! Classes of a picture's elements, and their colours.
//!
//! In a page text and axes take the page's colour, and series have a colour for light and one for dark. A picture in a file can't know
//! what is around it, so it brings a light background.

/// Colours of series on light and on dark. Neighbours differ in hue and in lightness, so that they stay distinct also
/// for readers with red-green colour blindness (the first six are Okabe and Ito's order and hues,
/// <https://jfly.uni-koeln.de/color/>, darkened until each has a contrast of 3 : 1 on white, and lightened for dark).
const SERIES: [(&str, &str); 8] = [
    ("#0072b2", "#5ab4ec"),
    ("#d55e00", "#ff8f4f"),
    ("#00815e", "#2fcf9f"),
    ("#b8528e", "#ec97c8"),
    ("#8f7000", "#e8c63f"),
    ("#3a3f9e", "#a9adff"),
    ("#7a4a2b", "#d9a67c"),
    ("#5f6368", "#b8bdc3"),
];

/// Colours by the number of a series; further ones begin again, with other marks.
pub(super) const SERIES_COUNT: usize = SERIES.len();

/// Class, fill on light, fill on dark: bars by tone, and parts of a stack by their meaning.
const FILLS: [(&str, &str, &str); 5] = [
    ("gain", "#00815e", "#2fcf9f"),
    ("loss", "#d55e00", "#ff8f4f"),
    ("same", "#868d95", "#8f979f"),
    ("unsure", "#c9a227", "#b8942a"),
    ("plain", "#0072b2", "#5ab4ec"),
];

/// Parts of a stack: fills pale enough for dark letters on them.
const PARTS: [&str; 8] = [
    "#7cc0ee", "#ffb27d", "#8fdcc0", "#e6b3d3", "#f0dc82", "#b9bcf5", "#d8b89c", "#c5cad0",
];
pub(super) const PARTS_COUNT: usize = PARTS.len();

/// Frames of a flame graph, three shades each so that neighbours are distinct: user code warm, kernel cool.
const FRAMES: [(&str, &str); 6] = [
    ("u0", "#ffc27d"),
    ("u1", "#ffb163"),
    ("u2", "#ffd199"),
    ("k0", "#9ccbf0"),
    ("k1", "#86bce8"),
    ("k2", "#b4d9f5"),
];

/// Shades of each kind of frame.
pub(super) const SHADES: usize = 3;

/// What both have: sizes, widths of lines, anchors.
const SHAPE: &str = "\
.chart text{font:13px system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',sans-serif;fill:currentColor;font-variant-numeric:tabular-nums}\
.chart .tm{text-anchor:middle}.chart .te{text-anchor:end}\
.chart .small{font-size:12px;opacity:.8}.chart .axis-title{font-size:13px;font-weight:600}\
.chart .axis{stroke:currentColor;stroke-width:1;opacity:.7}.chart .grid{stroke:currentColor;stroke-width:1;opacity:.13}\
.chart .zero{stroke:currentColor;stroke-width:1.5}.chart .shade{fill:currentColor;opacity:.09}\
.chart .leader{stroke:currentColor;stroke-width:1;opacity:.4;fill:none}\
.chart .series{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}.chart .thin{stroke-width:1.4;stroke-dasharray:1.5 3}\
.chart .dashed{stroke-dasharray:7 5}.chart .whisker{fill:none;stroke-width:1.4}\
.chart .ideal{fill:none;stroke:currentColor;stroke-width:1.5;stroke-dasharray:7 5;opacity:.6}\
.chart .plainwhisker{stroke:currentColor;stroke-width:1.5}\
.chart .hollow{fill-opacity:.35}\
.chart .onpart{fill:#15181c}.chart .frame text,.chart text.onframe{font-size:11px;fill:#15181c}";

/// The style sheet for pictures within a page.
pub(in crate::report) fn page_style() -> String {
    let mut out =
        String::from(".chart{display:block;max-width:100%;height:auto;min-width:34rem}\n");
    out.push_str(SHAPE);
    out.push('\n');
    out.push_str(&fixed());
    out.push('\n');
    out.push_str(&colours(false));
    out.push_str("\n@media (prefers-color-scheme:dark){");
    out.push_str(&colours(true));
    // Print is always on white.
    out.push_str("}\n@media print{.chart{min-width:0}");
    out.push_str(&colours(false));
    out.push_str("}\n");
    out
}

/// The style sheet within a file.
pub(super) fn file_style() -> String {
    format!(
        ".chart{{color:#1b1f24}}.chart .paper{{fill:#ffffff}}{SHAPE}{}{}",
        fixed(),
        colours(false)
    )
}

fn colours(dark: bool) -> String {
    let mut out = String::new();
    for (index, (light_colour, dark_colour)) in SERIES.iter().enumerate() {
        let colour = if dark { dark_colour } else { light_colour };
        out.push_str(&format!(
            ".chart .s{index}{{stroke:{colour}}}.chart .m{index}{{fill:{colour}}}"
        ));
    }
    for (class, light_colour, dark_colour) in FILLS {
        let colour = if dark { dark_colour } else { light_colour };
        out.push_str(&format!(".chart .b-{class}{{fill:{colour}}}"));
    }
    out
}

/// Fills that carry dark letters are the same on light and dark.
fn fixed() -> String {
    let mut out = String::new();
    for (index, fill) in PARTS.iter().enumerate() {
        out.push_str(&format!(".chart .p{index}{{fill:{fill}}}"));
    }
    out.push_str(".chart .idle{fill:#e9ebee}");
    for (class, fill) in FRAMES {
        out.push_str(&format!(".chart .{class}{{fill:{fill}}}"));
    }
    out
}
