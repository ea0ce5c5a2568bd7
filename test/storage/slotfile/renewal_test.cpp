#include <algorithm>
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

constexpr int kDocuments = 24;
constexpr std::size_t kListAt = 64 + 64;  ///< Offset of the first run's metadata entries.
constexpr std::size_t kEntry = 40;

SlotfileOptions options(std::uint64_t scrub_bytes_per_second) {
  SlotfileOptions options = testing::tiny_slotfile_options("/buckets");
  options.limits = {};
  options.limits.dead_percent_max = 99;  // No slot is rewritten because of its dead bytes.
  options.limits.scrub_bytes_per_second = scrub_bytes_per_second;
  return options;
}
constexpr std::uint64_t kNoScrub = 0;
constexpr std::uint64_t kFastScrub = 1 << 30;

/// A store with one bucket in one slotfile of two runs; some documents have older versions, one is removed.
struct Sound {
  DiskImage files;
  State state;
  std::vector<OwnedWrite> newest;
  std::string slotfile;  ///< Path of the slotfile.
};

Sound make_sound() {
  Sound sound;
  RecordingEnv env;
  Machine machine(env, options(kNoScrub));
  REQUIRE(machine.open().is_ok());
  REQUIRE(machine.provider().create_bucket(kWhole).is_ok());
  const auto write = [&](const OwnedWrite& one) {
    REQUIRE(machine.run(put_step(kWhole, {one})).is_ok());
    std::erase_if(sound.newest, [&](const OwnedWrite& older) { return older.gid == one.gid; });
    sound.newest.push_back(one);
  };
  for (int n = 0; n < kDocuments; ++n) {
    write(test_put(number_in(kWhole, n), 10 + static_cast<unsigned>(n), fmt::format("body {} {:60}", n, "")));
  }
  REQUIRE(machine.run(checkpoint_step()).is_ok());
  write(test_put(number_in(kWhole, 0), 100, "newer"));
  write(test_remove(number_in(kWhole, 1), 101));
  REQUIRE(machine.run(checkpoint_step()).is_ok());
  sound.state = observe(machine.provider()).state;
  machine.close();
  env.visit_process_ends(env.changes(), [&](const DiskImage& image, const std::string&) { sound.files = image; });
  for (const auto& [path, content] : sound.files) {
    if (path.ends_with(".slot")) sound.slotfile = path;
  }
  return sound;
}

struct Damage {
  std::string name;
  std::function<void(std::string& content)> harm;  ///< Null: the file is missing.
};

/// Kinds of damage after which entries are lost.
std::vector<Damage> losses() {
  const auto zeros = [](std::size_t at, std::size_t length) {
    return [=](std::string& content) { content.replace(at, length, length, '\0'); };
  };
  return {{"zeros in headers and bodies", zeros(kListAt + kDocuments * kEntry, 1024)},
          {"zeros in metadata entries", zeros(kListAt + 2 * kEntry, 5 * kEntry)},
          {"zeros at the beginning", zeros(0, 1024)},
          {"the newest version of a document", [](std::string& content) { content[content.rfind("newer")] ^= 1; }},
          {"cut off in the middle", [](std::string& content) { content.resize(content.size() / 2); }},
          {"empty", [](std::string& content) { content.clear(); }},
          {"missing", nullptr}};
}

DiskImage damaged_by(const Sound& sound, const Damage& damage) {
  DiskImage files = sound.files;
  if (damage.harm) {
    damage.harm(files.at(sound.slotfile));
  } else {
    files.erase(sound.slotfile);
  }
  return files;
}

/// Reads until damage is met. Returns true if there was any.
bool find_damage(spi::PersistenceProvider& provider, const Sound& sound) {
  for (const OwnedWrite& one : sound.newest) {
    if (provider.get(kWhole, one.gid).status().code() == StatusCode::Corruption) return true;
  }
  return false;
}

