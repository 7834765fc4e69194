//! The HTML report: it says all there is, loads nothing, and can be read in a browser.

use scraper::{ElementRef, Html, Selector};
use serde_json::Value;

use crate::browser::{Browser, Measured, Scheme};
use crate::folder::Folder;
use crate::report::{Component, Diagnosis, Report, check};

/// Planted bugs of three kinds (numbers, texts, relations), what is right, skipped and known, and
/// names that try to be more than names.
const MANIFEST: &str = "version: 1
python: {interpreter: no-such-python}
components:
- name: right
  contract: group-advantage
  target: builtin:group-advantage/reference
  places: [cpu/f32, cuda/f32]
- name: no-baseline
  contract: group-advantage
  target: builtin:group-advantage/fault/baseline-missing
- name: no-epsilon
  contract: group-advantage
  target: builtin:group-advantage/fault/epsilon-missing
- name: '</style><script>alert(1)</script>\u{202e}&amp;'
  contract: group-advantage
  target: builtin:group-advantage/fault/advantages-clipped
  skip: {oracle: '<img src=x onerror=alert(2)>'}
  known: {zero-sum: '<b>on purpose</b>'}
- name: marks
  contract: answer-extractor
  target: builtin:answer-extractor/fault/marks-in-the-answer
- name: prefix
  contract: reward-function
  target: builtin:reward-function/fault/prefix-is-enough
- name: raises
  contract: group-advantage
  target: builtin:group-advantage/fault/raises
- name: lost
  contract: group-advantage
  target: python:lost.py:grpo
";

/// The report of [`MANIFEST`] and its page.
fn planted() -> (Folder, Report, String) {
    let folder = Folder::new();
    folder.write("manifest.yaml", MANIFEST);
    let (ran, report) = check(&folder, &["--cases", "64", "--html", "report.html"]);
    assert_eq!((ran.code, &*ran.stderr), (2, ""), "{}", ran.stdout);
    let page = read(&folder, "report.html");
    (folder, report, page)
}

fn read(folder: &Folder, name: &str) -> String {
    std::fs::read_to_string(folder.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The page as a parser understands it, which must find no mistake.
fn parsed(page: &str) -> Html {
    let html = Html::parse_document(page);
    assert!(html.errors.is_empty(), "{:?}", html.errors);
    html
}

fn selector(css: &str) -> Selector {
    Selector::parse(css).unwrap_or_else(|error| panic!("{css}: {error}"))
}

fn all<'a>(html: &'a Html, css: &str) -> Vec<ElementRef<'a>> {
    html.select(&selector(css)).collect()
}

fn within<'a>(element: ElementRef<'a>, css: &str) -> Vec<ElementRef<'a>> {
    element.select(&selector(css)).collect()
}

/// The text as a reader sees it.
fn text(element: ElementRef<'_>) -> String {
    element.text().collect::<String>().trim().to_owned()
}

fn texts(element: ElementRef<'_>, css: &str) -> Vec<String> {
    within(element, css).into_iter().map(text).collect()
}

// ---- What it says.

