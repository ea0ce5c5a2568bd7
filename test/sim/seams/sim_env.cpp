#include "fjord/sim/sim_env.h"

#include <algorithm>
#include <cstring>
#include <fmt/core.h>
#include <numeric>

#include "fjord/common/check.h"
#include "sim_tree.h"

namespace fjord::sim {

/// Lifetime: `env` outlives it. After a power loss it does not touch the node.
class SimEnv::File final : public RandomAccessFile {
 public:
  File(SimEnv& env, std::shared_ptr<SimNode> node, std::string path)
      : env_(env), node_(std::move(node)), path_(std::move(path)), power_cycle_(env.power_cycles_) {}

  Result<std::size_t> read(std::uint64_t offset, std::span<char> into) const override {
    FJORD_TRY(begin_simple(FileOperation::Read));
    const std::string& data = node_->content.data();
    if (offset >= data.size()) return std::size_t{0};
    const std::size_t n = std::min<std::size_t>(into.size(), data.size() - offset);
    std::memcpy(into.data(), data.data() + offset, n);
    return n;
  }

  Status write(std::uint64_t offset, std::string_view data) override {
    FJORD_TRY(check_powered());
    const Verdict verdict = env_.begin(FileOperation::Write, path_);
    if (verdict.hit) return write_with_fault(verdict, offset, data);
    return write_what_fits(offset, data);
  }

  Status write_gather(std::uint64_t offset, std::span<const std::string_view> pieces) override {
    // Joins the pieces, so that they are one operation that a fault may hit.
    std::string whole;
    for (const std::string_view piece : pieces) whole += piece;
    return write(offset, whole);
  }

  void start_writeback() override {}
  // Files are not mapped, so that faults hit every read.
  std::string_view mapped(std::uint64_t /*end*/) override { return {}; }
  void will_need(std::uint64_t /*offset*/, std::uint64_t /*length*/) const override {}

  Status sync() override {
    FJORD_TRY(check_powered());
    const Verdict verdict = env_.begin(FileOperation::Sync, path_);
    if (!verdict.hit) {
      node_->content.sync();
      return Status::ok();
    }
    if (verdict.effect == FileFault::Effect::FailSyncOldData) {
      env_.tree_->revert(*node_);
    } else {
      node_->content.fail_sync_new_data();
    }
    return verdict.status;
  }

  Result<std::uint64_t> size() const override {
    FJORD_TRY(check_powered());
    return node_->content.size();
  }

  Status allocate(std::uint64_t size) override {
    FJORD_TRY(begin_simple(FileOperation::Allocate));
    if (size > node_->content.size() && size - node_->content.size() > env_.free_bytes()) return no_space("allocate");
    env_.tree_->resize(*node_, size);
    return Status::ok();
  }

  Status truncate(std::uint64_t size) override {
    FJORD_TRY(begin_simple(FileOperation::Truncate));
    env_.tree_->resize(*node_, size);
    return Status::ok();
  }

 private:
  Status check_powered() const {
    if (power_cycle_ == env_.power_cycles_) return Status::ok();
    return Status(StatusCode::IoError, path_ + ": the machine lost power since the file was opened");
  }

  Status begin_simple(FileOperation operation) const {
    FJORD_TRY(check_powered());
    return env_.begin_simple(operation, path_);
  }

  Status no_space(std::string_view operation) const {
    ++env_.refused_for_space_;
    return Status(StatusCode::NoSpace, fmt::format("{}: {}: no space left on device", path_, operation));
  }

  Status write_what_fits(std::uint64_t offset, std::string_view data) {
    const std::uint64_t size = node_->content.size();
    const std::uint64_t end = offset + data.size();
    if (end <= size || end - size <= env_.free_bytes()) {
      env_.tree_->write(*node_, offset, data);
      return Status::ok();
    }
    const std::uint64_t limit = size + env_.free_bytes();
    if (limit > offset) env_.tree_->write(*node_, offset, data.substr(0, limit - offset));
    return no_space("write");
  }

  Status write_with_fault(const Verdict& verdict, std::uint64_t offset, std::string_view data) {
    switch (verdict.effect) {
      case FileFault::Effect::LoseWrite:
        return Status::ok();
      case FileFault::Effect::FailAfterwards:
        static_cast<void>(write_what_fits(offset, data));  // Its result is ignored: the fault's error is reported.
        return verdict.status;
      case FileFault::Effect::MisdirectWrite: {
        const std::uint64_t sectors = node_->content.size() / SimFileContent::kSector + 1;
        const std::uint64_t elsewhere = env_.random_.below(sectors) * SimFileContent::kSector;
        return write_what_fits(elsewhere == offset ? elsewhere + SimFileContent::kSector : elsewhere, data);
      }
      default: {
        const std::size_t prefix = env_.random_.below(data.size() + 1);
        // Its result is ignored: the fault's error is reported.
        static_cast<void>(write_what_fits(offset, data.substr(0, prefix)));
        return verdict.status;
      }
    }
  }