/// Writes what the bucket lacks, as a merge from an intact replica does. Returns the number of writes.
std::size_t bring_back(Machine& machine, const Sound& sound) {
  std::map<GlobalId, Timestamp> here;
  const auto entries = machine.provider().list_entries(kWhole);
  REQUIRE(entries.has_value());
  for (const spi::EntryMeta& entry : *entries) here[entry.gid] = entry.timestamp;
  std::size_t writes = 0;
  for (const OwnedWrite& one : sound.newest) {
    const auto found = here.find(one.gid);
    if (found != here.end() && found->second == one.timestamp) continue;
    REQUIRE(machine.run(put_step(kWhole, {one})).is_ok());
    ++writes;
  }
  return writes;
}

void renew(spi::PersistenceProvider& provider) {
  constexpr int kStepsMost = 1000;
  for (int step = 0; step < kStepsMost; ++step) {
    const Result<bool> done = provider.renew(kWhole);
    REQUIRE(done.has_value());
    if (*done) return;
  }
  FAIL("the bucket is never renewed");
}

std::uint64_t problems(Env& env) { return inspect_store(env, "/buckets").value().problem_count(); }

/// Calls maintain() for `seconds` of virtual time, whenever the engine asks for it.
void pass_time(spi::PersistenceProvider& provider, MonotonicTime& now, int seconds) {
  const MonotonicTime end = now + std::chrono::seconds(seconds);
  while (now < end) {
    const spi::Maintenance left = provider.maintain(now);
    now = now + std::max<Duration>(left.more ? Duration(0) : left.next_in, std::chrono::milliseconds(1));
  }
}

}  // namespace

TEST_CASE("slotfile: a repair is on disk when it is marked, and damage is remembered at every step before (I13)") {
  const Sound sound = make_sound();
  for (const Damage& damage : losses()) {
    INFO(damage.name);
    RecordingEnv env(damaged_by(sound, damage));
    Machine machine(env, options(kNoScrub));
    REQUIRE(machine.open().is_ok());
    spi::PersistenceProvider& provider = machine.provider();
    REQUIRE(find_damage(provider, sound));
    CHECK(*provider.is_damaged(kWhole));
    provider.maintain(MonotonicTime{1'000'000});
    const std::size_t known_at = env.changes();
    // Everything that cannot be read leaves the bucket at once, whatever the read has met.
    renew(provider);
    const std::size_t lost = bring_back(machine, sound);
    CHECK(lost > 0);
    CHECK(*provider.is_damaged(kWhole));
    CHECK(observe(provider).state == sound.state);
    const std::size_t whole_at = env.changes();
    REQUIRE(provider.mark_repaired(kWhole).is_ok());
    CHECK_FALSE(*provider.is_damaged(kWhole));
    const std::size_t repaired_at = env.changes();
    REQUIRE(machine.run(checkpoint_step()).is_ok());
    settle(machine.provider());
    CHECK(problems(env) == 0);
    machine.close();

    const auto check = [&](std::size_t changes, const DiskImage& image, const std::string& which) {
      RecordingEnv disk(image);
      Machine again(disk, options(kNoScrub));
      if (!again.open().is_ok()) {
        FAIL_CHECK(which << ": cannot be opened");
        return;
      }
      if (changes < whole_at && !*again.provider().is_damaged(kWhole)) {
        FAIL_CHECK(which << ": damage that was known is forgotten");
      }
      const Observed found = observe(again.provider());
      if (!found.complaint.empty()) FAIL_CHECK(which << ": " << found.complaint);
      if (changes >= repaired_at && (found.damaged || found.state != sound.state)) {
        FAIL_CHECK(which << ": the repair is not on disk:" << to_string(found.state));
      }
      if (!found.damaged && found.state != sound.state) FAIL_CHECK(which << ": lost without a word");
    };
    for (std::size_t k = known_at; k <= env.changes(); ++k) {
      const auto visit = [&](const DiskImage& image, const std::string& which) {
        check(k, image, fmt::format("{} of {} changes, repaired at {}, {}", k, env.changes(), repaired_at, which));
      };
      env.visit_process_ends(k, visit);
      env.visit_power_losses(k, visit);
    }
  }
}

