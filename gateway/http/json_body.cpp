#include "http/json_body.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fmt/format.h>

// RapidJSON with vector instructions, which skip the text of strings. All other files use it without them, so this one
// is compiled alone and has a namespace of its own for it.
#ifdef RAPIDJSON_RAPIDJSON_H_
#error "rapidjson is included before"
#endif
#ifdef __SSE2__
#define RAPIDJSON_SSE2
#endif
#define RAPIDJSON_NAMESPACE fjord_vector_rapidjson
#define RAPIDJSON_NAMESPACE_BEGIN namespace fjord_vector_rapidjson {
#define RAPIDJSON_NAMESPACE_END }
#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>
#include <rapidjson/stream.h>

namespace fjord_vector_rapidjson {
/// The handler asks the stream where it is, so the reader must not work on a copy of the stream.
template <>
struct StreamTraits<InsituStringStream> {
  enum { copyOptimization = 0 };
};
}  // namespace fjord_vector_rapidjson

namespace fjord::gateway {
namespace {

namespace rapidjson = fjord_vector_rapidjson;

constexpr int kDepthMax = 64;
/// Number of bytes that the vector instructions read at once.
constexpr std::size_t kVectorBytes = 16;

/// Finds `fields` in the events of the reader, by positions in the text.
class BodyHandler : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, BodyHandler> {
 public:
  BodyHandler(std::string_view json, rapidjson::InsituStringStream& stream)
      : json_(json), stream_(stream), checks_text_(json.find('\\') != std::string_view::npos) {}

  bool Default() { return scalar(Kind::Other); }
  bool Null() { return scalar(Kind::Other); }
  bool Bool(bool value) {
    if (depth_ == 1 && key_ == "create") body.create = value;
    return scalar(Kind::Bool);
  }
  bool RawNumber(const char*, rapidjson::SizeType, bool) { return scalar(Kind::Other); }
  bool String(const char* text, rapidjson::SizeType length, bool) {
    if (depth_ == 1 && key_ == "condition") body.condition = std::string(text, length);
    return check_text({text, length}) && scalar(Kind::String);
  }
  bool Key(const char* text, rapidjson::SizeType length, bool) {
    if (depth_ == 1) {
      key_.assign(text, length);
      is_fields_ = key_ == "fields";
      const bool is_again =
          (is_fields_ && has_fields) || (key_ == "condition" && body.condition) || (key_ == "create" && body.create);
      if (is_again) return fail(fmt::format("'{}' is there twice", key_));
    }
    return check_text({text, length});
  }
  bool StartObject() {
    if (depth_ == 1 && is_fields_) begin_ = stream_.Tell() - 1;
    return enter(true);
  }
  bool EndObject(rapidjson::SizeType) { return leave(); }
  bool StartArray() { return enter(false); }
  bool EndArray(rapidjson::SizeType) { return leave(); }

  DocumentBody body;  ///< All but the fields of the document, which `fields` has as JSON.
  std::string_view fields;
  bool has_fields = false;
  std::string problem;

 private:
  enum class Kind { Bool, String, Other };

  /// Texts of documents have no control characters but tab, carriage return and line feed; others come as escapes only.
  bool check_text(std::string_view text) {
    if (!checks_text_ || depth_ < 2 || !is_fields_) return true;
    const bool is_good = std::none_of(text.begin(), text.end(), [](char c) {
      return static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\r' && c != '\n';
    });
    return is_good || fail("a control character in a string");
  }
  bool enter(bool is_object) {
    if (depth_ == 0 && !is_object) return fail("expected an object");
    if (depth_ == 1 && (!is_object || !is_fields_) && !check_member(Kind::Other)) return false;
    return ++depth_ <= kDepthMax || fail(fmt::format("more than {} levels of nesting", kDepthMax));
  }
  bool leave() {
    --depth_;
    if (depth_ == 1 && is_fields_) {
      fields = json_.substr(begin_, stream_.Tell() - begin_);
      has_fields = true;
    }
    return true;
  }
  bool scalar(Kind kind) {
    if (depth_ == 0) return fail("expected an object");
    return depth_ != 1 || check_member(kind);
  }
  /// Checks a member of the body whose value is neither an object nor an array.
  bool check_member(Kind kind) {
    if (is_fields_) return fail("'fields' has to be an object");
    if (key_ == "condition" && kind != Kind::String) return fail("'condition' has to be a string");
    if (key_ == "create" && kind != Kind::Bool) return fail("'create' has to be true or false");
    return true;
  }
  bool fail(std::string text) {
    problem = std::move(text);
    return false;
  }

