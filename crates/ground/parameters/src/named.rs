//! Enums whose variants have names.

/// Declares an enum with a name for each variant: `ALL`, in the order declared, `name()`, and `Display`.
///
/// ```
/// gauntlet_parameters::named! {
///     /// Directions.
///     #[derive(Debug, Clone, Copy, PartialEq)]
///     pub enum Direction {
///         /// Against the clock.
///         Left = "to the left",
///         /// With the clock.
///         Right = "to the right",
///     }
/// }
/// assert_eq!(Direction::ALL.map(Direction::name), ["to the left", "to the right"]);
/// ```
#[macro_export]
macro_rules! named {
    ($(#[$meta:meta])* $visibility:vis enum $type:ident { $($(#[$of:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$meta])*
        $visibility enum $type { $($(#[$of])* $variant,)+ }

        impl $type {
            /// All of them, in the order declared.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.pad(self.name())
            }
        }
    };
}
