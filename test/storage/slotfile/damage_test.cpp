#include <catch2/catch.hpp>
#include <fmt/core.h>
#include <set>

#include "fjord/sim/recording_env.h"
#include "fjord/storage/slotfile/slotfile_inspect.h"
#include "fjord/testing/engine.h"
#include "slotfile_world.h"

namespace fjord {

namespace {

using namespace slotfile_testing;  // NOLINT: its test
using sim::DiskImage;
using sim::RecordingEnv;
using testing::OwnedWrite;
using testing::test_put;
using testing::test_remove;

SlotfileOptions options() {
  SlotfileOptions options = testing::tiny_slotfile_options("/buckets");
  options.limits.entries_max = 4;
  options.limits.scrub_bytes_per_second = 1 << 30;
  return options;
}

/// The files and the content of a store with several slots, some of which share files, and a journal.
struct Store {
  DiskImage files;
  State state;
  /// State of the store without the journal, and after each journal record except the last one. Damage at the end of
  /// the journal cannot be told from a crash.
  std::vector<State> without_end;
  std::map<GlobalId, std::set<Version>> written;
};

Store make_store() {
  Store store;
  RecordingEnv env;
  Machine machine(env, options());
  REQUIRE(machine.open().is_ok());
  REQUIRE(machine.provider().create_bucket(kWhole).is_ok());
  REQUIRE(machine.provider().create_bucket(kHalf0).is_ok());
  REQUIRE(machine.provider().set_replica_set(kWhole, {.epoch = 3, .nodes = {1, 2}}).is_ok());
  std::uint64_t timestamp = 10;
  const auto write = [&](BucketId bucket, const std::vector<OwnedWrite>& writes) {
    REQUIRE(machine.run(put_step(bucket, writes)).is_ok());
    for (const OwnedWrite& one : writes) {
      store.written[one.gid].insert({one.timestamp.us, one.remove, one.remove ? "" : one.header, one.body});
    }
  };
  const auto put = [&](BucketId bucket, int n, const std::string& text) {
    return test_put(number_in(bucket, n), ++timestamp, text);
  };
  for (int n = 0; n < 7; ++n) write(kWhole, {put(kWhole, n, "first " + std::to_string(n))});
  write(kHalf0, {put(kHalf0, 0, "of another bucket"), put(kHalf0, 1, "")});
  REQUIRE(machine.run(checkpoint_step()).is_ok());
  write(kWhole, {put(kWhole, 1, "second"), test_remove(number_in(kWhole, 2), ++timestamp)});
  REQUIRE(machine.run(checkpoint_step()).is_ok());
  const auto remember = [&] { store.without_end.push_back(observe(machine.provider()).state); };
  remember();
  write(kWhole, {put(kWhole, 3, "in the journal")});
  remember();
  write(kWhole, {test_remove(number_in(kWhole, 4), ++timestamp)});
  remember();
  REQUIRE(machine.provider().set_replica_set(kHalf0, {.epoch = 4, .nodes = {1}}).is_ok());
  remember();
  write(kHalf0, {put(kHalf0, 2, "last")});
  store.state = observe(machine.provider()).state;
  machine.close();
  env.visit_process_ends(env.changes(), [&](const DiskImage& image, const std::string&) { store.files = image; });
  return store;
}

struct Counts {
  std::uint64_t images = 0;
  std::uint64_t harmless = 0;
  std::uint64_t reported = 0;
  std::uint64_t tails = 0;
  std::uint64_t repaired = 0;
};

/// Checks that every entry read was written, every other difference is reported, and the engine can be healed. With
/// `newest` it also checks that only newest versions are read. That need not hold if the damage hides which ids lost
/// something.
class DamageCheck {
 public:
  DamageCheck(const Store& store, const DiskImage& damaged, bool newest, Counts& counts)
      : store_(store), env_(damaged), machine_(env_, options()), newest_(newest), counts_(counts) {}

