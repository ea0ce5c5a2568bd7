#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <set>
#include <thread>

#include "commands/ask_cluster.h"
#include "commands/bucket_names.h"
#include "commands/commands.h"
#include "output/json_text.h"

namespace fjord::cli {
namespace {

using Kind = rpc::BucketTroubleKind;
using SteadyClock = std::chrono::steady_clock;

constexpr auto kPollInterval = std::chrono::milliseconds(300);

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::OutOfSync:
      return "out of sync";
    case Kind::Damaged:
      return "damaged";
    case Kind::Lost:
      return "lost";
    case Kind::Unavailable:
      return "unavailable";
    case Kind::Unknown:
      break;
  }
  return "unknown";
}

struct Troubles {
  std::vector<std::pair<rpc::Address, rpc::BucketTrouble>> buckets;  ///< Each with the distributor that reported it.
  std::vector<std::string> silent;  ///< Names and errors of the distributors that do not answer.
  bool more = false;
};

/// Asks all distributors for buckets with a trouble of at least `at_least`, up to `most` of them.
Troubles ask_all(Connection& connection, Kind at_least, std::size_t most, Duration timeout) {
  Troubles troubles;
  const auto snapshot = connection.client().snapshot();
  const std::vector<rpc::Address>& distributors = snapshot->info().distributor_addresses;
  for (std::size_t i = 0; i < distributors.size(); ++i) {
    rpc::ListTroubles request;
    request.at_least = at_least;
    do {
      auto reply = ask_node(connection, distributors[i], request, timeout);
      if (!reply) {
        troubles.silent.push_back(fmt::format("distributor.{}: {}", i, reply.error().to_string()));
        break;
      }
      for (rpc::BucketTrouble& trouble : reply->troubles) {
        if (troubles.buckets.size() == most) {
          troubles.more = true;
          return troubles;
        }
        troubles.buckets.emplace_back(distributors[i], std::move(trouble));
      }
      request.from_key = reply->next_key;
    } while (request.from_key != 0);
  }
  return troubles;
}

std::string nodes_text(const std::vector<std::uint16_t>& nodes) {
  return nodes.empty() ? "-" : fmt::format("{}", fmt::join(nodes, ","));
}

std::string as_text(const Troubles& troubles) {
  std::string text =
      fmt::format("{:<20} {:<12} {:<10} {:<10} {:<10} {}\n", "BUCKET", "WHAT", "MEMBERS", "DAMAGED", "FILLING", "WHY");
  for (const auto& [address, one] : troubles.buckets) {
    text += fmt::format("{:<20} {:<12} {:<10} {:<10} {:<10} {}\n", bucket_name(one.bucket), name_of(one.kind),
                        nodes_text(one.members), nodes_text(one.damaged), nodes_text(one.filling), one.reason);
  }
  return text;
}

void add_nodes(JsonText& json, const char* name, const std::vector<std::uint16_t>& nodes) {
  json.key(name).begin_array();
  for (const std::uint16_t node : nodes) json.text(fmt::format("storage.{}", node));
  json.end_array();
}

std::string as_json(const Troubles& troubles) {
  std::string text;
  for (const auto& [address, one] : troubles.buckets) {
    JsonText json;
    json.begin_object().key("bucket").text(bucket_name(one.bucket)).key("what").text(name_of(one.kind));
    add_nodes(json, "members", one.members);
    add_nodes(json, "damaged", one.damaged);
    add_nodes(json, "filling", one.filling);
    text += json.key("why").text(one.reason).end_object().str() + "\n";
  }
  return text;
}

/// Prints the buckets and the silent distributors. Returns kPartial if a distributor was silent.
int show(const Troubles& troubles, const Common& common) {
  if (common.json()) {
    print(as_json(troubles));
  } else if (!troubles.buckets.empty()) {
    print(as_text(troubles));
  } else if (troubles.silent.empty()) {
    print("no such buckets\n");
  }
  for (const std::string& silent : troubles.silent) complain(silent);
  return troubles.silent.empty() ? kOk : kPartial;
}

bool is_lost(const rpc::BucketTrouble& trouble) { return trouble.kind == Kind::Lost; }

