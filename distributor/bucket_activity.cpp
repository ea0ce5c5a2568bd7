#include "bucket_activity.h"

#include <array>
#include <cstddef>
#include <utility>

#include "fjord/common/check.h"

namespace fjord::distributor {
namespace {

// Names in the order of the alternatives of BucketActivity and of BucketEvent.
constexpr std::array kActivityNames = {"Collecting", "Unavailable", "Installing", "Idle",     "Merging",
                                       "Draining",   "Comparing",   "Forgetting", "Reshaping"};
constexpr std::array kEventNames = {"NotAvailable",  "SetConfirmed",   "Install",        "Installed",
                                    "MergeStarted",  "MergeStopped",   "MergeSucceeded", "CompareStarted",
                                    "ForgetStarted", "ReshapeStarted", "Resumed"};
static_assert(kActivityNames.size() == std::variant_size_v<BucketActivity>);
static_assert(kEventNames.size() == std::variant_size_v<BucketEvent>);

/// Returns true if the variant holds one of these alternatives.
template <typename... Alternatives>
bool is_one_of(const BucketActivity& activity) {
  return (std::holds_alternative<Alternatives>(activity) || ...);
}

/// Says for each event in which activities it may happen.
struct Allowed {
  const BucketActivity& from;

  bool operator()(const event::NotAvailable&) const { return is_one_of<activity::Collecting>(from); }
  bool operator()(const event::SetConfirmed&) const { return is_one_of<activity::Collecting>(from); }
  bool operator()(const event::Install&) const {
    return is_one_of<activity::Collecting, activity::Draining, activity::Comparing, activity::Forgetting>(from);
  }
  bool operator()(const event::Installed&) const { return is_one_of<activity::Installing>(from); }
  bool operator()(const event::MergeStarted&) const { return is_one_of<activity::Idle>(from); }
  bool operator()(const event::MergeStopped&) const { return is_one_of<activity::Merging>(from); }
  bool operator()(const event::MergeSucceeded&) const { return is_one_of<activity::Merging>(from); }
  bool operator()(const event::CompareStarted&) const { return is_one_of<activity::Draining>(from); }
  bool operator()(const event::ForgetStarted&) const { return is_one_of<activity::Idle>(from); }
  bool operator()(const event::ReshapeStarted&) const { return is_one_of<activity::Idle>(from); }
  bool operator()(const event::Resumed&) const {
    return is_one_of<activity::Draining, activity::Comparing, activity::Forgetting, activity::Reshaping>(from);
  }
};

/// Says for each event which activity follows.
struct Next {
  BucketActivity& from;

  BucketActivity operator()(event::NotAvailable& event) const { return activity::Unavailable{std::move(event.reason)}; }
  BucketActivity operator()(event::SetConfirmed&) const { return activity::Idle{}; }
  BucketActivity operator()(event::Install& event) const { return activity::Installing{std::move(event.work)}; }
  BucketActivity operator()(event::Installed&) const { return activity::Idle{}; }
  BucketActivity operator()(event::MergeStarted& event) const {
    return activity::Merging{{.run = event.run, .moves = event.moves, .filled = {}}};
  }
  BucketActivity operator()(event::MergeStopped&) const { return activity::Idle{}; }
  BucketActivity operator()(event::MergeSucceeded&) const {
    return activity::Draining{std::move(std::get<activity::Merging>(from).merge)};
  }
  BucketActivity operator()(event::CompareStarted&) const {
    return activity::Comparing{std::move(std::get<activity::Draining>(from).merge)};
  }
  BucketActivity operator()(event::ForgetStarted& event) const { return activity::Forgetting{event.surplus_tokens_us}; }
  BucketActivity operator()(event::ReshapeStarted& event) const { return activity::Reshaping{event.number}; }
  BucketActivity operator()(event::Resumed&) const { return activity::Idle{}; }
};

}  // namespace

bool is_allowed(const BucketActivity& activity, const BucketEvent& event) {
  return std::visit(Allowed{activity}, event);
}

BucketActivity transition(BucketActivity activity, BucketEvent event) {
  FJORD_CHECK_MSG(is_allowed(activity, event), std::string(name_of(event)) + " while " + name_of(activity));
  return std::visit(Next{activity}, event);
}

const char* name_of(const BucketActivity& activity) { return kActivityNames[activity.index()]; }
const char* name_of(const BucketEvent& event) { return kEventNames[event.index()]; }

}  // namespace fjord::distributor
