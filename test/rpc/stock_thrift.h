#pragma once

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/protocol/TCompactProtocol.h>
#include <thrift/transport/TBufferTransports.h>

#include "fjord/rpc/codec.h"

/// Frames as a program sees them that uses nothing but the code that the Thrift compiler makes from api/fjord.thrift.
namespace fjord::rpc::test {

using apache::thrift::transport::TMemoryBuffer;
namespace tp = apache::thrift::protocol;

inline std::shared_ptr<tp::TProtocol> make_protocol(WireProtocol kind, std::shared_ptr<TMemoryBuffer> buffer) {
  if (kind == WireProtocol::Compact) return std::make_shared<tp::TCompactProtocol>(buffer);
  return std::make_shared<tp::TBinaryProtocol>(buffer);
}

template <typename Generated>
struct StockFrame {
  std::string name;
  tp::TMessageType type{};
  std::int32_t seqid = 0;
  Generated message;
};

/// Reads a frame whose message is in the field `expected_field`: 1 for a request, 0 for a reply.
template <typename Generated>
StockFrame<Generated> read_stock(const std::string& frame, WireProtocol kind, std::int16_t expected_field) {
  auto in = make_protocol(
      kind, std::make_shared<TMemoryBuffer>(reinterpret_cast<std::uint8_t*>(const_cast<char*>(frame.data())),
                                            static_cast<std::uint32_t>(frame.size())));
  StockFrame<Generated> result;
  in->readMessageBegin(result.name, result.type, result.seqid);
  std::string unused;
  in->readStructBegin(unused);
  tp::TType type{};
  std::int16_t number = -1;
  in->readFieldBegin(unused, type, number);
  CHECK(number == expected_field);
  CHECK(type == tp::T_STRUCT);
  result.message.read(in.get());
  in->readFieldEnd();
  in->readFieldBegin(unused, type, number);
  CHECK(type == tp::T_STOP);
  return result;
}

/// Returns the frame of a message that read_stock() has read.
template <typename Generated>
std::string write_stock(const StockFrame<Generated>& frame, WireProtocol kind, std::int16_t field) {
  auto buffer = std::make_shared<TMemoryBuffer>();
  auto out = make_protocol(kind, buffer);
  out->writeMessageBegin(frame.name, frame.type, frame.seqid);
  out->writeStructBegin("");
  out->writeFieldBegin("", tp::T_STRUCT, field);
  frame.message.write(out.get());
  out->writeFieldEnd();
  out->writeFieldStop();
  out->writeStructEnd();
  out->writeMessageEnd();
  return buffer->getBufferAsString();
}

}  // namespace fjord::rpc::test
