//! What an example prints: a short table of its training, and one line of what must rise.

use tch::Tensor;

/// How many rows of the training are shown.
const ROWS: usize = 10;

/// How many bars the line has.
const BARS: usize = 60;

/// Prints ten steps, evenly spread, the last among them.
pub(crate) fn print(columns: &[&str], steps: &[Vec<f64>]) {
    print!("{:>5}", "step");
    columns.iter().for_each(|column| print!("  {column:>15}"));
    println!();
    let every = steps.len().div_ceil(ROWS).max(1);
    let shown = (0..steps.len()).filter(|step| (steps.len() - 1 - step).is_multiple_of(every));
    for step in shown {
        print!("{:>5}", step + 1);
        steps[step].iter().for_each(|number| print!("  {number:>15.4}"));
        println!();
    }
}

/// Prints the course of a number, with its first and its last.
pub(crate) fn line(name: &str, numbers: &[f64]) {
    let every = numbers.len().div_ceil(BARS).max(1);
    let shown: Vec<f64> = numbers.iter().step_by(every).copied().collect();
    let (lo, hi) = shown.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), number| {
        (lo.min(*number), hi.max(*number))
    });
    let bars: String = shown
        .iter()
        .map(|number| {
            let height = (number - lo) / (hi - lo).max(f64::MIN_POSITIVE);
            ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'][(height * 7.0).round() as usize]
        })
        .collect();
    let (first, last) = (numbers[0], numbers[numbers.len() - 1]);
    println!("\n{name} {first:.3} {bars} {last:.3}");
}

/// Prints what the policy does in the end: the probability of each token.
pub(crate) fn policy(logits: &Tensor) {
    let probs = Vec::<f32>::try_from(logits.softmax(-1, None)).expect("a vector of floats");
    let probs: Vec<String> = probs.iter().map(|prob| format!("{prob:.3}")).collect();
    println!("policy at the end: {}", probs.join(" "));
}
