//! What libyaml reads, event by event, each with its place: the one module that calls it.
//!
//! It is the parser of the YAML library itself, which keeps the places to its errors.
#![expect(unsafe_code, reason = "libyaml is C, translated to Rust as it is")]

use std::ffi::CStr;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use libyaml_rs as sys;

/// A line and a column, both counted from 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) column: usize,
}

/// One step of the parser.
pub(super) struct Event {
    pub(super) place: Place,
    pub(super) anchor: Option<String>,
    pub(super) tag: Option<String>,
    pub(super) kind: Kind,
}

pub(super) enum Kind {
    /// A document begins, or the stream of them does.
    Start,
    /// A document ends.
    End,
    /// All documents have ended.
    StreamEnd,
    /// The value that has the anchor, again.
    Alias,
    /// A text; plain is one without quotes, which may be a number.
    Scalar {
        text: String,
        plain: bool,
    },
    ListStart,
    ListEnd,
    MapStart,
    MapEnd,
}

impl Kind {
    pub(super) fn is_stream_end(&self) -> bool {
        matches!(self, Kind::StreamEnd)
    }
}

/// The events of a text.
pub(super) struct Events<'a> {
    // On the heap, as it has a pointer to itself.
    parser: Box<MaybeUninit<sys::yaml_parser_t>>,
    text: PhantomData<&'a str>,
}

impl<'a> Events<'a> {
    pub(super) fn new(text: &'a str) -> Events<'a> {
        let mut parser = Box::new(MaybeUninit::uninit());
        let pointer: *mut sys::yaml_parser_t = parser.as_mut_ptr();
        // SAFETY: `initialize` writes a whole parser, which never moves; the text outlives it.
        unsafe {
            assert!(sys::yaml_parser_initialize(pointer).ok, "libyaml has no memory");
            sys::yaml_parser_set_encoding(pointer, sys::YAML_UTF8_ENCODING);
            sys::yaml_parser_set_input_string(pointer, text.as_ptr(), text.len() as u64);
        }
        Events { parser, text: PhantomData }
    }

    /// The next event; none where the text is not YAML, and from there on.
    pub(super) fn next(&mut self) -> Option<Event> {
        let parser = self.parser.as_mut_ptr();
        let mut event = MaybeUninit::<sys::yaml_event_t>::uninit();
        // SAFETY: `new` made the parser. It writes the whole event where it says that it did, and
        // what the event owns is copied before it is deleted.
        unsafe {
            if sys::yaml_parser_parse(parser, event.as_mut_ptr()).fail {
                return None;
            }
            let read = read(event.assume_init_ref());
            sys::yaml_event_delete(event.as_mut_ptr());
            read
        }
    }
}

impl Drop for Events<'_> {
    fn drop(&mut self) {
        // SAFETY: `new` made the parser, and nothing uses it after this.
        unsafe { sys::yaml_parser_delete(self.parser.as_mut_ptr()) }
    }
}

/// An event as ours; none is what libyaml gives after an error.
///
/// # Safety
/// libyaml made it.
unsafe fn read(event: &sys::yaml_event_t) -> Option<Event> {
    let data = &event.data;
    // SAFETY: the kind of the event says which of its data there is.
    let (kind, anchor, tag) = unsafe {
        match event.type_ {
            sys::YAML_NO_EVENT => return None,
            sys::YAML_STREAM_END_EVENT => (Kind::StreamEnd, None, None),
            sys::YAML_DOCUMENT_END_EVENT => (Kind::End, None, None),
            sys::YAML_ALIAS_EVENT => (Kind::Alias, string(data.alias.anchor), None),
            sys::YAML_SCALAR_EVENT => {
                let scalar = &data.scalar;
                let bytes = std::slice::from_raw_parts(scalar.value, scalar.length as usize);
                let text = String::from_utf8_lossy(bytes).into_owned();
                let plain = scalar.style == sys::YAML_PLAIN_SCALAR_STYLE;
                (Kind::Scalar { text, plain }, string(scalar.anchor), string(scalar.tag))
            }
            sys::YAML_SEQUENCE_START_EVENT => {
                let list = &data.sequence_start;
                (Kind::ListStart, string(list.anchor), string(list.tag))
            }
            sys::YAML_SEQUENCE_END_EVENT => (Kind::ListEnd, None, None),
            sys::YAML_MAPPING_START_EVENT => {
                let map = &data.mapping_start;
                (Kind::MapStart, string(map.anchor), string(map.tag))
            }
            sys::YAML_MAPPING_END_EVENT => (Kind::MapEnd, None, None),
            _ => (Kind::Start, None, None),
        }
    };
    let mark = event.start_mark;
    let place = Place { line: mark.line as usize + 1, column: mark.column as usize + 1 };
    Some(Event { place, anchor, tag, kind })
}

/// A string that may not be there.
///
/// # Safety
/// The pointer is null, or what it points to ends with a zero.
unsafe fn string(pointer: *const u8) -> Option<String> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: as the caller says.
    let text = unsafe { CStr::from_ptr(pointer.cast()) };
    Some(text.to_string_lossy().into_owned())
}
