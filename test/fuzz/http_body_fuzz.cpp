#include <cstdint>
#include <string>

#include "fjord/common/check.h"
#include "http/json_body.h"
#include "http/message.h"

/// Reads the input as a body of the document API, and also as a target, as a token and as gzip data.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fjord::gateway;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto body = read_document_body(text)) {
    FJORD_CHECK(read_document_body("{\"fields\":" + body->fields + "}"));
  }
  static_cast<void>(HttpQuery::parse(text));
  static_cast<void>(split_path(text));
  if (const auto token = from_token(text)) FJORD_CHECK(*from_token(to_token(*token)) == *token);
  static_cast<void>(gunzip(text, 1 << 20, [](std::size_t) { return true; }));
  std::string literal;
  append_json_string(literal, text);
  FJORD_CHECK(read_document_body("{\"condition\":" + literal + ",\"fields\":{}}"));
  return 0;
}
