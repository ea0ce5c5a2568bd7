#include "schema_name.h"

namespace fjord::fleetcontroller {
namespace {

/// Removes the next word or single punctuation character from `text` and returns it. Skips comments.
std::string_view next_word(std::string_view& text) {
  auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  while (!text.empty()) {
    if (text.front() == '#') {
      std::size_t end = text.find('\n');
      text.remove_prefix(end == std::string_view::npos ? text.size() : end);
    } else if (text.front() == ' ' || (text.front() >= '\t' && text.front() <= '\r')) {
      text.remove_prefix(1);
    } else {
      std::size_t length = 0;
      while (length < text.size() && is_word(text[length])) ++length;
      if (length == 0) length = 1;
      std::string_view word = text.substr(0, length);
      text.remove_prefix(length);
      return word;
    }
  }
  return {};
}

}  // namespace

Result<std::string> schema_name(std::string_view sd_text) {
  std::string_view rest = sd_text;
  for (std::string_view word = next_word(rest); !word.empty(); word = next_word(rest)) {
    if (word != "document") continue;
    std::string_view name = next_word(rest);
    if (!name.empty() && name != "{") return std::string(name);
    return Status(StatusCode::InvalidArgument, "expected the name of a document type after 'document'");
  }
  return Status(StatusCode::InvalidArgument, "a schema declares a document type: 'document NAME { … }' was not found");
}

std::string with_schema_names(std::string message, std::span<const std::string> sd_texts) {
  static constexpr std::string_view kWord = "text ";
  for (std::size_t at = message.find(kWord); at != std::string::npos; at = message.find(kWord, at + 1)) {
    std::size_t end = at + kWord.size();
    std::size_t number = 0;
    while (end < message.size() && message[end] >= '0' && message[end] <= '9') {
      number = number * 10 + static_cast<std::size_t>(message[end++] - '0');
    }
    if (number == 0 || number > sd_texts.size()) continue;
    Result<std::string> name = schema_name(sd_texts[number - 1]);
    if (name) message.replace(at, end - at, "the schema of " + *name);
  }
  return message;
}

}  // namespace fjord::fleetcontroller
