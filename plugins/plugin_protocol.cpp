#include "plugin_protocol.h"

namespace fjord::plugins {

std::string encode(const HostRequest& request) {
  std::string out;
  put_fixed(out, static_cast<std::uint8_t>(request.call));
  put_fixed(out, request.bucket.raw());
  put_string(out, request.docblock);
  put_string(out, request.name);
  put_varint(out, request.parameters.size());
  for (const rpc::Parameter& parameter : request.parameters) {
    put_string(out, parameter.name);
    put_string(out, parameter.value);
  }
  put_varint(out, request.schemas.size());
  for (const std::string& schema : request.schemas) put_string(out, schema);
  put_string(out, request.document_type);
  put_string(out, request.version);
  put_string(out, request.batch);
  return out;
}

std::optional<HostRequest> decode_request(std::string_view message) {
  ByteReader reader(message);
  HostRequest request;
  request.call = static_cast<Call>(reader.fixed<std::uint8_t>());
  request.bucket = BucketId(reader.fixed<std::uint64_t>());
  request.docblock = reader.string();
  request.name = reader.string();
  for (std::uint64_t left = reader.varint(); left > 0 && reader.ok(); --left) {
    rpc::Parameter parameter;
    parameter.name = reader.string();
    parameter.value = reader.string();
    request.parameters.push_back(std::move(parameter));
  }
  for (std::uint64_t left = reader.varint(); left > 0 && reader.ok(); --left)
    request.schemas.emplace_back(reader.string());
  request.document_type = reader.string();
  request.version = reader.string();
  request.batch = reader.string();
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
  put_varint(out, answer.applications.size());
  for (const DescribedApplication& application : answer.applications) {
    for (const std::string* text : {&application.name, &application.version, &application.help}) put_string(out, *text);
    put_varint(out, application.parameters.size());
    for (const mapreduce::ParameterInfo& parameter : application.parameters) {
      put_string(out, parameter.name);
      put_string(out, parameter.help);
      put_fixed(out, static_cast<std::uint8_t>(parameter.default_value ? 1 : 0));
      put_string(out, parameter.default_value.value_or(""));
    }
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
  for (std::uint64_t left = reader.varint(); left > 0 && reader.ok(); --left) {
    DescribedApplication& application = answer.applications.emplace_back();
    for (std::string* text : {&application.name, &application.version, &application.help}) *text = reader.string();
    for (std::uint64_t parameters = reader.varint(); parameters > 0 && reader.ok(); --parameters) {
      mapreduce::ParameterInfo& parameter = application.parameters.emplace_back();
      parameter.name = reader.string();
      parameter.help = reader.string();
      const bool has_default = reader.fixed<std::uint8_t>() == 1;
      std::string value(reader.string());
      if (has_default) parameter.default_value = std::move(value);
    }
  }
  if (!reader.at_end()) return std::nullopt;
  return answer;
}

void put_values(std::string& out, std::span<const std::string_view> values) {
  put_varint(out, values.size());
  for (const std::string_view value : values) put_string(out, value);
}

bool take_values(ByteReader& in, std::vector<std::string_view>& values) {
  values.clear();
  for (std::uint64_t left = in.varint(); left > 0 && in.ok(); --left) values.push_back(in.string());
  return in.ok();
}

}  // namespace fjord::plugins