#[test]
fn every_finding_has_its_claim_its_numbers_its_case_and_its_diagnosis() {
    let (_folder, report, page) = planted();
    let html = parsed(&page);
    let numbered = |number: usize, component: &'_ Component| {
        let heads = component.heads().into_iter();
        let at = |head| component.findings.iter().position(|one| std::ptr::eq(one, head)).unwrap();
        heads.map(|head| (number, at(head))).collect::<Vec<_>>()
    };
    let places = report.components.iter().enumerate().flat_map(|(at, one)| numbered(at, one));
    let places: Vec<(usize, usize)> = places.collect();
    assert!(places.len() >= 5, "only {} findings to look at", places.len());
    assert_eq!(all(&html, "section.finding").len(), places.len());
    for (number, index) in places {
        let component = &report.components[number];
        let finding = &component.findings[index];
        let section = format!("#c{number} section[aria-labelledby='c{number}-f{index}']");
        let [section] = all(&html, &section)[..] else { panic!("there is no {section}") };
        let id = &finding.invariant;
        assert_eq!(texts(section, "h4"), [id.as_str()]);
        let own = |css: &str| texts(section, &format!("section > dl > {css}"));
        assert_eq!(own("dd.claimed"), [finding.claim.replace('`', "")]);
        let first = finding.found.lines().next().unwrap();
        assert_eq!(own("dd.found p"), [first], "{id}");
        assert!(texts(section, "pre").contains(&finding.shown), "{id}: {}", finding.shown);
        let commands = own("dd > .command").join("\n");
        let file = finding.case_file.as_deref().unwrap();
        assert!(commands.contains(&format!("shakedown replay {file} --manifest ")), "{commands}");
        assert!(commands.contains(&format!("shakedown adopt {file} --why ")), "{commands}");
        let explain = format!("shakedown explain {}/{id}", component.contract);
        assert!(commands.ends_with(&explain), "{commands}");
        let headings = texts(section, "details.more h5");
        let four = ["Why it matters", "Does not hold for", "Bugs it has caught", "Example"];
        assert_eq!(headings, four);
        for (kind, mark) in [(".diff del", '-'), (".diff ins", '+')] {
            let lines = texts(section, kind);
            assert!(!lines.is_empty() && lines.iter().all(|line| line.starts_with(mark)), "{id}");
        }
        assert!(texts(section, "details.more p").iter().all(|paragraph| !paragraph.is_empty()));

        let diagnoses = within(section, "section > dl > dd.diagnosis");
        assert_eq!(diagnoses.len(), finding.diagnosis.len(), "{id}");
        for (element, diagnosis) in diagnoses.into_iter().zip(&finding.diagnosis) {
            assert_agreement_is_shown(&html, element, diagnosis);
        }
    }
}

#[test]
fn a_bug_is_one_section_in_which_the_other_invariants_can_be_opened() {
    let (_folder, report, page) = planted();
    let html = parsed(&page);
    let mut opened = 0;
    for (number, component) in report.components.iter().enumerate() {
        let heads = component.heads();
        assert_eq!(all(&html, &format!("#c{number} section.finding")).len(), heads.len());
        let folded = all(&html, &format!("#c{number} section.finding details.too"));
        let others: Vec<_> = component
            .findings
            .iter()
            .filter(|one| !heads.iter().any(|head| std::ptr::eq(*head, *one)))
            .collect();
        assert_eq!(folded.len(), others.len());
        for (details, finding) in folded.into_iter().zip(&others) {
            assert!(details.attr("open").is_none());
            assert_eq!(texts(details, "summary"), [finding.invariant.as_str()]);
            let first = finding.found.lines().next().unwrap();
            assert_eq!(texts(details, "dd.found p"), [first]);
            assert!(texts(details, "pre").contains(&finding.shown), "{}", finding.shown);
            opened += 1;
        }
        // The list of invariants leads to the bug.
        for finding in others {
            let head = heads.iter().find(|head| head.bug == finding.bug).unwrap();
            let at = component.findings.iter().position(|one| std::ptr::eq(one, *head)).unwrap();
            let rows = all(&html, &format!("#c{number} .invariants tbody tr"));
            let row = rows.into_iter().find(|row| texts(*row, "th code")[0] == finding.invariant);
            let links = within(row.unwrap(), "a");
            let target = format!("#c{number}-f{at}");
            assert!(links.iter().any(|link| link.attr("href") == Some(&target)), "{target}");
        }
        let said = text(all(&html, &format!("#c{number} > details > summary .gist"))[0]);
        let count = format!("{} finding", heads.len());
        assert!(heads.is_empty() || said.starts_with(&count), "{said}");
    }
    assert!(opened >= 5, "only {opened} to open");
}

