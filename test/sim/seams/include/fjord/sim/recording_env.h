#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/env.h"

namespace fjord::sim {

/// A disk at rest: the content of each file by its path.
using DiskImage = std::map<std::string, std::string>;

/// A hash of everything in it, to tell images apart.
std::uint64_t hash_of(const DiskImage& image);

/// A disk in memory that writes down every change, so that afterwards each state can be made in which a crash could
/// have left it. Directories are always durable.
///
/// Threading: one thread. Lifetime: outlives the files it opened.
class RecordingEnv final : public Env {
 public:
  /// What is in `durable` is there and on the device.
  explicit RecordingEnv(const DiskImage& durable = {});
  ~RecordingEnv() override;

  Result<std::unique_ptr<RandomAccessFile>> open_random_access(const std::string& path) override;
  Result<std::unique_ptr<RandomAccessFile>> create_random_access(const std::string& path) override;
  Result<bool> exists(const std::string& path) override;
  Result<std::vector<std::string>> list_directory(const std::string& path) override;
  Status create_directories(const std::string& path) override;
  Status remove_file(const std::string& path) override;
  Status remove_all(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status sync_directory(const std::string& path) override;
  Result<SpaceInfo> space(const std::string& path) override;

  /// How many changes (and syncs) there were so far.
  std::size_t changes() const { return changes_.size(); }
  /// The process ends when there have been `changes`: from then on everything fails and nothing changes.
  void end_process_after(std::size_t changes) { end_ = changes; }
  /// The next process starts.
  void start_process() { end_ = ~std::size_t{0}; }

  /// Told an image, and in words which one it is.
  using Visitor = std::function<void(const DiskImage& image, const std::string& which)>;
  /// What the next process finds if this one ended after `changes` changes: that, and parts of the write that was next.
  void visit_process_ends(std::size_t changes, const Visitor& visit) const;
  /// What a loss of power after `changes` changes may leave. Of what was not synced: nothing, all, everything up to or
  /// but for or nothing but one change, the last write of a file torn at multiples of 512 bytes, sizes without data and
  /// data without sizes; of names each beginning of their changes and all but one of them. Each image once.
  void visit_power_losses(std::size_t changes, const Visitor& visit) const;

 private:
  class File;
  struct Node {
    std::string content;
  };
  enum class Kind { Write, Resize, Sync, Create, Remove, Rename, SyncDirectory };
  struct Change {
    Kind kind;
    std::shared_ptr<Node> node;  ///< Write, Resize, Sync, Create
    std::string path;            ///< Create, Remove, Rename
    std::string target;          ///< Rename
    std::uint64_t offset = 0;    ///< Write; Resize: the size
    std::string bytes;           ///< Write
  };
  using Names = std::map<std::string, std::shared_ptr<Node>>;
  using Contents = std::map<const Node*, std::string>;

  /// The disk after some changes: what is on the device, and what is not yet.
  struct Pending {
    Names names;
    Contents contents;
    std::vector<const Change*> name_changes;
    std::vector<const Change*> data_changes;
  };

  Status record(Change change);
  Pending pending_after(std::size_t changes) const;
  static void apply_name(Names& names, const Change& change);
  static void apply_data(Contents& contents, const Change& change);
  static DiskImage image_of(const Names& names, const Contents& contents);

  Names initial_names_;
  Contents initial_contents_;
  Names names_;
  std::set<std::string> directories_;
  std::vector<Change> changes_;
  std::size_t end_ = ~std::size_t{0};
};

}  // namespace fjord::sim
