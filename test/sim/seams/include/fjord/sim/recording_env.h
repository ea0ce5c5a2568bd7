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

/// The files of a disk: content by path.
using DiskImage = std::map<std::string, std::string>;

/// Returns a hash of all files, to tell images apart.
std::uint64_t hash_of(const DiskImage& image);

/// A disk in memory that records every change, so that each state can be rebuilt that a crash could have left.
/// Directories are always durable.
///
/// Threading: one thread. Lifetime: outlives the files it opened.
class RecordingEnv final : public Env {
 public:
  /// Starts with the files of `durable`, which are synced.
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

  /// Returns the number of changes and syncs so far.
  std::size_t changes() const { return changes_.size(); }
  /// Ends the process after `changes` changes in all: every later operation fails and changes nothing.
  void end_process_after(std::size_t changes) { end_ = changes; }
  /// Lets operations succeed again, as for the next process.
  void start_process() { end_ = ~std::size_t{0}; }

  /// Called with an image and a description of it.
  using Visitor = std::function<void(const DiskImage& image, const std::string& which)>;
  /// Visits the disks that the next process may find if this one ended after `changes` changes: the state then, and
  /// that state with parts of the next write.
  void visit_process_ends(std::size_t changes, const Visitor& visit) const;
  /// Visits the disks that a power loss after `changes` changes may leave, each image once. Unsynced data may survive
  /// as: nothing; all; all up to one change; all but one change; one change alone; with the last write of a file torn
  /// at multiples of 512 bytes; sizes without data; data without sizes. Unsynced changes of names survive up to any one
  /// of them, or all but one.
  void visit_power_losses(std::size_t changes, const Visitor& visit) const;

 private:
  class File;
  struct Node {
    std::string content;
  };
  enum class Kind { Write, Resize, Sync, Create, Remove, Rename, SyncDirectory };
  /// A recorded change. The comment of a member names the kinds that use it.
  struct Change {
    Kind kind;
    std::shared_ptr<Node> node;  ///< Used by Write, Resize, Sync and Create.
    std::string path;            ///< Used by Create and Remove; Rename: the old path.
    std::string target;          ///< Used by Rename: the new path.
    std::uint64_t offset = 0;    ///< Used by Write; Resize: the size.
    std::string bytes;           ///< Used by Write.
  };
  using Names = std::map<std::string, std::shared_ptr<Node>>;
  using Contents = std::map<const Node*, std::string>;

  /// The disk after some changes: its durable state, and the changes that are not durable yet.
  struct Pending {
    Names names;
    Contents contents;
    std::vector<const Change*> name_changes;
    std::vector<const Change*> data_changes;
  };

  /// A content of the files that a power loss may leave.
  struct Choice {
    std::string words;
    Contents contents;
  };

  Status record(Change change);
  Pending pending_after(std::size_t changes) const;
  /// Returns the contents that may survive: first none of the changes that are not durable, then all of them.
  static std::vector<Choice> choices_of(const Pending& pending);
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
