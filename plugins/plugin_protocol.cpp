#include "plugin_protocol.h"

#include "fjord/common/coding.h"

namespace fjord::plugins {
std::string encode(const HostRequest& request) {
  std::string out;
  put_fixed(out, static_cast<std::uint8_t>(request.call));
  put_fixed(out, request.bucket.raw());
  put_string(out, request.docblock);
  put_string(out, request.visitor);
  put_varint(out, request.parameters.size());
  for (const rpc::Parameter& parameter : request.parameters) {
    put_string(out, parameter.name);
    put_string(out, parameter.value);
  }
  put_varint(out, request.schemas.size());
  for (const std::string& schema : request.schemas) put_string(out, schema);
  return out;
}

std::optional<HostRequest> decode_request(std::string_view message) {
  ByteReader reader(message);
  HostRequest request;
  request.call = static_cast<Call>(reader.fixed<std::uint8_t>());
  request.bucket = BucketId(reader.fixed<std::uint64_t>());
  request.docblock = reader.string();
  request.visitor = reader.string();
  for (std::uint64_t left = reader.varint(); left > 0 && reader.ok(); --left) {
    rpc::Parameter parameter;
    parameter.name = reader.string();
    parameter.value = reader.string();
    request.parameters.push_back(std::move(parameter));
  }
  for (std::uint64_t left = reader.varint(); left > 0 && reader.ok(); --left)
    request.schemas.emplace_back(reader.string());
  if (!reader.at_end()) return std::nullopt;
  return request;
}

std::string encode(const HostAnswer& answer) {
  std::string out;
  put_fixed(out, static_cast<std::uint8_t>(answer.docblock ? 1 : 0));
  put_fixed(out, answer.bucket.raw());
  put_string(out, answer.docblock.value_or(""));
  put_fixed(out, static_cast<std::int32_t>(answer.status.code()));
  put_string(out, answer.status.message());
  put_string(out, answer.result);
  put_varint(out, answer.described.size());
  for (const auto& [name, help] : answer.described) {
    put_string(out, name);
    put_string(out, help);
  }
  return out;
}

std::optional<HostAnswer> decode_answer(std::string_view message) {
  ByteReader reader(message);
  HostAnswer answer;
  const bool has_documents = reader.fixed<std::uint8_t>() == 1;
  answer.bucket = BucketId(reader.fixed<std::uint64_t>());
  std::string docblock(reader.string());
  if (has_documents) answer.docblock = std::move(docblock);
  const auto code = static_cast<StatusCode>(reader.fixed<std::int32_t>());
  std::string message_text(reader.string());
  if (code != StatusCode::Ok) answer.status = Status(code, std::move(message_text));
  answer.result = reader.string();
  for (std::uint64_t left = reader.varint(); left > 0 && reader.ok(); --left) {
    std::string name(reader.string());
    std::string help(reader.string());
    answer.described.emplace_back(std::move(name), std::move(help));
  }
  if (!reader.at_end()) return std::nullopt;
  return answer;
}

}  // namespace fjord::plugins
