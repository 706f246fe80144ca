//! Pictures of ordinary and of impossible findings.

use super::*;
use crate::findings::{Bar, Dot, Scale, Series, Tone};
use crate::metric::Unit;
use crate::parts::assert_contains;
use crate::report::example;

/// Numbers of attributes that are coordinates.
fn coordinates(svg: &str) -> Vec<f64> {
    let mut out = Vec::new();
    for name in [
        "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "width", "height",
    ] {
        for part in svg.split(&format!(" {name}=\"")).skip(1) {
            let number = part.split('"').next().unwrap_or_default();
            out.push(number.parse().unwrap_or(f64::NAN));
        }
    }
    out
}

fn check_sound(picture: &Picture) -> String {
    let svg = draw(picture, ChartTarget::Page("picture"));
    for word in ["NaN", "inf", "Infinity"] {
        assert!(!svg.contains(&format!("\"{word}")), "{word} in {svg}");
    }
    let numbers = coordinates(&svg);
    assert!(numbers.iter().all(|number| number.is_finite()), "{svg}");
    // Nothing is drawn outside of the picture, except curves, which are clipped.
    let (width, height) = size(&svg);
    for number in numbers {
        assert!(
            (-1.0..=width.max(height) + 1.0).contains(&number),
            "{number} in {svg}"
        );
    }
    crate::report::tests::check_balanced(&svg);
    crate::report::tests::check_balanced(&draw(picture, ChartTarget::File));
    svg
}

fn size(svg: &str) -> (f64, f64) {
    let view = svg.split("viewBox=\"0 0 ").nth(1).expect("a view box");
    let mut numbers = view.split('"').next().expect("its end").split(' ');
    let mut next = || numbers.next().and_then(|number| number.parse().ok());
    (next().expect("a width"), next().expect("a height"))
}

fn scale(unit: Unit, logarithmic: bool, complement: bool) -> Scale {
    Scale {
        title: String::from("Title"),
        unit,
        logarithmic,
        complement,
    }
}

fn lines(points: &[(f64, f64)], logarithmic: bool, complement: bool) -> Picture {
    let points = points
        .iter()
        .map(|&(x, y)| Dot {
            x,
            y,
            low: Some(y - 1.0),
            high: Some(y * 2.0),
        })
        .collect();
    let series = |name: &str, points| Series {
        name: name.to_owned(),
        points,
    };
    Picture {
        title: String::from("Lines"),
        drawing: Drawing::Lines {
            x: scale(Unit::Percent, false, complement),
            y: scale(Unit::Seconds, logarithmic, false),
            series: vec![series("one", points), series("two", Vec::new())],
            curves: Vec::new(),
            shaded: vec![(0.0, 1.0), (f64::NAN, 2.0)],
        },
        caption: String::new(),
    }
}

#[test]
fn impossible_figures_draw_a_sound_picture() {
    let points: [&[(f64, f64)]; 7] = [
        &[],
        &[(0.0, 0.0)],
        &[(1.0, 5.0)],
        &[(f64::NAN, 1.0), (1.0, f64::INFINITY)],
        &[(100.0, 1.0), (100.0, -1.0)],
        &[(-1e300, 1e-300), (1e300, 1e300)],
        &[(50.0, 0.0), (99.999_999_999, 1.0)],
    ];
    for points in points {
        for (logarithmic, complement) in
            [(false, false), (true, false), (false, true), (true, true)]
        {
            check_sound(&lines(points, logarithmic, complement));
        }
    }
    let empty = check_sound(&lines(&[], false, false));
    assert!(empty.contains("no figures"), "{empty}");
}

