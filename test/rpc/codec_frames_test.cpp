#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <iostream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "api_calls.h"
#include "filled_message.h"
#include "fjord/rpc/codec.h"
#include "random_message.h"
#include "stock_thrift.h"
#include "support/project_files.h"

/// Frames of earlier versions (test/data/frames) must mean the same for ever.
namespace fjord::rpc {
namespace {

using test::for_each_call;

/// Encodes and decodes one message of a call: its request (kField 1) or its reply (kField 0).
template <typename Message, typename Stock, std::int16_t kField>
struct Side {
  static std::string encode(const std::string& method, const Message& message) {
    if constexpr (kField == 1) return encode_request(Request(message), 1);
    if constexpr (kField == 0) return encode_reply({method, 1, WireProtocol::Compact}, Reply(message));
  }
  static std::string encode_again(const std::string& frame) {
    if constexpr (kField == 1) return encode_request(decode_request(frame)->request.value(), 1);
    const auto decoded = decode_reply(frame);
    return encode_reply({decoded->method, 1, WireProtocol::Compact}, decoded->reply);
  }
  /// Returns the names and values of all fields, as stock Thrift shows them.
  static std::string as_text(const std::string& frame) {
    std::ostringstream out;
    out << test::read_stock<Stock>(frame, WireProtocol::Compact, kField).message;
    return out.str();
  }
  static std::string encode_filled(const std::string& method) {
    Message message;
    test::Fill fill;
    fill(0, message);
    return encode(method, message);
  }
};

struct Functions {
  std::string (*encode_again)(const std::string& frame);
  std::string (*as_text)(const std::string& frame);
  std::string (*encode_filled)(const std::string& method);
};

/// Returns the functions of each "<method> request" and "<method> reply".
std::map<std::string, Functions> all_functions() {
  std::map<std::string, Functions> result;
  for_each_call([&]<std::size_t I>() {
    using Asking = Side<std::variant_alternative_t<I, Request>, std::tuple_element_t<I, ApiRequests>, 1>;
    using Answering = Side<std::variant_alternative_t<I, Reply>, std::tuple_element_t<I, ApiReplies>, 0>;
    const std::string method = std::variant_alternative_t<I, Request>::kName;
    result[method + " request"] = {Asking::encode_again, Asking::as_text, Asking::encode_filled};
    result[method + " reply"] = {Answering::encode_again, Answering::as_text, Answering::encode_filled};
  });
  return result;
}

std::string to_hex(const std::string& bytes) {
  std::string result;
  for (const char byte : bytes) {
    result += "0123456789abcdef"[static_cast<unsigned char>(byte) >> 4];
    result += "0123456789abcdef"[static_cast<unsigned char>(byte) & 15];
  }
  return result;
}

std::string from_hex(const std::string& hex) {
  std::string result;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    result += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return result;
}

/// Returns whether all names and values of `text` are in `longer` in the same order. A field that was added since has
/// its default there.
bool is_part_of(const std::string& text, const std::string& longer) {
  static const std::regex kWord("[^(), \\[\\]]+");
  const auto words = [](const std::string& all) { return std::sregex_iterator(all.begin(), all.end(), kWord); };
  auto at = words(longer);
  for (auto word = words(text); word != std::sregex_iterator(); ++word, ++at) {
    at = std::find_if(at, std::sregex_iterator(), [&](const auto& other) { return other.str() == word->str(); });
    if (at == std::sregex_iterator()) return false;
  }
  return true;
}

/// Returns `text` of an earlier version with the names of today. Frames have no names but those of calls, so messages
/// and fields may be renamed.
std::string with_new_names(std::string text) {
  static const std::vector<std::pair<std::regex, std::string>> kRenamed = {
      {std::regex("\\boutsiders="), "non_members="},
      {std::regex("\\bcensus="), "of_all_owners="},
      {std::regex("\\bBucketTrouble\\("), "UnhealthyBucket("},
      {std::regex("\\bListTroubles"), "ListUnhealthyBuckets"},
      {std::regex("\\btroubles="), "buckets="},
      {std::regex("\\btrouble="), "problem="},
      {std::regex("\\bfilling="), "catching_up="},
  };
  for (const auto& [before, now] : kRenamed) text = std::regex_replace(text, before, now);
  return text;
}

TEST_CASE("codec: a frame of an earlier version means what it meant then", "[rpc]") {
  const auto functions = all_functions();
  std::ifstream file(fjord::test::data_file("frames/1.txt"));
  int lines = 0;
  for (std::string method, kind, hex, text; file >> method >> kind >> hex && std::getline(file, text); ++lines) {
    INFO(method << " " << kind);
    const Functions& its = functions.at(method + " " + kind);
    const std::string frame = from_hex(hex);
    CHECK(to_hex(its.encode_again(frame)) == hex);
    INFO(text << "\n" << its.as_text(frame));
    CHECK(text.size() > method.size());
    CHECK(is_part_of(with_new_names(text), its.as_text(frame)));
  }
  CHECK(lines == 70);
}

// Writes the lines of the next version's file: rpc_codec_test "[.write]".
TEST_CASE("codec: write a frame of each message", "[.write]") {
  for (const auto& [name, its] : all_functions()) {
    const std::string frame = its.encode_filled(name.substr(0, name.find(' ')));
    CHECK(its.encode_again(frame) == frame);
    std::cout << name << " " << to_hex(frame) << " " << its.as_text(frame) << "\n";
  }
}

}  // namespace
}  // namespace fjord::rpc
