//! What is said in the parentheses of the attribute.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Expr, ExprLit, Ident, Lit, Path, Token, parenthesized};

/// `group_advantage, scale = "std", returns(advantages), .cases(32)`.
pub(crate) struct Attribute {
    /// The type of the contract.
    pub contract: TokenStream,
    /// The options that are said, each with its value.
    options: Vec<(Ident, Expr)>,
    /// The outputs that the function returns, in their order.
    returns: Vec<Ident>,
    /// Calls of methods of the check.
    pub methods: Vec<TokenStream>,
    /// The crate for the library whose tensors the function takes.
    pub tensors: Option<Path>,
}

impl Parse for Attribute {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        if input.is_empty() {
            let missing = "name a contract: #[shakedown::contract(group_advantage)]";
            return Err(syn::Error::new(Span::call_site(), missing));
        }
        let contract = contract(&Path::parse_mod_style(input)?);
        let mut attribute = Attribute {
            contract,
            options: Vec::new(),
            returns: Vec::new(),
            methods: Vec::new(),
            tensors: None,
        };
        while !input.is_empty() {
            input.parse::<Token![,]>()?;
            if !input.is_empty() {
                attribute.part(input)?;
            }
        }
        Ok(attribute)
    }
}

impl Attribute {
    fn part(&mut self, input: ParseStream<'_>) -> syn::Result<()> {
        if input.peek(Token![.]) {
            let dot: Token![.] = input.parse()?;
            let (name, arguments): (Ident, _) = (input.parse()?, input);
            let inside;
            let parentheses = parenthesized!(inside in arguments);
            let inside: TokenStream = inside.parse()?;
            let call = quote_spanned!(parentheses.span.join()=> (#inside));
            self.methods.push(quote!(#dot #name #call));
            return Ok(());
        }
        let name = Ident::parse_any(input)?;
        if name == "returns" && input.peek(syn::token::Paren) {
            let inside;
            parenthesized!(inside in input);
            let names = Punctuated::<Ident, Token![,]>::parse_terminated(&inside)?;
            self.returns = names.into_iter().collect();
            return Ok(());
        }
        if !input.peek(Token![=]) {
            let expected = format!(
                "expected `{name} = VALUE` for an option, `returns(OUTPUT, …)`, or `.{name}(…)` \
                 for a method of the check"
            );
            return Err(syn::Error::new(name.span(), expected));
        }
        input.parse::<Token![=]>()?;
        if name == "tensors" {
            self.tensors = Some(Path::parse_mod_style(input)?);
            return Ok(());
        }
        if let Some((before, _)) = self.options.iter().find(|(before, _)| *before == name) {
            return Err(syn::Error::new(name.span(), format!("`{before}` is said twice")));
        }
        self.options.push((name, input.parse()?));
        Ok(())
    }

    /// Sets the options in a variable of this name.
    pub(crate) fn settings(&self) -> TokenStream {
        let set = self.options.iter().map(|(name, value)| {
            let value = match value {
                Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => quote_spanned!(text.span()=>
                    const { ::shakedown::attribute::text(#text) }.value()),
                value => quote_spanned!(value.span()=> ::shakedown::attribute::value(#value)),
            };
            quote!(options.#name = #value;)
        });
        set.collect()
    }

    /// The names of the outputs that are returned, and a proof that there are such outputs.
    pub(crate) fn returns(&self) -> TokenStream {
        let names = &self.returns;
        let texts = names.iter().map(|name| name.unraw().to_string());
        let contract = &self.contract;
        quote!({
            let _ = |output: &<#contract as ::shakedown::author::Definition>::Output| {
                #( let _ = &output.#names; )*
            };
            &[#( #texts ),*]
        })
    }
}

/// `group_advantage` is the contract of that module; a longer path, or a type's name, is itself.
fn contract(path: &Path) -> TokenStream {
    let Some(name) = path.get_ident() else { return path.to_token_stream() };
    let text = name.to_string();
    if text.starts_with(char::is_uppercase) {
        return name.to_token_stream();
    }
    let camel: String = text.split('_').map(capitalised).collect();
    let contract = format_ident!("{camel}", span = name.span());
    quote!(::shakedown::contracts::#name::#contract)
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}
