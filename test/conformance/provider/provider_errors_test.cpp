#include "fjord/common/log.h"
#include "fjord/testing/engine.h"
#include "fjord/testing/test_documents.h"

/// Tests the errors of an engine when its disk fails, and when only a request fails.
namespace fjord::testing {

namespace {

const BucketId kBucket(8, 0x12);

std::unique_ptr<Engine> engine_with_bucket() {
  log::set_level(log::Level::Off);
  const std::string name = GENERATE(from_range(engine_names()));
  UNSCOPED_INFO("engine: " << name);
  std::unique_ptr<Engine> engine = make_engine(name);
  REQUIRE(engine->provider().create_bucket(kBucket).is_ok());
  return engine;
}

Status put_synced(spi::PersistenceProvider& provider, const OwnedWrite& write) {
  spi::Write view[] = {write.view()};
  view[0].bucket = kBucket;
  spi::WriteResult result[1];
  provider.apply(view, result, spi::Durability::Sync);
  return result[0].status;
}

/// Runs maintenance for some seconds after `now`.
void pass_time(spi::PersistenceProvider& provider, MonotonicTime& now) {
  for (int i = 0; i < 300; ++i) {
    provider.maintain(now);
    now = now + std::chrono::milliseconds(20);
  }
}

}  // namespace

TEST_CASE(
    "provider errors: listener_not_invoked_on_regular_errors: a request that cannot be done leaves the engine well") {
  const auto engine = engine_with_bucket();
  auto& provider = engine->provider();
  OwnedWrite large = test_put(2, 10);
  large.body.assign(spi::kPartBytesMax + 1, 'x');
  CHECK(apply(provider, BucketId(8, 0x13), test_put(1, 10)).status.code() == StatusCode::NotFound);
  CHECK(apply(provider, kBucket, large).status.code() == StatusCode::TooLarge);
  CHECK_FALSE(provider.get(kBucket, test_id(1).gid()).has_value());
  CHECK_FALSE(provider.split_bucket(BucketId(8, 0x13)).is_ok());
  CHECK_FALSE(provider.join_buckets(BucketId(9, 0x99)).is_ok());
  CHECK(provider.health().is_ok());
  CHECK(put_synced(provider, test_put(1, 10)).is_ok());
}

TEST_CASE(
    "provider errors: fatal_error_invokes_listener: after a failed sync the engine says so and takes no more writes") {
  const auto engine = engine_with_bucket();
  if (engine->disk() == nullptr) return;
  REQUIRE(put_synced(engine->provider(), test_put(1, 10, "synced")).is_ok());
  engine->disk()->fail_syncs(true);
  CHECK(put_synced(engine->provider(), test_put(2, 11)).code() == StatusCode::Timeout);
  CHECK_FALSE(engine->provider().health().is_ok());
  engine->disk()->fail_syncs(false);  // The next sync would succeed, but without the data that the failed one dropped.
  CHECK_FALSE(put_synced(engine->provider(), test_put(3, 12)).is_ok());
  CHECK_FALSE(apply(engine->provider(), kBucket, test_put(3, 12)).status.is_ok());
  CHECK_FALSE(engine->provider().create_bucket(BucketId(8, 0x13)).is_ok());
  CHECK(engine->provider().get(kBucket, test_id(1).gid()).has_value());
}

TEST_CASE(
    "provider errors: shutdown_invoked_on_fatal_error: a failed disk stays failed until the engine is opened again") {
  const auto engine = engine_with_bucket();
  if (engine->disk() == nullptr) return;
  REQUIRE(put_synced(engine->provider(), test_put(1, 10, "synced")).is_ok());
  engine->disk()->fail_syncs(true);
  REQUIRE_FALSE(put_synced(engine->provider(), test_put(2, 11)).is_ok());
  const Status health = engine->provider().health();
  MonotonicTime now{1'000'000};
  engine->disk()->fail_syncs(false);
  pass_time(engine->provider(), now);
  CHECK_FALSE(health.is_ok());
  CHECK(engine->provider().health() == health);
  engine->reopen();
  CHECK(engine->provider().health().is_ok());
  CHECK(engine->provider().get(kBucket, test_id(1).gid()).has_value());
  CHECK(put_synced(engine->provider(), test_put(3, 12)).is_ok());
}

TEST_CASE(
    "provider errors: merge_throttle_backpressure_invoked_on_resource_exhaustion_error: a full disk refuses writes as "
    "such, and is no failed one") {
  const auto engine = engine_with_bucket();
  if (engine->disk() == nullptr) return;
  for (int i = 0; i < 20; ++i) REQUIRE(apply(engine->provider(), kBucket, test_put(i, 10)).status.is_ok());
  MonotonicTime now{1'000'000};
  engine->disk()->set_full(true);
  Status refused;  // At first writes may still fit into space that the journal had reserved.
  int written = 20;
  for (; written < 2000 && refused; ++written) {
    refused = apply(engine->provider(), kBucket, test_put(written, 20, std::string(200'000, 'x'))).status;
  }
  --written;
  CHECK(refused.code() == StatusCode::NoSpace);
  const BucketInfo info = engine->provider().bucket_info(kBucket).value();
  CHECK(info.documents == static_cast<std::uint64_t>(written));
  pass_time(engine->provider(), now);
  CHECK(engine->provider().health().is_ok());
  CHECK(engine->provider().bucket_info(kBucket).value() == info);
  CHECK(engine->provider().get(kBucket, test_id(1).gid())->timestamp == Timestamp{10});
  engine->disk()->set_full(false);
  pass_time(engine->provider(), now);
  CHECK(apply(engine->provider(), kBucket, test_put(1, 30, "there is room")).status.is_ok());
  engine->reopen();
  CHECK(engine->provider().get(kBucket, test_id(1).gid())->timestamp == Timestamp{30});
  CHECK(engine->provider().bucket_info(kBucket)->documents == static_cast<std::uint64_t>(written));
}

}  // namespace fjord::testing
