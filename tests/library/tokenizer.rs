//! Detokenisation with a real tokenizer: a byte-level BPE that is trained here, on a few lines.

use std::sync::LazyLock;

use arbitrary::Unstructured;
use shakedown::contracts::token_decoder::{
    Options, Side, TokenDecoder, TokenDecoderCase, Vocabulary,
};
use shakedown::generate::completions::{AnswerFamily, Markers, NASTY, Shape, completion};
use tokenizers::decoders::byte_level::ByteLevel;
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::{
    AddedToken, NormalizerWrapper, PaddingDirection, PaddingParams, TokenizerBuilder, TokenizerImpl,
};

type Tokenizer = TokenizerImpl<BPE, NormalizerWrapper, ByteLevel, ByteLevel, ByteLevel>;

const SPECIALS: [&str; 3] = ["<pad>", "<eos>", "<|im_end|>"];
const PAD: i64 = 0;
const EOS: i64 = 1;

/// How many pieces there are: the bytes, the special tokens, and a few dozen merges.
const PIECES: usize = 340;

fn markers() -> Markers {
    Markers::new(["<think>", "</think>"], ["<answer>", "</answer>"])
}

/// What models write: completions of every shape, with answers of every family and nasty pieces.
fn completions() -> Vec<String> {
    let mut texts: Vec<String> = NASTY.iter().map(|(_, piece)| (*piece).to_owned()).collect();
    for family in AnswerFamily::ALL {
        for (answer, shape) in family.answers().iter().zip(Shape::ALL) {
            texts.push(shape.render(&markers(), "so we add the two numbers é 🙂 答案", answer));
        }
    }
    for seed in 0..200_u32 {
        let bytes: Vec<u8> = (0..400)
            .map(|at: u32| (seed.wrapping_mul(2_654_435_761) >> (at % 24)) as u8 ^ at as u8)
            .collect();
        let mut u = Unstructured::new(&bytes);
        texts.push(completion(&mut u, &markers(), "42").expect("bytes give a completion"));
    }
    texts
}

static TOKENIZER: LazyLock<Tokenizer> = LazyLock::new(|| {
    let level = || ByteLevel::new(false, true, true);
    let mut tokenizer = TokenizerBuilder::new()
        .with_model(BPE::default())
        .with_normalizer(None::<NormalizerWrapper>)
        .with_pre_tokenizer(Some(level()))
        .with_post_processor(Some(level()))
        .with_decoder(Some(level()))
        .build()
        .expect("a tokenizer");
    let mut trainer = BpeTrainer::builder()
        .show_progress(false)
        .vocab_size(PIECES)
        .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
        .special_tokens(SPECIALS.map(|name| AddedToken::from(name, true)).to_vec())
        .build();
    tokenizer.train(&mut trainer, completions().iter()).expect("it trains");
    tokenizer
});

/// The whole vocabulary, as the contract takes it.
fn vocabulary() -> Vocabulary {
    let pieces = TOKENIZER.get_vocab(true).into_iter();
    pieces.map(|(piece, id)| (i64::from(id), piece)).collect()
}

fn options(eos_is_pad: bool, padding_side: Side, skip_special: bool) -> Options {
    let pad = if eos_is_pad { EOS } else { PAD };
    let vocabulary = vocabulary();
    let specials = vec![0, 1, 2];
    Options {
        vocabulary,
        specials,
        pad,
        eos: EOS,
        skip_special,
        padding_side,
        ..Options::default()
    }
}

fn ids(row: impl IntoIterator<Item = i64>) -> Vec<u32> {
    row.into_iter().map(|id| u32::try_from(id).expect("an id")).collect()
}

/// What the tokenizer makes of a batch.
fn decoded(case: &TokenDecoderCase, skip_special: bool) -> Vec<String> {
    let rows: Vec<Vec<u32>> = case.tokens.rows().into_iter().map(|row| ids(row.to_vec())).collect();
    let rows: Vec<&[u32]> = rows.iter().map(Vec::as_slice).collect();
    TOKENIZER.decode_batch(&rows, skip_special).expect("it decodes")
}

