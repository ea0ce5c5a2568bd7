#include "folder_guard.h"

#include <fmt/format.h>
#include <utility>

namespace fjord::storage {
namespace {

constexpr Duration kInterval = std::chrono::seconds(1);
/// Number of looks from one probe to the next.
constexpr unsigned kLooksToProbe = 4;
/// A folder that cannot be read so often in a row counts as gone: once may be a lack of file descriptors.
constexpr unsigned kUnreadableMax = 3;

}  // namespace

FolderGuard::FolderGuard(std::string directory, FolderIdentity identity, Stamp stamp, Runtime& runtime, Tell gone,
                         Tell probed)
    : directory_(std::move(directory)),
      stamp_(std::move(stamp)),
      env_(runtime.env),
      gone_(std::move(gone)),
      probed_(std::move(probed)),
      identity_(std::move(identity)) {
  if (stamp_) {
    const Result<std::uint64_t> stamp_now = stamp_();
    if (stamp_now) stamp_at_start_ = *stamp_now;
  }
  executor_ = runtime.scheduler.make_executor("folder");
  executor_->post_after(kInterval, [this] { look(); });
}

FolderIdentity FolderGuard::identity() const {
  std::lock_guard lock(mutex_);
  return identity_;
}

Status FolderGuard::bind(std::uint64_t cluster) {
  std::lock_guard file_lock(file_mutex_);
  FolderIdentity bound = identity();
  if (bound.cluster == cluster) return Status::ok();
  if (bound.cluster != 0) {
    return {StatusCode::InvalidArgument,
            fmt::format("{} is {}, and the fleet controller is of cluster {:016x}: give {} the folder that it has in "
                        "that cluster, or an empty one, which is filled from other nodes",
                        directory_, to_string(bound), cluster, bound.node)};
  }
  bound.cluster = cluster;
  FJORD_TRY(save_identity(env_, directory_, bound));
  std::lock_guard lock(mutex_);
  identity_ = std::move(bound);
  return Status::ok();
}

void FolderGuard::look() {
  const Status status = check();
  const bool is_certain = status.code() == StatusCode::NotFound || status.code() == StatusCode::AlreadyExists;
  unreadable_ = status || is_certain ? 0 : unreadable_ + 1;
  if (is_certain || unreadable_ >= kUnreadableMax) {
    return gone_({StatusCode::IoError, status.message() + "; the node takes no part until it is started again"});
  }
  if (++looks_ % kLooksToProbe == 0) probed_(probe());
  executor_->post_after(kInterval, [this] { look(); });
}

Status FolderGuard::probe() const {
  const std::string path = directory_ + "/probe.tmp";
  Status status = env_.create_random_access(path).status();
  if (status) status = env_.remove_file(path);
  if (status || status.code() == StatusCode::NoSpace) return Status::ok();
  return status.with_context("no file can be made in " + directory_);
}

Status FolderGuard::check() const {
  if (stamp_) {
    const Result<std::uint64_t> stamp_now = stamp_();
    if (!stamp_now) {
      return {stamp_now.error().code(),
              fmt::format("the folder {} of the node's files is gone: {}", directory_, stamp_now.error().message())};
    }
    if (*stamp_now != stamp_at_start_) {
      return {StatusCode::AlreadyExists, fmt::format("another folder is at {} since the node was started", directory_)};
    }
  }
  std::lock_guard file_lock(file_mutex_);
  const FolderIdentity own = identity();
  FJORD_TRY_ASSIGN(const std::optional<FolderIdentity> there, load_identity(env_, directory_));
  if (!there) return {StatusCode::NotFound, "the files of the node are gone from " + directory_};
  if (*there == own) return Status::ok();
  return {StatusCode::AlreadyExists,
          fmt::format("{} is {} now, and the node was started on {}", directory_, to_string(*there), to_string(own))};
}

}  // namespace fjord::storage