TEST_CASE("slotfile: a bucket is not marked as repaired before all that cannot be read was found") {
  const Sound sound = make_sound();
  const Damage first_documents = losses().front();
  RecordingEnv env(damaged_by(sound, first_documents));
  Machine machine(env, options(kNoScrub));
  REQUIRE(machine.open().is_ok());
  spi::PersistenceProvider& provider = machine.provider();
  REQUIRE(find_damage(provider, sound));
  REQUIRE(bring_back(machine, sound) == 1);  // The read has met one document.
  Status marked = provider.mark_repaired(kWhole);
  CHECK(marked.code() == StatusCode::NotReady);
  CHECK(*provider.is_damaged(kWhole));
  settle(provider);
  CHECK(provider.list_entries(kWhole)->size() < sound.newest.size());
  CHECK(bring_back(machine, sound) > 3);
  CHECK(provider.mark_repaired(kWhole).is_ok());
  CHECK(observe(provider).state == sound.state);
}

TEST_CASE("slotfile: damage in one slotfile has the others of its bucket verified before the repair ends") {
  SlotfileOptions several = options(kNoScrub);
  several.limits.entries_max = 6;
  std::vector<OwnedWrite> writes;
  for (int n = 0; n < kDocuments; ++n) {
    writes.push_back(test_put(number_in(kWhole, n), 10, fmt::format("body <{}>", n)));
  }
  DiskImage files;
  {
    RecordingEnv env;
    Machine machine(env, several);
    REQUIRE(machine.open().is_ok());
    REQUIRE(machine.provider().create_bucket(kWhole).is_ok());
    REQUIRE(machine.run(put_step(kWhole, writes)).is_ok());
    REQUIRE(machine.run(compact_step()).is_ok());
    REQUIRE(machine.run(checkpoint_step()).is_ok());
    REQUIRE(*machine.provider().slots_of(kWhole) > 2);
    env.visit_process_ends(env.changes(), [&](const DiskImage& image, const std::string&) { files = image; });
  }
  // The documents with the lowest and the highest hash are in different slots.
  std::sort(writes.begin(), writes.end(),
            [](const auto& a, const auto& b) { return a.gid.hash_bits() < b.gid.hash_bits(); });
  for (const OwnedWrite& lost : {writes.front(), writes.back()}) {
    for (auto& [path, content] : files) {
      const std::size_t at = path.ends_with(".slot") ? content.find(lost.body) : std::string::npos;
      if (at != std::string::npos) content[at + lost.body.size() - 1] ^= 1;
    }
  }
  RecordingEnv env(files);
  Machine machine(env, several);
  REQUIRE(machine.open().is_ok());
  spi::PersistenceProvider& provider = machine.provider();
  REQUIRE(provider.get(kWhole, writes.front().gid).status().code() == StatusCode::Corruption);
  REQUIRE(provider.list_entries(kWhole)->size() == kDocuments - 1);
  renew(provider);
  CHECK(provider.list_entries(kWhole)->size() == kDocuments - 2);
}

