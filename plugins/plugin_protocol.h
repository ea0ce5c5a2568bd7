#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/coding.h"
#include "fjord/document/bucket_id.h"
#include "fjord/mapreduce/job_functions.h"
#include "fjord/rpc/messages.h"

/// What a storage node and a plugin host say to each other as messages of ChildProcess. The node asks, the host answers
/// with any number of documents and one outcome.
namespace fjord::plugins {

enum class Call : std::uint8_t {
  Describe = 1,
  Create,
  BeginBucket,
  Visit,
  EndBucket,
  AbandonBucket,
  CreateApplication,
  Map,
  Combine,
  Reduce,
  MapApart
};

struct HostRequest {
  Call call = Call::Describe;
  BucketId bucket;
  std::string docblock;  ///< Visit.
  std::string name;      ///< Of a visitor or an application: Create and CreateApplication, as the next two.
  std::vector<rpc::Parameter> parameters;
  std::vector<std::string> schemas;
  std::string document_type;  ///< CreateApplication, as the next one.
  std::string version;        ///< The one that the node knows; the file may have been replaced since.
  std::string batch;          ///< Map to MapApart; see below.
};

struct DescribedApplication {
  std::string name;
  std::string version;
  std::string help;
  std::vector<mapreduce::ParameterInfo> parameters;
};

struct HostAnswer {
  /// Documents for the client; the outcome follows.
  std::optional<std::string> docblock;
  BucketId bucket;  ///< Of the docblock.
  Status status;
  std::string result;                                          ///< EndBucket; CreateApplication to MapApart, see below.
  std::vector<std::pair<std::string, std::string>> described;  ///< Describe: name and help of visitors.
  std::vector<DescribedApplication> applications;              ///< Describe.
};

/// | call | batch | result |
/// |---|---|---|
/// | CreateApplication | | needs bodies: a byte |
/// | Map | header and body of each document | the number of documents at the front that were mapped, that of tuples
/// emitted, that of documents which failed, and of each its index, code and message; then keys and values |
/// | MapApart | the same | the same, but before keys and values the length of those of each document |
/// | Combine | keys with values, as put_values() | the values of each of the first keys, without the key |
/// | Reduce | the same | of each of the first keys a byte, and its result if that is 1 |
///
/// An outcome that is an error tells of the process, which is of no use any more; but for Reduce, where it may also be
/// what reduce() said.
void put_values(std::string& out, std::span<const std::string_view> values);
/// False if it is malformed.
bool take_values(ByteReader& in, std::vector<std::string_view>& values);

std::string encode(const HostRequest& request);
std::string encode(const HostAnswer& answer);
/// Nothing: malformed.
std::optional<HostRequest> decode_request(std::string_view message);
std::optional<HostAnswer> decode_answer(std::string_view message);

}  // namespace fjord::plugins
