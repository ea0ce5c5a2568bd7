#pragma once

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/protocol/TCompactProtocol.h>
#include <thrift/transport/TVirtualTransport.h>
#include <type_traits>
#include <utility>

#include "message_fields.h"

/// Writes and reads messages in Thrift's protocols. All calls are resolved at compile time: neither the protocols nor
/// the buffers below are called through virtual functions. Errors: malformed input throws Thrift's TException, which
/// codec.cpp catches.
namespace fjord::rpc {

namespace thrift_protocol = apache::thrift::protocol;
using thrift_protocol::TType;

[[noreturn]] inline void throw_malformed(const char* why) {
  throw thrift_protocol::TProtocolException(thrift_protocol::TProtocolException::INVALID_DATA, why);
}

/// Collects the bytes of a frame in a string.
class FrameSink final : public apache::thrift::transport::TVirtualTransport<FrameSink> {
 public:
  explicit FrameSink(std::size_t expected_bytes) { bytes_.resize(expected_bytes); }

  void write(const std::uint8_t* data, std::uint32_t size) {
    if (bytes_.size() - used_ < size) bytes_.resize(std::max(bytes_.size() * 2, used_ + size));
    std::memcpy(bytes_.data() + used_, data, size);
    used_ += size;
  }
  std::string take() {
    bytes_.resize(used_);
    return std::move(bytes_);
  }

 private:
  std::string bytes_;
  std::size_t used_ = 0;
};

/// Reads a frame in place.
class FrameSource final : public apache::thrift::transport::TVirtualTransport<FrameSource> {
 public:
  explicit FrameSource(std::string_view frame) : rest_(frame) {}

  std::size_t remaining() const { return rest_.size(); }
  std::string_view take(std::size_t size) {
    if (size > rest_.size()) throw_malformed("the frame ends early");
    const std::string_view result = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return result;
  }
  std::uint32_t read(std::uint8_t* data, std::uint32_t size) { return readAll(data, size); }
  std::uint32_t readAll(std::uint8_t* data, std::uint32_t size) {
    std::memcpy(data, take(size).data(), size);
    return size;
  }
  const std::uint8_t* borrow(std::uint8_t*, std::uint32_t* size) {
    if (*size > rest_.size()) return nullptr;
    *size = static_cast<std::uint32_t>(rest_.size());
    return reinterpret_cast<const std::uint8_t*>(rest_.data());
  }
  void consume(std::uint32_t size) { (void)take(size); }

 private:
  std::string_view rest_;
};

/// Protocols that return strings as views into the frame; their base classes copy each string twice.
class CompactInput final : public thrift_protocol::TCompactProtocolT<FrameSource> {
 public:
  CompactInput(std::shared_ptr<FrameSource> source, std::int32_t limit)
      : TCompactProtocolT(std::move(source), limit, limit) {}
  std::string_view read_view() {
    std::int32_t size = 0;
    readVarint32(size);
    if (size < 0) throw_malformed("a string of negative length");
    return trans_->take(static_cast<std::size_t>(size));
  }
};
class BinaryInput final : public thrift_protocol::TBinaryProtocolT<FrameSource> {
 public:
  BinaryInput(std::shared_ptr<FrameSource> source, std::int32_t limit)
      : TBinaryProtocolT(std::move(source), limit, limit, true, true) {}
  std::string_view read_view() {
    std::int32_t size = 0;
    readI32(size);
    if (size < 0) throw_malformed("a string of negative length");
    return trans_->take(static_cast<std::size_t>(size));
  }
};
using CompactOutput = thrift_protocol::TCompactProtocolT<FrameSink>;
using BinaryOutput = thrift_protocol::TBinaryProtocolT<FrameSink>;

template <typename T>
constexpr TType wire_type() {
  if constexpr (std::is_same_v<T, bool>) {
    return thrift_protocol::T_BOOL;
  } else if constexpr (std::is_enum_v<T> || std::is_same_v<T, std::uint16_t>) {
    return thrift_protocol::T_I32;
  } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, BucketId>) {
    return thrift_protocol::T_I64;
  } else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, GlobalId>) {
    return thrift_protocol::T_STRING;
  } else if constexpr (kIsVector<T>) {
    return thrift_protocol::T_LIST;
  } else if constexpr (kIsOptional<T>) {
    return wire_type<typename T::value_type>();
  } else {
    return thrift_protocol::T_STRUCT;
  }
}