  /// Returns an empty string, or the error.
  std::string run() {
    ++counts_.images;
    if (const Status status = machine_.open(); !status) return "opening: " + status.to_string();
    const Observed found = observe(machine_.provider());
    counts_.repaired += machine_.provider().stats().repaired_entries;
    if (!found.complaint.empty()) return found.complaint;
    if (found.damaged) {
      ++counts_.reported;
      if (std::string wrong = check_versions(found.state); !wrong.empty()) return wrong;
    } else if (found.state == store_.state) {
      ++counts_.harmless;
    } else if (std::count(store_.without_end.begin(), store_.without_end.end(), found.state) != 0) {
      ++counts_.tails;
    } else {
      return "lost and not reported: found" + to_string(found.state);
    }
    return heal();
  }

 private:
  std::string check_versions(const State& state) {
    for (const auto& [bucket, expected] : store_.state) {
      const auto content = state.find(bucket);
      if (content == state.end()) return bucket.to_string() + " is lost";
      for (const auto& [gid, version] : content->second.versions) {
        const Version read{version.timestamp_us, version.removed, version.removed ? "" : version.header, version.body};
        const auto written = store_.written.find(gid);
        if (written == store_.written.end() || !written->second.contains(read)) {
          return fmt::format("{} has a version of {} that nobody wrote", bucket.to_string(), gid.to_string());
        }
        const auto newest = expected.versions.find(gid);
        if (newest_ && (newest == expected.versions.end() || newest->second != version)) {
          return fmt::format("{} has a version of {} that is not its newest", bucket.to_string(), gid.to_string());
        }
      }
      for (const auto& [gid, version] : expected.versions) {
        if (content->second.versions.contains(gid)) continue;
        const auto got = machine_.provider().get(bucket, gid);
        if (got || got.error().code() != StatusCode::Corruption) return gid.to_string() + " is lost without a word";
      }
    }
    return {};
  }

  /// Writes newer versions of all entries and checks that nothing is damaged afterwards, also after a restart.
  std::string heal() {
    State expected = observe(machine_.provider()).state;
    for (auto& [bucket, content] : expected) {
      for (int n = 0; n < 8; ++n) {
        const OwnedWrite write = test_put(number_in(bucket, n), 1000, "healed");
        if (!testing::apply(machine_.provider(), bucket, write).status) return "a newer version is refused";
        content.versions[write.gid] = {1000, false, write.header, write.body};
        const auto got = machine_.provider().get(bucket, write.gid);
        if (!got || got->body != write.body) return "a newer version does not heal: " + got.status().to_string();
      }
      if (const Status status = mark_repaired(machine_.provider(), bucket); !status) return status.to_string();
    }
    if (std::string wrong = compare("marked as repaired", expected); !wrong.empty()) return wrong;
    if (const Status status = machine_.provider().checkpoint(); !status) return "checkpoint: " + status.to_string();
    settle(machine_.provider());
    if (std::string wrong = compare("settled", expected); !wrong.empty()) return wrong;
    if (const Status status = machine_.open(); !status) return "opening again: " + status.to_string();
    return compare("opened again", expected);
  }

  std::string compare(const std::string& when, const State& expected) {
    const Observed found = observe(machine_.provider());
    if (!found.complaint.empty()) return when + ": " + found.complaint;
    if (found.damaged) return when + ": still damaged";
    if (found.state != expected) return when + ": found" + to_string(found.state) + "\nexpected" + to_string(expected);
    for (const auto& [bucket, content] : expected) {
      const auto got = machine_.provider().get(bucket, testing::test_id(number_in(bucket, 30)).gid());
      if (got || got.error().code() != StatusCode::NotFound) return when + ": what never was is not NotFound";
    }
    return {};
  }

