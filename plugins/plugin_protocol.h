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
#include "fjord/rpc/common_messages.h"

/// Messages between a node and a plugin host, sent through ChildProcess. The node sends requests; the host answers each
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
  std::string docblock;  ///< Used by Visit: the docblock.
  std::string name;      ///< Visitor or application. Like the next two, used by Create and CreateApplication.
  std::vector<rpc::Parameter> parameters;
  std::vector<std::string> schemas;
  std::string document_type;  ///< This member and `version` are for CreateApplication.
  std::string version;        ///< Version that the node knows. The plugin's file may have been replaced since.
  std::string batch;          ///< For Map to MapApart; format below.
};

struct DescribedApplication {
  std::string name;
  std::string version;
  std::string help;
  std::vector<mapreduce::ParameterInfo> parameters;
};

struct HostAnswer {
  /// Documents for the client; more documents or the outcome follow. Not set: this is the outcome.
  std::optional<std::string> docblock;
  BucketId bucket;  ///< Bucket of the docblock.
  Status status;
  std::string result;  ///< For EndBucket and CreateApplication to MapApart; format below.
  std::vector<std::pair<std::string, std::string>> described;  ///< For Describe: name and help of each visitor.
  std::vector<DescribedApplication> applications;              ///< For Describe.
};

/// Formats of `batch` and `result`. The host works through a batch from the front. It may answer before the end, after
/// at least one document or key; then the node sends the rest in another request.
///
///     CreateApplication
///       result: one byte, 1 if the application needs bodies
///     Map
///       batch: header and body of each document
///       result: number of documents mapped, number of tuples emitted, number of failed documents;
///               index, code and message of each failed one; then keys and values
///     MapApart
///       batch: as for Map
///       result: as for Map, but with the tuple length of each document before the keys and values
///     Combine
///       batch: keys, each followed by its values as put_values()
///       result: for each key that was reached its combined values as put_values(), without the key
///     Reduce
///       batch: as for Combine
///       result: for each key that was reached a byte, and the key's result if the byte is 1
///
/// After an outcome with an error the process is unusable. Exception: the error of Reduce may be the one that reduce()
/// returned.
void put_values(std::string& out, std::span<const std::string_view> values);
/// Returns false if `in` is malformed.
bool take_values(ByteReader& in, std::vector<std::string_view>& values);

std::string encode(const HostRequest& request);
std::string encode(const HostAnswer& answer);
/// Return nullopt if the message is malformed.
std::optional<HostRequest> decode_request(std::string_view message);
std::optional<HostAnswer> decode_answer(std::string_view message);

}  // namespace fjord::plugins