/// A plot with two marks for each number, a table with a row for each text, or where to find them.
fn assert_agreement_is_shown(html: &Html, element: ElementRef<'_>, diagnosis: &Diagnosis) {
    let Diagnosis { fault, summary, told, points, texts: rows, by_outcomes, .. } = diagnosis;
    let words = text(element);
    let named = words.contains(fault.as_str()) || words.contains(&told.replace('`', ""));
    assert!(named && words.contains(&summary.replace('`', "")), "{words}");
    let finite = points.iter().filter(|point| point.expected.is_number()).count();
    assert_eq!(within(element, "figure > svg > circle.dot").len(), finite, "{fault}");
    assert_eq!(within(element, "figure > svg > circle.fault").len(), finite, "{fault}");
    assert_eq!(within(element, ".texts tbody tr").len(), rows.len(), "{fault}");
    if points.is_empty() && rows.is_empty() && !by_outcomes {
        let [link] = within(element, "a")[..] else { panic!("{fault}: nothing shows it") };
        let target = format!("[aria-labelledby='{}']", &link.attr("href").unwrap()[1..]);
        let [shows] = all(html, &target)[..] else { panic!("{target}") };
        assert!(!within(shows, "figure, .texts").is_empty(), "{target} does not show {fault}");
    }
}

#[test]
fn a_planted_fault_is_plotted_where_the_component_is() {
    let (_folder, report, page) = planted();
    let html = parsed(&page);
    let mut plots = 0;
    for figure in all(&html, "figure.plot") {
        let [dots, rings] = ["dot", "fault"].map(|class| {
            let marks = within(figure, &format!("figure > svg > circle.{class}"));
            let places = marks.iter().map(|mark| [mark.attr("cx"), mark.attr("cy")]);
            places.collect::<Vec<_>>()
        });
        // Some rings are elsewhere only where the component has a second fault.
        let same = dots.iter().zip(&rings).filter(|(dot, ring)| dot == ring).count();
        assert!(2 * same > dots.len(), "{same} of {} in {}", dots.len(), text(figure));
        let heights: std::collections::BTreeSet<_> = dots.iter().map(|[_, y]| y).collect();
        // Few dots lie in few heights.
        if dots.len() > 20 {
            assert!(heights.len() > 5, "all dots lie in {heights:?}");
            plots += 1;
        }
    }
    assert!(plots >= 3, "{plots} plots");
    let marks = report.component("marks").findings.iter().flat_map(|one| &one.diagnosis);
    let rows: Vec<_> = marks.flat_map(|one| &one.texts).collect();
    assert!(!rows.is_empty() && rows.iter().all(|row| row.component == row.fault), "{rows:?}");
}

#[test]
fn the_smallest_case_is_a_table_of_its_fields() {
    let (_folder, _, page) = planted();
    let html = parsed(&page);
    let table = |within_it: &str| {
        let rows = within(all(&html, &format!("{within_it} table.case"))[0], "tr").into_iter();
        rows.map(|row| texts(row, "th, td")).collect::<Vec<_>>()
    };
    let no_epsilon = [
        ["", "0", "1"],
        ["rewards", "0", "1"],
        ["groups", "0", "0"],
        ["component advantages", "-0.70710677", "0.70710677"],
        ["expected advantages", "-0.707007", "0.707007"],
    ];
    assert_eq!(table("#c3"), no_epsilon);
    let not_finite = [
        ["", "0", "1"],
        ["rewards", "0", "0"],
        ["groups", "0", "0"],
        ["component advantages", "NaN", "NaN"],
        ["expected advantages", "0", "0"],
    ];
    assert_eq!(table("#c3 details.too"), not_finite);
    let raises = table("#c7").into_iter().find(|row| row[0] == "component");
    assert_eq!(raises.expect("it says that there is no answer")[1], "no answer");
}

