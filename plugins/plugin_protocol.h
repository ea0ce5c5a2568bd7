#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/document/bucket_id.h"
#include "fjord/rpc/messages.h"

/// What a storage node and a plugin host say to each other as messages of ChildProcess. The node asks, the host answers
/// with any number of documents and one outcome.
namespace fjord::plugins {

enum class Call : std::uint8_t { Describe = 1, Create, BeginBucket, Visit, EndBucket, AbandonBucket };

struct HostRequest {
  Call call = Call::Describe;
  BucketId bucket;
  std::string docblock;  ///< Visit.
  std::string visitor;   ///< Create, as the next two.
  std::vector<rpc::Parameter> parameters;
  std::vector<std::string> schemas;
};

struct HostAnswer {
  /// Documents for the client; the outcome follows.
  std::optional<std::string> docblock;
  BucketId bucket;  ///< Of the docblock.
  Status status;
  std::string result;                                          ///< EndBucket.
  std::vector<std::pair<std::string, std::string>> described;  ///< Describe: name and help.
};

std::string encode(const HostRequest& request);
std::string encode(const HostAnswer& answer);
/// Nothing: malformed.
std::optional<HostRequest> decode_request(std::string_view message);
std::optional<HostAnswer> decode_answer(std::string_view message);

}  // namespace fjord::plugins
