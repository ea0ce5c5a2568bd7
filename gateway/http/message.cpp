#include "http/message.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <libdeflate.h>
#include <memory>
#include <zlib.h>

namespace fjord::gateway {
namespace {

constexpr const char* kBusy = "too many bytes of requests wait; try again later";
/// Larger bodies are unpacked piece by piece.
constexpr std::size_t kUnpackedWholeMax = 256 << 10;
/// Greatest number of bytes that deflate makes of one.
constexpr std::size_t kExpansionMax = 1032;

constexpr std::string_view kTokenDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Status bad_parameter(const std::string& name, const std::string& value, std::string_view expected) {
  return {StatusCode::InvalidArgument,
          fmt::format("request property '{}' is '{}': expected {}", name, value, expected)};
}

/// Returns true for the parameters that docs/clients/http.md names.
bool is_parameter(std::string_view name) {
  constexpr std::string_view kNames[] = {
      "bucketSpace",
      "cluster",
      "concurrency",
      "condition",
      "confirm",
      "continuation",
      "create",
      "destinationCluster",
      "dryRun",
      "fieldSet",
      "format.tensors",
      "fromTimestamp",
      "includeRemoves",
      "route",
      "selection",
      "sliceId",
      "slices",
      "stream",
      "timeChunk",
      "timeout",
      "toTimestamp",
      "tracelevel",
      "wantedDocumentCount",
  };
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

Status without_value(const std::string& name) {
  return {StatusCode::InvalidArgument, fmt::format("Expected non-empty value for request property '{}'", name)};
}

/// Calls `use` with name and value of each parameter. Errors: InvalidArgument for a malformed escape; those of `use`.
template <typename F>
Status for_each_parameter(std::string_view target, F use) {
  const std::size_t mark = target.find('?');
  std::string_view rest = mark == std::string_view::npos ? std::string_view() : target.substr(mark + 1);
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    if (part.empty()) continue;
    const std::size_t equals = part.find('=');
    FJORD_TRY_ASSIGN(std::string name, decode_url(part.substr(0, equals)));
    FJORD_TRY_ASSIGN(std::string value,
                     decode_url(equals == std::string_view::npos ? std::string_view() : part.substr(equals + 1)));
    FJORD_TRY(use(std::move(name), std::move(value)));
  }
  return Status::ok();
}

/// Returns how long the text is, as the end of the gzip data says; 0 if it does not say anything that can be.
std::size_t text_length_of(std::string_view compressed) {
  if (compressed.size() < 4) return 0;
  std::size_t length = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const auto byte = static_cast<unsigned char>(compressed[compressed.size() - 4 + i]);
    length |= static_cast<std::size_t>(byte) << (8 * i);
  }
  return length <= kExpansionMax * compressed.size() ? length : 0;
}

/// Unpacks a small body at once, which takes little more than half of the time of zlib. Returns nothing if it is not
/// exactly one gzip member with a text of that length.
std::optional<std::string> unpack_whole(std::string_view compressed, std::size_t length) {
  struct Free {
    void operator()(libdeflate_decompressor* one) const { libdeflate_free_decompressor(one); }
  };
  thread_local const std::unique_ptr<libdeflate_decompressor, Free> decompressor(libdeflate_alloc_decompressor());
  if (decompressor == nullptr) return std::nullopt;
  std::string text(length, '\0');
  std::size_t used = 0;
  const libdeflate_result result = libdeflate_gzip_decompress_ex(
      decompressor.get(), compressed.data(), compressed.size(), text.data(), text.size(), &used, nullptr);
  if (result != LIBDEFLATE_SUCCESS || used != compressed.size()) return std::nullopt;
  return text;
}

}  // namespace

std::string_view HttpRequest::header(std::string_view name) const {
  for (const HttpHeader& one : headers) {
    if (one.name == name) return one.value;
  }
  return {};
}

bool is_same_word(std::string_view text, std::string_view lower) {
  const auto is_same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; };
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(), is_same);
}

double quality_of(std::string_view accept, std::string_view media_type) {
  double quality = 0;
  while (!accept.empty()) {
    std::string_view part = accept.substr(0, accept.find(','));
    accept.remove_prefix(std::min(accept.size(), part.size() + 1));
    const auto trim = [](std::string_view text) {
      while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
      while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
      return text;
    };
    if (trim(part.substr(0, part.find(';'))) != media_type) continue;
    quality = 1;
    if (const std::size_t at = part.find("q="); at != std::string_view::npos) {
      const std::string_view number = trim(part.substr(at + 2));
      std::from_chars(number.data(), number.data() + number.size(), quality);
    }
  }
  return quality;
}