/// Returns the lost buckets in `wanted`, or all lost ones with --all. Errors: NotFound if a wanted bucket is not lost.
Result<Troubles> chosen(Connection& connection, const std::set<BucketId>& wanted, const BucketArgs& args) {
  Troubles troubles = ask_all(connection, Kind::Lost, SIZE_MAX, args.common.timeout());
  std::erase_if(troubles.buckets, [](const auto& one) { return !is_lost(one.second); });
  if (args.all) return troubles;
  for (const BucketId bucket : wanted) {
    const bool is_there = std::any_of(troubles.buckets.begin(), troubles.buckets.end(),
                                      [&](const auto& one) { return one.second.bucket == bucket; });
    if (!is_there) {
      return Status(StatusCode::NotFound,
                    bucket_name(bucket) +
                        " is no bucket of which all replicas have lost something; `fjord bucket list` tells which are");
    }
  }
  std::erase_if(troubles.buckets, [&](const auto& one) { return !wanted.contains(one.second.bucket); });
  return troubles;
}

/// Asks the owners of the buckets to accept the loss. Ignores refusals: such a bucket is in the next list again.
void accept(Connection& connection, const Troubles& troubles, Duration timeout) {
  std::map<rpc::Address, rpc::AcceptLoss> requests;
  for (const auto& [address, one] : troubles.buckets) requests[address].buckets.push_back(one.bucket);
  for (auto& [address, request] : requests) (void)ask_node(connection, address, std::move(request), timeout);
}

/// Accepts the loss and waits until none of these buckets is lost.
int accept_and_wait(Connection& connection, Troubles left, const BucketArgs& args) {
  const std::size_t count = left.buckets.size();
  const auto deadline = SteadyClock::now() + std::chrono::microseconds(args.common.timeout().count());
  std::set<BucketId> wanted;
  for (const auto& [address, one] : left.buckets) wanted.insert(one.bucket);
  for (;;) {
    accept(connection, left, args.common.timeout());
    std::this_thread::sleep_for(kPollInterval);
    left = ask_all(connection, Kind::Lost, SIZE_MAX, args.common.timeout());
    std::erase_if(left.buckets,
                  [&](const auto& one) { return !is_lost(one.second) || !wanted.contains(one.second.bucket); });
    if (left.buckets.empty() && left.silent.empty()) break;
    if (SteadyClock::now() > deadline) {
      for (const std::string& silent : left.silent) complain(silent);
      complain(fmt::format("{} of {} buckets are still lost; ask again", left.buckets.size(), count));
      return kTimeout;
    }
  }
  if (!args.common.json()) print(fmt::format("{} buckets: what is left is all there is\n", count));
  return kOk;
}

}  // namespace

int run_bucket_list(const BucketArgs& args) {
  auto connection = connect_to(args.common);
  if (!connection) return report(connection.error());
  const auto most = static_cast<std::size_t>(args.lines);
  Troubles troubles = ask_all(**connection, Kind::Damaged, most, args.common.timeout());
  std::stable_sort(troubles.buckets.begin(), troubles.buckets.end(),
                   [](const auto& a, const auto& b) { return a.second.kind > b.second.kind; });
  if (!troubles.more) {
    const Troubles all = ask_all(**connection, Kind::OutOfSync, most, args.common.timeout());
    troubles.silent = all.silent;
    for (const auto& one : all.buckets) {
      if (one.second.kind != Kind::OutOfSync) continue;
      if (troubles.buckets.size() == most) break;
      troubles.buckets.push_back(one);
    }
    troubles.more = all.more;
  }
  const int code = show(troubles, args.common);
  if (troubles.more && !args.common.json()) print("... and more; -n says how many are shown\n");
  return code;
}

int run_bucket_accept_loss(const BucketArgs& args) {
  if (!args.all && args.buckets.empty()) {
    complain("say which buckets, or --all");
    return kUsage;
  }
  std::set<BucketId> wanted;
  for (const std::string& text : args.buckets) {
    const Result<BucketId> bucket = bucket_named(text);
    if (!bucket) return report(bucket.error());
    wanted.insert(*bucket);
  }
  auto connection = connect_to(args.common);
  if (!connection) return report(connection.error());
  Result<Troubles> troubles = chosen(**connection, wanted, args);
  if (!troubles) return report(troubles.error());
  const int code = show(*troubles, args.common);
  if (code != kOk || troubles->buckets.empty()) return code;
  if (!args.yes) {
    complain("nothing was done; with --yes, documents that these buckets have lost are NOT_FOUND from then on");
    return kOk;
  }
  return accept_and_wait(**connection, std::move(*troubles), args);
}

}  // namespace fjord::cli
