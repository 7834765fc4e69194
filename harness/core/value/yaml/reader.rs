//! Typed values from a part of a document, by serde; what is wrong is wrong at a node.

use std::cell::Cell;
use std::convert::Infallible;
use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, Expected, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::failed::{Failed, Trail};
use super::scalar::Scalar;
use super::tree::{Node, Tree, Value};
use crate::value::error::cut;

/// Deeper values are refused.
const DEEPEST: u8 = 128;

/// Reads one node.
#[derive(Clone, Copy)]
pub(super) struct Reader<'de, 'p> {
    tree: &'de Tree,
    node: usize,
    trail: Trail<'p>,
    jumps: &'p Cell<usize>,
    depth: u8,
}

impl<'de, 'p> Reader<'de, 'p> {
    pub(super) fn new(
        tree: &'de Tree,
        node: usize,
        trail: Trail<'p>,
        jumps: &'p Cell<usize>,
    ) -> Self {
        Reader { tree, node, trail, jumps, depth: DEEPEST }
    }

    /// Reads the node, or the one that it is an alias of.
    fn at<T>(
        mut self,
        read: impl FnOnce(Self, &'de Node) -> Result<T, Failed>,
    ) -> Result<T, Failed> {
        while let Value::Alias(anchor) = self.tree.nodes[self.node].value {
            self.jumps.set(self.jumps.get() + 1);
            if self.jumps.get() > self.tree.most_jumps {
                return Err(Failed::Aliases);
            }
            self.node = anchor;
        }
        let node = &self.tree.nodes[self.node];
        let read = match (&node.value, &node.tag) {
            (Value::Cut, _) => Err(Failed::Cut),
            // None of our files has types of its own.
            (_, Some(tag)) => {
                let tag = tag.replace("tag:yaml.org,2002:", "!!");
                Err(Failed::custom(format!(
                    "expected a value without a tag, found `{}`",
                    cut(&tag)
                )))
            }
            _ => read(self, node),
        };
        read.map_err(|failed| failed.located(node, self.trail))
    }

    /// The same, for a scalar that is what `read` makes of it.
    fn scalar<T, V: Visitor<'de>>(
        self,
        visitor: V,
        read: impl FnOnce(Scalar<'de>) -> Option<T>,
        visit: impl FnOnce(V, T) -> Result<V::Value, Failed>,
    ) -> Result<V::Value, Failed> {
        self.at(|_, node| match node.scalar().and_then(read) {
            Some(value) => visit(visitor, value),
            None => Err(invalid_type(node, &visitor)),
        })
    }

    fn list<V: Visitor<'de>>(self, items: &'de [usize], visitor: V) -> Result<V::Value, Failed> {
        let mut items = Items { inside: self.deeper()?, items, taken: 0 };
        let value = visitor.visit_seq(&mut items)?;
        items.end()?;
        Ok(value)
    }

    fn map<V: Visitor<'de>>(self, entries: &'de [usize], visitor: V) -> Result<V::Value, Failed> {
        let mut entries = Entries { inside: self.deeper()?, entries, taken: 0 };
        let value = visitor.visit_map(&mut entries)?;
        entries.end()?;
        Ok(value)
    }

    /// That children of a node are all there.
    fn cut(self, children: &[usize]) -> Result<(), Failed> {
        match children.last().map(|node| &self.tree.nodes[*node].value) {
            Some(Value::Cut) => Err(Failed::Cut),
            _ => Ok(()),
        }
    }

    fn deeper(self) -> Result<Self, Failed> {
        match self.depth.checked_sub(1) {
            Some(depth) => Ok(Reader { depth, ..self }),
            None => Err(Failed::Wrong {
                message: "recursion limit exceeded".to_owned(),
                place: Some(self.tree.nodes[self.node].place),
                trail: String::new(),
            }),
        }
    }
}

impl Node {
    fn scalar(&self) -> Option<Scalar<'_>> {
        match &self.value {
            Value::Scalar { text, plain } => Some(Scalar { text, plain: *plain }),
            _ => None,
        }
    }

    /// An empty text is an empty list and an empty mapping.
    fn is_empty(&self) -> bool {
        matches!(self.value, Value::Nothing) || self.scalar().is_some_and(Scalar::is_empty)
    }
}

/// That a node is of another type.
fn invalid_type(node: &Node, expected: &dyn Expected) -> Failed {
    let found = match node.value {
        Value::List(_) => Unexpected::Seq,
        Value::Map(_) => Unexpected::Map,
        _ => {
            let Some(scalar) = node.scalar() else {
                return Failed::custom("EOF while parsing a value");
            };
            return match scalar.visit(Refused(expected)) {
                Ok(never) => match never {},
                Err(failed) => failed,
            };
        }
    };
    Failed::invalid_type(found, expected)
}

/// Takes no value at all.
struct Refused<'a>(&'a dyn Expected);

