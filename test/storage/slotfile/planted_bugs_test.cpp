#include <catch2/catch.hpp>

#include "crash_explorer.h"
#include "fjord/testing/engine.h"

namespace fjord {

namespace {

using namespace slotfile_testing;  // NOLINT: its test

/// The operations that a broken engine leaves out.
struct Omitted {
  std::string name;
  std::string sync_of = {};  ///< Omits syncs of files with this in their names.
  bool sync_directory = false;
  std::string rename_to = {};  ///< Omits renames to names with this in them.
};

bool concerns(const std::string& what, const std::string& path) {
  return !what.empty() && path.find(what) != std::string::npos;
}

class ForgetfulFile final : public RandomAccessFile {
 public:
  ForgetfulFile(std::unique_ptr<RandomAccessFile> file, bool forget_sync)
      : file_(std::move(file)), forget_sync_(forget_sync) {}
  Result<std::size_t> read(std::uint64_t offset, std::span<char> into) const override {
    return file_->read(offset, into);
  }
  Status write(std::uint64_t offset, std::string_view data) override { return file_->write(offset, data); }
  Status write_gather(std::uint64_t offset, std::span<const std::string_view> pieces) override {
    return file_->write_gather(offset, pieces);
  }
  void start_writeback() override {}
  std::string_view mapped(std::uint64_t end) override { return file_->mapped(end); }
  void will_need(std::uint64_t, std::uint64_t) const override {}
  Status sync() override { return forget_sync_ ? Status::ok() : file_->sync(); }
  Result<std::uint64_t> size() const override { return file_->size(); }
  Status allocate(std::uint64_t size) override { return file_->allocate(size); }
  Status truncate(std::uint64_t size) override { return file_->truncate(size); }

 private:
  std::unique_ptr<RandomAccessFile> file_;
  const bool forget_sync_;
};

/// Passes on everything except the omitted operations, and reports success for these too.
class ForgetfulEnv final : public Env {
 public:
  ForgetfulEnv(Env& env, Omitted omitted) : env_(env), omitted_(std::move(omitted)) {}

  Result<std::unique_ptr<RandomAccessFile>> open_random_access(const std::string& path) override {
    return wrap(path, env_.open_random_access(path));
  }
  Result<std::unique_ptr<RandomAccessFile>> create_random_access(const std::string& path) override {
    return wrap(path, env_.create_random_access(path));
  }
  Result<bool> exists(const std::string& path) override { return env_.exists(path); }
  Result<std::vector<std::string>> list_directory(const std::string& path) override {
    return env_.list_directory(path);
  }
  Status create_directories(const std::string& path) override { return env_.create_directories(path); }
  Status remove_file(const std::string& path) override { return env_.remove_file(path); }
  Status remove_all(const std::string& path) override { return env_.remove_all(path); }
  Status rename(const std::string& from, const std::string& to) override {
    return concerns(omitted_.rename_to, to) ? Status::ok() : env_.rename(from, to);
  }
  Status sync_directory(const std::string& path) override {
    return omitted_.sync_directory ? Status::ok() : env_.sync_directory(path);
  }
  Result<SpaceInfo> space(const std::string& path) override { return env_.space(path); }

 private:
  Result<std::unique_ptr<RandomAccessFile>> wrap(const std::string& path,
                                                 Result<std::unique_ptr<RandomAccessFile>> file) {
    if (!file) return file;
    return std::unique_ptr<RandomAccessFile>(
        std::make_unique<ForgetfulFile>(std::move(*file), concerns(omitted_.sync_of, path)));
  }

  Env& env_;
  const Omitted omitted_;
};

/// A short trace with every kind of step; a run takes milliseconds.
std::vector<Step> some_of_everything() {
  return {create_step(kWhole),
          put_step(kWhole, {testing::test_put(number_in(kWhole, 0), 10), testing::test_put(number_in(kWhole, 1), 11)}),
          checkpoint_step(),
          put_step(kWhole, {testing::test_put(number_in(kWhole, 2), 12)}),
          provider_step("split", [](auto& provider) { return provider.split_bucket(kWhole); }),
          checkpoint_step(),
          restart_step(),
          put_step(halves_of(kWhole)[0], {testing::test_put(number_in(halves_of(kWhole)[0], 0), 20)}),
          checkpoint_step()};
}

Explored explore_with(const EnvWrapper& wrap) {
  ExploreOptions options;
  options.engine = testing::tiny_slotfile_options("/buckets");
  options.engine.durability = Durability::Sync;
  options.wrap = wrap;
  Explored explored;
  const std::vector<Step> steps = some_of_everything();
  explore(steps, steps.size(), options, explored);
  return explored;
}

}  // namespace

TEST_CASE("slotfile: the exploration of crash states notices syncs and renames that are left out") {
  CHECK(explore_with(nullptr).failure.empty());
  const std::vector<Omitted> bugs{
      {.name = "no sync of anything", .sync_of = "/"},
      {.name = "no sync of the journal", .sync_of = "journal"},
      {.name = "no sync of slotfiles", .sync_of = ".slot"},
      {.name = "no sync of the catalog", .sync_of = "catalog"},
      {.name = "no sync of the directory", .sync_directory = true},
      {.name = "the catalog's new copy never gets its name", .rename_to = "catalog"},
  };
  for (const Omitted& bug : bugs) {
    INFO(bug.name);
    CHECK_FALSE(explore_with([&](Env& env) { return std::make_unique<ForgetfulEnv>(env, bug); }).failure.empty());
  }
}

}  // namespace fjord
