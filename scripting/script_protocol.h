#pragma once

#include <chrono>
#include <cstdint>

/// What a task and the host of its script say to each other (ChildProcess): a call and one answer.
///
/// | call | sent | answered |
/// |---|---|---|
/// | Load | script | has combine, wants headers only: a byte each |
/// | Map | of each document: id, fields as JSON | how many documents were mapped; how many of these failed, and of each
/// its number among them and why; then keys and values of the others in turn |
/// | MapApart | the same | the same, but before keys and values the length of those of each document |
/// | Combine | of each key: key, a count, values | of each key: how many of its values were combined, from the front,
/// and to what; not all of them only for the last one | | Reduce | of each key: key, a count, values | of each key: 1
/// and a result, or 0 |
///
/// Strings as put_string(), counts as put_varint(). Keys are text, values and results JSON; a value that Map answers
/// is that of a tuple, put_string() of the JSON. An answer begins with a byte: 0, and what the table says, or 1 and
/// what is wrong: for Combine and Reduce, with the first key. They and Map answer about the first ones of what was
/// sent, at least one; and Combine combines two values, if there are two.
namespace fjord::scripting {

enum class Call : std::uint8_t { Load = 1, Map, Combine, Reduce, MapApart };

/// The host answers after so long with what was done by then, so that a limit on the time of a call is one on that of a
/// function of the script.
inline constexpr std::chrono::milliseconds kBatchTime{100};

}  // namespace fjord::scripting
