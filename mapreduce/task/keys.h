#pragma once

#include <string>
#include <string_view>

/// How keys and names look in documents and ids.
namespace fjord::mapreduce {

/// printable_key() is the key in a result's field, key_in_id() the key in its id. In a field a key of UTF-8 is
/// unchanged; bytes that are not UTF-8 are percent-encoded, with a hash behind them that tells the key from a text that
/// looks the same. In an id, control characters and % are percent-encoded too, and the end of a long key is replaced by
/// a hash. Different keys stay different.
std::string printable_key(std::string_view key);
std::string key_in_id(std::string_view key);
/// True if the text is UTF-8 without control characters.
bool is_plain_utf8(std::string_view text);
/// True for 1 to 64 letters, digits, dots, minuses and underscores.
bool is_plain_name(std::string_view text);

}  // namespace fjord::mapreduce