impl Visitor<'_> for Refused<'_> {
    type Value = Infallible;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de> Deserializer<'de> for Reader<'de, '_> {
    type Error = Failed;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.at(|here, node| match (&node.value, node.scalar()) {
            (_, Some(scalar)) => scalar.visit(visitor),
            (Value::List(items), _) => here.list(items, visitor),
            (Value::Map(entries), _) => here.map(entries, visitor),
            _ => visitor.visit_none(),
        })
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.scalar(visitor, Scalar::bool, V::visit_bool)
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.scalar(visitor, Scalar::signed, V::visit_i64)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.scalar(visitor, Scalar::unsigned, V::visit_u64)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.scalar(visitor, Scalar::float, V::visit_f64)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.scalar(visitor, |scalar| Some(scalar.text), V::visit_borrowed_str)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.at(|here, node| match (&node.value, node.scalar()) {
            (Value::Nothing, _) => visitor.visit_none(),
            (_, Some(scalar)) if scalar.is_null() => visitor.visit_none(),
            _ => visitor.visit_some(here),
        })
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Failed> {
        visitor.visit_newtype_struct(self.deeper()?)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.at(|here, node| match &node.value {
            Value::List(items) => here.list(items, visitor),
            _ if node.is_empty() => here.list(&[], visitor),
            _ => Err(invalid_type(node, &visitor)),
        })
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        _length: usize,
        visitor: V,
    ) -> Result<V::Value, Failed> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _length: usize,
        visitor: V,
    ) -> Result<V::Value, Failed> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.at(|here, node| match &node.value {
            Value::Map(entries) => here.map(entries, visitor),
            _ if node.is_empty() => here.map(&[], visitor),
            _ => Err(invalid_type(node, &visitor)),
        })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failed> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failed> {
        self.at(|here, node| match node.value {
            Value::Scalar { .. } => visitor.visit_enum(Variant(here)),
            _ => Err(invalid_type(node, &"a string")),
        })
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        match self.tree.nodes[self.node].value {
            Value::Cut => Err(Failed::Cut),
            _ => visitor.visit_unit(),
        }
    }

    fn deserialize_i8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.deserialize_i64(visitor)
    }

    fn deserialize_i16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.deserialize_i64(visitor)
    }

    fn deserialize_i32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.deserialize_i64(visitor)
    }

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.deserialize_u64(visitor)
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.deserialize_u64(visitor)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.deserialize_u64(visitor)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.deserialize_str(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.deserialize_str(visitor)
    }

    forward_to_deserialize_any! { i128 u128 bytes byte_buf unit unit_struct }
}

/// The items of a list.
struct Items<'de, 'p> {
    inside: Reader<'de, 'p>,
    items: &'de [usize],
    taken: usize,
}

impl Items<'_, '_> {
    /// That none are left.
    fn end(&self) -> Result<(), Failed> {
        let (total, taken) = (self.items.len(), self.taken);
        if total == taken {
            return Ok(());
        }
        self.inside.cut(self.items)?;
        let plural = if taken == 1 { "" } else { "s" };
        Err(Failed::invalid_length(total, &&*format!("sequence of {taken} element{plural}")))
    }
}

impl<'de> SeqAccess<'de> for Items<'de, '_> {
    type Error = Failed;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Failed> {
        let Some(node) = self.items.get(self.taken) else { return Ok(None) };
        let trail = Trail::Item(&self.inside.trail, self.taken);
        self.taken += 1;
        seed.deserialize(Reader { node: *node, trail, ..self.inside }).map(Some)
    }
}

/// The entries of a mapping; `taken` counts keys and values.
struct Entries<'de, 'p> {
    inside: Reader<'de, 'p>,
    entries: &'de [usize],
    taken: usize,
}

impl Entries<'_, '_> {
    /// That none are left.
    fn end(&self) -> Result<(), Failed> {
        let (total, taken) = (self.entries.len() / 2, self.taken.div_ceil(2));
        if total == taken {
            return Ok(());
        }
        self.inside.cut(self.entries)?;
        let plural = if taken == 1 { "y" } else { "ies" };
        Err(Failed::invalid_length(total, &&*format!("map containing {taken} entr{plural}")))
    }
}

impl<'de> MapAccess<'de> for Entries<'de, '_> {
    type Error = Failed;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Failed> {
        let Some(node) = self.entries.get(self.taken) else { return Ok(None) };
        self.taken += 1;
        seed.deserialize(Reader { node: *node, ..self.inside }).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Failed> {
        let [key, node] = [self.entries[self.taken - 1], self.entries[self.taken]];
        self.taken += 1;
        let trail = match self.inside.tree.nodes[key].scalar() {
            Some(scalar) => Trail::Key(&self.inside.trail, scalar.text),
            None => Trail::Unknown(&self.inside.trail),
        };
        seed.deserialize(Reader { node, trail, ..self.inside })
    }
}

/// One of a few names.
struct Variant<'de, 'p>(Reader<'de, 'p>);

impl<'de> EnumAccess<'de> for Variant<'de, '_> {
    type Error = Failed;
    type Variant = NoContent;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, NoContent), Failed> {
        Ok((seed.deserialize(self.0)?, NoContent))
    }
}

/// What a name alone has inside.
struct NoContent;

impl NoContent {
    fn but<T>(expected: &str) -> Result<T, Failed> {
        Err(Failed::invalid_type(Unexpected::UnitVariant, &expected))
    }
}

impl<'de> VariantAccess<'de> for NoContent {
    type Error = Failed;

    fn unit_variant(self) -> Result<(), Failed> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _seed: T) -> Result<T::Value, Failed> {
        NoContent::but("newtype variant")
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        _length: usize,
        _visitor: V,
    ) -> Result<V::Value, Failed> {
        NoContent::but("tuple variant")
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, Failed> {
        NoContent::but("struct variant")
    }
}
