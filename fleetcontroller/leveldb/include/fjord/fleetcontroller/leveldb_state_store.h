#pragma once

#include <functional>
#include <memory>
#include <string>

#include "fjord/common/env.h"
#include "fjord/fleetcontroller/cluster_state_store.h"

namespace fjord::fleetcontroller {

/// The embedded store: a LevelDB database in a folder, for a cluster with one fleet controller. Its only member always
/// leads; each campaign() and each resign() begins a new term. Each write is on the disk before it is answered.
///
/// Threading: as the interface. Reads and writes run on the caller's executor: records are small and change seldom.
class LevelDbStateStore final : public ClusterStateStore {
 public:
  /// Opens or creates the database in `directory`/store. If the database has no records yet, it takes them over from a
  /// state file of earlier versions in `directory`; the file stays. `env` is used for the folder and that file.
  /// Errors: Corruption; IoError, also if another process has the database open.
  static Result<std::unique_ptr<LevelDbStateStore>> open(Env& env, const std::string& directory);
  ~LevelDbStateStore() override;

  void campaign(const std::string& name, Executor& executor, OnLeadership on_change) override;
  void resign() override;
  void leave() override;
  void confirm(std::uint64_t term, OnConfirmed done) override;
  Duration session_timeout() const override { return seconds(3600); }
  void read(std::string_view record, OnRead done) override;
  void write(std::uint64_t term, std::string_view record, std::uint64_t expected, std::string content,
             OnWritten done) override;

 private:
  struct Impl;
  explicit LevelDbStateStore(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace fjord::fleetcontroller
