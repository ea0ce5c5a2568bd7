// Single buckets: their replicas, and which of them are unhealthy.

#include <algorithm>
#include <charconv>
#include <chrono>
#include <fmt/format.h>
#include <map>
#include <set>
#include <thread>
#include <tuple>

#include "fjord/document/document_id.h"
#include "fjord/library/admin.h"
#include "fjord/library/detail/admin_calls.h"
#include "fjord/library/detail/client_core.h"

namespace fjord {

namespace {

using Kind = rpc::BucketProblem;
using Role = rpc::ReplicaRole;
using SteadyClock = std::chrono::steady_clock;

std::string name_of(BucketId bucket) { return fmt::format("{:#x}", bucket.raw()); }

Status not_a_bucket(std::string_view text) {
  return {StatusCode::InvalidArgument,
          fmt::format("not a bucket: \"{}\" (expected a name like 0x4000000000000012)", text)};
}

/// Parses a hexadecimal number with or without "0x". Errors: InvalidArgument.
Result<std::uint64_t> bits_named(std::string_view text) {
  std::string_view digits = text;
  if (digits.starts_with("0x")) digits.remove_prefix(2);
  std::uint64_t raw = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), raw, 16);
  if (error != std::errc() || end != digits.data() + digits.size()) return not_a_bucket(text);
  return raw;
}

/// Parses a name. Errors: InvalidArgument.
Result<BucketId> bucket_named(std::string_view text) {
  FJORD_TRY_ASSIGN(const std::uint64_t raw, bits_named(text));
  return BucketId(raw).is_valid() ? Result<BucketId>(BucketId(raw)) : Result<BucketId>(not_a_bucket(text));
}

/// `current` is the number of members without known damage. The kind of a bucket without enough of them is OutOfSync.
BucketState state_of(Kind kind, std::size_t current, unsigned redundancy) {
  switch (kind) {
    case Kind::OutOfSync:
      return current < redundancy ? BucketState::TooFewReplicas : BucketState::OutOfSync;
    case Kind::Damaged:
      return BucketState::Damaged;
    case Kind::Lost:
      return BucketState::Lost;
    case Kind::Unavailable:
      return BucketState::Unavailable;
    case Kind::Unknown:
      break;
  }
  return BucketState::InSync;
}

std::string epoch_text(std::uint64_t epoch) {
  const ReplicaSet set{epoch, {}};
  return fmt::format("{}.{}", set.state_version(), epoch & ((std::uint64_t{1} << ReplicaSet::kStepBits) - 1));
}

std::vector<std::string> names_of(const std::vector<std::uint16_t>& nodes) {
  std::vector<std::string> names;
  for (const std::uint16_t node : nodes) names.push_back(fmt::format("storage.{}", node));
  return names;
}

/// Returns the state of a replica: "member", "catching up, damaged", "member, no answer".
std::string state_text(const rpc::BucketReplica& replica, const rpc::BucketView& view) {
  std::string state = "unknown";
  switch (replica.role) {
    case Role::Member:
      state = view.replica_set.nodes.front() == replica.node ? "primary" : "member";
      break;
    case Role::CatchingUp:
      state = "catching up";
      break;
    case Role::Obsolete:
      state = "obsolete";
      break;
    case Role::Unlisted:
      state = "unlisted";
      break;
    case Role::Unknown:
      break;
  }
  if (replica.damaged) state += ", damaged";
  if (!replica.status) state += replica.status.code() == StatusCode::NotFound ? ", not there" : ", no answer";
  if (replica.status && replica.bucket != view.bucket) state += ", as " + name_of(replica.bucket);
  return state;
}

ReplicaInfo replica_of(const rpc::BucketReplica& replica, const rpc::BucketView& view) {
  ReplicaInfo info;
  info.node = fmt::format("storage.{}", replica.node);
  info.state = state_text(replica, view);
  info.is_member = replica.role == Role::Member;
  info.is_damaged = replica.damaged;
  info.status = replica.status;
  info.document_status = replica.document;
  if (!replica.status) return info;
  info.bucket = name_of(replica.bucket);
  info.epoch = epoch_text(replica.replica_set.epoch);
  info.documents = replica.info.documents;
  info.entries = replica.info.entries;
  info.bytes = replica.info.bytes;
  info.checksum = replica.info.checksum;
  info.newest_us = replica.info.max_timestamp_us;
  info.document_checksum = replica.checksum;
  if (replica.document) {
    info.document_version_us = replica.timestamp_us;
  } else {
    info.removed_us = replica.timestamp_us;
  }
  return info;
}