/// Computes an upper bound of a message's size on the wire, so that the frame is allocated once.
class SizeEstimate {
 public:
  template <typename T>
  void operator()(int, const T& value) {
    // Upper bound of a field's header (3 bytes) with a varint (10 bytes) or a length (5 bytes).
    constexpr std::size_t kFieldBytesMax = 16;
    total_ += kFieldBytesMax;
    if constexpr (std::is_same_v<T, std::string>) {
      total_ += value.size();
    } else if constexpr (std::is_same_v<T, Status>) {
      total_ += 5 * kFieldBytesMax + value.message().size() + value.node().size() + value.limit().size() +
                value.setting().size();
    } else if constexpr (kIsVector<T>) {
      for (const auto& element : value) (*this)(0, element);
    } else if constexpr (kIsMessage<T>) {
      fields(*this, value);
    }
  }
  template <typename T>
  void always(int number, const T& value) {
    (*this)(number, value);
  }
  std::size_t total() const { return total_; }

 private:
  std::size_t total_ = 64;
};

/// Returns true if `value` is left out on the wire, because readers assume it by default. A status or nested struct is
/// always written, except an empty ClusterInfo.
template <typename T>
bool is_absent(const T& value) {
  if constexpr (std::is_same_v<T, std::string> || kIsVector<T>) {
    return value.empty();
  } else if constexpr (kIsOptional<T>) {
    return !value.has_value();
  } else if constexpr (std::is_same_v<T, Status>) {
    return false;
  } else if constexpr (std::is_same_v<T, ClusterInfo>) {
    return value == ClusterInfo{};
  } else if constexpr (kIsMessage<T>) {
    return false;
  } else {
    return value == T{};
  }
}

template <typename Protocol>
class Writer {
 public:
  explicit Writer(Protocol& protocol) : protocol_(protocol) {}

  template <typename T>
  void operator()(int number, const T& value) {
    if (!is_absent(value)) always(number, value);
  }
  template <typename T>
  void always(int number, const T& value) {
    protocol_.writeFieldBegin("", wire_type<T>(), static_cast<std::int16_t>(number));
    write(value);
    protocol_.writeFieldEnd();
  }

  template <typename T>
  void write(const T& value) {
    if constexpr (kIsOptional<T>) {
      write(*value);
    } else if constexpr (std::is_same_v<T, bool>) {
      protocol_.writeBool(value);
    } else if constexpr (wire_type<T>() == thrift_protocol::T_I32) {
      protocol_.writeI32(static_cast<std::int32_t>(value));
    } else if constexpr (std::is_same_v<T, BucketId>) {
      protocol_.writeI64(static_cast<std::int64_t>(value.raw()));
    } else if constexpr (wire_type<T>() == thrift_protocol::T_I64) {
      protocol_.writeI64(static_cast<std::int64_t>(value));
    } else if constexpr (std::is_same_v<T, std::string>) {
      protocol_.writeBinary(value);
    } else if constexpr (std::is_same_v<T, GlobalId>) {
      protocol_.writeBinary(std::string(value.view()));
    } else if constexpr (kIsVector<T>) {
      protocol_.writeListBegin(wire_type<typename T::value_type>(), static_cast<std::uint32_t>(value.size()));
      for (const auto& element : value) write(element);
      protocol_.writeListEnd();
    } else {
      protocol_.writeStructBegin("");
      if constexpr (std::is_same_v<T, Status>) {
        always(1, value.code());
        (*this)(2, value.message());
        if (!value.is_ok()) {
          (*this)(3, value.node());
          (*this)(4, value.limit());
          (*this)(5, value.setting());
        }
      } else {
        fields(*this, value);
      }
      protocol_.writeFieldStop();
      protocol_.writeStructEnd();
    }
  }

 private:
  Protocol& protocol_;
};

/// Sets every status in a message to Unknown before the message is read, so that a missing status never reads as OK.
class StatusReset {
 public:
  template <typename T>
  void operator()(int, T& value) {
    if constexpr (std::is_same_v<T, Status>) {
      value = Status(StatusCode::Unknown, {});
    } else if constexpr (kIsMessage<T>) {
      fields(*this, value);
    }
  }
  template <typename T>
  void always(int number, T& value) {
    (*this)(number, value);
  }
};

template <typename Protocol>
class Reader {
 public:
  /// `limit`: bytes of memory that all lists of the message together may take.
  Reader(Protocol& protocol, FrameSource& source, std::size_t limit)
      : protocol_(protocol), source_(source), list_bytes_max_(limit), list_bytes_left_(limit) {}

  /// Returns the memory that the lists read so far take.
  std::size_t list_bytes() const { return list_bytes_max_ - list_bytes_left_; }

