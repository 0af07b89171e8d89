//! Fixed sets of words: enums whose values the API spells.

/// Defines an enum whose values are words of the API: the list of all values, their spelling, and, with the feature
/// `schema`, their serialization. A word is spelled like its variant, or as the text that follows the variant.
macro_rules! words {
    ($(#[$about:meta])* pub enum $name:ident { $($(#[$of:meta])* $word:ident $(= $text:literal)?,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[cfg_attr(feature = "schema", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
        pub enum $name {
            $($(#[$of])* $(#[cfg_attr(feature = "schema", serde(rename = $text))])? $word,)+
        }

        impl $name {
            /// All values, in order.
            pub const ALL: [Self; [$(stringify!($word)),+].len()] = [$(Self::$word),+];

            /// Returns the spelling in the API.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$word => $crate::words::spelled!($word $(, $text)?),)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

/// The spelling of one word.
macro_rules! spelled {
    ($word:ident) => {
        stringify!($word)
    };
    ($word:ident, $text:literal) => {
        $text
    };
}

pub(crate) use {spelled, words};
