#include <catch2/catch.hpp>
#include <fjord_types.h>
#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/protocol/TCompactProtocol.h>
#include <thrift/transport/TBufferTransports.h>

#include "fjord/rpc/codec.h"
#include "random_message.h"

/// Compares the codec with the code that the Thrift compiler generates from api/fjord.thrift.
namespace fjord::rpc {
namespace {

using apache::thrift::transport::TMemoryBuffer;
namespace tp = apache::thrift::protocol;
using test::dump;
using test::random_alternative;

std::shared_ptr<tp::TProtocol> make_protocol(WireProtocol kind, std::shared_ptr<TMemoryBuffer> buffer) {
  if (kind == WireProtocol::Compact) return std::make_shared<tp::TCompactProtocol>(buffer);
  return std::make_shared<tp::TBinaryProtocol>(buffer);
}

/// Reads a frame of the codec as a stock Thrift program does, and writes it again as such a program does.
template <typename Generated>
std::string through_generated(const std::string& frame, WireProtocol kind, std::int16_t expected_field) {
  auto in = make_protocol(
      kind, std::make_shared<TMemoryBuffer>(reinterpret_cast<std::uint8_t*>(const_cast<char*>(frame.data())),
                                            static_cast<std::uint32_t>(frame.size())));
  std::string name;
  tp::TMessageType message_type{};
  std::int32_t seqid = 0;
  in->readMessageBegin(name, message_type, seqid);
  std::string unused;
  in->readStructBegin(unused);
  tp::TType type{};
  std::int16_t number = -1;
  in->readFieldBegin(unused, type, number);
  CHECK(number == expected_field);
  CHECK(type == tp::T_STRUCT);
  Generated message;
  message.read(in.get());
  in->readFieldEnd();
  in->readFieldBegin(unused, type, number);
  CHECK(type == tp::T_STOP);

  auto buffer = std::make_shared<TMemoryBuffer>();
  auto out = make_protocol(kind, buffer);
  out->writeMessageBegin(name, message_type, seqid);
  out->writeStructBegin("");
  out->writeFieldBegin("", tp::T_STRUCT, expected_field);
  message.write(out.get());
  out->writeFieldEnd();
  out->writeFieldStop();
  out->writeStructEnd();
  out->writeMessageEnd();
  return buffer->getBufferAsString();
}

template <std::size_t I, typename ApiRequest, typename ApiReply>
void check_call(Random& random) {
  const std::string method = std::variant_alternative_t<I, Request>::kName;
  INFO(method);
  for (const WireProtocol kind : {WireProtocol::Compact, WireProtocol::Binary}) {
    for (int round = 0; round < 50; ++round) {
      const Request request = random_alternative<Request, I>(random);
      const auto decoded = decode_request(through_generated<ApiRequest>(encode_request(request, 5, kind), kind, 1));
      REQUIRE(decoded);
      REQUIRE(decoded->request);
      CHECK(dump(*decoded->request) == dump(request));

      const Reply reply = random_alternative<Reply, I>(random);
      const CallHeader call{name_of(request), 6, kind};
      const auto answer = decode_reply(through_generated<ApiReply>(encode_reply(call, reply), kind, 0));
      REQUIRE(answer);
      REQUIRE(answer->reply);
      CHECK(dump(*answer->reply) == dump(reply));
    }
  }
}

template <typename... T>
struct Types {};

template <typename... ApiRequests, typename... ApiReplies, std::size_t... I>
void check_calls(Types<ApiRequests...>, Types<ApiReplies...>, std::index_sequence<I...>) {
  Random random(5);
  (check_call<I, ApiRequests, ApiReplies>(random), ...);
}

TEST_CASE("codec: stock Thrift code reads all that we write and we read what it writes", "[rpc]") {
  check_calls(Types<api::GetClusterInfo, api::Execute, api::GetBucketNodes, api::Apply, api::GetBucketInfo,
                    api::SetReplicaSets, api::MergeBucket, api::DeleteBuckets, api::SplitBucket, api::JoinBuckets,
                    api::ListEntries, api::FetchEntries, api::Poll, api::DeploySchemas, api::GetStatus,
                    api::CreateVisitor, api::VisitorNext, api::DestroyVisitor, api::SubmitJob, api::ListJobs,
                    api::CancelJob, api::ChangeNodes, api::GetConfig, api::ChangeConfig, api::GetHistory,
                    api::FindGarbage, api::ReadChanges, api::ControlJob, api::ListPlugins, api::ListTroubles,
                    api::AcceptLoss, api::CheckWithout, api::RecoverState, api::ExecuteStrict, api::ShowBucket>(),
              Types<api::GetClusterInfoReply, api::ExecuteReply, api::GetBucketNodesReply, api::ApplyReply,
                    api::GetBucketInfoReply, api::SetReplicaSetsReply, api::MergeBucketReply, api::DeleteBucketsReply,
                    api::SplitBucketReply, api::JoinBucketsReply, api::ListEntriesReply, api::FetchEntriesReply,
                    api::PollReply, api::DeploySchemasReply, api::GetStatusReply, api::CreateVisitorReply,
                    api::VisitorNextReply, api::DestroyVisitorReply, api::SubmitJobReply, api::ListJobsReply,
                    api::CancelJobReply, api::ChangeNodesReply, api::GetConfigReply, api::ChangeConfigReply,
                    api::GetHistoryReply, api::FindGarbageReply, api::ReadChangesReply, api::ControlJobReply,
                    api::ListPluginsReply, api::ListTroublesReply, api::AcceptLossReply, api::CheckWithoutReply,
                    api::RecoverStateReply, api::ExecuteStrictReply, api::ShowBucketReply>(),
              std::make_index_sequence<std::variant_size_v<Request>>());
}

TEST_CASE("codec: the status codes of the IDL are those of the program", "[rpc]") {
  for (const auto& [number, name] : api::_StatusCode_VALUES_TO_NAMES) {
    CHECK(to_string(static_cast<StatusCode>(number)) == name);
  }
  CHECK(api::_StatusCode_VALUES_TO_NAMES.size() == 22);
}

}  // namespace
}  // namespace fjord::rpc
