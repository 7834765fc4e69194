//! The nodes of a document: what stands where, and in what.

use std::collections::HashMap;

use super::events::{Event, Events, Kind, Place};

/// All nodes of a document.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    pub(super) root: usize,
    /// As many aliases may be followed in one reading.
    pub(super) most_jumps: usize,
}

impl Tree {
    /// The tree of a text, and whether that is one whole document.
    pub(super) fn new(text: &str) -> (Tree, bool) {
        let mut tree = Growing::default();
        let whole = tree.grow(&mut Events::new(text));
        let Growing { nodes, root, events, .. } = tree;
        let root = root.expect("a tree has a root");
        (Tree { nodes, root, most_jumps: events * JUMPS_PER_EVENT }, whole)
    }
}

/// A value or a key of a document.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) tag: Option<String>,
    pub(super) value: Value,
}

#[derive(Debug)]
pub(super) enum Value {
    /// Nothing at all, in a text without a document.
    Nothing,
    /// From here on the text is not YAML.
    Cut,
    Scalar {
        text: String,
        plain: bool,
    },
    List(Vec<usize>),
    /// Keys and values in turn.
    Map(Vec<usize>),
    /// The node that has the anchor.
    Alias(usize),
}

/// What the YAML library takes.
const JUMPS_PER_EVENT: usize = 100;

/// A tree that grows.
#[derive(Default)]
struct Growing {
    nodes: Vec<Node>,
    root: Option<usize>,
    open: Vec<usize>,
    anchors: HashMap<String, usize>,
    events: usize,
}

impl Growing {
    /// Takes all events of the first document. Whether it is whole, and the only one.
    fn grow(&mut self, events: &mut Events<'_>) -> bool {
        loop {
            let Some(event) = events.next() else { return self.cut() };
            self.events += 1;
            match event.kind {
                Kind::Start => {}
                Kind::End => return events.next().is_some_and(|event| event.kind.is_stream_end()),
                Kind::StreamEnd => {
                    self.add(event.place, None, None, Value::Nothing);
                    return true;
                }
                Kind::ListEnd | Kind::MapEnd => drop(self.open.pop()),
                _ => {
                    if !self.take(event) {
                        return self.cut();
                    }
                }
            }
        }
    }

    /// Takes a value or its beginning; not an alias of nothing.
    fn take(&mut self, event: Event) -> bool {
        let Event { place, anchor, tag, kind } = event;
        let (value, opens) = match kind {
            Kind::Alias => {
                let known = anchor.and_then(|anchor| self.anchors.get(&anchor));
                let Some(node) = known.copied() else { return false };
                self.add(place, None, None, Value::Alias(node));
                return true;
            }
            Kind::Scalar { text, plain } => (Value::Scalar { text, plain }, false),
            Kind::ListStart => (Value::List(Vec::new()), true),
            _ => (Value::Map(Vec::new()), true),
        };
        let node = self.add(place, anchor, tag, value);
        if opens {
            self.open.push(node);
        }
        true
    }

    fn add(
        &mut self,
        place: Place,
        anchor: Option<String>,
        tag: Option<String>,
        value: Value,
    ) -> usize {
        let node = self.nodes.len();
        self.nodes.push(Node { place, tag, value });
        if let Some(anchor) = anchor {
            self.anchors.insert(anchor, node);
        }
        match self.open.last() {
            Some(parent) => self.children(*parent).push(node),
            None => self.root = Some(node),
        }
        node
    }

    fn children(&mut self, parent: usize) -> &mut Vec<usize> {
        match &mut self.nodes[parent].value {
            Value::List(children) | Value::Map(children) => children,
            _ => unreachable!("only lists and mappings are open"),
        }
    }

    /// Ends whatever is open where the text is no more YAML.
    fn cut(&mut self) -> bool {
        let cut = self.nodes.len();
        let place = Place { line: 1, column: 1 };
        self.nodes.push(Node { place, tag: None, value: Value::Cut });
        self.root.get_or_insert(cut);
        for parent in std::mem::take(&mut self.open) {
            let is_map = matches!(self.nodes[parent].value, Value::Map(_));
            let children = self.children(parent);
            children.push(cut);
            if is_map && children.len() % 2 == 1 {
                children.push(cut);
            }
        }
        false
    }
}