#[test]
fn the_stages_stand_in_order_and_every_link_has_its_target() {
    let (_folder, report, page) = planted();
    let html = parsed(&page);
    let stages: Vec<String> = all(&html, ".pipeline > li").into_iter().map(text).collect();
    let names = [
        "data",
        "reward",
        "decoding",
        "advantage",
        "log-probability",
        "loss",
        "update",
        "step",
        "metrics",
    ];
    assert_eq!(stages.len(), names.len());
    for (stage, name) in stages.iter().zip(names) {
        let covered = report.components.iter().any(|component| component.stage == name);
        assert!(stage.trim_start_matches(['✗', '✓', '–', ' ']).starts_with(name), "{stage}");
        assert_eq!(stage.ends_with("not covered"), !covered, "{stage}");
    }
    assert_eq!(all(&html, ".pipeline ul a").len(), report.components.len());
    assert_eq!(all(&html, "article").len(), report.components.len());
    let links = all(&html, "a");
    for link in &links {
        let target = link.attr("href").unwrap().strip_prefix('#').expect("links stay in the page");
        assert_eq!(all(&html, &format!("[id='{target}']")).len(), 1, "{target}");
    }
}

#[test]
fn every_invariant_says_what_came_of_it() {
    let (_folder, report, page) = planted();
    let html = parsed(&page);
    for (number, component) in report.components.iter().enumerate() {
        let rows = all(&html, &format!("#c{number} .invariants tbody tr"));
        assert_eq!(rows.len(), component.invariants.len());
        for (row, invariant) in rows.into_iter().zip(&component.invariants) {
            assert_eq!(texts(row, "th code")[0], invariant.id);
            let came = text(within(row, "td")[0]);
            let reason = invariant.reason.clone().unwrap_or_default();
            assert!(came.ends_with(&reason), "{came}: {reason}");
            let cases = format!(" {} case", invariant.cases);
            assert_eq!(came.contains(&cases), invariant.cases > 0, "{came}");
        }
        if let Some(reason) = &component.reason {
            assert_eq!(texts(all(&html, &format!("#c{number}"))[0], ".reason"), [reason.as_str()]);
        }
    }
}

#[test]
fn a_class_that_was_never_reached_is_a_warning() {
    let (folder, report, _) = planted();
    let class = report.component("right").classes.keys().next().unwrap();
    let mut json: Value = serde_json::from_str(&read(&folder, "report.json")).unwrap();
    let right = &mut json["components"][0];
    right["classes"][class] = 0.into();
    right["warnings"] = vec![format!("no case of the class `{class}` was generated")].into();
    folder.write("edited.json", json.to_string());
    folder.run(&["merge-reports", "edited.json", "--html", "edited.html"]);
    let html = parsed(&read(&folder, "edited.html"));
    let [row] = all(&html, "#c0 .classes tr.warn")[..] else { panic!("no class warns") };
    assert_eq!(texts(row, "code"), [class.as_str()]);
    assert_eq!(texts(row, ".status"), ["never reached"]);
    let warning = format!("warning no case of the class {class} was generated");
    assert_eq!(texts(all(&html, "#c0")[0], ".warnings li"), [warning]);
    let [details] = all(&html, "#c0 details.more:has(.classes)")[..] else { panic!("no classes") };
    assert!(details.attr("open").is_some(), "the warning is folded away");
    let reached = all(&html, "#c0 .classes tbody tr:not(.warn):has(svg.bar)");
    let counts = report.component("right").classes.values().skip(1).filter(|count| **count > 0);
    assert_eq!(reached.len(), counts.count());
}

#[test]
fn what_passes_is_folded_and_the_verdict_says_so() {
    let folder = Folder::new();
    let right = "{name: right, contract: returns, target: builtin:returns/reference}";
    folder.write("manifest.yaml", format!("version: 1\ncomponents: [{right}]\n"));
    check(&folder, &["--cases", "8", "--html", "report.html"]);
    let html = parsed(&read(&folder, "report.html"));
    assert_eq!(all(&html, "h1").into_iter().map(text).collect::<Vec<_>>(), ["✓ Everything holds"]);
    assert!(all(&html, "article > details[open]").is_empty());
    assert!(all(&html, ".finding").is_empty());
}

// ---- What it does not do.