  const std::string_view json_;
  rapidjson::InsituStringStream& stream_;
  const bool checks_text_;
  int depth_ = 0;
  std::string key_;         ///< The last one of the outermost object.
  bool is_fields_ = false;  ///< key_ is "fields".
  std::size_t begin_ = 0;
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
  // Bytes in a longer form than needed, half of a surrogate pair, or a number beyond Unicode.
  const bool is_wrong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f) ||
                        (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f);
  return is_wrong ? 0 : length;
}

/// Returns the length of the longest prefix of a JSON text that is UTF-8 and has no control character from 0x1a on: the
/// vector instructions of RapidJSON 1.1 take those within strings.
std::size_t sound_prefix(std::string_view json) {
  constexpr std::uint64_t kHighBits = 0x8080808080808080U;
  constexpr std::uint64_t kSpaces = 0x2020202020202020U;
  std::size_t at = 0;
  while (at < json.size()) {
    std::uint64_t word = kHighBits;
    if (json.size() - at >= sizeof(word)) std::memcpy(&word, json.data() + at, sizeof(word));
    if (((word | (word - kSpaces)) & kHighBits) == 0) {
      at += sizeof(word);
      continue;
    }
    const std::size_t length = utf8_length(json.substr(at));
    const bool is_control = json[at] >= 0x1a && json[at] < 0x20;
    if (length == 0 || is_control) return at;
    at += length;
  }
  return at;
}

Status malformed(std::size_t at, std::string_view json, std::string_view why) {
  return {StatusCode::InvalidArgument,
          fmt::format("the body is malformed JSON at byte {} of {}: {}", at, json.size(), why)};
}

}  // namespace

Result<DocumentBody> read_document_body(std::string_view json) {
  const std::size_t sound = sound_prefix(json);
  if (sound < json.size()) return malformed(sound, json, "neither UTF-8 nor a character that a string may have");
  std::string text;
  text.reserve(json.size() + kVectorBytes);
  text.append(json).append(kVectorBytes, '\0');
  rapidjson::InsituStringStream stream(text.data());
  BodyHandler handler(json, stream);
  rapidjson::Reader reader;
  constexpr unsigned kFlags = rapidjson::kParseInsituFlag | rapidjson::kParseNumbersAsStringsFlag;
  const rapidjson::ParseResult result = reader.Parse<kFlags>(stream, handler);
  if (!handler.problem.empty()) {
    return Status(StatusCode::InvalidArgument, fmt::format("the body, at byte {}: {}", stream.Tell(), handler.problem));
  }
  if (result.IsError()) return malformed(result.Offset(), json, rapidjson::GetParseError_En(result.Code()));
  // The reader takes a zero byte for the end of the text.
  if (stream.Tell() < json.size()) {
    return Status(StatusCode::InvalidArgument, fmt::format("the body has a zero byte at byte {}", stream.Tell()));
  }
  if (!handler.has_fields) return Status(StatusCode::InvalidArgument, "the body has no object 'fields'");
  text = {};  // Frees the parsed text before the fields are copied.
  handler.body.fields = handler.fields;
  return std::move(handler.body);
}

void append_json_string(std::string& to, std::string_view text) {
  const auto is_plain = [](char c) { return c >= 0x20 && c != '"' && c != '\\'; };  // Bytes from 0x80 on are negative.
  to += '"';
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t end = at;
    while (end < text.size() && is_plain(text[end])) ++end;
    to += text.substr(at, end - at);
    at = end;
    if (at == text.size()) break;
    const auto byte = static_cast<unsigned char>(text[at]);
    const std::size_t length = utf8_length(text.substr(at));
    if (length == 0) {
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
