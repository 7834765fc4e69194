//! Messages between the harness and a component's process: safetensors blobs (`PROTOCOL.md`).

use std::collections::HashMap;
use std::io::{self, Read};

use half::{bf16, f16};
use ndarray::{ArrayD, IxDyn};
use safetensors::tensor::{Dtype as WireDtype, SafeTensors, TensorView};

use crate::value::place::Dtype;
use crate::value::record::Value;

/// The header of a message that is larger is none: something else was read.
const LARGEST_HEADER_BYTES: u64 = 100_000_000;

/// Below this many bytes a reply is never too large.
const SMALLEST_LIMIT_BYTES: u64 = 1 << 24;

/// How many bytes a reply may have for each byte of its request.
const REPLY_BYTES_EACH: u64 = 64;

/// How many bytes the reply to a request of this size may have: outputs are of the size of the
/// inputs, and nothing that is far larger can be one.
pub fn reply_limit(request: usize) -> u64 {
    (request as u64).saturating_mul(REPLY_BYTES_EACH).max(SMALLEST_LIMIT_BYTES)
}

/// A message: named tensors and named texts.
#[derive(Debug, Default)]
pub struct Message {
    pub texts: HashMap<String, String>,
    pub tensors: Vec<(String, Tensor)>,
}

/// A tensor as it came over the wire.
#[derive(Debug)]
pub struct Tensor {
    pub value: Value,
    pub dtype: WireDtype,
}

impl Message {
    /// A message of some kind.
    pub fn new(kind: &str) -> Message {
        let mut message = Message::default();
        message.text("kind", kind);
        message
    }

    /// Adds a text.
    pub fn text(&mut self, key: &str, value: impl Into<String>) {
        self.texts.insert(key.to_owned(), value.into());
    }

    /// A text, empty where there is none.
    pub fn get(&self, key: &str) -> &str {
        self.texts.get(key).map_or("", String::as_str)
    }

    /// The lists of texts and nulls that it carries, by name.
    pub fn lists(&self) -> Result<Vec<(String, Value)>, String> {
        let Some(json) = self.texts.get("texts") else { return Ok(Vec::new()) };
        let lists: HashMap<String, Vec<Option<String>>> =
            serde_json::from_str(json).map_err(|error| format!("`texts`: {error}"))?;
        let value = |texts| Value::Text(ndarray::Array1::from_vec(texts).into_dyn());
        Ok(lists.into_iter().map(|(name, texts)| (name, value(texts))).collect())
    }

    /// A JSON list of names, empty where there is none.
    pub fn names(&self, key: &str) -> Vec<String> {
        self.texts.get(key).and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
    }

    /// Reads the bytes of a message.
    ///
    /// # Errors
    /// They are not a message.
    pub fn decode(bytes: &[u8]) -> Result<Message, String> {
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|e| e.to_string())?;
        let texts = metadata.metadata().clone().unwrap_or_default();
        let blob = SafeTensors::deserialize(bytes).map_err(|e| e.to_string())?;
        let tensors = blob
            .iter()
            .map(|(name, view)| match decode_tensor(&view) {
                Ok(tensor) => Ok((name.to_owned(), tensor)),
                Err(why) => Err(format!("`{name}`: {why}")),
            })
            .collect::<Result<_, String>>()?;
        Ok(Message { texts, tensors })
    }
}

/// The bytes of a message whose floats are stored as `floats`.
pub fn encode(
    values: &[(&str, Value)],
    mut texts: HashMap<String, String>,
    floats: Dtype,
) -> Vec<u8> {
    let mut encoded: Vec<(&str, &[usize], WireDtype, Vec<u8>)> = Vec::new();
    let mut lists = serde_json::Map::new();
    for (name, value) in values {
        match encode_value(value, floats) {
            Encoded::Tensor(dtype, bytes) => encoded.push((name, value.shape(), dtype, bytes)),
            Encoded::Texts(list) => {
                lists.insert((*name).to_owned(), list);
            }
        }
    }
    if !lists.is_empty() {
        texts.insert("texts".to_owned(), serde_json::Value::from(lists).to_string());
    }
    let views = encoded.iter().map(|(name, shape, dtype, bytes)| {
        let view = TensorView::new(*dtype, shape.to_vec(), bytes);
        (*name, view.expect("the bytes fill the shape"))
    });
    safetensors::serialize(views, Some(texts)).expect("views of arrays can be written")
}

