#pragma once

#include <string>
#include <string_view>

/// How keys and names look in documents and ids.
namespace fjord::mapreduce {

/// printable_key() is the key in a result's field, key_in_id() the key in its id. A key of UTF-8 without control
/// characters (in an id also without %) is unchanged; other keys are percent-encoded. key_in_id() replaces the end of a
/// long key by a hash. Different keys stay different.
std::string printable_key(std::string_view key);
std::string key_in_id(std::string_view key);
bool is_plain_utf8(std::string_view text);
/// True for 1 to 64 letters, digits, dots, minuses and underscores.
bool is_plain_name(std::string_view text);

}  // namespace fjord::mapreduce
