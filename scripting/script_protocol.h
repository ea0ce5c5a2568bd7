#pragma once

#include <cstdint>

/// What a task and the host of its script say to each other (ChildProcess): a call and one answer.
///
/// | call | sent | answered |
/// |---|---|---|
/// | Load | script | has combine, wants headers only: a byte each |
/// | Map | id, fields as JSON | a count, then keys and values in turn |
/// | Combine | key, a count, values | a value |
/// | Reduce | key, a count, values | 1 and a result, or 0 |
///
/// Strings as put_string(), counts as put_varint(). Keys are text, values and results JSON. An answer begins with a
/// byte: 0, and what the table says, or 1 and what is wrong.
namespace fjord::scripting {

enum class Call : std::uint8_t { Load = 1, Map, Combine, Reduce };

}  // namespace fjord::scripting
