#include <catch2/catch.hpp>

#include "fjord/fjord.h"

namespace fjord {

TEST_CASE("library: with a malformed address every call fails with the same reason") {
  Client client = connect("nonsense");
  CHECK(client.ping().code() == StatusCode::InvalidArgument);
  const ReadResult read = client.get("id:a:item::1");
  CHECK(read.status.code() == StatusCode::InvalidArgument);
  CHECK(read.status.message().find("nonsense") != std::string::npos);
  const WriteResult written = client.put_json("id:a:item::1", "{}");
  CHECK(written.status.code() == StatusCode::InvalidArgument);
  CHECK(written.outcome == WriteOutcome::NotApplied);
  CHECK(client.new_document("id:a:item::1").status().code() == StatusCode::InvalidArgument);
  Visit visit = client.visit({});
  const Document* const document = visit.next();
  CHECK(document == nullptr);
  CHECK(visit.status().code() == StatusCode::InvalidArgument);
  Subscription changes = client.subscribe({});
  const Change* const change = changes.next();
  CHECK(change == nullptr);
  CHECK(changes.status().code() == StatusCode::InvalidArgument);
  CHECK(client.aggregate({.type = "item"}).wait().status.code() == StatusCode::InvalidArgument);
  CHECK(client.remove_where("true", {.type = "item"}).status.code() == StatusCode::InvalidArgument);
  CHECK(client.jobs().list().status().code() == StatusCode::InvalidArgument);
  CHECK(client.admin().status().status().code() == StatusCode::InvalidArgument);
}

TEST_CASE("library: with a wrong retry policy every call fails with the same reason") {
  const auto message_of = [](const RetryPolicy& retry) {
    Client client = connect("127.0.0.1:1", {.timeout = milliseconds(200), .retry = retry});
    const ReadResult read = client.get("id:a:item::1");
    CHECK(read.status.code() == StatusCode::InvalidArgument);
    return client.ping().to_string();
  };
  const std::string backoff = "INVALID_ARGUMENT: retry.backoff_min has to be above 0, and not above retry.backoff_max";
  CHECK(message_of({.attempt_timeout = Duration(0)}) == "INVALID_ARGUMENT: retry.attempt_timeout has to be above 0");
  CHECK(message_of({.backoff_min = Duration(0)}) == backoff);
  CHECK(message_of({.backoff_min = seconds(2), .backoff_max = seconds(1)}) == backoff);
}

TEST_CASE("library: without a cluster a call ends at its deadline, and the client can be destroyed at once") {
  ClientSettings settings;
  settings.timeout = milliseconds(200);
  Client client = connect("127.0.0.1:1", settings);
  CHECK(client.ping().code() == StatusCode::NotReady);
  const WriteResult written = client.put_json("id:a:item::1", "{}");
  CHECK_FALSE(written.status);
  CHECK(written.outcome == WriteOutcome::NotApplied);
  Pending<WriteResult> pending = client.put_json("id:a:item::2", "{}");
  Client moved = std::move(client);
  { const Client gone = std::move(moved); }
  CHECK_FALSE(std::move(pending).wait().status);
}

}  // namespace fjord
