#include "slotfile_world.h"

#include <cstdlib>
#include <fmt/core.h>

namespace fjord::slotfile_testing {

namespace {

using testing::OwnedWrite;

void complain(Observed& observed, const std::string& what, const Status& status) {
  if (status.code() == StatusCode::Corruption) {
    observed.damaged = true;
  } else if (observed.complaint.empty()) {
    observed.complaint = what + ": " + status.to_string();
  }
}

/// Reads all entries of an iteration, remove entries included.
Status iterate(spi::PersistenceProvider& provider, BucketId bucket, std::map<GlobalId, Version>& into) {
  spi::IterateOptions options{.types = nullptr, .selection = nullptr};
  options.include_removed = true;
  FJORD_TRY_ASSIGN(const auto iterator, provider.iterate(bucket, options));
  for (bool more = true; more;) {
    DocBlockBuilder block;
    FJORD_TRY_ASSIGN(more, iterator->next(block, 1 << 16));
    for (testing::OwnedEntry& entry : testing::entries_of(block.take())) {
      into[entry.gid] = {entry.timestamp_us, entry.removed, std::move(entry.header), std::move(entry.body)};
    }
  }
  return Status::ok();
}

void observe_bucket(spi::PersistenceProvider& provider, BucketId bucket, Observed& observed) {
  BucketState& state = observed.state[bucket];
  const auto replicas = provider.replica_set(bucket);
  if (!replicas) return complain(observed, "replica_set", replicas.error());
  state.replicas = *replicas;
  const auto entries = provider.list_entries(bucket);
  if (!entries) return complain(observed, "list_entries", entries.error());
  BucketInfo info;
  for (const spi::EntryMeta& entry : *entries) {
    const auto got = provider.get(bucket, entry.gid);
    if (!got) {
      complain(observed, "get", got.error());
      continue;
    }
    if (got->timestamp != entry.timestamp || got->removed != entry.removed) observed.complaint = "get and list differ";
    state.versions[entry.gid] = {got->timestamp.us, got->removed, std::string(got->header), std::string(got->body)};
    ++info.entries;
    if (!entry.removed) ++info.documents;
    info.checksum += spi::entry_hash(entry.gid, entry.timestamp, entry.removed);
  }
  std::map<GlobalId, Version> iterated;
  if (const Status status = iterate(provider, bucket, iterated); !status) {
    complain(observed, "iterate", status);
  } else if (iterated != state.versions && !observed.damaged) {
    observed.complaint = "get and iterate differ";
  }
  const auto told = provider.bucket_info(bucket);
  if (!told) return complain(observed, "bucket_info", told.error());
  if (observed.damaged) return;  // Damage was found after the counts were made, so they mean nothing.
  if (told->entries != info.entries || told->documents != info.documents || told->checksum != info.checksum) {
    observed.complaint = fmt::format("bucket_info tells of {} entries, {} documents; there are {} and {}",
                                     told->entries, told->documents, info.entries, info.documents);
  }
}

}  // namespace

Observed observe(spi::PersistenceProvider& provider) {
  Observed observed;
  for (const BucketId bucket : provider.list_buckets()) observe_bucket(provider, bucket, observed);
  if (!provider.take_damaged().empty()) observed.damaged = true;
  return observed;
}

State without_removes_before(State state, std::uint64_t timestamp_us) {
  for (auto& [bucket, content] : state) {
    std::erase_if(content.versions,
                  [&](const auto& one) { return one.second.removed && one.second.timestamp_us < timestamp_us; });
  }
  return state;
}

std::string to_string(const State& state) {
  std::string text;
  for (const auto& [bucket, content] : state) {
    text += fmt::format("\n  {} epoch {}:", bucket.to_string(), content.replicas.epoch);
    for (const auto& [gid, version] : content.versions) {
      text += fmt::format(" {}@{}{}({}+{})", gid.to_string().substr(0, 12), version.timestamp_us,
                          version.removed ? "-" : "", version.header.size(), version.body.size());
    }
  }
  return text.empty() ? " nothing" : text;
}

Step provider_step(std::string name, std::function<Status(spi::PersistenceProvider&)> what) {
  return {.name = std::move(name), .on_provider = std::move(what)};
}

Step create_step(BucketId bucket) {
  return provider_step("create", [=](auto& provider) { return provider.create_bucket(bucket); });
}

Step put_step(BucketId bucket, std::vector<OwnedWrite> writes, spi::Durability durability) {
  const bool durable = durability == spi::Durability::Sync;
  std::string name = durable ? "durably" : "";
  for (const OwnedWrite& write : writes) {
    name += fmt::format(" {}@{}", write.remove ? "remove" : "put", write.timestamp.us);
  }
  return {.name = name,
          .on_provider =
              [=](spi::PersistenceProvider& provider) {
                std::vector<spi::Write> views;
                for (const OwnedWrite& write : writes) {
                  views.push_back(write.view());
                  views.back().bucket = bucket;
                }
                std::vector<spi::WriteResult> results(writes.size());
                provider.apply(views, results, durability);
                for (const spi::WriteResult& result : results) FJORD_TRY(result.status);
                return Status::ok();
              },
          .durable = durable,
          .bucket = bucket,
          .writes = writes};
}

Step checkpoint_step() { return {.name = "checkpoint", .kind = Step::Kind::Checkpoint, .durable = true}; }
Step compact_step() { return {.name = "compact", .kind = Step::Kind::Compact}; }
Step maintain_step(int count) { return {.name = "maintain", .kind = Step::Kind::Maintain, .count = count}; }
Step restart_step() { return {.name = "restart", .kind = Step::Kind::Restart}; }

Step random_step(Random& random, std::uint64_t timestamp_us) {
  const auto halves = halves_of(kWhole);
  const std::vector<BucketId> buckets{kWhole, kWhole, kHalf0, kHalf1, kParent, halves[0], halves[1]};
  const BucketId bucket = buckets[random.below(buckets.size())];
  switch (random.below(20)) {
    case 0:
      return checkpoint_step();
    case 1:
      return compact_step();
    case 2:
      return restart_step();
    case 3:
      return provider_step("split", [=](auto& provider) { return provider.split_bucket(kWhole); });
    case 4:
      return provider_step("join", [=](auto& provider) { return provider.join_buckets(kWhole); });
    case 5:
      return provider_step("join parent", [](auto& provider) { return provider.join_buckets(kParent); });
    case 6:
      return provider_step("split parent", [](auto& provider) { return provider.split_bucket(kParent); });
    case 7:
      return create_step(bucket);
    case 8:
      return provider_step("set_replica_set", [=](auto& provider) {
        return provider.set_replica_set(bucket, {.epoch = timestamp_us, .nodes = {7}});
      });
    case 10:
    case 11:
    case 12:
      return maintain_step(1 + static_cast<int>(random.below(3)));
    case 9:
      if (random.below(3) == 0) {
        return provider_step("delete", [=](auto& provider) { return provider.delete_bucket(bucket); });
      }
      [[fallthrough]];
    default: {
      std::vector<testing::OwnedWrite> writes;
      for (std::uint64_t i = 0, count = 1 + random.below(4); i < count; ++i) {
        const int number = number_in(bucket, static_cast<int>(random.below(8)));
        writes.push_back(random.below(5) == 0
                             ? testing::test_remove(number, timestamp_us + i)
                             : testing::test_put(number, timestamp_us + i, std::string(random.below(700), 'x')));
      }
      return put_step(bucket, std::move(writes),
                      random.below(4) == 0 ? spi::Durability::Sync : spi::Durability::Process);
    }
  }
}

Status Machine::open() {
  provider_.reset();
  FJORD_TRY_ASSIGN(provider_, SlotfileProvider::open(env_, options_));
  return Status::ok();
}

Status Machine::run(const Step& step) {
  if (provider_ == nullptr) return Status(StatusCode::NotReady, "not open");
  switch (step.kind) {
    case Step::Kind::Provider:
      return step.on_provider(*provider_);
    case Step::Kind::Checkpoint:
      return provider_->checkpoint();
    case Step::Kind::Compact: {
      const SlotfileLimits before = provider_->limits();
      SlotfileLimits limits = before;
      limits.dead_percent_max = 1;
      FJORD_TRY(provider_->set_limits(limits));
      settle(*provider_);
      return provider_->set_limits(before);
    }
    case Step::Kind::Maintain:
      for (int i = 0; i < step.count; ++i) {
        static_cast<void>(provider_->maintain(now_));
        now_ = now_ + std::chrono::milliseconds(600);
      }
      return Status::ok();
    case Step::Kind::Restart:
      return open();
  }
  return Status::ok();
}

void settle(spi::PersistenceProvider& provider) {
  constexpr int kIdleSteps = 4;
  constexpr int kStepsMost = 2000;  // Limit for steps that always fail and are retried without end.
  MonotonicTime now{1'000'000};
  int idle = 0;
  for (int step = 0; step < kStepsMost && idle < kIdleSteps; ++step) {
    idle = provider.maintain(now).more ? 0 : idle + 1;
    now = now + std::chrono::milliseconds(5);
  }
}

Status mark_repaired(spi::PersistenceProvider& provider, BucketId bucket) {
  constexpr int kAttempts = 1000;
  Status marked;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    marked = provider.mark_repaired(bucket);
    if (marked.code() != StatusCode::NotReady) break;
  }
  return marked;
}

bool is_long_run() { return std::getenv("FJORD_LONG") != nullptr; }

int number_in(BucketId bucket, int n) {
  constexpr int kNumbers = 400;
  static const std::vector<GlobalId> kIds = [] {
    std::vector<GlobalId> ids;
    for (int number = 0; number < kNumbers; ++number) ids.push_back(testing::test_id(number).gid());
    return ids;
  }();
  for (int number = 0; number < kNumbers; ++number) {
    const GlobalId& gid = kIds[static_cast<std::size_t>(number)];
    if (bucket_of(gid, bucket.used_bits()) == bucket && n-- == 0) return number;
  }
  check_failed(__FILE__, __LINE__, "there are enough documents", bucket.to_string());
}

}  // namespace fjord::slotfile_testing