namespace {

/// Returns whether the text is a token of RFC 9110.
bool is_token(std::string_view text) {
  constexpr std::string_view kOther = "!#$%&'*+-.^_`|~";
  const auto fits = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || kOther.find(c) != kOther.npos;
  };
  return !text.empty() && std::all_of(text.begin(), text.end(), fits);
}

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// Returns whether the text is "NAME=VALUE", and for the name q a number from 0 to 1.
bool is_accept_parameter(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view name = without_blanks(text.substr(0, equals));
  const std::string_view value = without_blanks(text.substr(equals + 1));
  if (name != "q" && name != "Q") return is_token(name) && !value.empty();
  double quality = -1;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), quality);
  return error == std::errc() && end == value.data() + value.size() && quality >= 0 && quality <= 1;
}

/// Returns whether the text is "TYPE/SUBTYPE[;NAME=VALUE]...", or "*" in place of the type, as Java sends it.
bool is_media_range(std::string_view text) {
  for (bool is_first = true; is_first || !text.empty(); is_first = false) {
    const std::string_view part = without_blanks(text.substr(0, text.find(';')));
    text.remove_prefix(
        std::min(text.size(), text.find(';') == std::string_view::npos ? text.size() : text.find(';') + 1));
    if (!is_first && !is_accept_parameter(part)) return false;
    if (!is_first || part == "*") continue;
    const std::size_t slash = part.find('/');
    if (slash == std::string_view::npos || !is_token(part.substr(0, slash)) || !is_token(part.substr(slash + 1))) {
      return false;
    }
  }
  return true;
}

}  // namespace

Status check_accept(std::string_view accept) {
  for (std::string_view rest = accept; !rest.empty();) {
    const std::string_view part = without_blanks(rest.substr(0, rest.find(',')));
    rest.remove_prefix(
        std::min(rest.size(), rest.find(',') == std::string_view::npos ? rest.size() : rest.find(',') + 1));
    if (part.empty() || is_media_range(part)) continue;
    return {StatusCode::InvalidArgument,
            fmt::format("the header Accept is '{}': expected media types such as application/json, with ;q=0 to ;q=1 "
                        "behind them",
                        accept)};
  }
  return Status::ok();
}

Result<std::string> decode_url(std::string_view text) {
  if (std::none_of(text.begin(), text.end(), [](char c) { return c == '%' || c == '+'; })) return std::string(text);
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      decoded += ' ';
    } else if (text[i] != '%') {
      decoded += text[i];
    } else {
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) {
        return Status(StatusCode::InvalidArgument, fmt::format("'{}': expected two hexadecimal digits after %", text));
      }
      decoded += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return decoded;
}

Result<std::vector<std::string>> split_path(std::string_view path) {
  std::vector<std::string> segments;
  segments.reserve(8);
  if (path.starts_with('/')) path.remove_prefix(1);
  while (true) {
    const std::size_t slash = path.find('/');
    FJORD_TRY_ASSIGN(std::string segment, decode_url(path.substr(0, slash)));
    segments.push_back(std::move(segment));
    if (slash == std::string_view::npos) return segments;
    path.remove_prefix(slash + 1);
  }
}

Result<HttpQuery> HttpQuery::parse(std::string_view target) {
  HttpQuery query;
  FJORD_TRY(for_each_parameter(target, [&](std::string name, std::string value) -> Status {
    if (!is_parameter(name)) return Status::ok();
    if (value.empty()) return without_value(name);
    return query.add(std::move(name), std::move(value));
  }));
  return query;
}

Result<HttpQuery> HttpQuery::parse_known(std::string_view target, const std::vector<std::string>& names) {
  HttpQuery query;
  FJORD_TRY(for_each_parameter(target, [&](std::string name, std::string value) -> Status {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      return {StatusCode::InvalidArgument,
              names.empty()
                  ? fmt::format("there is no request property '{}' here", name)
                  : fmt::format("there is no request property '{}' here, only {}", name, fmt::join(names, ", "))};
    }
    if (value.empty()) return without_value(name);
    return query.add(std::move(name), std::move(value));
  }));
  return query;
}

Status HttpQuery::add(std::string name, std::string value) {
  const auto [at, is_new] = values_.emplace(std::move(name), std::move(value));
  if (is_new) return Status::ok();
  return {StatusCode::InvalidArgument,
          fmt::format("request property '{}' is there twice: expected it once", at->first)};
}

