#include "fjord/common/status.h"

#include <catch2/catch.hpp>

#include "fjord/common/retry.h"

namespace fjord {
namespace {

constexpr StatusCode kCodes[] = {
    StatusCode::Ok,
    StatusCode::Busy,
    StatusCode::WrongDistribution,
    StatusCode::Unavailable,
    StatusCode::NotReady,
    StatusCode::Timeout,
    StatusCode::InvalidId,
    StatusCode::UnknownType,
    StatusCode::InvalidField,
    StatusCode::InvalidSelection,
    StatusCode::TooLarge,
    StatusCode::NoSpace,
    StatusCode::Unauthorized,
    StatusCode::InvalidArgument,
    StatusCode::TestAndSetFailed,
    StatusCode::NotFound,
    StatusCode::AlreadyExists,
    StatusCode::Corruption,
    StatusCode::IoError,
    StatusCode::Cancelled,
    StatusCode::NotImplemented,
};

TEST_CASE("status: every code has a name of its own that leads back to it") {
  for (StatusCode code : kCodes) {
    INFO(to_string(code));
    CHECK(status_code_from_string(to_string(code)) == code);
  }
  CHECK(to_string(StatusCode::WrongDistribution) == "WRONG_DISTRIBUTION");
  CHECK(status_code_from_string("wrong_distribution") == StatusCode::Unknown);
  CHECK(to_string(static_cast<StatusCode>(9999)) == "UNKNOWN");
}

TEST_CASE("status: only what was certainly not applied is transient") {
  CHECK(is_transient(StatusCode::Busy));
  CHECK(is_transient(StatusCode::WrongDistribution));
  CHECK(is_transient(StatusCode::Unavailable));
  CHECK(is_transient(StatusCode::NotReady));
  CHECK_FALSE(is_transient(StatusCode::Timeout));
  CHECK_FALSE(is_transient(StatusCode::Ok));
  CHECK_FALSE(is_transient(StatusCode::Unknown));
  CHECK_FALSE(is_transient(StatusCode::NoSpace));
}

TEST_CASE("status: context goes before the message and leaves the code and success alone") {
  const Status error(StatusCode::NotFound, "no such file");
  CHECK(error.to_string() == "NOT_FOUND: no such file");
  CHECK(error.with_context("bucket 7") == Status(StatusCode::NotFound, "bucket 7: no such file"));
  CHECK(Status::ok().with_context("x") == Status::ok());
  CHECK(Status::ok().to_string() == "OK");
  CHECK_FALSE(error);
  CHECK(Status());
}

TEST_CASE("status: an error says which node, limit and setting it is about, and keeps that with its context") {
  const Status full(StatusCode::Busy, "too much", {.limit = "64", .setting = "distributor.pending_operations_max"});
  CHECK(full.node().empty());
  const Status named = full.from_node("distributor.1").with_context("put");
  CHECK(named.to_string() == "BUSY: put: distributor.1: too much");
  CHECK(named.node() == "distributor.1");
  CHECK(named.limit() == "64");
  CHECK(named.setting() == "distributor.pending_operations_max");
  CHECK(named.from_node("storage.2").node() == "distributor.1");
  CHECK(named.with_details({.idempotency_key = "k"}).idempotency_key() == "k");
  CHECK(full != Status(StatusCode::Busy, "too much"));
  CHECK(full == Status(StatusCode::Busy, "too much", full.details()));
  CHECK(Status::ok().with_details({.node = "storage.1"}).node().empty());
}

}  // namespace
TEST_CASE("retry: a read ends with an error that every node would give, and not with one of a write or of one node") {
  for (const StatusCode code : {StatusCode::UnknownType, StatusCode::InvalidField, StatusCode::InvalidSelection,
                                StatusCode::InvalidArgument, StatusCode::Unauthorized, StatusCode::NotImplemented}) {
    CHECK(is_permanent_for_read(code));
  }
  for (const StatusCode code : {StatusCode::NotFound, StatusCode::NoSpace, StatusCode::TestAndSetFailed,
                                StatusCode::AlreadyExists, StatusCode::Busy, StatusCode::Timeout, StatusCode::Ok}) {
    CHECK_FALSE(is_permanent_for_read(code));
  }
}

TEST_CASE("retry: only errors that may pass are retried, and only those that say so are certainly not applied") {
  CHECK(retry_class(StatusCode::Ok) == RetryClass::Done);
  for (const StatusCode code :
       {StatusCode::Busy, StatusCode::WrongDistribution, StatusCode::Unavailable, StatusCode::NotReady}) {
    CHECK(retry_class(code) == RetryClass::Transient);
    CHECK(may_succeed_later(code));
  }
  for (const StatusCode code : {StatusCode::Timeout, StatusCode::Unknown}) {
    CHECK(retry_class(code) == RetryClass::InDoubt);
    CHECK(may_succeed_later(code));
  }
  for (const StatusCode code : {StatusCode::InvalidId, StatusCode::TooLarge, StatusCode::NoSpace,
                                StatusCode::TestAndSetFailed, StatusCode::NotFound, StatusCode::NotImplemented}) {
    CHECK(retry_class(code) == RetryClass::Permanent);
    CHECK_FALSE(may_succeed_later(code));
  }
  for (const StatusCode code :
       {StatusCode::Corruption, StatusCode::IoError, StatusCode::Cancelled, static_cast<StatusCode>(999)}) {
    CHECK(retry_class(code) == RetryClass::Broken);
    CHECK_FALSE(is_permanent_for_read(code));
    CHECK_FALSE(may_succeed_later(code));
  }
}

}  // namespace fjord
