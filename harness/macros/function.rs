//! The test that takes the place of the function.

use proc_macro2::{Group, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{FnArg, GenericParam, Ident, ItemFn, Pat};

use crate::attribute::Attribute;

/// The arguments that are the length of an axis, where they are a `usize`.
const LENGTHS: [&str; 3] = ["rows", "columns", "vocabulary"];

pub(crate) fn test(attribute: Attribute, mut function: ItemFn) -> syn::Result<TokenStream> {
    let name = function.sig.ident.clone();
    let parameters = parameters(&function)?;
    // What a test harness and the compiler read is the test's, what a runtime reads the function's.
    let is_of_test = |attribute: &syn::Attribute| {
        ["cfg", "doc", "ignore", "should_panic"].iter().any(|of| attribute.path().is_ident(of))
    };
    let (of_test, of_function): (Vec<_>, Vec<_>) =
        std::mem::take(&mut function.attrs).into_iter().partition(is_of_test);
    function.attrs = of_function;
    let visibility = std::mem::replace(&mut function.vis, syn::Visibility::Inherited);

    let (contract, settings, returns) =
        (&attribute.contract, attribute.settings(), attribute.returns());
    let methods = &attribute.methods;
    let on_tensors = attribute.tensors.is_some();
    let held: Vec<_> = match on_tensors {
        true => Vec::new(),
        false => parameters.iter().map(|parameter| parameter.hold(contract)).collect(),
    };
    let lent = parameters.iter().map(|parameter| match on_tensors {
        true => parameter.tensor(),
        false => parameter.lend(),
    });
    let call = quote_spanned!(name.span()=> #name(#( #lent ),*));
    // A runtime's attribute has made it a plain function.
    let is_async = function.sig.asyncness.is_some() && function.attrs.is_empty();
    let call = if is_async { quote!(::shakedown::attribute::block_on(#call)) } else { call };
    let check = match &attribute.tensors {
        Some(library) => quote!(check_on::<#library::Tensors, #contract, _>),
        None => quote!(check::<#contract, _>),
    };
    let text = name.to_string();
    Ok(quote! {
        #( #of_test )*
        #[test]
        #visibility fn #name() {
            #function
            #[allow(unused_mut)]
            let mut options =
                <<#contract as ::shakedown::author::Definition>::Options as Default>::default();
            #settings
            ::shakedown::attribute::#check(
                |case| {
                    #( #held )*
                    #call
                },
                #returns,
                (#text, ::core::file!(), ::core::line!()),
            )
            .options(options)
            #( #methods )*
            .run();
        }
    })
}

struct Parameter {
    name: Ident,
    of: TokenStream,
}

impl Parameter {
    /// The length of an axis, and no input.
    fn length(&self) -> Option<usize> {
        let is_usize = self.of.to_string() == "usize";
        LENGTHS.iter().position(|length| is_usize && self.name == length)
    }

    fn hold(&self, contract: &TokenStream) -> TokenStream {
        let Parameter { name, of } = self;
        let held = self.held();
        match self.length() {
            Some(axis) => {
                quote!(let #held = ::shakedown::attribute::length::<#contract>(case, #axis);)
            }
            None => {
                let text = name.to_string();
                let taken =
                    quote_spanned!(of.span()=> ::shakedown::attribute::Held::<#of, _>::hold);
                let field = quote_spanned!(name.span()=> &case.#name);
                quote!(let mut #held = #taken(#text, #field);)
            }
        }
    }

    fn lend(&self) -> TokenStream {
        let held = self.held();
        if self.length().is_some() { held.to_token_stream() } else { quote!(#held.lend()) }
    }

    /// The tensor of its name.
    fn tensor(&self) -> TokenStream {
        let name = &self.name;
        let is_optional = self.of.clone().into_iter().next();
        match is_optional.is_some_and(|first| first.to_string() == "Option") {
            true => quote_spanned!(name.span()=> case.#name.as_ref()),
            false => quote_spanned!(name.span()=> &case.#name),
        }
    }

    fn held(&self) -> Ident {
        format_ident!("held_{}", self.name)
    }
}

fn parameters(function: &ItemFn) -> syn::Result<Vec<Parameter>> {
    let generics = &function.sig.generics.params;
    if let Some(generic) = generics.iter().find(|it| !matches!(it, GenericParam::Lifetime(_))) {
        let why = "a function under test has no type parameters: name the types that it is called \
                   with";
        return Err(syn::Error::new(generic.span(), why));
    }
    let parameter = |argument: &FnArg| match argument {
        FnArg::Typed(argument) => match &*argument.pat {
            Pat::Ident(pattern) => {
                let of = anonymous(argument.ty.to_token_stream());
                Ok(Parameter { name: pattern.ident.clone(), of })
            }
            pattern => Err(syn::Error::new(pattern.span(), "name the input of the contract")),
        },
        FnArg::Receiver(receiver) => {
            let why = "a method cannot be a test: write a function that calls it";
            Err(syn::Error::new(receiver.span(), why))
        }
    };
    function.sig.inputs.iter().map(parameter).collect()
}

/// The same type, its lifetimes without their names, which are not known outside the function.
fn anonymous(tokens: TokenStream) -> TokenStream {
    let mut is_lifetime = false;
    let replaced = tokens.into_iter().map(|token| {
        let was_quote = is_lifetime;
        is_lifetime = matches!(&token, TokenTree::Punct(mark) if mark.as_char() == '\'');
        match token {
            TokenTree::Ident(name) if was_quote => TokenTree::Ident(Ident::new("_", name.span())),
            TokenTree::Group(group) => {
                let inside = anonymous(group.stream());
                TokenTree::Group(Group::new(group.delimiter(), inside))
            }
            token => token,
        }
    });
    replaced.collect()
}
