//! A place: the device and the dtype at which a component is checked.

use std::fmt;
use std::str::FromStr;

use half::{bf16, f16};

use crate::value::error::{Error, cut, nearest};

/// A floating-point storage format. Arithmetic of the half formats is f32, as on real hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dtype {
    /// 64 bits.
    F64,
    /// 32 bits.
    F32,
    /// 16 bits, 8 of them significand.
    Bf16,
    /// 16 bits, 11 of them significand.
    F16,
}

impl Dtype {
    /// Every dtype, with its name.
    pub const ALL: [(Dtype, &'static str); 4] =
        [(Dtype::F64, "f64"), (Dtype::F32, "f32"), (Dtype::Bf16, "bf16"), (Dtype::F16, "f16")];

    /// The name in places: `f32`.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(dtype, _)| *dtype == self).expect("ALL holds every dtype").1
    }

    /// The nearest number of this format, as an f64.
    #[inline]
    pub fn round(self, x: f64) -> f64 {
        match self {
            Dtype::F64 => x,
            Dtype::F32 => f64::from(x as f32),
            Dtype::Bf16 => bf16::from_f64(x).to_f64(),
            Dtype::F16 => f16::from_f64(x).to_f64(),
        }
    }

    /// The unit roundoff: the largest relative error of one rounding.
    pub const fn unit_roundoff(self) -> f64 {
        match self {
            Dtype::F64 => f64::EPSILON / 2.0,
            Dtype::F32 => f32::EPSILON as f64 / 2.0,
            Dtype::Bf16 => 1.0 / 256.0,
            Dtype::F16 => 1.0 / 2048.0,
        }
    }

    /// The smallest positive normal number.
    pub const fn min_positive(self) -> f64 {
        match self {
            Dtype::F64 => f64::MIN_POSITIVE,
            Dtype::F32 | Dtype::Bf16 => f32::MIN_POSITIVE as f64,
            Dtype::F16 => 6.103_515_625e-5,
        }
    }

    /// The largest finite number.
    pub const fn max(self) -> f64 {
        match self {
            Dtype::F64 => f64::MAX,
            Dtype::F32 => f32::MAX as f64,
            Dtype::Bf16 => 3.389_531_389_251_535_5e38,
            Dtype::F16 => 65504.0,
        }
    }

    /// The format in which a component at this dtype must compute: f32 for the half formats.
    pub const fn arithmetic(self) -> Dtype {
        match self {
            Dtype::Bf16 | Dtype::F16 => Dtype::F32,
            own => own,
        }
    }
}

/// Where tensors live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Device {
    /// Main memory.
    Cpu,
    /// A CUDA device, by index.
    Cuda(usize),
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Cpu => f.write_str("cpu"),
            Device::Cuda(0) => f.write_str("cuda"),
            Device::Cuda(index) => write!(f, "cuda:{index}"),
        }
    }
}

/// A device and a dtype, written `cpu/f32`, `cuda/bf16`, `cuda:1/f64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// Where.
    pub device: Device,
    /// In which format.
    pub dtype: Dtype,
}

impl Place {
    /// Main memory, f64.
    pub const CPU_F64: Place = Place { device: Device::Cpu, dtype: Dtype::F64 };
    /// Main memory, f32.
    pub const CPU_F32: Place = Place { device: Device::Cpu, dtype: Dtype::F32 };
    /// Main memory, bf16.
    pub const CPU_BF16: Place = Place { device: Device::Cpu, dtype: Dtype::Bf16 };
    /// Main memory, f16.
    pub const CPU_F16: Place = Place { device: Device::Cpu, dtype: Dtype::F16 };

    /// The places of `SHAKEDOWN_PLACES`, a comma-separated list, or `None` where it is not set.
    ///
    /// # Errors
    /// A place that cannot be read, named.
    pub fn from_env() -> Result<Option<Vec<Place>>, Error> {
        match std::env::var("SHAKEDOWN_PLACES") {
            Err(_) => Ok(None),
            Ok(list) => Place::list(&list)
                .map(Some)
                .map_err(|error| error.within("environment variable SHAKEDOWN_PLACES")),
        }
    }

    /// Reads a comma-separated list of places.
    ///
    /// # Errors
    /// A place that cannot be read, named; or an empty list.
    pub fn list(text: &str) -> Result<Vec<Place>, Error> {
        text.split(',').map(|one| one.trim().parse()).collect()
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.device, self.dtype.name())
    }
}

impl FromStr for Place {
    type Err = Error;

    fn from_str(text: &str) -> Result<Place, Error> {
        let expected = "expected DEVICE/DTYPE such as cpu/f32, cuda/bf16 or cuda:1/f64";
        let (device, dtype) = text
            .split_once('/')
            .ok_or_else(|| Error::new(format!("`{}` is not a place, {expected}", cut(text))))?;
        let device = match device {
            "cpu" => Device::Cpu,
            "cuda" => Device::Cuda(0),
            other => match other.strip_prefix("cuda:").map(str::parse) {
                Some(Ok(index)) => Device::Cuda(index),
                _ => {
                    return Err(Error::new(format!(
                        "unknown device `{}` in place `{}`, {expected}",
                        cut(other),
                        cut(text)
                    )));
                }
            },
        };
        match Dtype::ALL.iter().find(|(_, name)| *name == dtype) {
            Some((dtype, _)) => Ok(Place { device, dtype: *dtype }),
            None => {
                let near = nearest(dtype, Dtype::ALL.iter().map(|(_, name)| *name));
                let (dtype, text) = (cut(dtype), cut(text));
                let message =
                    format!("unknown dtype `{dtype}` in place `{text}`, {expected}{near}");
                Err(Error::new(message))
            }
        }
    }
}

impl<'de> serde::Deserialize<'de> for Place {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Place, D::Error> {
        from.deserialize_str(PlaceVisitor)
    }
}

/// Reads a place inside the deserializer, which then knows where an error is.
struct PlaceVisitor;

impl serde::de::Visitor<'_> for PlaceVisitor {
    type Value = Place;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a place such as cpu/f32")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Place, E> {
        text.parse().map_err(E::custom)
    }
}

impl serde::Serialize for Place {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_read_back_as_written() {
        for text in ["cpu/f32", "cpu/bf16", "cuda/f64", "cuda:1/f16"] {
            assert_eq!(text.parse::<Place>().unwrap().to_string(), text);
        }
        let error = "cpu/fp32".parse::<Place>().unwrap_err().to_string();
        assert!(error.contains("did you mean `f32`"), "{error}");
    }

    #[test]
    fn rounding_errs_by_at_most_the_unit_roundoff() {
        for (dtype, _) in Dtype::ALL {
            for x in [0.1, 1.0 / 3.0, 0.999_999_9, 1.9, 1000.7] {
                let error = (dtype.round(x) - x).abs();
                assert!(error <= dtype.unit_roundoff() * x, "{dtype:?} {x}");
            }
        }
    }
}
