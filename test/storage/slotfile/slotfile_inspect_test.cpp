#include "fjord/storage/slotfile/slotfile_inspect.h"

#include "fjord/sim/sim_env.h"
#include "fjord/testing/engine.h"
#include "fjord/testing/test_documents.h"
#include "slotfile_format.h"

namespace fjord {

namespace {

using testing::test_id;
using testing::test_put;
using testing::test_remove;

const BucketId kBucket(8, 0x12);
const std::string kDirectory = "/buckets/" + slotfile::bucket_directory_name(kBucket);

void fill(sim::SimEnv& env, int documents) {
  auto provider = SlotfileProvider::open(env, testing::tiny_slotfile_options("/buckets")).value();
  REQUIRE(provider->create_bucket(kBucket).is_ok());
  REQUIRE(provider->set_replica_set(kBucket, {.epoch = 4, .nodes = {2, 9}}).is_ok());
  for (int i = 0; i < documents; ++i) apply(*provider, kBucket, test_put(i, 10, std::string(300, 'x')));
  apply(*provider, kBucket, test_put(0, 20, "newer"));
  apply(*provider, kBucket, test_remove(1, 21));
}

}  // namespace

TEST_CASE("slotfile inspect: says what is in a bucket, entry by entry") {
  sim::SimEnv env;
  fill(env, 3);
  const BucketReport report = inspect_bucket(env, kDirectory).value();
  CHECK(report.bucket == kBucket);
  CHECK(report.replicas == ReplicaSet{.epoch = 4, .nodes = {2, 9}});
  CHECK(report.problems.empty());
  CHECK(report.leftovers.empty());
  REQUIRE(report.slotfiles.size() == 1);
  CHECK(report.slotfiles[0].problems.empty());
  const std::vector<EntryReport>& entries = report.slotfiles[0].entries;
  REQUIRE(entries.size() == 5);
  CHECK(entries[0].state == EntryState::Replaced);
  CHECK(entries[2].state == EntryState::Newest);
  CHECK(entries[2].id == test_id(2).str());
  CHECK(entries[3].timestamp_us == 20);
  CHECK(entries[3].body_length == test_put(0, 20, "newer").body.size());
  CHECK(entries[4].removed);
  CHECK(entries[4].id == test_id(1).str());
}

TEST_CASE("slotfile inspect: a bucket of many slotfiles is sound, and leftovers are named") {
  sim::SimEnv env;
  fill(env, 100);
  REQUIRE(write_file_atomically(env, kDirectory + "/" + slotfile::slotfile_name(99, 0), "x", false).is_ok());
  const BucketReport report = inspect_bucket(env, kDirectory).value();
  CHECK(report.slotfiles.size() > 2);
  CHECK(report.problems.empty());
  for (const SlotfileReport& slotfile : report.slotfiles) CHECK(slotfile.problems.empty());
  CHECK(report.leftovers == std::vector<std::string>{slotfile::slotfile_name(99, 0)});
}

TEST_CASE("slotfile inspect: damage is named with file and entry, and nothing is changed") {
  sim::SimEnv env;
  fill(env, 3);
  const std::string path = kDirectory + "/" + slotfile::slotfile_name(1, 0);
  const std::string bytes = read_file(env, path).value();
  const std::size_t body = bytes.find(test_put(2, 10, std::string(300, 'x')).body);
  REQUIRE(env.flip_bit(path, bytes.rfind(std::string(300, 'x')) + 5, 1).is_ok());
  REQUIRE(body != std::string::npos);
  const std::string damaged = read_file(env, path).value();
  const SlotfileReport report = inspect_slotfile(env, path).value();
  REQUIRE(report.problems.size() == 1);
  CHECK(report.problems[0].find(path + ": entry 2, ") == 0);
  CHECK(read_file(env, path).value() == damaged);

  REQUIRE(env.flip_bit(path, slotfile::kHeaderAreaBytes + 2 * slotfile::kEntryBytes + 5, 1).is_ok());
  CHECK(inspect_slotfile(env, path)->problems.size() == 2);
  REQUIRE(env.flip_bit(path, slotfile::kHeaderAreaBytes + 2 * slotfile::kEntryBytes + 6, 1).is_ok());
  CHECK(inspect_slotfile(env, path)->entries[2].state == EntryState::Bad);

  REQUIRE(env.remove_file(path).is_ok());
  const BucketReport bucket = inspect_bucket(env, kDirectory).value();
  REQUIRE(bucket.problems.size() == 1);
  CHECK(bucket.problems[0] == path + ": missing");
  CHECK(inspect_slotfile(env, path).status().code() == StatusCode::NotFound);
}

}  // namespace fjord