/// What a component that is wrong is taken for.
fn diagnosed(text: impl Fn(&[u32]) -> String + Send + Sync + 'static) -> Vec<String> {
    let wrong = shakedown::check::<TokenDecoder>(move |case: &TokenDecoderCase| {
        let rows = case.tokens.rows().into_iter();
        rows.map(|row| text(&ids(row.to_vec()))).collect::<Vec<_>>()
    });
    let options = options(false, Side::Right, true);
    let reports = wrong.options(options).without_corpora().report().expect("it is checked");
    let findings = reports.into_iter().flat_map(|report| report.findings);
    findings.flat_map(|finding| finding.diagnosis).map(|diagnosis| diagnosis.fault).collect()
}

fn decode(ids: &[u32]) -> String {
    TOKENIZER.decode(ids, true).expect("it decodes")
}

#[test]
fn a_real_tokenizer_keeps_the_contract() {
    assert_eq!(vocabulary().len(), PIECES);
    for side in [Side::Right, Side::Left] {
        for (eos_is_pad, skip_special) in [(false, true), (true, true), (true, false)] {
            shakedown::check::<TokenDecoder>(move |case: &TokenDecoderCase| {
                decoded(case, skip_special)
            })
            .options(options(eos_is_pad, side, skip_special))
            .without_corpora()
            .run();
        }
    }
}

#[test]
fn what_is_encoded_comes_back() {
    for text in completions() {
        let encoding = TOKENIZER.encode(text.as_str(), false).expect("it encodes");
        assert_eq!(TOKENIZER.decode(encoding.get_ids(), false).unwrap(), text);
    }
}

#[test]
fn padding_on_either_side_changes_nothing() {
    let texts: Vec<String> =
        completions().into_iter().filter(|text| !text.contains("<|im_end|>")).collect();
    for direction in [PaddingDirection::Left, PaddingDirection::Right] {
        let mut tokenizer = TOKENIZER.clone();
        let pad_token = SPECIALS[PAD as usize].to_owned();
        let padding = PaddingParams { direction, pad_token, pad_id: 0, ..PaddingParams::default() };
        tokenizer.with_padding(Some(padding));
        let encodings = tokenizer.encode_batch(texts.clone(), false).expect("it encodes");
        for (encoding, text) in encodings.iter().zip(&texts) {
            assert_eq!(encoding.get_ids().len(), encodings[0].get_ids().len());
            assert_eq!(decode(encoding.get_ids()), *text);
        }
    }
}

#[test]
fn a_cut_inside_a_character_leaves_what_stands_before() {
    let text = "so 🙂 é 答案 שלום";
    let encoding = TOKENIZER.encode(text, false).expect("it encodes");
    for end in 0..=encoding.get_ids().len() {
        let found = decode(&encoding.get_ids()[..end]);
        assert!(text.starts_with(found.trim_end_matches('\u{fffd}')), "{found}");
    }
}

#[test]
fn decoding_token_by_token_is_found_and_named() {
    let found = diagnosed(|ids| ids.iter().map(|id| decode(&[*id])).collect());
    assert!(found.iter().any(|fault| fault == "token-by-token"), "{found:?}");
}

#[test]
fn tidied_up_spaces_are_found_and_named() {
    let found = diagnosed(|ids| decode(ids).replace(" .", ".").replace(" '", "'"));
    assert!(found.iter().any(|fault| fault == "spaces-tidied-up"), "{found:?}");
}

#[test]
fn a_lost_first_space_is_found_and_named() {
    let found = diagnosed(|ids| {
        let text = decode(ids);
        text.strip_prefix(' ').unwrap_or(&text).to_owned()
    });
    assert!(found.iter().any(|fault| fault == "first-space-lost"), "{found:?}");
}
