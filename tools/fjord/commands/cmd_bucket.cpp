#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "commands/bucket_text.h"
#include "commands/commands.h"
#include "fjord/library/admin.h"
#include "output/json_text.h"

namespace fjord::cli {
namespace {

std::string nodes_text(const std::vector<std::string>& nodes) {
  return nodes.empty() ? "-" : fmt::format("{}", fmt::join(node_numbers(nodes), ","));
}

std::string as_text(const UnhealthyBuckets& unhealthy) {
  std::string text =
      fmt::format("{:<20} {:<16} {:<10} {:<10} {:<10} {}\n", "BUCKET", "WHAT", "MEMBERS", "DAMAGED", "FILLING", "WHY");
  for (const UnhealthyBucket& one : unhealthy.buckets) {
    text += fmt::format("{:<20} {:<16} {:<10} {:<10} {:<10} {}\n", one.bucket, to_string(one.state),
                        nodes_text(one.members), nodes_text(one.damaged), nodes_text(one.catching_up), one.reason);
  }
  return text;
}

void add_nodes(JsonText& json, const char* name, const std::vector<std::string>& nodes) {
  json.key(name).begin_array();
  for (const std::string& node : nodes) json.text(node);
  json.end_array();
}

std::string as_json(const UnhealthyBuckets& unhealthy) {
  std::string text;
  for (const UnhealthyBucket& one : unhealthy.buckets) {
    JsonText json;
    json.begin_object().key("bucket").text(one.bucket).key("what").text(to_string(one.state));
    add_nodes(json, "members", one.members);
    add_nodes(json, "damaged", one.damaged);
    add_nodes(json, "catching_up", one.catching_up);
    text += json.key("why").text(one.reason).end_object().str() + "\n";
  }
  return text;
}

/// Prints the buckets and the silent distributors. Returns kPartial if a distributor was silent.
int show(const UnhealthyBuckets& unhealthy, const Common& common) {
  if (common.json()) {
    print(as_json(unhealthy));
  } else if (!unhealthy.buckets.empty()) {
    print(as_text(unhealthy));
  } else if (unhealthy.silent.empty()) {
    print("no such buckets\n");
  }
  for (const std::string& silent : unhealthy.silent) complain(silent);
  return unhealthy.silent.empty() ? kOk : kPartial;
}

/// Shows the chosen buckets and, with --yes, accepts their loss.
int accept_loss(Admin& admin, const BucketArgs& args, std::vector<std::string> names) {
  auto lost = admin.lost_buckets();
  if (!lost) return report(lost.error());
  if (!args.all) {
    for (const std::string& name : names) {
      const bool is_there = std::any_of(lost->buckets.begin(), lost->buckets.end(),
                                        [&](const UnhealthyBucket& one) { return one.bucket == name; });
      if (!is_there) {
        return report({StatusCode::NotFound, name + ": not a bucket of which all replicas have lost something; `fjord "
                                                    "bucket list` shows those"});
      }
    }
    std::erase_if(lost->buckets, [&](const UnhealthyBucket& one) {
      return std::find(names.begin(), names.end(), one.bucket) == names.end();
    });
  }
  const int code = show(*lost, args.common);
  if (code != kOk || lost->buckets.empty()) return code;
  if (!args.yes) {
    complain("nothing was done; with --yes, documents that these buckets have lost are NOT_FOUND from then on");
    return kOk;
  }
  names.clear();
  for (const UnhealthyBucket& one : lost->buckets) names.push_back(one.bucket);
  const Status accepted = admin.accept_loss(names, args.common.timeout());
  if (!accepted) return report(accepted);
  if (!args.common.json()) print(fmt::format("{} buckets: what is left is all there is\n", names.size()));
  return kOk;
}

}  // namespace

int run_bucket_list(const BucketArgs& args) {
  return with_admin(args.common, [&](Admin admin) {
    const auto unhealthy = admin.unhealthy_buckets(static_cast<std::size_t>(args.lines));
    if (!unhealthy) return report(unhealthy.error());
    const int code = show(*unhealthy, args.common);
    if (unhealthy->more && !args.common.json()) print("... and more; -n says how many are shown\n");
    return code;
  });
}

int run_bucket_accept_loss(const BucketArgs& args) {
  if (!args.all && args.buckets.empty()) {
    complain("say which buckets, or --all");
    return kUsage;
  }
  std::vector<std::string> names;
  for (const std::string& text : args.buckets) {
    const auto name = bucket_name(text);
    if (!name) return report(name.error());
    names.push_back(*name);
  }
  return with_admin(args.common, [&](Admin admin) { return accept_loss(admin, args, std::move(names)); });
}

}  // namespace fjord::cli