  const Store& store_;
  RecordingEnv env_;
  Machine machine_;
  const bool newest_;
  Counts& counts_;
};

void check(const Store& store, const DiskImage& damaged, bool newest, Counts& counts, const std::string& what) {
  const std::string wrong = DamageCheck(store, damaged, newest, counts).run();
  if (wrong.empty()) return;
  FAIL_CHECK(what << ": " << wrong);
}

bool is_journal(const std::string& path) { return path.find("journal") != std::string::npos; }

/// Returns the size without trailing zeros.
std::size_t used_bytes(const std::string& content) {
  const std::size_t last = content.find_last_not_of('\0');
  return last == std::string::npos ? 0 : last + 1;
}

constexpr std::size_t kSector = 512;

void report(const Counts& counts) {
  if (!is_long_run()) return;
  WARN(counts.images << " images: " << counts.harmless << " harmless, " << counts.reported << " reported, "
                     << counts.tails << " lost the last record, " << counts.repaired << " entries repaired");
}

}  // namespace

TEST_CASE("slotfile: a flipped bit anywhere is never served, and what it hides is reported and can be healed (I13)") {
  const Store store = make_store();
  Counts counts;
  for (const auto& [path, content] : store.files) {
    for (std::size_t at = 0; at < used_bytes(content); ++at) {
      for (int bit = is_long_run() ? 0 : static_cast<int>(at % 8); bit < 8; bit += is_long_run() ? 1 : 8) {
        DiskImage damaged = store.files;
        damaged[path][at] = static_cast<char>(damaged[path][at] ^ (1 << bit));
        check(store, damaged, !is_journal(path), counts, fmt::format("bit {} of byte {} of {}", bit, at, path));
      }
    }
  }
  CHECK(counts.reported > 500);
  CHECK(counts.repaired > 100);
  report(counts);
}

TEST_CASE("slotfile: a sector that was lost, or written to the wrong place, is never served, and reported") {
  const Store store = make_store();
  Counts counts;
  for (const auto& [path, content] : store.files) {
    for (std::size_t at = 0; at < used_bytes(content); at += kSector) {
      const std::size_t length = std::min(kSector, content.size() - at);
      DiskImage damaged = store.files;
      damaged[path].replace(at, length, length, '\0');
      check(store, damaged, false, counts, fmt::format("zeros at {} of {}", at, path));
      for (const auto& [other, from] : store.files) {
        for (std::size_t source = 0; source < used_bytes(from); source += kSector) {
          damaged[path].replace(at, length,
                                (from.substr(source, length) + std::string(length, '\0')).substr(0, length));
          check(store, damaged, false, counts, fmt::format("{} of {} at {} of {}", source, other, at, path));
        }
      }
    }
  }
  CHECK(counts.reported > 30);
  report(counts);
}

TEST_CASE("slotfile: a document that stands where another should is not taken for it") {
  const Store store = make_store();
  Counts counts;
  constexpr std::size_t kWithChecksum = 4;
  for (const auto& [path, content] : store.files) {
    for (int n = 0; n < 7; ++n) {
      for (int other = 0; other < 7; ++other) {
        // All bodies have the same length, so one can replace another together with the checksum behind it.
        const std::size_t at = content.find(test_put(number_in(kWhole, n), 1, "first " + std::to_string(n)).body);
        const std::string body = test_put(number_in(kWhole, other), 1, "first " + std::to_string(other)).body;
        const std::size_t from = content.find(body);
        if (n == other || at == std::string::npos || from == std::string::npos) continue;
        DiskImage damaged = store.files;
        damaged[path].replace(at, body.size() + kWithChecksum, content, from, body.size() + kWithChecksum);
        check(store, damaged, true, counts, fmt::format("the body of {} in the place of {} in {}", other, n, path));
      }
    }
  }
  CHECK(counts.images >= 20);
  // Not all damage is reported, because some of the bodies belong to versions that were replaced since.
  CHECK(counts.reported >= 10);
  report(counts);
}

TEST_CASE("slotfile: a file that is missing or was cut off is reported, and nothing else suffers") {
  const Store store = make_store();
  Counts counts;
  for (const auto& [path, content] : store.files) {
    DiskImage damaged = store.files;
    damaged.erase(path);
    // The journal is one file here, so its loss cannot be noticed.
    if (!is_journal(path)) check(store, damaged, false, counts, "without " + path);
    for (std::size_t size = 0; size < used_bytes(content) && !is_journal(path); size += 7) {
      damaged = store.files;
      damaged[path].resize(size);
      check(store, damaged, false, counts, fmt::format("{} cut to {}", path, size));
    }
  }
  CHECK(counts.reported > 30);
  report(counts);
}

TEST_CASE("slotfile: a file that is removed from under the engine is damage, never an answer that there is nothing") {
  const auto gid_of = [](BucketId bucket, int n) { return test_put(number_in(bucket, n), 1).gid; };
  const Store store = make_store();
  RecordingEnv env(store.files);
  SlotfileOptions few = options();
  few.open_files_max = 1;
  Machine machine(env, few);
  REQUIRE(machine.open().is_ok());
  SlotfileProvider& provider = machine.provider();
  // These reads load the positions of all entries. They leave at most one file open.
  for (int n = 0; n < 7; ++n) (void)provider.get(kWhole, gid_of(kWhole, n)).has_value();
  REQUIRE(provider.get(kHalf0, gid_of(kHalf0, 0)).has_value());
  for (const auto& [path, content] : store.files) {
    if (path.ends_with(".slot")) REQUIRE(env.remove_file(path).is_ok());
  }
  int lost = 0;
  for (int n = 0; n < 7; ++n) {
    const auto got = provider.get(kWhole, gid_of(kWhole, n));
    INFO(n << ": " << got.status());
    if (got) continue;
    CHECK(got.error().code() == StatusCode::Corruption);
    ++lost;
  }
  CHECK(lost >= 3);  // The other documents are in the journal, or were removed.
  CHECK(provider.is_damaged(kWhole).value());
  auto iterator = provider.iterate(kWhole, {});
  Status status = iterator.status();
  while (status) {
    DocBlockBuilder builder;
    const auto more = (*iterator)->next(builder, 1 << 20);
    status = more.status();
    if (more && !*more) break;
  }
  CHECK(status.code() == StatusCode::Corruption);
}

TEST_CASE("slotfile: where the newest entry of a document cannot be read, splits do not bring back an older one (I4)") {
  RecordingEnv env;
  SlotfileOptions large = options();
  large.limits.entries_max = 100;
  Machine machine(env, large);
  REQUIRE(machine.open().is_ok());
  REQUIRE(machine.provider().create_bucket(kWhole).is_ok());
  std::map<GlobalId, Version> newest;
  const auto write = [&](BucketId bucket, const OwnedWrite& one) {
    REQUIRE(machine.run(put_step(bucket, {one})).is_ok());
    newest[one.gid] = {one.timestamp.us, one.remove, one.header, one.body};
  };
  BucketId bucket = kWhole;
  for (int n = 0; n < 12; ++n) write(bucket, test_put(number_in(kWhole, n), 10));
  // Each split gives both halves one file more; the newest file holds the first documents.
  for (std::uint64_t round = 1; round <= 3; ++round) {
    REQUIRE(machine.run(checkpoint_step()).is_ok());
    REQUIRE(machine.provider().split_bucket(bucket).is_ok());
    bucket = halves_of(bucket)[0];
    write(bucket, test_put(number_in(bucket, 0), 10 + round));
  }
  REQUIRE(machine.run(checkpoint_step()).is_ok());
  REQUIRE(machine.provider().split_bucket(bucket).is_ok());
  REQUIRE(machine.run(checkpoint_step()).is_ok());
  machine.close();
  DiskImage files;
  env.visit_process_ends(env.changes(), [&](const DiskImage& image, const std::string&) { files = image; });
  std::uint64_t hidden = 0;
  for (const auto& [path, content] : files) {
    if (!path.ends_with(".slot")) continue;
    // Damages what follows the document's id in the entries of the first run; two bad bytes cannot be corrected.
    for (std::size_t at = 128; at + 40 < content.size(); at += 40) {
      DiskImage damaged = files;
      for (const std::size_t byte : {at + 24, at + 33}) damaged[path][byte] = static_cast<char>(~damaged[path][byte]);
      RecordingEnv again(damaged);
      Machine reopened(again, large);
      REQUIRE(reopened.open().is_ok());
      for (const BucketId there : reopened.provider().list_buckets()) {
        for (const auto& [gid, version] : newest) {
          if (bucket_of(gid, there.used_bits()) != there) continue;
          const auto got = reopened.provider().get(there, gid);
          const bool right = got ? got->timestamp.us == version.timestamp_us && got->body == version.body
                                 : got.error().code() == StatusCode::Corruption;
          if (!right) FAIL_CHECK("entry at " << at << " of " << path << ": " << gid.to_string());
          hidden += got ? 0 : 1;
        }
      }
    }
  }
  CHECK(hidden > 10);
}

TEST_CASE("slotfile: the scrub finds damaged documents that nobody reads") {
  const Store store = make_store();
  std::uint64_t found = 0;
  for (const auto& [path, content] : store.files) {
    if (!path.ends_with(".slot")) continue;
    for (std::size_t at = 0; at < content.size(); at += 5) {
      DiskImage damaged = store.files;
      damaged[path][at] = static_cast<char>(damaged[path][at] ^ 0x81);
      bool expected = false;
      {
        RecordingEnv env(damaged);
        Machine machine(env, options());
        REQUIRE(machine.open().is_ok());
        expected = observe(machine.provider()).damaged;
      }
      RecordingEnv env(damaged);
      Machine machine(env, options());
      REQUIRE(machine.open().is_ok());
      MonotonicTime now{1'000'000};
      for (int step = 0; step < 60; ++step, now = now + std::chrono::seconds(1)) {
        static_cast<void>(machine.provider().maintain(now));
      }
      const bool told = !machine.provider().take_damaged().empty();
      if (told != expected) FAIL_CHECK("byte " << at << " of " << path << ": expected " << expected);
      found += told ? 1 : 0;
    }
  }
  CHECK(found > 50);
}

TEST_CASE("slotfile: damage is told of again after what was lost before came back") {
  SlotfileOptions roomy = testing::tiny_slotfile_options("/buckets");
  roomy.limits.entries_max = 100;
  DiskImage files;
  {
    RecordingEnv env;
    Machine machine(env, roomy);
    REQUIRE(machine.open().is_ok());
    REQUIRE(machine.provider().create_bucket(kWhole).is_ok());
    for (int n = 0; n < 3; ++n) {
      const std::string text = "body " + std::to_string(n);
      REQUIRE(machine.run(put_step(kWhole, {test_put(number_in(kWhole, n), 10, text)})).is_ok());
    }
    REQUIRE(machine.run(checkpoint_step()).is_ok());
    env.visit_process_ends(env.changes(), [&](const DiskImage& image, const std::string&) { files = image; });
  }
  for (auto& [path, content] : files) {
    if (!path.ends_with(".slot")) continue;
    for (const char* text : {"body 0", "body 1"}) content[content.find(text)] ^= 1;
  }
  RecordingEnv env(files);
  Machine machine(env, roomy);
  REQUIRE(machine.open().is_ok());
  spi::PersistenceProvider& provider = machine.provider();
  CHECK(provider.get(kWhole, test_put(number_in(kWhole, 0), 0).gid).status().code() == StatusCode::Corruption);
  CHECK(provider.take_damaged() == std::vector<BucketId>{kWhole});
  CHECK(*provider.is_damaged(kWhole));
  REQUIRE(machine.run(put_step(kWhole, {test_put(number_in(kWhole, 0), 11, "again")})).is_ok());
  CHECK(*provider.is_damaged(kWhole));  // The document that was lost has come back, but others were not looked at.
  CHECK(provider.get(kWhole, test_put(number_in(kWhole, 1), 0).gid).status().code() == StatusCode::Corruption);
  CHECK(provider.take_damaged() == std::vector<BucketId>{kWhole});
  CHECK(*provider.is_damaged(kWhole));
  CHECK(provider.get(kWhole, test_put(number_in(kWhole, 2), 0).gid).has_value());
}

TEST_CASE("slotfile: unreadable metadata of a bucket that was repaired is not met again at the next start") {
  constexpr int kDocuments = 30;
  SlotfileOptions roomy = testing::tiny_slotfile_options("/buckets");
  roomy.limits = {};
  roomy.limits.dead_percent_max = 99;  // No slot is rewritten because of its dead bytes.
  DiskImage files;
  {
    RecordingEnv env;
    Machine machine(env, roomy);
    REQUIRE(machine.open().is_ok());
    REQUIRE(machine.provider().create_bucket(kWhole).is_ok());
    for (int n = 0; n < kDocuments; ++n) {
      REQUIRE(machine.run(put_step(kWhole, {test_put(number_in(kWhole, n), 10)})).is_ok());
    }
    REQUIRE(machine.run(checkpoint_step()).is_ok());
    env.visit_process_ends(env.changes(), [&](const DiskImage& image, const std::string&) { files = image; });
  }
  const OwnedWrite lost = test_put(number_in(kWhole, 0), 10);
  for (auto& [path, content] : files) {
    if (!path.ends_with(".slot")) continue;
    // The id occurs first in the document's metadata. Two bad bytes after it cannot be corrected.
    const std::size_t at = content.find(lost.gid.view());
    REQUIRE(at != std::string::npos);
    for (const std::size_t byte : {at + 16, at + 25}) content[byte] = static_cast<char>(~content[byte]);
  }
  RecordingEnv env(files);
  Machine machine(env, roomy);
  REQUIRE(machine.open().is_ok());
  REQUIRE(machine.provider().get(kWhole, lost.gid).status().code() == StatusCode::Corruption);
  REQUIRE(machine.run(put_step(kWhole, {lost})).is_ok());
  REQUIRE(mark_repaired(machine.provider(), kWhole).is_ok());
  REQUIRE(machine.run(checkpoint_step()).is_ok());
  settle(machine.provider());
  REQUIRE(machine.open().is_ok());
  const Observed found = observe(machine.provider());
  CHECK(found.complaint.empty());
  CHECK_FALSE(found.damaged);
  CHECK(found.state.at(kWhole).versions.size() == kDocuments);
  CHECK_FALSE(machine.provider().is_damaged(kWhole).value());
}

TEST_CASE(
    "slotfile: a damaged header of a journal segment loses no record, and does not hide that the first one is lost") {
  SlotfileOptions roomy = testing::tiny_slotfile_options("/buckets");
  roomy.limits = {};
  const OwnedWrite first = test_put(number_in(kWhole, 0), 10);
  const OwnedWrite second = test_put(number_in(kWhole, 1), 11);
  DiskImage files;
  std::string path;
  RecordReport record;
  {
    RecordingEnv env;
    Machine machine(env, roomy);
    REQUIRE(machine.open().is_ok());
    REQUIRE(machine.provider().create_bucket(kWhole).is_ok());
    REQUIRE(machine.run(checkpoint_step()).is_ok());  // Begins a new segment of the journal.
    for (const OwnedWrite& write : {first, second}) REQUIRE(machine.run(put_step(kWhole, {write})).is_ok());
    const StoreReport report = inspect_store(env, "/buckets").value();
    for (const SegmentReport& segment : report.stripes.at(0).segments) {
      if (!segment.needed) continue;
      REQUIRE(segment.records.size() == 2);
      path = segment.path;
      record = segment.records[0];
    }
    env.visit_process_ends(env.changes(), [&](const DiskImage& image, const std::string&) { files = image; });
  }
  REQUIRE(files.contains(path));
  files[path][0] = static_cast<char>(~files[path][0]);
  const bool is_lost = GENERATE(false, true);
  if (is_lost) files[path].replace(record.offset, record.bytes, record.bytes, '\0');
  RecordingEnv env(files);
  Machine machine(env, roomy);
  REQUIRE(machine.open().is_ok());
  CHECK(machine.provider().stats().lost_records == (is_lost ? 1 : 0));
  CHECK(machine.provider().is_damaged(kWhole).value() == is_lost);
  CHECK(machine.provider().take_damaged().size() == (is_lost ? 1 : 0));
  CHECK(machine.provider().get(kWhole, first.gid).status().code() ==
        (is_lost ? StatusCode::Corruption : StatusCode::Ok));
  CHECK(machine.provider().get(kWhole, second.gid).has_value());
}

}  // namespace fjord
