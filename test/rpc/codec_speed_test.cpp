#include <catch2/catch.hpp>
#include <chrono>
#include <iostream>

#include "fjord/rpc/codec.h"

namespace fjord::rpc {
namespace {

/// Not part of the test run: start with rpc_codec_test "[speed]".
TEST_CASE("codec: cost of a batch of 200 puts of 0.8 kB", "[.][speed]") {
  Execute batch;
  batch.state_version = 12;
  batch.client_id = 0x123456789abcdef;
  batch.operations.resize(200);
  for (std::size_t i = 0; i < batch.operations.size(); ++i) {
    Operation& operation = batch.operations[i];
    operation.kind = OperationKind::Put;
    operation.id = "id:music:album::some-document-" + std::to_string(i);
    operation.header = std::string(200, 'h');
    operation.body = std::string(600, 'b');
    operation.sequence = 100000 + i;
  }
  ExecuteReply results;
  results.results.resize(200);
  for (OperationResult& result : results.results) result.timestamp_us = 1'700'000'000'000'000;
  const Request request = std::move(batch);
  const Result<Reply> reply = Reply(std::move(results));
  const CallHeader call{"execute", 1, WireProtocol::Compact};

  using SteadyClock = std::chrono::steady_clock;
  constexpr int kRounds = 2000;
  const auto measure = [&](const char* what, auto f) {
    for (int i = 0; i < 100; ++i) f();
    const auto start = SteadyClock::now();
    for (int i = 0; i < kRounds; ++i) f();
    const double ns = std::chrono::duration<double, std::nano>(SteadyClock::now() - start).count();
    std::cout << what << ": " << ns / kRounds / 200 << " ns an operation\n";
  };
  const std::string request_frame = encode_request(request, 1);
  const std::string reply_frame = encode_reply(call, reply);
  measure("encode request", [&] { CHECK(encode_request(request, 1).size() == request_frame.size()); });
  measure("decode request", [&] { CHECK(decode_request(request_frame)); });
  measure("encode reply", [&] { CHECK(encode_reply(call, reply).size() == reply_frame.size()); });
  measure("decode reply", [&] { CHECK(decode_reply(reply_frame)); });
}

}  // namespace
}  // namespace fjord::rpc