Result<std::vector<BucketReplicas>> show(ClientCore& core, const rpc::ShowBucket& request) {
  FJORD_TRY(core.wait_ready());
  FJORD_TRY_ASSIGN(const rpc::ShowBucketReply reply, show_bucket(core.connection(), request, core.timeout({})));
  const unsigned redundancy = core.client().snapshot()->distribution().redundancy();
  std::vector<BucketReplicas> buckets;
  for (const rpc::BucketView& view : reply.buckets) {
    BucketReplicas& bucket = buckets.emplace_back();
    bucket.bucket = name_of(view.bucket);
    bucket.bits = view.bucket.used_bits();
    bucket.distributor = fmt::format("distributor.{}", reply.distributor);
    bucket.state_version = reply.state_version;
    const auto current = std::count_if(view.replicas.begin(), view.replicas.end(), [](const rpc::BucketReplica& one) {
      return one.role == Role::Member && !one.damaged;
    });
    bucket.state = state_of(view.problem, static_cast<std::size_t>(current), redundancy);
    bucket.reason = view.reason;
    bucket.epoch = epoch_text(view.replica_set.epoch);
    bucket.replica_set = names_of(view.replica_set.nodes);
    for (const rpc::BucketReplica& replica : view.replicas) bucket.replicas.push_back(replica_of(replica, view));
  }
  return buckets;
}

/// An unhealthy bucket with the distributor that reported it.
struct Reported {
  rpc::Address distributor;
  rpc::UnhealthyBucket bucket;
};
struct Reports {
  std::vector<Reported> buckets;
  std::vector<std::string> silent;
  bool more = false;
};

/// Asks all distributors for up to `most` buckets that are as unhealthy as `at_least`, or worse.
Reports ask_all(ClientCore& core, Kind at_least, std::size_t most) {
  Reports reports;
  const auto snapshot = core.client().snapshot();
  const std::vector<rpc::Address>& distributors = snapshot->info().distributor_addresses;
  for (std::size_t i = 0; i < distributors.size(); ++i) {
    rpc::ListUnhealthyBuckets request;
    request.at_least = at_least;
    do {
      auto reply = ask_node(core.connection(), distributors[i], request, core.timeout({}));
      if (!reply) {
        reports.silent.push_back(fmt::format("distributor.{}: {}", i, reply.error().to_string()));
        break;
      }
      for (rpc::UnhealthyBucket& bucket : reply->buckets) {
        if (reports.buckets.size() == most) {
          reports.more = true;
          return reports;
        }
        reports.buckets.push_back({distributors[i], std::move(bucket)});
      }
      request.from_key = reply->next_key;
    } while (request.from_key != 0);
  }
  return reports;
}

Reports ask_for_lost(ClientCore& core) {
  Reports reports = ask_all(core, Kind::Lost, SIZE_MAX);
  std::erase_if(reports.buckets, [](const Reported& one) { return one.bucket.kind != Kind::Lost; });
  return reports;
}

UnhealthyBuckets public_form(Reports reports, unsigned redundancy) {
  UnhealthyBuckets result;
  for (Reported& one : reports.buckets) {
    const std::size_t damaged = std::min(one.bucket.members.size(), one.bucket.damaged.size());
    const std::size_t current = one.bucket.members.size() - damaged;
    result.buckets.push_back({name_of(one.bucket.bucket), state_of(one.bucket.kind, current, redundancy),
                              std::move(one.bucket.reason), names_of(one.bucket.members), names_of(one.bucket.damaged),
                              names_of(one.bucket.catching_up)});
  }
  result.silent = std::move(reports.silent);
  result.more = reports.more;
  return result;
}

}  // namespace

Result<std::string> bucket_name(std::string_view text) {
  FJORD_TRY_ASSIGN(const BucketId bucket, bucket_named(text));
  return name_of(bucket);
}

std::string_view to_string(BucketState state) {
  switch (state) {
    case BucketState::InSync:
      return "in sync";
    case BucketState::OutOfSync:
      return "out of sync";
    case BucketState::TooFewReplicas:
      return "too few replicas";
    case BucketState::Damaged:
      return "damaged";
    case BucketState::Lost:
      return "lost";
    case BucketState::Unavailable:
      return "unavailable";
  }
  return "unknown";
}

