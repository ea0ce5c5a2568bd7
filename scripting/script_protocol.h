#pragma once

#include <chrono>
#include <cstdint>

/// Messages between a task and the host of its script (ChildProcess): a call and one answer.
///
///     Load
///       call: script
///       answer: has combine, wants headers only: one byte each
///     Map
///       call: for each document its id, and its fields as JSON
///       answer: number of documents mapped, number of these that failed; index and error of each failed one; then
///               keys and values of the others in turn
///     MapApart
///       call: as for Map
///       answer: as for Map, but with the tuple length of each document before the keys and values
///     Combine
///       call: for each key the key, a count, its values
///       answer: for each key the number of its values that were combined, from the front, and the combined value; the
///               number is less than all values only for the last key answered
///     Reduce
///       call: for each key the key, a count, its values
///       answer: for each key 1 and a result, or 0
///
/// Strings are written by put_string(), counts by put_varint(). Keys are text, values and results JSON. A value in the
/// answer to Map is that of a tuple: put_string() of the JSON. An answer begins with a byte: 0 before the contents
/// above, or 1 before an error, which for Combine and Reduce belongs to the first key. Map, Combine and Reduce answer
/// about the first documents or keys of the call, at least one. Combine combines at least two values of a key that has
/// two.
namespace fjord::scripting {

enum class Call : std::uint8_t { Load = 1, Map, Combine, Reduce, MapApart };

/// Time after which the host answers a call with the results so far. So the time limit of a call is a limit for one
/// call of a script function.
inline constexpr std::chrono::milliseconds kBatchTime{100};
/// Time limit for the lines of a script outside its functions, if that of a call is not shorter.
inline constexpr std::chrono::milliseconds kLoadTime{1000};

}  // namespace fjord::scripting
