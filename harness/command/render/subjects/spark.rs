//! A metric as a small picture: a band from its smallest to its largest values, a line of its
//! means, the steps at which a rule fires, and what it was held against.

use maud::{Markup, html};

use shakedown_core::value::text::{rounded, unquoted};
use shakedown_lint::report::{Figure, Metric, Of, Severity, Subject};

const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 72.0;
const MARGIN: f64 = 3.0;

/// The findings above a note that rest on a metric, each with the limits of it.
fn resting<'a>(
    subject: &'a Subject,
    id: &'a str,
) -> impl Iterator<Item = (Option<[i64; 2]>, Vec<f64>)> + 'a {
    let above = subject.findings.iter().filter(|one| one.severity > Severity::Note);
    above.filter_map(move |finding| {
        let of_it = finding.evidence.iter().filter(|one| one.of == Of::Metric(id.to_owned()));
        let of_it: Vec<_> = of_it.collect();
        // A limit on standard errors or points is none on the metric's own axis.
        let on_axis = of_it.iter().filter(|one| !["z", "tau", "n"].contains(&&*one.statistic));
        let limits = on_axis.filter_map(|one| one.limit.map(|Figure(limit)| limit)).collect();
        (!of_it.is_empty()).then_some((finding.steps, limits))
    })
}

/// Whether a finding rests on a metric.
pub(super) fn rests_on(subject: &Subject, id: &str) -> bool {
    resting(subject, id).next().is_some()
}

/// The picture of a metric, with its figures below.
pub(super) fn figure(subject: &Subject, metric: &Metric) -> Markup {
    let Metric { id, name, first, mid, last, points, nonfinite, .. } = metric;
    let [first, mid, last] = [first, mid, last].map(|Figure(x)| rounded(*x));
    html! {
        figure class="spark" {
            p {
                code { (unquoted(id)) }
                @if name != id { span class="about" { " " (unquoted(name)) } }
            }
            (picture(subject, metric))
            figcaption {
                (first) " → " (mid) " → " (last) ", " (points) " values"
                @if *nonfinite > 0 { ", " (nonfinite) " not finite" }
            }
        }
    }
}

fn picture(subject: &Subject, metric: &Metric) -> Markup {
    let rows: Vec<[f64; 4]> = metric.spark.iter().map(|row| row.map(|Figure(x)| x)).collect();
    let (Some(from), Some(to)) = (rows.first(), rows.last()) else { return html! {} };
    let resting: Vec<_> = resting(subject, &metric.id).collect();
    let x = Axis::new(from[0], to[0], MARGIN, WIDTH - MARGIN);
    let low = rows.iter().map(|row| row[1]).fold(f64::INFINITY, f64::min);
    let high = rows.iter().map(|row| row[3]).fold(f64::NEG_INFINITY, f64::max);
    let room = (high - low).max(1e-12);
    // A limit far from all values would leave nothing to see of them.
    let limits: Vec<f64> = resting.iter().flat_map(|(_, limits)| limits.iter().copied()).collect();
    let near = |limit: &&f64| **limit > low - 2.0 * room && **limit < high + 2.0 * room;
    let limits: Vec<f64> = limits.iter().filter(near).copied().collect();
    let low = limits.iter().copied().fold(low, f64::min);
    let high = limits.iter().copied().fold(high, f64::max);
    let y = Axis::new(low, high, HEIGHT - MARGIN, MARGIN);
    let band = rows.iter().map(|row| (row[0], row[3]));
    let band = band.chain(rows.iter().rev().map(|row| (row[0], row[1])));
    let line = rows.iter().map(|row| (row[0], row[2]));
    html! {
        svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img"
            aria-label={ (unquoted(&metric.id)) " over steps " (from[0]) " to " (to[0]) } {
            @for (steps, _) in &resting {
                @if let Some([first, last]) = steps {
                    @let (left, right) = (x.at(*first as f64), x.at(*last as f64));
                    rect class="firing" x=(place(left)) y="0" height=(HEIGHT)
                        width=(place((right - left).max(2.0))) {}
                }
            }
            polygon class="band" points=(points(band, &x, &y)) {}
            polyline class="mean" points=(points(line, &x, &y)) {}
            @for limit in &limits {
                @let at = place(y.at(*limit));
                line class="limit" x1="0" x2=(WIDTH) y1=(at) y2=(at) {}
            }
        }
    }
}

fn points(all: impl Iterator<Item = (f64, f64)>, x: &Axis, y: &Axis) -> String {
    let finite = all.filter(|(_, value)| value.is_finite());
    let points: Vec<String> = finite
        .map(|(step, value)| format!("{},{}", place(x.at(step)), place(y.at(value))))
        .collect();
    points.join(" ")
}

fn place(at: f64) -> String {
    format!("{at:.1}")
}

/// Values on a line of the drawing.
struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    fn new(low: f64, high: f64, from: f64, to: f64) -> Axis {
        Axis { low, high, from, to }
    }

    fn at(&self, value: f64) -> f64 {
        let share = match self.high - self.low {
            room if room > 0.0 => ((value - self.low) / room).clamp(0.0, 1.0),
            _ => 0.5,
        };
        self.from + share * (self.to - self.from)
    }
}
