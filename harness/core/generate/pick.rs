//! Deterministic choices inside invariants, made from the case itself and not from a seed.

use crate::value::record::{AnyRecord, ValueRef};

/// A small generator (SplitMix64, Steele, Lea and Flood 2014) seeded with a case.
#[derive(Clone, Debug)]
pub struct Pick(u64);

impl Pick {
    /// The choices of a case: the same case gives the same choices in every run.
    pub fn of(case: &dyn AnyRecord) -> Pick {
        let mut pick = Pick(0x5eed);
        case.each(&mut |_, value| match &value {
            Some(ValueRef::Float(array)) => array.iter().for_each(|x| pick.mix(x.to_bits())),
            Some(ValueRef::Int(array)) => array.iter().for_each(|x| pick.mix(*x as u64)),
            Some(ValueRef::Bool(array)) => array.iter().for_each(|x| pick.mix(u64::from(*x))),
            Some(texts) => texts.for_texts(|text| {
                let Some(text) = text else { return };
                pick.mix(text.len() as u64);
                text.bytes().for_each(|byte| pick.mix(u64::from(byte)));
            }),
            None => pick.mix(1),
        });
        pick
    }

    /// The choices of a number.
    pub fn seeded(seed: u64) -> Pick {
        Pick(seed)
    }

    fn mix(&mut self, bits: u64) {
        self.0 = (self.0 ^ bits).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n.max(1) as u64) as usize
    }

    /// One of the items.
    ///
    /// # Panics
    /// If there is none.
    pub fn one<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// The items in another order; never the same one where there are two or more of them.
    pub fn shuffled(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            order.swap(i, self.below(i + 1));
        }
        if n > 1 && order.iter().enumerate().all(|(i, x)| i == *x) {
            order.rotate_left(1);
        }
        order
    }
}