TEST_CASE("slotfile: damage from which nothing is lost heals without another replica") {
  const bool is_loaded = GENERATE(false, true);  // With the index in memory no metadata entry is lost either.
  const Sound sound = make_sound();
  const std::size_t size = sound.files.at(sound.slotfile).size();
  struct Place {
    std::string name;
    std::size_t at;
    std::size_t length;
    bool needs_index;
  };
  const std::vector<Place> places = {{"the file's header", 0, 64, false},
                                     {"the first frame of a run", 64, 64, false},
                                     {"the second frame of the last run", size - 64, 64, false},
                                     {"one bit of a metadata entry", kListAt + 3, 1, false},
                                     {"metadata entries", kListAt, 3 * kEntry, true},
                                     {"header, frame and metadata entries", 0, kListAt + 4 * kEntry, true},
                                     {"the whole file", 0, 0, true}};
  for (const Place& place : places) {
    if (place.needs_index && !is_loaded) continue;
    INFO(place.name << ", index loaded: " << is_loaded);
    RecordingEnv env(sound.files);
    Machine machine(env, options(kFastScrub));
    MonotonicTime now{1'000'000};
    if (is_loaded) {
      REQUIRE(machine.open().is_ok());
      pass_time(machine.provider(), now, 5);
    }
    if (place.length == 0) {
      REQUIRE(env.remove_file(sound.slotfile).is_ok());
    } else {
      auto file = *env.open_random_access(sound.slotfile);
      std::string bytes(place.length, '\0');
      REQUIRE(file->read(place.at, std::span<char>(bytes)).has_value());
      const char change = place.length == 1 ? '\x10' : '\xff';
      for (char& byte : bytes) byte = static_cast<char>(byte ^ change);
      REQUIRE(file->write(place.at, bytes).is_ok());
    }
    CHECK(problems(env) > 0);
    if (!is_loaded) REQUIRE(machine.open().is_ok());
    pass_time(machine.provider(), now, 700);  // The next pass of the scrub begins within ten minutes.
    CHECK(problems(env) == 0);
    CHECK(machine.provider().take_damaged().empty());
    CHECK(observe(machine.provider()).state == sound.state);
    REQUIRE(machine.open().is_ok());
    const Observed found = observe(machine.provider());
    CHECK_FALSE(found.damaged);
    CHECK(found.state == sound.state);
  }
}

TEST_CASE("slotfile: a damaged header is found when the file is opened, without a scrub") {
  const Sound sound = make_sound();
  DiskImage files = sound.files;
  for (char& byte : std::span(files.at(sound.slotfile)).first(64)) byte = static_cast<char>(~byte);
  RecordingEnv env(files);
  Machine machine(env, options(kNoScrub));
  REQUIRE(machine.open().is_ok());
  CHECK(observe(machine.provider()).state == sound.state);
  CHECK(machine.provider().stats().bad_headers == 1);
  MonotonicTime now{1'000'000};
  pass_time(machine.provider(), now, 2);
  CHECK(problems(env) == 0);
  CHECK_FALSE(*machine.provider().is_damaged(kWhole));
}

TEST_CASE("slotfile: the scrub keeps its rate when buckets are small") {
  constexpr int kMany = 300;
  constexpr std::size_t kBytes = 2000;
  constexpr std::uint64_t kRate = 256 << 10;
  RecordingEnv env;
  Machine machine(env, options(kRate));
  REQUIRE(machine.open().is_ok());
  std::set<BucketId> buckets;
  for (int number = 0; number < kMany; ++number) {
    const OwnedWrite write = test_put(number, 10, std::string(kBytes, 'x'));
    const BucketId bucket = bucket_of(write.gid, BucketId::kUsedBitsMax);
    REQUIRE(machine.provider().create_bucket(bucket).is_ok());
    REQUIRE(machine.run(put_step(bucket, {write})).is_ok());
    buckets.insert(bucket);
  }
  REQUIRE(buckets.size() > 30);
  REQUIRE(machine.run(checkpoint_step()).is_ok());
  MonotonicTime now{1'000'000};
  const MonotonicTime begin = now;
  while (machine.provider().stats().scrub_passes == 0) {
    pass_time(machine.provider(), now, 1);
    REQUIRE(now < begin + std::chrono::seconds(60));
  }
  const auto took = std::chrono::duration_cast<std::chrono::seconds>(now - begin).count();
  const std::uint64_t read = machine.provider().stats().scrubbed_bytes;
  INFO(buckets.size() << " buckets, " << read << " bytes in " << took << " s");
  CHECK(read >= kMany * kBytes);
  // A bucket costs 4 KiB beside its documents.
  const std::uint64_t expected = (read + buckets.size() * (4 << 10)) / kRate;
  CHECK(static_cast<std::uint64_t>(took) <= expected + 3);
  CHECK(static_cast<std::uint64_t>(took) + 3 >= read / kRate);
}

}  // namespace fjord