  SimEnv& env_;
  std::shared_ptr<SimNode> node_;
  std::string path_;
  std::uint64_t power_cycle_;
};

SimEnv::SimEnv(SimEnvOptions options)
    : options_(options), random_(options.seed), tree_(std::make_unique<SimTree>(options.power_loss)) {}

SimEnv::~SimEnv() = default;

SimEnv::Verdict SimEnv::begin(FileOperation operation, const std::string& path) {
  ++counts_[static_cast<std::size_t>(operation)];
  if (listener_) listener_(operation);
  if (faults_.empty()) return {};
  const std::string whole = path.starts_with('/') ? path : "/" + path;
  for (auto it = faults_.begin(); it != faults_.end(); ++it) {
    if (!it->operations.contains(operation) || !whole.starts_with(it->path_prefix)) continue;
    if (it->skip > 0) {
      --it->skip;
      continue;
    }
    Verdict verdict{.effect = it->effect, .status = Status(it->code, path + ": injected fault"), .hit = true};
    ++faults_hit_;
    if (--it->count == 0) faults_.erase(it);
    return verdict;
  }
  return {};
}

Status SimEnv::begin_simple(FileOperation operation, const std::string& path) {
  Verdict verdict = begin(operation, path);
  return verdict.hit ? std::move(verdict.status) : Status::ok();
}

Result<std::unique_ptr<RandomAccessFile>> SimEnv::open_random_access(const std::string& path) {
  FJORD_TRY(begin_simple(FileOperation::Open, path));
  FJORD_TRY_ASSIGN(auto node, tree_->find_file(path));
  return std::unique_ptr<RandomAccessFile>(std::make_unique<File>(*this, std::move(node), path));
}

Result<std::unique_ptr<RandomAccessFile>> SimEnv::create_random_access(const std::string& path) {
  FJORD_TRY(begin_simple(FileOperation::Create, path));
  FJORD_TRY_ASSIGN(auto node, tree_->find_or_create_file(path));
  tree_->resize(*node, 0);
  return std::unique_ptr<RandomAccessFile>(std::make_unique<File>(*this, std::move(node), path));
}

Result<bool> SimEnv::exists(const std::string& path) { return tree_->find(path).has_value(); }

Result<std::vector<std::string>> SimEnv::list_directory(const std::string& path) {
  FJORD_TRY(begin_simple(FileOperation::List, path));
  FJORD_TRY_ASSIGN(const auto directory, tree_->find_directory(path));
  std::vector<std::string> names;
  names.reserve(directory->entries.size());
  for (const auto& [name, node] : directory->entries) names.push_back(name);
  return names;
}

Status SimEnv::create_directories(const std::string& path) {
  FJORD_TRY(begin_simple(FileOperation::CreateDirectory, path));
  return tree_->create_directories(path);
}

Status SimEnv::remove_file(const std::string& path) {
  FJORD_TRY(begin_simple(FileOperation::Remove, path));
  return tree_->remove_file(path);
}

Status SimEnv::remove_all(const std::string& path) {
  FJORD_TRY(begin_simple(FileOperation::Remove, path));
  return tree_->remove_all(path);
}

Status SimEnv::rename(const std::string& from, const std::string& to) {
  FJORD_TRY(begin_simple(FileOperation::Rename, from));
  return tree_->rename(from, to);
}

Status SimEnv::sync_directory(const std::string& path) {
  FJORD_TRY(begin_simple(FileOperation::SyncDirectory, path));
  return tree_->sync_directory(path);
}

Result<SpaceInfo> SimEnv::space(const std::string& path) {
  FJORD_TRY_ASSIGN(const auto node, tree_->find(path));
  return SpaceInfo{.total_bytes = options_.capacity_bytes, .free_bytes = free_bytes()};
}

std::uint64_t SimEnv::free_bytes() const {
  const std::uint64_t used = used_bytes() + used_by_others_;
  return options_.capacity_bytes > used ? options_.capacity_bytes - used : 0;
}

std::uint64_t SimEnv::used_bytes() const { return tree_->used_bytes(); }

void SimEnv::copy_from(const SimEnv& other) {
  FJORD_CHECK(options_.power_loss == other.options_.power_loss);
  options_.capacity_bytes = other.options_.capacity_bytes;
  tree_ = other.tree_->copy();
}

void SimEnv::lose_power() { lose_power(true); }
void SimEnv::lose_power_and_all_unsynced() { lose_power(false); }

void SimEnv::lose_power(bool keep_some) {
  FJORD_CHECK_MSG(options_.power_loss, "SimEnvOptions::power_loss was not set");
  ++power_cycles_;
  tree_->lose_power(random_, keep_some);
}

void SimEnv::inject(FileFault fault) {
  FJORD_CHECK_MSG(fault.effect != FileFault::Effect::FailSyncOldData || options_.power_loss,
                  "SimEnvOptions::power_loss was not set");
  if (fault.count > 0) faults_.push_back(std::move(fault));
}

void SimEnv::clear_faults() { faults_.clear(); }

Status SimEnv::flip_bit(const std::string& path, std::uint64_t offset, int bit) {
  FJORD_TRY_ASSIGN(const auto node, tree_->find_file(path));
  if (offset >= node->content.size()) return Status(StatusCode::InvalidArgument, path + ": the file is shorter");
  node->content.flip_bit(offset, bit);
  return Status::ok();
}

std::uint64_t SimEnv::operations() const { return std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0}); }

}  // namespace fjord::sim
