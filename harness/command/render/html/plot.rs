//! How a component and a fault agree: a plot of numbers, or a table of texts.

use maud::{Markup, html};

use super::words;
use shakedown_core::value::text::{quoted_or_null, rounded, unquoted};
use shakedown_engine::report::{Diagnosis, Point, Real};

/// The plot in units of the drawing.
const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 200.0;
const LEFT: f64 = 50.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 18.0;
const BOTTOM: f64 = 34.0;

/// Where NaN and infinities are drawn, and where the frame then begins.
const STRANGE: f64 = 22.0;
const BELOW_STRANGE: f64 = 34.0;

/// Numbers that are drawn nearer to each other than this are the same to the eye.
const ONE: f64 = 1.0;

/// Where the largest magnitude is so many times the median one, large numbers are drawn closer.
const WIDE: f64 = 40.0;

/// Over what the definition gives stands what the component gives, as dots, and what the fault
/// gives, as rings. Where a ring is around a dot the two agree; right numbers are on the diagonal.
pub(super) fn numbers(diagnosis: &Diagnosis) -> Markup {
    let points: Vec<[f64; 3]> = diagnosis
        .points
        .iter()
        .map(|Point { expected, component, fault }| [expected, component, fault].map(|Real(x)| *x))
        .filter(|[expected, ..]| expected.is_finite())
        .collect();
    if points.is_empty() {
        return html! {};
    }
    let scale = Scale::of(points.as_flattened());
    let x = Axis::new(scale, points.iter().map(|[expected, ..]| *expected), LEFT, WIDTH - RIGHT);
    let given = || points.iter().flat_map(|[_, component, fault]| [*component, *fault]);
    let top = if given().all(f64::is_finite) { TOP } else { BELOW_STRANGE };
    let y = Axis::new(scale, given(), HEIGHT - BOTTOM, top);
    let agree = points.iter().filter(|[_, component, fault]| y.is_one(*component, *fault)).count();
    let all = points.len();
    html! {
        figure class="plot" {
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img"
                aria-label={
                    "On " (agree) " of " (all) " numbers shown, the component and the fault "
                    (unquoted(&diagnosis.fault)) " give the same"
                } {
                (frame(&x, &y))
                @for [expected, _, fault] in &points {
                    (mark("fault", 4.6, &x, &y, *expected, *fault))
                }
                @for [expected, component, _] in &points {
                    (mark("dot", 2.4, &x, &y, *expected, *component))
                }
            }
            figcaption {
                span class="key" {
                    (key(html! { circle class="dot" cx="7" cy="7" r="2.8" {} }))
                    "component"
                }
                span class="key" {
                    (key(html! { circle class="fault" cx="7" cy="7" r="5" {} }))
                    code { (unquoted(&diagnosis.fault)) }
                }
                span class="key" {
                    (key(html! { line class="right" x1="1" y1="13" x2="13" y2="1" {} }))
                    "right"
                }
                span {
                    "the same in " (agree) " of " (all) " numbers"
                    @if scale.is_wide() { ", large ones drawn closer together" }
                }
            }
        }
    }
}

fn key(mark: Markup) -> Markup {
    html! {
        svg class="key" viewBox="0 0 14 14" width="14" height="14" aria-hidden="true" { (mark) }
    }
}

/// The axes with their numbers, and the diagonal of what is right.
fn frame(x: &Axis, y: &Axis) -> Markup {
    let [left, right, top, bottom] = [LEFT, WIDTH - RIGHT, y.to, HEIGHT - BOTTOM].map(place);
    let low = x.low.max(y.low);
    let high = x.high.min(y.high);
    html! {
        rect class="frame" x=(left) y=(top) width=(place(WIDTH - RIGHT - LEFT))
            height=(place(HEIGHT - BOTTOM - y.to)) {}
        @for value in x.ticks() {
            @let at = place(x.at(value));
            line class="tick" x1=(at) y1=(bottom) x2=(at) y2=(top) {}
            text x=(at) y=(place(HEIGHT - BOTTOM + 13.0)) text-anchor=(anchor(x, value)) {
                (short(value))
            }
        }
        @for value in y.ticks() {
            @let at = place(y.at(value));
            line class="tick" x1=(left) y1=(at) x2=(right) y2=(at) {}
            text x=(place(LEFT - 4.0)) y=(place(y.at(value) + 3.0)) text-anchor="end" {
                (short(value))
            }
        }
        @if low < high {
            line class="right" x1=(place(x.along(low))) y1=(place(y.along(low)))
                x2=(place(x.along(high))) y2=(place(y.along(high))) {}
        }
        text class="title" x=(right) y=(place(HEIGHT - 6.0)) text-anchor="end" { "expected" }
        text class="title" x="2" y="10" { "given" }
        @if y.to == BELOW_STRANGE {
            text x=(place(LEFT - 4.0)) y=(place(STRANGE + 3.0)) text-anchor="end" { "NaN, ±∞" }
        }
    }
}