void HttpQuery::keep_only(const std::vector<std::string>& names) {
  std::erase_if(values_,
                [&](const auto& one) { return std::find(names.begin(), names.end(), one.first) == names.end(); });
}

const std::string* HttpQuery::find(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

Result<bool> HttpQuery::flag(const std::string& name, bool otherwise) const {
  const std::string* value = find(name);
  if (value == nullptr) return otherwise;
  if (*value == "true") return true;
  if (*value == "false") return false;
  return bad_parameter(name, *value, "true or false");
}

Result<std::optional<std::int64_t>> HttpQuery::number(const std::string& name) const {
  const std::string* value = find(name);
  if (value == nullptr) return std::optional<std::int64_t>();
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), number);
  if (error != std::errc() || end != value->data() + value->size()) return bad_parameter(name, *value, "a number");
  return std::optional<std::int64_t>(number);
}

Result<std::optional<std::int64_t>> HttpQuery::duration_ms(const std::string& name) const {
  const std::string* value = find(name);
  if (value == nullptr) return std::optional<std::int64_t>();
  double number = 0;
  const char* last = value->data() + value->size();
  const auto [end, error] = std::from_chars(value->data(), last, number, std::chars_format::fixed);
  const std::string_view unit(end, static_cast<std::size_t>(last - end));
  const double factor = unit == "ks"                  ? 1e6
                        : unit.empty() || unit == "s" ? 1e3
                        : unit == "ms"                ? 1
                        : unit == "\xc2\xb5s"         ? 1e-3
                                                      : 0;
  constexpr double kMsMax = 1e9;
  if (error != std::errc() || factor == 0 || !(number > 0) || number * factor > kMsMax) {
    return bad_parameter(name, *value, "a time such as 60000ms, 5s or 2.5");
  }
  return std::optional<std::int64_t>(std::max<std::int64_t>(1, std::llround(number * factor)));
}

Result<std::string> gunzip(std::string_view compressed, std::size_t bytes_max,
                           const std::function<bool(std::size_t)>& hold) {
  const std::size_t length = text_length_of(compressed);
  if (length > 0 && length <= std::min(kUnpackedWholeMax, bytes_max)) {
    if (!hold(length)) return Status(StatusCode::Busy, kBusy);
    if (auto text = unpack_whole(compressed, length)) return std::move(*text);
  }
  constexpr int kGzip = 16;
  z_stream stream{};
  if (inflateInit2(&stream, MAX_WBITS + kGzip) != Z_OK) return Status(StatusCode::IoError, "zlib does not start");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(compressed.data()));
  stream.avail_in = static_cast<uInt>(compressed.size());
  std::string text;
  char part[16 << 10];
  int state = Z_OK;
  bool is_held = true;
  while (state == Z_OK && text.size() <= bytes_max && is_held) {
    stream.next_out = reinterpret_cast<Bytef*>(part);
    stream.avail_out = sizeof(part);
    state = inflate(&stream, Z_NO_FLUSH);
    text.append(part, sizeof(part) - stream.avail_out);
    is_held = hold(text.size());
  }
  const bool is_whole = state == Z_STREAM_END && stream.avail_in == 0;
  inflateEnd(&stream);
  if (text.size() > bytes_max) {
    return Status(StatusCode::TooLarge, fmt::format("the uncompressed body has more than {} bytes", bytes_max));
  }
  if (!is_held) return Status(StatusCode::Busy, kBusy);
  if (!is_whole) return Status(StatusCode::InvalidArgument, "the body is malformed gzip");
  return text;
}

std::string to_token(std::string_view text) {
  std::string token;
  unsigned bits = 0;
  unsigned held = 0;
  for (const char c : text) {
    held = (held << 8 | static_cast<unsigned char>(c)) & 0xffff;
    for (bits += 8; bits >= 6; bits -= 6) token += kTokenDigits[(held >> (bits - 6)) & 63];
  }
  if (bits > 0) token += kTokenDigits[(held << (6 - bits)) & 63];
  return token;
}

Result<std::string> from_token(std::string_view token) {
  std::string text;
  unsigned bits = 0;
  unsigned held = 0;
  for (const char c : token) {
    const std::size_t digit = kTokenDigits.find(c);
    if (digit == std::string_view::npos) return Status(StatusCode::InvalidArgument, "continuation: malformed token");
    held = (held << 6 | static_cast<unsigned>(digit)) & 0xffff;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      text += static_cast<char>(held >> bits & 0xff);
    }
  }
  return text;
}

}  // namespace fjord::gateway
