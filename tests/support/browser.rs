//! A headless browser: pictures of a page, and what the page measures.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::folder::Folder;

/// Chromium, or Chrome.
pub(crate) struct Browser(PathBuf);

/// Which colours the reader likes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scheme {
    Dark,
    Light,
}

/// A picture in pixels of red, green and blue.
pub(crate) struct Picture {
    pixels: Vec<u8>,
}

/// What a page measures with everything unfolded.
#[derive(Debug, Deserialize)]
pub(crate) struct Measured {
    /// Whether the page was asked for dark colours.
    pub(crate) is_dark: bool,
    /// The width of the window.
    pub(crate) width: u32,
    /// How wide the page would have to be.
    pub(crate) scroll_width: u32,
    /// Boxes that may scroll by themselves, and how many of them do.
    pub(crate) boxes: u32,
    pub(crate) scrolling: u32,
    /// Pieces of text that are shown, and the least contrast of one with what is behind it.
    pub(crate) texts: u32,
    pub(crate) contrast: f64,
    /// The text that has it.
    pub(crate) faintest: String,
}

/// A page that shows another one, which itself runs no script, and writes down what that measures.
const MEASURE: &str = include_str!("measure.html");

impl Browser {
    /// The first that is in `PATH`; says what is left out where there is none.
    pub(crate) fn find() -> Option<Browser> {
        let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&path)
            .flat_map(|folder| names.map(|name| folder.join(name)))
            .find(|path| path.is_file());
        if found.is_none() {
            println!("left out: no chromium");
        }
        found.map(Browser)
    }

    /// What of a page fits into a window.
    pub(crate) fn picture(&self, page: &Path, scheme: Scheme, width: u32, height: u32) -> Picture {
        let folder = Folder::new();
        let file = folder.path("picture.png");
        let size = format!("--window-size={width},{height}");
        let shot = format!("--screenshot={}", file.display());
        let address = format!("file://{}", page.display());
        self.run(scheme, &["--hide-scrollbars", &size, &shot, &address]);
        let file = std::fs::File::open(file).expect("the browser took a picture");
        let mut reader = png::Decoder::new(std::io::BufReader::new(file)).read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().expect("the picture is small")];
        let info = reader.next_frame(&mut bytes).unwrap();
        let channels = info.color_type.samples();
        assert!(channels >= 3 && info.bit_depth == png::BitDepth::Eight, "{info:?}");
        let pixels = bytes.chunks_exact(channels).flat_map(|pixel| pixel[..3].to_vec());
        Picture { pixels: pixels.collect() }
    }

    /// What the page of a file in a folder measures in a window of a width.
    pub(crate) fn measure(
        &self,
        folder: &Folder,
        page: &str,
        scheme: Scheme,
        width: u32,
    ) -> Measured {
        let text = MEASURE.replace("PAGE", page).replace("WIDTH", &width.to_string());
        folder.write("measure.html", text);
        let address = format!("file://{}", folder.path("measure.html").display());
        // The page that measures reads into the other one, which is a file as well.
        let arguments =
            ["--hide-scrollbars", "--allow-file-access-from-files", "--dump-dom", &address];
        let dom = self.run(scheme, &arguments);
        let (_, rest) = dom.split_once("<output>").unwrap_or_else(|| panic!("no output: {dom}"));
        let (json, _) = rest.split_once("</output>").expect("the output ends");
        let json = json.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
        serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error} in {json}"))
    }

    /// Runs the browser to its end; its standard output.
    fn run(&self, scheme: Scheme, arguments: &[&str]) -> String {
        let home = Folder::new();
        let home = format!("--user-data-dir={}", home.path("profile").display());
        let scheme = format!("--blink-settings=preferredColorScheme={}", scheme as u8);
        let output = Command::new(&self.0)
            .args(["--headless", "--no-sandbox", "--disable-gpu", &home, &scheme])
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .expect("the browser starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Picture {
    /// How light the most frequent pixel is: 0 is black, 1 is white.
    pub(crate) fn background(&self) -> f64 {
        let pixel = self.most_frequent();
        pixel.iter().map(|part| f64::from(*part)).sum::<f64>() / (3.0 * 255.0)
    }

    /// The share of pixels that are clearly other than the background.
    pub(crate) fn drawn(&self) -> f64 {
        let background = self.most_frequent();
        let other = |pixel: &&[u8]| pixel.iter().zip(background).any(|(a, b)| a.abs_diff(b) > 64);
        let other = self.pixels.chunks_exact(3).filter(other).count();
        other as f64 / (self.pixels.len() / 3) as f64
    }

    fn most_frequent(&self) -> [u8; 3] {
        let mut counts = std::collections::BTreeMap::<[u8; 3], u32>::new();
        for pixel in self.pixels.chunks_exact(3) {
            *counts.entry([pixel[0], pixel[1], pixel[2]]).or_default() += 1;
        }
        counts.into_iter().max_by_key(|(_, count)| *count).expect("a picture has pixels").0
    }
}
