#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "engine_run.h"

namespace fjord::bench {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 20;
constexpr double kMega = 1e6;

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// A file descriptor that its destructor closes.
class File {
 public:
  File(const std::string& path, int flags) : descriptor_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

Status errno_status(std::string_view what) {
  return Status(StatusCode::IoError, fmt::format("{} the plain file: {}", what, std::strerror(errno)));
}

Result<double> write_file(const std::string& path, std::uint64_t bytes) {
  std::string block(kBlock, '\0');
  for (std::size_t i = 0; i < block.size(); ++i) block[i] = static_cast<char>(i * 2'654'435'761U >> 13);
  const File file(path, O_WRONLY | O_CREAT | O_TRUNC);
  if (file.get() < 0) return errno_status("cannot make");
  const Clock::time_point start = Clock::now();
  for (std::uint64_t left = bytes; left > 0;) {
    const ssize_t written = ::write(file.get(), block.data(), std::min<std::uint64_t>(left, kBlock));
    if (written <= 0) return errno_status("cannot write");
    left -= static_cast<std::uint64_t>(written);
  }
  if (::fdatasync(file.get()) != 0) return errno_status("cannot sync");
  return static_cast<double>(bytes) / kMega / since(start);
}

Result<double> read_file(const std::string& path, std::uint64_t bytes) {
  std::string block(kBlock, '\0');
  std::uint64_t sum = 0;
  const Clock::time_point start = Clock::now();
  const File file(path, O_RDONLY);
  if (file.get() < 0) return errno_status("cannot open");
  std::uint64_t total = 0;
  for (;;) {
    const ssize_t got = ::read(file.get(), block.data(), block.size());
    if (got < 0) return errno_status("cannot read");
    if (got == 0) break;
    total += static_cast<std::uint64_t>(got);
    sum += touch(std::string_view(block).substr(0, static_cast<std::size_t>(got)));
  }
  if (total != bytes || sum == 0) return Status(StatusCode::Corruption, "the plain file is not what was written");
  return static_cast<double>(bytes) / kMega / since(start);
}

}  // namespace

Status measure_plain_file(const Corpus& corpus, const RunOptions& options, Figures& figures) {
  FJORD_TRY_ASSIGN(const EngineDirectory directory, EngineDirectory::make(options.directory + "/plain-file"));
  const std::string path = directory.path() + "/file";
  const std::string name(kPlainFile);
  const auto record = [&](Metric metric, double value) {
    figures.add(corpus.size(), name, metric, value);
    fmt::print(stderr, "  {} {}: {}: {:.6g}\n", to_string(corpus.size()), name, info_of(metric).name, value);
  };
  FJORD_TRY_ASSIGN(const double written, write_file(path, corpus.bytes()));
  record(Metric::PlainWrite, written);
  FJORD_TRY(directory.drop_from_cache());
  FJORD_TRY_ASSIGN(const double cold, read_file(path, corpus.bytes()));
  record(Metric::IterateCold, cold);
  std::vector<double> hot;
  for (unsigned i = 0; i < options.passes; ++i) {
    FJORD_TRY_ASSIGN(const double rate, read_file(path, corpus.bytes()));
    hot.push_back(rate);
  }
  record(Metric::IterateHot, median(hot));
  return Status::ok();
}

}  // namespace fjord::bench