#[test]
fn bars_and_stacks_of_anything_are_sound() {
    let bar = |value: f64| Bar {
        name: String::from("bar"),
        value,
        low: Some(value * 0.5),
        high: Some(f64::INFINITY),
        tone: Tone::Unsure,
    };
    for values in [vec![], vec![0.0], vec![f64::NAN, 1.0], vec![-5.0, 700.0]] {
        for zero in [0.0, 1.0] {
            check_sound(&Picture {
                title: String::from("Bars"),
                drawing: Drawing::Bars {
                    scale: scale(Unit::Percent, false, false),
                    zero,
                    bars: values.iter().copied().map(bar).collect(),
                },
                caption: String::new(),
            });
        }
    }
    for shares in [
        vec![],
        vec![0.0; 3],
        vec![60.0, 60.0, f64::NAN],
        vec![-1.0; 20],
    ] {
        check_sound(&Picture {
            title: String::from("Stacks"),
            drawing: Drawing::Stacks {
                parts: vec![String::from("usr"), String::from("idle")],
                bars: vec![(String::from("server"), shares)],
            },
            caption: String::new(),
        });
    }
}

#[test]
fn the_examples_are_sound() {
    let mut pictures = example::jemalloc().charts;
    pictures.extend([example::scaling(), example::bars(), example::crowded()]);
    for picture in pictures {
        check_sound(&picture);
    }
}

#[test]
fn a_value_of_a_bar_says_its_direction() {
    let svg = check_sound(&example::bars());
    for text in [">+251 %<", ">−0.4 %<", ">−12.0 %<", ">+20.0 %<"] {
        assert!(svg.contains(text), "{text} in {svg}");
    }
    // A sign for each tone, besides its colour.
    for tone in [Tone::Gain, Tone::Loss, Tone::Same, Tone::Unsure] {
        assert!(svg.contains(&format!(">{}<", tone.sign())), "{tone:?}");
    }
}

#[test]
fn many_points_make_a_small_picture() {
    let points: Vec<(f64, f64)> = (0..200_000)
        .map(f64::from)
        .map(|x| (x, 1.0 + (x / 1000.0).sin()))
        .collect();
    let svg = check_sound(&lines(&points, false, false));
    assert!(svg.len() < 60_000, "{}", svg.len());
}

#[test]
fn a_deep_profile_is_pruned_to_its_widest_frames() {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 16
    };
    let folded: Vec<(String, u64)> = (0..100_000)
        .map(|_| {
            let depth = next() % 60 + 1;
            let frames: Vec<String> = (0..depth)
                .map(|at| format!("function_{at}_{}<T as Trait>_[k]", next() % 3))
                .collect();
            (frames.join(";"), u64::from(next() % 100))
        })
        .collect();
    let svg = check_sound(&Picture {
        title: String::from("Profile"),
        drawing: Drawing::Flame { folded },
        caption: String::new(),
    });
    assert!(svg.len() < 300_000, "{}", svg.len());
    assert!(svg.matches("<rect").count() > 500, "{}", svg.len());
}

#[test]
fn a_picture_in_a_page_has_ids_of_its_own() {
    let svg = draw(&example::scaling(), ChartTarget::Page("picture-7"));
    for part in svg.split(" id=\"").skip(1) {
        assert!(part.starts_with("picture-7-"), "{part}");
    }
    assert!(!svg.contains("<style"), "the page colours it");
}

#[test]
fn a_picture_in_a_file_brings_colours_and_a_background() {
    let svg = draw(&example::scaling(), ChartTarget::File);
    assert!(svg.contains(" xmlns=\"http://www.w3.org/2000/svg\""));
    assert_contains(&svg, "<rect class=\"paper\" x=\"-14\" y=\"-14\"");
    // Every class that an element has is coloured or shaped by the file itself.
    let style = svg
        .split("<style>")
        .nth(1)
        .and_then(|part| part.split("</style>").next());
    let style = style.expect("a style sheet");
    for class in svg.split(" class=\"").skip(1) {
        for word in class.split('"').next().unwrap_or_default().split(' ') {
            assert!(style.contains(&format!(".{word}")), "{word} in {style}");
        }
    }
}