/// How a value goes over the wire.
enum Encoded {
    Tensor(WireDtype, Vec<u8>),
    Texts(serde_json::Value),
}

fn encode_value(value: &Value, floats: Dtype) -> Encoded {
    let (dtype, bytes) = match value {
        Value::Text(array) => return Encoded::Texts(array.iter().cloned().collect()),
        Value::Int(array) => (WireDtype::I64, array.iter().flat_map(|x| x.to_le_bytes()).collect()),
        Value::Bool(array) => (WireDtype::BOOL, array.iter().map(|x| u8::from(*x)).collect()),
        Value::Float(array) => match floats {
            Dtype::F64 => (WireDtype::F64, array.iter().flat_map(|x| x.to_le_bytes()).collect()),
            Dtype::F32 => {
                (WireDtype::F32, array.iter().flat_map(|x| (*x as f32).to_le_bytes()).collect())
            }
            Dtype::Bf16 => {
                let bytes = array.iter().flat_map(|x| bf16::from_f64(*x).to_le_bytes());
                (WireDtype::BF16, bytes.collect())
            }
            Dtype::F16 => {
                let bytes = array.iter().flat_map(|x| f16::from_f64(*x).to_le_bytes());
                (WireDtype::F16, bytes.collect())
            }
        },
    };
    Encoded::Tensor(dtype, bytes)
}

fn decode_tensor(view: &TensorView<'_>) -> Result<Tensor, String> {
    let bytes = view.data();
    let shape = IxDyn(view.shape());
    macro_rules! elements {
        ($type:ty, $as:expr) => {{
            let convert: fn($type) -> _ = $as;
            let chunks = bytes.chunks_exact(size_of::<$type>());
            let number =
                |chunk: &[u8]| <$type>::from_le_bytes(chunk.try_into().expect("chunks are exact"));
            chunks.map(|chunk| convert(number(chunk))).collect::<Vec<_>>()
        }};
    }
    let floats = |numbers| {
        ArrayD::from_shape_vec(shape.clone(), numbers).map(Value::Float).map_err(|e| e.to_string())
    };
    let ints = |numbers| {
        ArrayD::from_shape_vec(shape.clone(), numbers).map(Value::Int).map_err(|e| e.to_string())
    };
    let value = match view.dtype() {
        WireDtype::F64 => floats(elements!(f64, |x| x))?,
        WireDtype::F32 => floats(elements!(f32, f64::from))?,
        WireDtype::F16 => floats(elements!(f16, f64::from))?,
        WireDtype::BF16 => floats(elements!(bf16, f64::from))?,
        WireDtype::I64 => ints(elements!(i64, |x| x))?,
        WireDtype::I32 => ints(elements!(i32, i64::from))?,
        WireDtype::I16 => ints(elements!(i16, i64::from))?,
        WireDtype::I8 => ints(elements!(i8, i64::from))?,
        WireDtype::U8 => ints(elements!(u8, i64::from))?,
        WireDtype::BOOL => {
            let flags = bytes.iter().map(|byte| *byte != 0).collect();
            ArrayD::from_shape_vec(shape, flags).map(Value::Bool).map_err(|e| e.to_string())?
        }
        other => return Err(format!("tensors of dtype {other:?} are not known")),
    };
    Ok(Tensor { value, dtype: view.dtype() })
}