Result<std::vector<BucketReplicas>> Admin::bucket_of(const std::string& document_id) {
  FJORD_TRY_ASSIGN(const DocumentId id, DocumentId::parse(document_id));
  rpc::ShowBucket request;
  request.id = id.str();
  return show(*core_, request);
}

Result<std::vector<BucketReplicas>> Admin::bucket(const std::string& name) {
  rpc::ShowBucket request;
  FJORD_TRY_ASSIGN(request.bucket, bucket_named(name));
  if (request.bucket.used_bits() == 0) {
    // Balancing and the cluster state name buckets by their distribution bits alone: 0x1f.
    FJORD_TRY_ASSIGN(const std::uint64_t bits, bits_named(name));
    FJORD_TRY(core_->wait_ready());
    const unsigned used = core_->client().snapshot()->state().bits();
    if (bits >> used != 0) {
      return Status(StatusCode::InvalidArgument,
                    fmt::format("not a bucket: \"{}\" has more than the {} distribution bits", name, used));
    }
    request.bucket = BucketId(used, bits);
  }
  return show(*core_, request);
}

Result<UnhealthyBuckets> Admin::unhealthy_buckets(std::size_t max) {
  FJORD_TRY(core_->wait_ready());
  Reports reports = ask_all(*core_, Kind::Damaged, max);
  std::stable_sort(reports.buckets.begin(), reports.buckets.end(),
                   [](const Reported& a, const Reported& b) { return a.bucket.kind > b.bucket.kind; });
  const unsigned redundancy = core_->client().snapshot()->distribution().redundancy();
  if (reports.more) return public_form(std::move(reports), redundancy);
  const Reports all = ask_all(*core_, Kind::OutOfSync, max);
  reports.silent = all.silent;
  for (const Reported& one : all.buckets) {
    if (one.bucket.kind != Kind::OutOfSync) continue;
    if (reports.buckets.size() == max) break;
    reports.buckets.push_back(one);
  }
  reports.more = all.more;
  UnhealthyBuckets result = public_form(std::move(reports), redundancy);
  std::stable_partition(result.buckets.begin(), result.buckets.end(),
                        [](const UnhealthyBucket& one) { return one.state != BucketState::OutOfSync; });
  return result;
}

Result<UnhealthyBuckets> Admin::lost_buckets() {
  FJORD_TRY(core_->wait_ready());
  return public_form(ask_for_lost(*core_), core_->client().snapshot()->distribution().redundancy());
}

Status Admin::accept_loss(const std::vector<std::string>& buckets, Duration timeout) {
  constexpr auto kPause = std::chrono::milliseconds(300);
  std::set<BucketId> wanted;
  for (const std::string& name : buckets) {
    FJORD_TRY_ASSIGN(const BucketId bucket, bucket_named(name));
    wanted.insert(bucket);
  }
  FJORD_TRY(core_->wait_ready());
  const auto deadline = SteadyClock::now() + timeout;
  const auto left_of = [&](Reports reports) {
    std::erase_if(reports.buckets, [&](const Reported& one) { return !wanted.contains(one.bucket.bucket); });
    return reports;
  };
  Reports left = left_of(ask_for_lost(*core_));
  for (const BucketId bucket : wanted) {
    const bool is_there = std::any_of(left.buckets.begin(), left.buckets.end(),
                                      [&](const Reported& one) { return one.bucket.bucket == bucket; });
    if (is_there) continue;
    return {
        StatusCode::NotFound,
        name_of(bucket) + ": not a bucket of which all replicas have lost something; `fjord bucket list` shows those"};
  }
  while (!left.buckets.empty() || !left.silent.empty()) {
    std::map<rpc::Address, rpc::AcceptLoss> requests;
    for (const Reported& one : left.buckets) requests[one.distributor].buckets.push_back(one.bucket.bucket);
    // The answers do not matter: a bucket that its owner did not accept is still in the list that is read next.
    for (auto& [address, request] : requests) {
      static_cast<void>(ask_node(core_->connection(), address, std::move(request), core_->timeout({})));
    }
    std::this_thread::sleep_for(kPause);
    left = left_of(ask_for_lost(*core_));
    if (SteadyClock::now() > deadline && !(left.buckets.empty() && left.silent.empty())) {
      std::string why = fmt::format("{} of {} buckets are still lost; ask again", left.buckets.size(), wanted.size());
      for (const std::string& silent : left.silent) why += "; " + silent;
      return {StatusCode::Timeout, why};
    }
  }
  return Status::ok();
}

}  // namespace fjord
