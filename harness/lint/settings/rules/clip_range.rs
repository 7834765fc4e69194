//! The clip range is out of the usual range.
//!
//! ### Fires when
//! A bound is 0 or less, or 1 or more (an error); for ratios of tokens below 0.01 or above 0.5, or
//! the upper one is below the lower one (a warning); for ratios of sequences 0.05 or more (a
//! note). Not for losses that clip otherwise.
//!
//! ### Not said
//! Which bound is best.
//!
//! ### Causes
//! - a bound for ratios of sequences was used for tokens, or the reverse
//! - 0.2 was written as 1.2 or as 0.8
//!
//! ### Next
//! - 0.2 for tokens, 0.28 above it, 3e-4 for sequences
//! - shakedown check --stage loss
//!
//! ### Source
//! PPO (arXiv 1707.06347), DAPO (arXiv 2503.14476), GSPO (arXiv 2507.18071).

use crate::report::Severity;
use crate::rules::{Firing, Head, Judgement, not_applicable};
use crate::settings::Settings;
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::number;

pub(super) const HEAD: Head<Settings> = Head {
    stage: Stage::Loss,
    needs: &["clip.low", "clip.high"],
    explains: &[],
    contracts: &[("policy-loss", &["clipped-tokens"])],
    catches: &[],
    check,
};

/// Losses whose bounds mean something else.
const OTHERS: [&str; 6] = ["cispo", "sapo", "vespo", "cov", "dppo", "gpg"];

fn check(settings: &Settings) -> Judgement {
    let kinds = [settings.text("loss.kind"), settings.text("algorithm")];
    let other = |kind: &String| OTHERS.iter().any(|other| kind.contains(other));
    if kinds.iter().flatten().any(other) {
        return Err(not_applicable("this loss does not clip ratios at 1 ± ε"));
    }
    if settings.learns_from_pairs() {
        return Err(not_applicable("losses on pairs do not clip"));
    }
    let (low, high) = (settings.need_number("clip.low")?, settings.need_number("clip.high")?);
    let level = settings.text("ratio.level").unwrap_or_default();
    let broken = |bound: f64| match bound {
        _ if bound <= 0.0 => Some((Severity::Error, 0.0)),
        _ if bound >= 1.0 => Some((Severity::Error, 1.0)),
        _ if level == "token" && bound < 0.01 => Some((Severity::Warning, 0.01)),
        _ if level == "token" && bound > 0.5 => Some((Severity::Warning, 0.5)),
        _ if level == "sequence" && bound >= 0.05 => Some((Severity::Note, 0.05)),
        _ => None,
    };
    let mut firings = Vec::new();
    for (id, bound) in [("clip.low", low), ("clip.high", high)] {
        if let Some((severity, limit)) = broken(bound) {
            let side = if id == "clip.low" { "lower" } else { "upper" };
            let of = if level.is_empty() { String::new() } else { format!(" of a {level}") };
            let found = format!("the {side} clip of ratios{of} is {}", number(bound));
            let firing = Firing::new(severity, found).field(id, "value", bound, Some(limit));
            firings.push(firing.at(settings.location(id)));
        }
    }
    if firings.is_empty() && high < low {
        let found =
            format!("the upper clip {} is below the lower one, {}", number(high), number(low));
        let firing = Firing::warning(found).field("clip.high", "value", high, Some(low));
        firings.push(firing.at(settings.location("clip.high")));
    }
    Ok(firings)
}