#[test]
fn nothing_is_loaded_and_nothing_runs() {
    let (_folder, _, page) = planted();
    let html = parsed(&page);
    let active = "script, link, img, iframe, object, embed, video, audio, source, base, form, use";
    assert!(all(&html, active).is_empty());
    for element in all(&html, "*") {
        for (name, value) in element.value().attrs() {
            let loads = ["src", "srcset", "data", "poster", "style", "action"].contains(&name);
            assert!(!loads && !name.starts_with("on"), "{name}={value:?}");
        }
    }
    let [style] = all(&html, "style")[..] else { panic!("one style is expected") };
    let style = style.text().collect::<String>();
    for loads in ["url(", "@import", "@font-face", "http", "image-set"] {
        assert!(!style.contains(loads), "the style has {loads}");
    }
    let policy = all(&html, "meta[http-equiv='Content-Security-Policy']");
    let policy = policy[0].attr("content").unwrap();
    assert!(policy.starts_with("default-src 'none'; style-src 'unsafe-inline';"), "{policy}");
}

#[test]
fn hostile_names_stay_names() {
    let (_folder, report, page) = planted();
    let html = parsed(&page);
    let hostile = &report.components[4];
    assert!(hostile.name.contains("<script>") && hostile.name.contains('\u{202e}'));
    let seen = "✗ </style><script>alert(1)</script>\\u{202e}&amp; cpu/f32";
    assert_eq!(text(all(&html, "#c4 h3")[0]), seen);
    let notes = texts(all(&html, "#c4")[0], ".invariants td .claim");
    for note in ["<img src=x onerror=alert(2)>", "<b>on purpose</b>"] {
        assert!(notes.iter().any(|one| one == note), "{note} is not in {notes:?}");
    }
    assert!(!page.contains('\u{202e}'), "an invisible character is in the page");
}

#[test]
fn the_page_of_a_merged_report_is_the_same() {
    let (folder, _, page) = planted();
    folder.run(&["merge-reports", "report.json", "--html", "merged.html"]);
    assert_eq!(read(&folder, "merged.html"), page);
}

#[test]
fn the_same_run_gives_the_same_page_but_for_times() {
    let (_first, _, one) = planted();
    let (_second, _, other) = planted();
    let timeless = |page: &str| {
        let mut parts = page.split("class=\"time\">");
        let mut text = parts.next().unwrap().to_owned();
        parts.for_each(|part| text.push_str(&part[part.find('<').unwrap()..]));
        text
    };
    assert_eq!(timeless(&one), timeless(&other));
    assert_ne!(timeless(&one), one, "there are times to leave out");
}

// ---- In a browser.

#[test]
fn it_is_light_or_dark_as_the_reader_likes() {
    let Some(browser) = Browser::find() else { return };
    let (folder, ..) = planted();
    let page = folder.path("report.html");
    let [light, dark] =
        [Scheme::Light, Scheme::Dark].map(|scheme| browser.picture(&page, scheme, 1200, 900));
    assert!(light.background() > 0.9, "light has a background of {}", light.background());
    assert!(dark.background() < 0.1, "dark has a background of {}", dark.background());
    for picture in [light, dark] {
        let drawn = picture.drawn();
        assert!((0.01..0.5).contains(&drawn), "{drawn} of the page is drawn on");
    }
}

#[test]
fn it_can_be_read_on_a_narrow_screen_in_both_schemes() {
    let Some(browser) = Browser::find() else { return };
    let (folder, ..) = planted();
    for scheme in [Scheme::Light, Scheme::Dark] {
        for width in [360, 800, 1200] {
            let measured = browser.measure(&folder, "report.html", scheme, width);
            assert_eq!((measured.width, measured.is_dark), (width, scheme == Scheme::Dark));
            assert!(measured.scroll_width <= width, "{scheme:?}: {measured:?}");
            assert!(measured.boxes >= 12, "{scheme:?}: {measured:?}");
            assert!(measured.scrolling > 0 || width > 360, "{scheme:?}: {measured:?}");
            assert!(measured.texts > 500, "{scheme:?}: {measured:?}");
            // WCAG AA for text that is not large.
            let Measured { contrast, faintest, .. } = &measured;
            assert!(*contrast >= 4.5, "{scheme:?}: {faintest:?} has a contrast of {contrast}");
        }
    }
}
