#include "output/yaml_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <fmt/format.h>
#include <rapidjson/reader.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#include <string_view>
#include <utility>
#include <vector>

namespace fjord::cli {
namespace {

/// Returns whether YAML reads `text` without quotes as this text: a word that is neither a number nor a constant.
bool is_plain(std::string_view text) {
  constexpr std::array<std::string_view, 8> kConstants = {"true", "false", "null", "yes", "no", "on", "off", "y"};
  std::string lower;
  for (const char c : text) lower.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  if (lower.empty() || lower[0] < 'a' || lower[0] > 'z' || lower == "n") return false;
  if (std::find(kConstants.begin(), kConstants.end(), lower) != kConstants.end()) return false;
  return std::all_of(lower.begin(), lower.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
  });
}

/// Returns the code point of the UTF-8 character at the beginning of a text that is valid UTF-8, and its bytes.
std::pair<std::uint32_t, std::size_t> first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
  const std::uint32_t first = byte(0);
  const std::size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (length == 1 || text.size() < length) return {first, 1};
  std::uint32_t code = first & (0xff >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) code = code << 6 | (byte(i) & 0x3f);
  return {code, length};
}

/// Returns true if a double-quoted string of YAML 1.1 or 1.2 may have the character as it is, and reads it as itself.
/// Section 5.1 of YAML 1.2: c-printable; without line ends, which are folded, and the byte order mark.
bool is_printable(std::uint32_t code) {
  if (code < 0x20 || code == 0x7f || (code >= 0x80 && code < 0xa0)) return false;
  return code != 0x2028 && code != 0x2029 && code != 0xfeff && code != 0xfffe && code != 0xffff;
}

/// A string of JSON is one of YAML but for characters that YAML must escape.
std::string with_printable_characters(std::string_view json) {
  std::string text;
  while (!json.empty()) {
    const auto [code, length] = first_character(json);
    if (is_printable(code)) {
      text += json.substr(0, length);
    } else {
      text += code < 0x100 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
    }
    json.remove_prefix(length);
  }
  return text;
}

/// Writes the events of a JSON parser as YAML. Numbers keep their digits.
class YamlWriter {
 public:
  bool Null() { return scalar("null"); }
  bool Bool(bool value) { return scalar(value ? "true" : "false"); }
  bool Int(int value) { return scalar(std::to_string(value)); }
  bool Uint(unsigned value) { return scalar(std::to_string(value)); }
  bool Int64(std::int64_t value) { return scalar(std::to_string(value)); }
  bool Uint64(std::uint64_t value) { return scalar(std::to_string(value)); }
  bool Double(double) { return false; }  // RawNumber() gets all numbers.
  bool RawNumber(const char* text, rapidjson::SizeType size, bool) { return scalar({text, size}); }
  bool String(const char* text, rapidjson::SizeType size, bool) { return scalar(string_of({text, size})); }
  bool StartObject() { return begin(false); }
  bool StartArray() { return begin(true); }
  bool EndObject(rapidjson::SizeType) { return end("{}"); }
  bool EndArray(rapidjson::SizeType) { return end("[]"); }
  bool Key(const char* text, rapidjson::SizeType size, bool) {
    begin_line();
    text_ += string_of({text, size}) + ":";
    return true;
  }

  const std::string& text() const { return text_; }

 private:
  struct Level {
    bool is_list = false;
    bool is_empty = true;
  };

  static std::string string_of(std::string_view text) {
    if (is_plain(text)) return std::string(text);
    rapidjson::StringBuffer buffer;
    rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
    writer.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
    return with_printable_characters({buffer.GetString(), buffer.GetSize()});
  }

  /// Begins the line of the next member or element.
  void begin_line() {
    if (levels_.back().is_empty && levels_.size() > 1) text_ += "\n";
    levels_.back().is_empty = false;
    text_.append(2 * (levels_.size() - 1), ' ');
  }
  /// Begins a value: an element has a line of its own, the value of a member stands behind its key.
  void begin_value() {
    if (levels_.empty() || !levels_.back().is_list) return;
    begin_line();
    text_ += "-";
  }
  bool scalar(std::string_view value) {
    begin_value();
    if (!levels_.empty()) text_ += " ";
    text_.append(value);
    text_ += "\n";
    return true;
  }
  bool begin(bool is_list) {
    begin_value();
    levels_.push_back({is_list, true});
    return true;
  }
  bool end(std::string_view empty) {
    const bool is_empty = levels_.back().is_empty;
    levels_.pop_back();
    if (is_empty) text_ += std::string(levels_.empty() ? "" : " ") + std::string(empty) + "\n";
    return true;
  }

  std::string text_;
  std::vector<Level> levels_;  ///< The open objects and arrays, the innermost last.
};

}  // namespace

std::string yaml_of_json_lines(const std::string& lines) {
  std::string text;
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', at), lines.size());
    const std::string line = lines.substr(at, end - at);
    at = end + 1;
    YamlWriter yaml;
    rapidjson::Reader reader;
    rapidjson::StringStream json(line.c_str());
    constexpr unsigned kFlags = rapidjson::kParseIterativeFlag | rapidjson::kParseNumbersAsStringsFlag;
    const bool is_json = !reader.Parse<kFlags>(json, yaml).IsError();
    text += is_json ? "---\n" + yaml.text() : line + "\n";
  }
  return text;
}

}  // namespace fjord::cli
