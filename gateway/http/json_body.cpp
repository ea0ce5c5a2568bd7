#include "http/json_body.h"

#include <algorithm>
#include <fmt/format.h>
#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

namespace fjord::gateway {
namespace {

constexpr int kDepthMax = 64;

/// Finds `fields` in the events of the reader, by positions in the text. `kept` is its text without empty fields.
class BodyHandler : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, BodyHandler> {
 public:
  BodyHandler(std::string_view json, const rapidjson::MemoryStream& stream, bool checks_text)
      : json_(json), stream_(stream), checks_text_(checks_text) {}

  bool Default() { return scalar(Kind::Other, false); }
  bool Null() { return scalar(Kind::Other, false); }
  bool Bool(bool value) {
    if (depth_ == 1 && key_ == "create") body.create = value;
    return scalar(Kind::Bool, false);
  }
  bool RawNumber(const char*, rapidjson::SizeType, bool) { return scalar(Kind::Other, false); }
  bool String(const char* text, rapidjson::SizeType length, bool) {
    if (depth_ == 1 && key_ == "condition") body.condition = std::string(text, length);
    return check_text({text, length}) && scalar(Kind::String, length == 0);
  }
  bool Key(const char* text, rapidjson::SizeType length, bool) {
    if (depth_ == 1) key_.assign(text, length);
    return check_text({text, length});
  }
  bool StartObject() {
    if (depth_ == 1 && key_ == "fields") {
      begin_ = stream_.Tell() - 1;
      kept = "{";
      kept_to_ = stream_.Tell();
    }
    return enter(true);
  }
  bool EndObject(rapidjson::SizeType members) { return leave(members == 0); }
  bool StartArray() { return enter(false); }
  bool EndArray(rapidjson::SizeType elements) { return leave(elements == 0); }

  DocumentBody body;
  std::string kept;
  bool has_fields = false;
  std::string problem;

 private:
  enum class Kind { Bool, String, Other };

  /// Texts of documents have no control characters but tab, carriage return and line feed. Stored ones are not checked.
  bool check_text(std::string_view text) {
    if (!checks_text_ || depth_ < 2 || key_ != "fields") return true;
    const bool is_good = std::none_of(text.begin(), text.end(), [](char c) {
      return static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\r' && c != '\n';
    });
    return is_good || fail("a control character in a string");
  }
  bool enter(bool is_object) {
    if (depth_ == 0 && !is_object) return fail("expected an object");
    if (depth_ == 1 && (!is_object || key_ != "fields") && !check_member(Kind::Other)) return false;
    return ++depth_ <= kDepthMax || fail(fmt::format("more than {} levels of nesting", kDepthMax));
  }
  bool leave(bool is_empty) {
    --depth_;
    if (depth_ == 1 && key_ == "fields") {
      body.fields = json_.substr(begin_, stream_.Tell() - begin_);
      kept += '}';
      has_fields = true;
    }
    value_ended(is_empty);
    return true;
  }
  bool scalar(Kind kind, bool is_empty) {
    if (depth_ == 0) return fail("expected an object");
    if (depth_ == 1 && !check_member(kind)) return false;
    value_ended(is_empty);
    return true;
  }
  void value_ended(bool is_empty) {
    if (depth_ != 2 || key_ != "fields") return;
    std::string_view part = json_.substr(kept_to_, stream_.Tell() - kept_to_);
    kept_to_ = stream_.Tell();
    if (is_empty) return;
    if (kept.size() == 1) part.remove_prefix(part.find('"'));
    kept += part;
  }
  /// Checks a member of the body that is no object and no array.
  bool check_member(Kind kind) {
    if (key_ == "fields") return fail("'fields' has to be an object");
    if (key_ == "condition" && kind != Kind::String) return fail("'condition' has to be a string");
    if (key_ == "create" && kind != Kind::Bool) return fail("'create' has to be true or false");
    return true;
  }
  bool fail(std::string text) {
    problem = std::move(text);
    return false;
  }

  const std::string_view json_;
  const rapidjson::MemoryStream& stream_;
  const bool checks_text_;
  int depth_ = 0;
  std::string key_;
  std::size_t begin_ = 0;
  std::size_t kept_to_ = 0;
};

/// Returns the bytes of the character with which the text begins; 0 if they are not UTF-8.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xc2 ? 0
                             : first < 0xe0 ? 2
                             : first < 0xf0 ? 3
                             : first < 0xf5 ? 4
                                            : 0;
  if (length <= 1 || length > text.size()) return length > text.size() ? 0 : length;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // A longer form than needed, a half of a surrogate pair, a number beyond Unicode.
  const bool is_wrong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f) ||
                        (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f);
  return is_wrong ? 0 : length;
}

template <unsigned kFurtherFlags>
Status read_json(std::string_view json, BodyHandler& handler, rapidjson::MemoryStream& stream) {
  rapidjson::Reader reader;
  constexpr unsigned kFlags = kFurtherFlags | rapidjson::kParseNumbersAsStringsFlag;
  const rapidjson::ParseResult result = reader.Parse<kFlags>(stream, handler);
  if (!handler.problem.empty()) {
    return {StatusCode::InvalidArgument, fmt::format("the body, at byte {}: {}", stream.Tell(), handler.problem)};
  }
  if (result.IsError()) {
    return {StatusCode::InvalidArgument, fmt::format("the body is malformed JSON at byte {} of {}: {}", result.Offset(),
                                                     json.size(), rapidjson::GetParseError_En(result.Code()))};
  }
  // The reader takes a zero byte for the end of the text.
  if (stream.Tell() < json.size()) {
    return {StatusCode::InvalidArgument, fmt::format("the body has a zero byte at byte {}", stream.Tell())};
  }
  if (!handler.has_fields) return {StatusCode::InvalidArgument, "the body has no object 'fields'"};
  return Status::ok();
}

}  // namespace

Result<DocumentBody> read_document_body(std::string_view json) {
  rapidjson::MemoryStream stream(json.data(), json.size());
  BodyHandler handler(json, stream, true);
  FJORD_TRY(read_json<rapidjson::kParseValidateEncodingFlag>(json, handler, stream));
  return std::move(handler.body);
}

Result<std::string> fields_of_document(std::string_view json) {
  rapidjson::MemoryStream stream(json.data(), json.size());
  BodyHandler handler(json, stream, false);
  // A distributor wrote it, so it is UTF-8; looking again takes a tenth of a gateway's time.
  FJORD_TRY(read_json<rapidjson::kParseNoFlags>(json, handler, stream));
  return std::move(handler.kept);
}

void append_json_string(std::string& to, std::string_view text) {
  to += '"';
  std::size_t at = 0;
  while (at < text.size()) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const std::size_t length = utf8_length(text.substr(at));
    const bool is_valid = length != 0;
    if (!is_valid) {
      to += "\xef\xbf\xbd";
      ++at;
    } else if (byte == '"' || byte == '\\') {
      to += '\\';
      to += text[at++];
    } else if (byte < 0x20) {
      to += fmt::format("\\u{:04x}", byte);
      ++at;
    } else {
      to += text.substr(at, length);
      at += length;
    }
  }
  to += '"';
}

}  // namespace fjord::gateway
