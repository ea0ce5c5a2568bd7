#include "fjord/sim/sim_env.h"
#include "fjord/testing/engine.h"
#include "fjord/testing/test_documents.h"
#include "slotfile_format.h"

namespace fjord {

namespace {

using testing::test_id;
using testing::test_put;
using testing::tiny_slotfile_options;

const BucketId kBucket(8, 0x12);

std::unique_ptr<SlotfileProvider> open(Env& env, const SlotfileOptions& options) {
  auto provider = SlotfileProvider::open(env, options);
  REQUIRE(provider);
  return std::move(*provider);
}

void put_many(spi::PersistenceProvider& provider, int first, int count, std::uint64_t timestamp, std::size_t bytes) {
  for (int i = first; i < first + count; ++i) {
    REQUIRE(apply(provider, kBucket, test_put(i, timestamp, std::string(bytes, 'x'))).status.is_ok());
  }
}

}  // namespace

TEST_CASE("slotfile: a bucket splits into at most the given number of slotfiles, which then grow over their maximum") {
  sim::SimEnv env;
  const SlotfileOptions options = tiny_slotfile_options("/buckets");
  auto provider = open(env, options);
  REQUIRE(provider->create_bucket(kBucket).is_ok());
  CHECK(provider->stats().slotfiles == 1);
  put_many(*provider, 0, 400, 10, 500);
  const SlotfileStats stats = provider->stats();
  CHECK(stats.splits == 3);
  CHECK(stats.slotfiles == 8);
  CHECK(stats.entries == 400);
  CHECK(stats.open_files <= options.open_files_max);
  provider = open(env, options);
  CHECK(provider->stats().slotfiles == 8);
  CHECK(provider->stats().leftovers_removed == 0);
  for (int i = 0; i < 400; ++i) CHECK(provider->get(kBucket, test_id(i).gid()).has_value());
}

TEST_CASE("slotfile: many entries split a bucket as many bytes do") {
  sim::SimEnv env;
  SlotfileOptions options = tiny_slotfile_options("/buckets");
  options.file_bytes_max = 1 << 20;
  auto provider = open(env, options);
  REQUIRE(provider->create_bucket(kBucket).is_ok());
  put_many(*provider, 0, 40, 10, 1);
  CHECK(provider->stats().splits >= 1);
}

TEST_CASE("slotfile: replacing the same documents again and again compacts and does not grow") {
  sim::SimEnv env;
  auto provider = open(env, tiny_slotfile_options("/buckets"));
  REQUIRE(provider->create_bucket(kBucket).is_ok());
  for (std::uint64_t round = 1; round <= 100; ++round) put_many(*provider, 0, 5, round, 300);
  CHECK(provider->stats().splits == 0);
  CHECK(provider->stats().rewrites > 3);
  CHECK(env.used_bytes() < 20000);
  CHECK(provider->bucket_info(kBucket)->documents == 5);
}

TEST_CASE("slotfile: a document larger than a slotfile gets a file that is large enough, without splits") {
  sim::SimEnv env;
  auto provider = open(env, tiny_slotfile_options("/buckets"));
  REQUIRE(provider->create_bucket(kBucket).is_ok());
  put_many(*provider, 0, 3, 10, 200000);
  CHECK(provider->stats().splits == 0);
  put_many(*provider, 10, 5, 10, 100);
  CHECK(provider->stats().splits == 0);
  for (int i = 0; i < 3; ++i) {
    CHECK(provider->get(kBucket, test_id(i).gid())->body == test_put(i, 1, std::string(200000, 'x')).body);
  }
}

TEST_CASE("slotfile: limits can be changed while it runs and take effect on the next write that needs room") {
  sim::SimEnv env;
  SlotfileOptions options;
  options.directory = "/buckets";
  auto provider = open(env, options);
  REQUIRE(provider->create_bucket(kBucket).is_ok());
  put_many(*provider, 0, 100, 10, 500);
  CHECK(provider->stats().splits == 0);
  REQUIRE(provider->set_limits({.file_bytes_max = 32 << 10, .entries_max = 8192, .slotfiles_max = 4}).is_ok());
  put_many(*provider, 100, 300, 10, 500);
  CHECK(provider->stats().slotfiles == 4);
  CHECK(provider->bucket_info(kBucket)->documents == 400);
  CHECK(provider->set_limits({.slotfiles_max = 3}).code() == StatusCode::InvalidArgument);
  CHECK(provider->limits().slotfiles_max == 4);
}

TEST_CASE("slotfile: each stripe opens its own buckets and touches no other") {
  sim::SimEnv env;
  SlotfileOptions options = tiny_slotfile_options("/buckets");
  options.stripes = 2;
  auto even = open(env, options);
  options.stripe = 1;
  auto odd = open(env, options);
  REQUIRE(even->create_bucket(BucketId(8, 2)).is_ok());
  REQUIRE(odd->create_bucket(BucketId(8, 3)).is_ok());
  CHECK(odd->create_bucket(BucketId(8, 4)).code() == StatusCode::InvalidArgument);
  odd = open(env, options);
  CHECK(odd->list_buckets() == std::vector<BucketId>{BucketId(8, 3)});
  options.stripe = 0;
  options.stripes = 1;
  CHECK(open(env, options)->list_buckets() == std::vector<BucketId>{BucketId(8, 2), BucketId(8, 3)});
}

TEST_CASE("slotfile: options that make no sense are refused") {
  sim::SimEnv env;
  const auto code = [&](auto change) {
    SlotfileOptions options = tiny_slotfile_options("/buckets");
    change(options);
    return SlotfileProvider::open(env, options).status().code();
  };
  CHECK(code([](SlotfileOptions& o) { o.stripes = 3; }) == StatusCode::InvalidArgument);
  CHECK(code([](SlotfileOptions& o) { o.stripe = 1; }) == StatusCode::InvalidArgument);
  CHECK(code([](SlotfileOptions& o) { o.slotfiles_max = 128; }) == StatusCode::InvalidArgument);
  CHECK(code([](SlotfileOptions& o) { o.file_bytes_max = 100; }) == StatusCode::InvalidArgument);
  CHECK(code([](SlotfileOptions& o) { o.entries_max = 0; }) == StatusCode::InvalidArgument);
  CHECK(code([](SlotfileOptions& o) { o.open_files_max = 0; }) == StatusCode::InvalidArgument);
}

TEST_CASE("slotfile: a batch costs one write for each region, however many documents it has") {
  sim::SimEnv env;
  SlotfileOptions options;
  options.directory = "/buckets";
  auto provider = open(env, options);
  REQUIRE(provider->create_bucket(kBucket).is_ok());
  put_many(*provider, 0, 1, 1, 100);
  const std::uint64_t before = env.operations(sim::FileOperation::Write);
  const std::uint64_t all_before = env.operations();
  std::vector<testing::OwnedWrite> writes;
  for (int i = 1; i < 20; ++i) writes.push_back(test_put(i, 10, "short"));
  apply(*provider, kBucket, writes);
  CHECK(env.operations(sim::FileOperation::Write) - before == 3);
  CHECK(env.operations() - all_before <= 4);  // and it may have to open the file
}

}  // namespace fjord
