#include "fjord/storage/slotfile/slotfile_inspect.h"

#include <map>

#include "fjord/common/log.h"
#include "fjord/sim/sim_env.h"
#include "fjord/testing/engine.h"
#include "fjord/testing/test_documents.h"
#include "journal_format.h"

namespace fjord {

namespace {

using testing::test_id;
using testing::test_put;
using testing::test_remove;

const BucketId kBucket(8, 0x12);
const std::string kDirectory = "/buckets";

SlotfileOptions options() {
  SlotfileOptions options;
  options.directory = kDirectory;
  options.journal_segment_bytes = 4096;
  return options;
}

std::unique_ptr<SlotfileProvider> open(sim::SimEnv& env, const SlotfileOptions& with = options()) {
  return SlotfileProvider::open(env, with).value();
}

/// Writes two runs in a slotfile, a replaced and a removed document, a split bucket with shared files, and a journal.
void fill(sim::SimEnv& env) {
  auto provider = open(env);
  REQUIRE(provider->create_bucket(kBucket).is_ok());
  REQUIRE(provider->set_replica_set(kBucket, {.epoch = 4, .nodes = {2, 9}}).is_ok());
  for (int i = 0; i < 4; ++i) apply(*provider, kBucket, test_put(i, 10, "text"));
  REQUIRE(provider->checkpoint().is_ok());
  apply(*provider, kBucket, test_put(0, 20, "newer"));
  apply(*provider, kBucket, test_remove(1, 21));
  REQUIRE(provider->checkpoint().is_ok());
  apply(*provider, kBucket, test_put(2, 30, "newest"));
  apply(*provider, kBucket, test_put(5, 31, "added"));
}

std::vector<EntryReport> entries_of(const StoreReport& report) {
  std::vector<EntryReport> all;
  for (const StripeReport& stripe : report.stripes) {
    for (const SlotfileReport& slotfile : stripe.slotfiles) {
      for (const RunReport& run : slotfile.runs) all.insert(all.end(), run.entries.begin(), run.entries.end());
    }
  }
  return all;
}

std::vector<EntryReport> writes_of(const StoreReport& report) {
  std::vector<EntryReport> all;
  for (const StripeReport& stripe : report.stripes) {
    for (const SegmentReport& segment : stripe.segments) {
      for (const RecordReport& record : segment.records) {
        all.insert(all.end(), record.writes.begin(), record.writes.end());
      }
    }
  }
  return all;
}

std::size_t count(const std::vector<EntryReport>& entries, EntryState state) {
  return static_cast<std::size_t>(
      std::count_if(entries.begin(), entries.end(), [&](const EntryReport& e) { return e.state == state; }));
}

std::map<std::string, std::string> files_of(sim::SimEnv& env) {
  std::map<std::string, std::string> files;
  const std::vector<std::string> names = env.list_directory(kDirectory).value();
  for (const std::string& name : names) {
    const std::string path = kDirectory + "/" + name;
    files[path] = read_file(env, path).value();
  }
  return files;
}

bool names(const StoreReport& report, const std::string& path) {
  return std::any_of(report.findings.begin(), report.findings.end(),
                     [&](const InspectFinding& finding) { return finding.path == path; });
}

/// True for bytes without meaning: those behind the last record of a segment, and the padding of a record.
bool means_nothing(const StoreReport& sound, const std::string& path, std::uint64_t at) {
  for (const SegmentReport& segment : sound.stripes[0].segments) {
    if (segment.path != path) continue;
    if (!segment.needed || at >= segment.used_bytes) return true;
    for (const RecordReport& record : segment.records) {
      const std::uint64_t end = record.offset + record.bytes;
      if (at >= record.offset && at < end) return end - at < slotfile::kRecordAlignment;
    }
  }
  return false;
}

class Quiet {
 public:
  Quiet() { log::set_level(log::Level::Off); }
  ~Quiet() { log::set_level(log::Level::Info); }
};

}  // namespace

TEST_CASE("slotfile inspect: says what is in a store, entry by entry and record by record") {
  sim::SimEnv env;
  fill(env);
  const auto before = files_of(env);
  const StoreReport report = inspect_store(env, kDirectory).value();
  CHECK(files_of(env) == before);
  for (const InspectFinding& finding : report.findings) UNSCOPED_INFO(to_string(finding));
  CHECK(report.findings.empty());
  REQUIRE(report.stripes.size() == 1);
  const StripeReport& stripe = report.stripes[0];

  REQUIRE(stripe.catalogs.size() == 2);
  CHECK(stripe.catalogs[0].lsn == stripe.catalogs[1].lsn);
  REQUIRE(stripe.structure.buckets.size() == 1);
  const BucketReport& bucket = stripe.structure.buckets[0];
  CHECK(bucket.bucket == kBucket);
  CHECK(bucket.replicas == ReplicaSet{.epoch = 4, .nodes = {2, 9}});
  CHECK_FALSE(bucket.damaged);
  REQUIRE(bucket.slots.size() == 1);
  CHECK(bucket.slots[0].info.entries == 4);
  CHECK(bucket.slots[0].info.documents == 3);

  REQUIRE(stripe.slotfiles.size() == 1);
  CHECK(stripe.slotfiles[0].made_for == kBucket);
  CHECK(stripe.slotfiles[0].counted_bytes == stripe.slotfiles[0].bytes);
  CHECK(stripe.slotfiles[0].runs.size() == 2);
  const std::vector<EntryReport> entries = entries_of(report);
  REQUIRE(entries.size() == 6);
  const std::vector<EntryState> states = {EntryState::Replaced, EntryState::Replaced, EntryState::Replaced,
                                          EntryState::Newest,   EntryState::Newest,   EntryState::Newest};
  for (std::size_t i = 0; i < entries.size(); ++i) {
    CHECK(entries[i].state == states[i]);
    CHECK(entries[i].bucket == kBucket);
  }
  CHECK(entries[3].id == test_id(3).str());
  CHECK(entries[4].timestamp_us == 20);
  CHECK(entries[4].body_length == test_put(0, 20, "newer").body.size());
  CHECK(entries[5].removed);
  CHECK(entries[5].id == test_id(1).str());

  const std::vector<EntryReport> writes = writes_of(report);
  REQUIRE(writes.size() == 2);
  CHECK(writes[0].id == test_id(2).str());
  CHECK(writes[0].timestamp_us == 30);
  CHECK(writes[0].state == EntryState::Newest);
  CHECK(writes[0].bucket == kBucket);
}

TEST_CASE("slotfile inspect: without entries it verifies the same and keeps none of them") {
  sim::SimEnv env;
  fill(env);
  const StoreReport report = inspect_store(env, kDirectory, {.entries = false}).value();
  CHECK(report.findings.empty());
  CHECK(entries_of(report).empty());
  CHECK(writes_of(report).empty());
  CHECK(report.stripes[0].slotfiles[0].runs[0].entry_count == 4);
}

TEST_CASE("slotfile inspect: a split bucket shares its files, and what was of a deleted half is unused") {
  sim::SimEnv env;
  fill(env);
  {
    auto provider = open(env);
    REQUIRE(provider->split_bucket(kBucket).is_ok());
    const StoreReport report = inspect_store(env, kDirectory).value();
    CHECK(report.findings.empty());
    const StructureReport& structure = report.stripes[0].structure;
    REQUIRE(structure.buckets.size() == 2);
    CHECK(structure.successors.size() == 1);
    CHECK(structure.buckets[0].slots[0].files[0].number == structure.buckets[1].slots[0].files[0].number);
    // Journal records of a split bucket belong to its halves.
    for (const EntryReport& write : writes_of(report)) {
      CHECK(write.state == EntryState::Newest);
      CHECK(write.bucket == test_id(write.timestamp_us == 30 ? 2 : 5).bucket(9));
    }
    REQUIRE(provider->delete_bucket(test_id(0).bucket(9)).is_ok());
  }
  const StoreReport report = inspect_store(env, kDirectory).value();
  CHECK(report.findings.empty());
  const std::vector<EntryReport> entries = entries_of(report);
  for (const EntryReport& entry : entries) {
    const bool gone = entry.id == test_id(0).str() || entry.id == test_id(2).str();
    CHECK((entry.state == EntryState::Unused) == gone);
  }
  CHECK(count(entries, EntryState::Unused) >= 3);
}

TEST_CASE("slotfile inspect: the successors of a split bucket are forgotten once the journal no longer names it") {
  sim::SimEnv env;
  fill(env);
  auto provider = open(env);
  REQUIRE(provider->split_bucket(kBucket).is_ok());
  const auto successors = [&] {
    return inspect_store(env, kDirectory).value().stripes.at(0).structure.successors.size();
  };
  CHECK(successors() == 1);
  REQUIRE(provider->checkpoint().is_ok());
  // A checkpoint saves its catalog before it empties the journal. So only the next catalog is without the records.
  REQUIRE(provider->checkpoint().is_ok());
  CHECK(successors() == 0);
}

TEST_CASE("slotfile inspect: a store of many slots and stripes that was written at length is sound") {
  sim::SimEnv env;
  std::vector<std::unique_ptr<SlotfileProvider>> stripes;
  const BucketId even(8, 0x12);
  const BucketId odd(8, 0x13);
  for (const unsigned stripe : {0U, 1U}) {
    SlotfileOptions with = testing::tiny_slotfile_options(kDirectory);
    with.stripe = stripe;
    with.stripes = 2;
    stripes.push_back(open(env, with));
  }
  REQUIRE(stripes[0]->create_bucket(even).is_ok());
  REQUIRE(stripes[1]->create_bucket(odd).is_ok());
  for (int i = 0; i < 300; ++i) {
    apply(*stripes[0], even, test_put(i % 100, static_cast<std::uint64_t>(10 + i), std::string(80, 'x')));
    for (int step = 0; step < 5; ++step) static_cast<void>(stripes[0]->maintain(MonotonicTime{} + Duration(i * 1000)));
    if (i % 37 == 0) {
      const StoreReport report = inspect_store(env, kDirectory, {.entries = false}).value();
      for (const InspectFinding& finding : report.findings) UNSCOPED_INFO(to_string(finding));
      CHECK(report.problem_count() == 0);
    }
  }
  const StoreReport report = inspect_store(env, kDirectory).value();
  REQUIRE(report.stripes.size() == 2);
  CHECK(report.stripes[0].structure.buckets[0].slots.size() > 1);
  CHECK(report.stripes[0].slotfiles.size() > 1);
  CHECK(report.stripes[1].structure.buckets[0].bucket == odd);
  CHECK(report.stripes[1].slotfiles.empty());
  CHECK(report.problem_count() == 0);
}

TEST_CASE("slotfile inspect: a flipped bit anywhere is told, with the file that it is in") {
  sim::SimEnv env;
  fill(env);
  const StoreReport sound = inspect_store(env, kDirectory).value();
  const auto files = files_of(env);
  CHECK(files.size() >= 4);  // At least two catalogs, the journal and a slotfile.
  std::size_t told = 0;
  for (const auto& [path, bytes] : files) {
    for (std::uint64_t at = 0; at < bytes.size(); ++at) {
      if (means_nothing(sound, path, at)) continue;
      REQUIRE(env.flip_bit(path, at, static_cast<int>(at % 8)).is_ok());
      const StoreReport report = inspect_store(env, kDirectory, {.entries = false}).value();
      if (!names(report, path)) FAIL("byte " << at << " of " << path << " is not told");
      const StoreReport alone = inspect_store_file(env, path, {.entries = false}).value();
      if (!names(alone, path)) FAIL("byte " << at << " of " << path << " is not told when it is looked at alone");
      ++told;
      REQUIRE(env.flip_bit(path, at, static_cast<int>(at % 8)).is_ok());
    }
  }
  CHECK(told > 1400);
  CHECK(inspect_store(env, kDirectory)->findings.empty());
}

TEST_CASE("slotfile inspect: damage is named with its place") {
  sim::SimEnv env;
  fill(env);
  const StoreReport sound = inspect_store(env, kDirectory).value();
  const std::string path = sound.stripes[0].slotfiles[0].path;
  const std::vector<EntryReport> entries = entries_of(sound);
  const EntryReport& counts = entries[3];
  const EntryReport& replaced = entries[0];

  // Flips a bit in a document part that is in use, and one in a part that is not read any more.
  REQUIRE(env.flip_bit(path, counts.body_position + 2, 1).is_ok());
  REQUIRE(env.flip_bit(path, replaced.body_position + 2, 1).is_ok());
  StoreReport report = inspect_store(env, kDirectory).value();
  CHECK(report.problem_count() == 1);
  REQUIRE(report.findings.size() == 2);
  CHECK(report.findings[0].severity == InspectFinding::Severity::Note);
  CHECK(report.findings[0].offset == replaced.body_position);
  CHECK(report.findings[1].severity == InspectFinding::Severity::Problem);
  CHECK(report.findings[1].path == path);
  CHECK(report.findings[1].offset == counts.body_position);

  // One flipped bit in an entry can be corrected; two cannot.
  REQUIRE(env.flip_bit(path, counts.offset + 5, 1).is_ok());
  report = inspect_store(env, kDirectory).value();
  CHECK(count(entries_of(report), EntryState::Bad) == 0);
  CHECK(report.findings[0].offset == counts.offset);
  REQUIRE(env.flip_bit(path, counts.offset + 6, 1).is_ok());
  report = inspect_store(env, kDirectory).value();
  CHECK(count(entries_of(report), EntryState::Bad) == 1);

  REQUIRE(env.remove_file(path).is_ok());
  report = inspect_store(env, kDirectory).value();
  REQUIRE(report.problem_count() >= 1);
  CHECK(to_string(report.findings[0]) == path + ": offset 0: this slotfile is missing");
  CHECK(inspect_store_file(env, path).status().code() == StatusCode::NotFound);
}

TEST_CASE("slotfile inspect: runs behind one that cannot be read are found from the end") {
  sim::SimEnv env;
  fill(env);
  const StoreReport sound = inspect_store(env, kDirectory).value();
  const SlotfileReport& slotfile = sound.stripes[0].slotfiles[0];
  REQUIRE(env.flip_bit(slotfile.path, slotfile.runs[0].offset + 5, 1).is_ok());
  const StoreReport first_lost = inspect_store(env, kDirectory).value();
  CHECK(first_lost.stripes[0].slotfiles[0].runs.size() == 2);  // The run is found by its second frame.
  REQUIRE(env.flip_bit(slotfile.path, slotfile.runs[1].offset - 3, 1).is_ok());
  const StoreReport both_lost = inspect_store(env, kDirectory).value();
  REQUIRE(both_lost.stripes[0].slotfiles[0].runs.size() == 1);
  CHECK(both_lost.stripes[0].slotfiles[0].runs[0].offset == slotfile.runs[1].offset);
  CHECK(names(both_lost, slotfile.path));
}

TEST_CASE("slotfile inspect: a torn end of the journal is no problem, a record that is missing before others is one") {
  const Quiet quiet;
  sim::SimEnv env;
  fill(env);
  const StoreReport sound = inspect_store(env, kDirectory).value();
  const SegmentReport& segment = sound.stripes[0].segments.back();
  REQUIRE(segment.records.size() == 2);
  const RecordReport& last = segment.records.back();
  REQUIRE(env.flip_bit(segment.path, last.offset + last.bytes - 20, 1).is_ok());
  const StoreReport torn = inspect_store(env, kDirectory).value();
  CHECK(torn.problem_count() == 0);
  REQUIRE(torn.findings.size() == 1);
  CHECK(torn.findings[0].offset == last.offset);
  CHECK(torn.stripes[0].segments.back().records.size() == 1);
  REQUIRE(env.flip_bit(segment.path, last.offset + last.bytes - 20, 1).is_ok());

  const RecordReport& first = segment.records.front();
  REQUIRE(env.flip_bit(segment.path, first.offset + first.bytes - 20, 1).is_ok());
  const StoreReport lost = inspect_store(env, kDirectory).value();
  REQUIRE(lost.problem_count() == 1);
  CHECK(lost.findings[0].path == segment.path);
  CHECK(lost.findings[0].offset == first.offset);

  // If the header of the record is damaged as well, only the numbers of the others show that it is missing.
  REQUIRE(env.flip_bit(segment.path, first.offset, 1).is_ok());
  REQUIRE(env.flip_bit(segment.path, first.offset + 1, 1).is_ok());
  const StoreReport gone = inspect_store(env, kDirectory).value();
  CHECK(std::any_of(gone.findings.begin(), gone.findings.end(), [&](const InspectFinding& finding) {
    return finding.offset == last.offset && finding.what.find("1 records are missing") == 0;
  }));
}

TEST_CASE("slotfile inspect: a segment of the journal that is missing before others is named") {
  sim::SimEnv env;
  fill(env);
  // The second start begins a segment and keeps the one before, which is not yet in slotfiles.
  open(env);
  const StoreReport sound = inspect_store(env, kDirectory).value();
  CHECK(sound.findings.empty());
  std::vector<std::string> needed;
  for (const SegmentReport& segment : sound.stripes[0].segments) {
    if (segment.needed) needed.push_back(segment.path);
  }
  REQUIRE(needed.size() == 2);
  REQUIRE(env.remove_file(needed[0]).is_ok());
  const StoreReport report = inspect_store(env, kDirectory).value();
  CHECK(report.problem_count() >= 1);
  CHECK(names(report, needed[0]));
}

TEST_CASE("slotfile inspect: what an interrupted change left behind is noted") {
  sim::SimEnv env;
  fill(env);
  REQUIRE(write_file_atomically(env, kDirectory + "/00000063.slot", "x", false).is_ok());
  REQUIRE(write_file_atomically(env, kDirectory + "/catalog-00.b.tmp", "x", false).is_ok());
  REQUIRE(env.create_directories(kDirectory + "/4000000000000001").is_ok());
  const StoreReport report = inspect_store(env, kDirectory).value();
  CHECK(report.problem_count() == 0);
  CHECK(report.findings.size() == 3);
  CHECK(names(report, kDirectory + "/00000063.slot"));
  CHECK(names(report, kDirectory + "/catalog-00.b.tmp"));
  CHECK(names(report, kDirectory + "/4000000000000001"));
}

TEST_CASE("slotfile inspect: without any catalog what is there is looked at all the same") {
  sim::SimEnv env;
  fill(env);
  for (const char copy : {'a', 'b'}) {
    REQUIRE(env.flip_bit(kDirectory + "/catalog-00." + copy, 20, 1).is_ok());
  }
  const StoreReport report = inspect_store(env, kDirectory).value();
  CHECK(report.problem_count() == 2);
  CHECK(entries_of(report).size() == 6);
  for (const auto& [path, bytes] : files_of(env)) {
    if (!path.ends_with(".slot")) REQUIRE(env.remove_file(path).is_ok());
  }
  const StoreReport only_slotfiles = inspect_store(env, kDirectory).value();
  CHECK(only_slotfiles.problem_count() == 0);
  CHECK(entries_of(only_slotfiles).size() == 6);
  CHECK(inspect_store(env, "/nowhere").status().code() == StatusCode::NotFound);
  REQUIRE(write_file_atomically(env, "/other", "something else", false).is_ok());
  CHECK(inspect_store_file(env, "/other").status().code() == StatusCode::InvalidArgument);
}

}  // namespace fjord