  /// If the current field of read_struct() has the number `number`, reads it into `value` and goes to the next field.
  template <typename T>
  void operator()(int number, T& value) {
    if (type_ == thrift_protocol::T_STOP || number_ != number) return;
    matched_ = true;
    if (type_ == wire_type<T>()) {
      read(value);
    } else {
      protocol_.skip(type_);
    }
    next_field();
  }
  template <typename T>
  void always(int number, T& value) {
    (*this)(number, value);
  }

  /// Reads a field like the overload above, and sets `there` if the field is present with the right type.
  template <typename T>
  void with_presence(int number, T& value, bool& there) {
    if (type_ == wire_type<T>() && number_ == number) there = true;
    (*this)(number, value);
  }

  /// Reads a struct; `visit_fields` calls this reader for each known field. Unknown fields are skipped. If the fields
  /// arrive in ascending order, one call of `visit_fields` reads them all.
  template <typename F>
  void read_struct(F visit_fields) {
    const State outer{type_, number_, matched_};
    protocol_.readStructBegin(name_);
    next_field();
    while (type_ != thrift_protocol::T_STOP) {
      matched_ = false;
      visit_fields();
      if (!matched_) {
        protocol_.skip(type_);
        next_field();
      }
    }
    protocol_.readStructEnd();
    type_ = outer.type;
    number_ = outer.number;
    matched_ = outer.matched;
  }

  template <typename T>
  void read(T& value) {
    if constexpr (kIsOptional<T>) {
      read(value.emplace());
    } else if constexpr (std::is_same_v<T, bool>) {
      protocol_.readBool(value);
    } else if constexpr (wire_type<T>() == thrift_protocol::T_I32) {
      std::int32_t number = 0;
      protocol_.readI32(number);
      value = narrow<T>(number);
    } else if constexpr (wire_type<T>() == thrift_protocol::T_I64) {
      std::int64_t number = 0;
      protocol_.readI64(number);
      if constexpr (std::is_same_v<T, BucketId>) {
        value = BucketId(static_cast<std::uint64_t>(number));
        if (!value.is_valid()) throw_malformed("a bucket id with too many bits");
      } else {
        value = narrow<T>(number);
      }
    } else if constexpr (std::is_same_v<T, std::string>) {
      value.assign(protocol_.read_view());
    } else if constexpr (std::is_same_v<T, GlobalId>) {
      const std::string_view bytes = protocol_.read_view();
      if (!bytes.empty() && bytes.size() != value.bytes.size()) throw_malformed("a gid that is not 12 bytes long");
      std::copy(bytes.begin(), bytes.end(), value.bytes.begin());
    } else if constexpr (kIsVector<T>) {
      read_list(value);
    } else if constexpr (std::is_same_v<T, Status>) {
      read_status(value);
    } else {
      StatusReset reset;
      fields(reset, value);
      read_struct([&] { fields(*this, value); });
    }
  }

 private:
  struct State {
    TType type;
    std::int16_t number;
    bool matched;
  };

  template <typename T, typename N>
  static T narrow(N number) {
    if constexpr (std::is_integral_v<T> && sizeof(T) < sizeof(N)) {
      if (number < 0 || number > static_cast<N>(std::numeric_limits<T>::max()))
        throw_malformed("a number out of range");
    }
    return static_cast<T>(number);
  }

  void next_field() { protocol_.readFieldBegin(name_, type_, number_); }

  void read_status(Status& status) {
    StatusCode code = StatusCode::Unknown;
    std::string message;
    ErrorDetails details;
    read_struct([&] {
      (*this)(1, code);
      (*this)(2, message);
      (*this)(3, details.node);
      (*this)(4, details.limit);
      (*this)(5, details.setting);
    });
    status = Status(code, std::move(message), std::move(details));
  }

  template <typename T>
  void read_list(std::vector<T>& list) {
    TType type = thrift_protocol::T_STOP;
    std::uint32_t size = 0;
    protocol_.readListBegin(type, size);
    list.clear();
    if (size > source_.remaining()) throw_malformed("a list longer than the frame");
    if (size != 0 && type != wire_type<T>()) {
      for (std::uint32_t i = 0; i < size; ++i) protocol_.skip(type);
    } else if (size != 0) {
      if (size > list_bytes_left_ / sizeof(T)) throw_malformed("more list elements than a message may have");
      list_bytes_left_ -= size * sizeof(T);
      list.resize(size);
      for (T& element : list) read(element);
    }
    protocol_.readListEnd();
  }

  Protocol& protocol_;
  FrameSource& source_;
  const std::size_t list_bytes_max_;
  std::size_t list_bytes_left_;
  std::string name_;  // Thrift's read functions take a name as argument and leave it empty.
  TType type_ = thrift_protocol::T_STOP;
  std::int16_t number_ = 0;
  bool matched_ = false;
};

}  // namespace fjord::rpc
