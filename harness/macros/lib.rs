//! The attribute `shakedown::contract`. Its documentation is there.

mod attribute;
mod function;

use proc_macro::TokenStream;
use quote::quote;
use syn::{ItemFn, parse_macro_input};

use crate::attribute::Attribute;

#[proc_macro_attribute]
#[allow(missing_docs, clippy::allow_attributes, reason = "`shakedown::contract` has them")]
pub fn contract(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let attribute = parse_macro_input!(attribute as Attribute);
    let function = parse_macro_input!(item as ItemFn);
    match function::test(attribute, function.clone()) {
        Ok(test) => test.into(),
        Err(error) => {
            let error = error.into_compile_error();
            quote!(#error #function).into() // so that an editor still knows the function
        }
    }
}