fn anchor(axis: &Axis, value: f64) -> &'static str {
    let at = axis.at(value);
    match () {
        () if at - LEFT < 12.0 => "start",
        () if WIDTH - RIGHT - at < 12.0 => "end",
        () => "middle",
    }
}

fn mark(class: &str, radius: f64, x: &Axis, y: &Axis, expected: f64, given: f64) -> Markup {
    let high = if given.is_finite() { y.at(given) } else { STRANGE };
    html! { circle class=(class) cx=(place(x.at(expected))) cy=(place(high)) r=(radius) {} }
}

/// A number in three digits, for an axis.
fn short(x: f64) -> String {
    let digits: f64 = format!("{x:.2e}").parse().expect("a formatted number can be read");
    rounded(digits)
}

fn place(at: f64) -> String {
    format!("{at:.1}")
}

/// How numbers become lengths: as they are, or with large ones closer together.
#[derive(Clone, Copy)]
struct Scale {
    /// The magnitude up to which numbers are drawn as they are; infinite for all.
    linear: f64,
}

impl Scale {
    fn of(numbers: &[f64]) -> Scale {
        let finite = numbers.iter().filter(|x| x.is_finite() && **x != 0.0);
        let mut sizes: Vec<f64> = finite.map(|x| x.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let largest = sizes.last().copied().unwrap_or(1.0);
        let median = sizes.get(sizes.len() / 2).copied().unwrap_or(1.0);
        Scale { linear: if largest > WIDE * median { median } else { f64::INFINITY } }
    }

    fn is_wide(self) -> bool {
        self.linear.is_finite()
    }

    fn length(self, x: f64) -> f64 {
        if self.is_wide() { (x / self.linear).asinh() } else { x }
    }
}

/// One axis: lengths from `low` to `high` are drawn from one place to another.
struct Axis {
    scale: Scale,
    numbers: [f64; 2],
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    fn new(scale: Scale, numbers: impl Iterator<Item = f64>, from: f64, to: f64) -> Axis {
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        for x in numbers.filter(|x| x.is_finite()) {
            (least, most) = (least.min(x), most.max(x));
        }
        if least > most {
            (least, most) = (0.0, 0.0);
        }
        let [mut low, mut high] = [least, most].map(|x| scale.length(x));
        let margin = if high > low { 0.05 * (high - low) } else { 0.5 * high.abs().max(1.0) };
        (low, high) = (low - margin, high + margin);
        Axis { scale, numbers: [least, most], low, high, from, to }
    }

    /// Where a length is drawn.
    fn along(&self, length: f64) -> f64 {
        self.from + (self.to - self.from) * (length - self.low) / (self.high - self.low)
    }

    /// Where a number is drawn.
    fn at(&self, x: f64) -> f64 {
        self.along(self.scale.length(x))
    }

    /// Whether two numbers are drawn as one.
    fn is_one(&self, a: f64, b: f64) -> bool {
        match (a.is_finite(), b.is_finite()) {
            (true, true) => (self.at(a) - self.at(b)).abs() < ONE,
            _ => a == b || (a.is_nan() && b.is_nan()),
        }
    }

    /// The least and the largest number, and 0 where it is well between them.
    fn ticks(&self) -> Vec<f64> {
        let [least, most] = self.numbers;
        let mut ticks = vec![least];
        let far = |other: f64| (self.at(0.0) - self.at(other)).abs() > 24.0;
        if least < 0.0 && most > 0.0 && far(least) && far(most) {
            ticks.push(0.0);
        }
        if most > least {
            ticks.push(most);
        }
        ticks
    }
}

/// What the definition, the component and the fault make of some texts.
pub(super) fn texts(diagnosis: &Diagnosis) -> Markup {
    let fault = std::slice::from_ref(&diagnosis.fault);
    let shown = |text: &Option<String>| quoted_or_null(text.as_deref());
    html! {
        @if !diagnosis.texts.is_empty() {
            div class="wide" role="region" aria-label="Texts compared" tabindex="0" {
                table class="texts" {
                    thead {
                        tr {
                            th scope="col" { "expected" }
                            th scope="col" { "component" }
                            th scope="col" { (words::names(fault)) }
                        }
                    }
                    tbody {
                        @for Point { expected, component, fault } in &diagnosis.texts {
                            tr {
                                td { (shown(expected)) }
                                td { (shown(component)) }
                                td { (shown(fault)) }
                            }
                        }
                    }
                }
            }
        }
    }
}