/// Reads the bytes of one message from a stream; `None` at its end.
///
/// # Errors
/// The stream fails, ends in the middle of a message, or holds something else. The message is of
/// more than `limit` bytes, which is known before it is read whole: `FileTooLarge`.
pub fn read_message(from: &mut impl Read, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = vec![0; 8];
    match from.read(&mut bytes[..1])? {
        0 => return Ok(None),
        _ => from.read_exact(&mut bytes[1..])?,
    }
    let no_message = |what: &str| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("standard output holds something that is not a message: {what}"),
        )
    };
    let too_large = |size: u64, what: &str| {
        let why = format!("its reply has {size} bytes{what}, at most {limit} are read");
        io::Error::new(io::ErrorKind::FileTooLarge, why)
    };
    let header = u64::from_le_bytes(bytes[..8].try_into().expect("there are eight"));
    if header > LARGEST_HEADER_BYTES {
        return Err(no_message(&format!("it begins with {:?}", String::from_utf8_lossy(&bytes))));
    }
    if header > limit {
        return Err(too_large(header, " of texts"));
    }
    // Memory is taken as the bytes come: what was promised may never come.
    if from.take(header).read_to_end(&mut bytes)? as u64 != header {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let entries: HashMap<String, serde_json::Value> =
        serde_json::from_slice(&bytes[8..]).map_err(|error| no_message(&error.to_string()))?;
    let end = |entry: &serde_json::Value| entry["data_offsets"][1].as_u64().unwrap_or(0);
    let last = entries.iter().max_by_key(|(_, entry)| end(entry));
    let (name, entry) = last.map_or(("", &serde_json::Value::Null), |(name, entry)| (name, entry));
    let data = end(entry);
    if data > limit {
        let what = format!(", `{name}` among them of shape {}", entry["shape"]);
        return Err(too_large(data, &what));
    }
    if from.take(data).read_to_end(&mut bytes)? as u64 != data {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_read_back() {
        let floats = Value::Float(ndarray::arr2(&[[1.5, -0.0], [f64::INFINITY, 2.0]]).into_dyn());
        let ints = Value::Int(ndarray::arr1(&[i64::MIN, 7]).into_dyn());
        let flags = Value::Bool(ndarray::arr1(&[true, false]).into_dyn());
        let text = ndarray::arr1(&[Some("a\0\u{feff}".to_owned()), None]).into_dyn();
        let values = [("a", floats), ("b", ints), ("c", flags), ("d", Value::Text(text))];
        for dtype in [Dtype::F64, Dtype::F32, Dtype::Bf16, Dtype::F16] {
            let mut texts = HashMap::new();
            texts.insert("kind".to_owned(), "call".to_owned());
            let bytes = encode(&values, texts, dtype);
            let read = read_message(&mut bytes.as_slice(), u64::MAX).unwrap().unwrap();
            assert_eq!(read, bytes);
            let message = Message::decode(&read).unwrap();
            assert_eq!(message.get("kind"), "call");
            assert_eq!(message.lists().unwrap(), [("d".to_owned(), values[3].1.clone())]);
            for (name, value) in &values[..3] {
                let (_, tensor) = message.tensors.iter().find(|(known, _)| known == name).unwrap();
                assert!(tensor.value.same_bits(value), "{name} at {dtype:?}");
            }
        }
    }

    #[test]
    fn prints_are_told_from_messages() {
        let text = "hello world, this is not a message";
        let error = read_message(&mut text.as_bytes(), u64::MAX).unwrap_err();
        assert!(error.to_string().contains("hello"), "{error}");
    }

    #[test]
    fn what_is_too_large_is_refused_before_it_comes() {
        let floats = Value::Float(ndarray::arr1(&[0.5; 100]).into_dyn());
        let bytes = encode(&[("a", floats)], HashMap::new(), Dtype::F64);
        let header = 8 + bytes[0] as usize;
        assert!(read_message(&mut bytes.as_slice(), 800).unwrap().is_some());
        let error = read_message(&mut &bytes[..header], 799).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        let words = "its reply has 800 bytes, `a` among them of shape [100], at most 799 are read";
        assert_eq!(error.to_string(), words);
        let error = read_message(&mut &bytes[..8], 16).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn a_reply_may_be_far_larger_than_its_request() {
        assert_eq!(reply_limit(0), 16 << 20);
        assert_eq!(reply_limit(1 << 20), 64 << 20);
    }
}
