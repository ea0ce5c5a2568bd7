#include "tune/calibrate.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <future>
#include <memory>
#include <numeric>
#include <thread>
#include <unistd.h>
#include <vector>

#include "fjord/common/hash.h"
#include "fjord/common/metrics.h"
#include "fjord/common/random.h"
#include "fjord/common/scheduler.h"
#include "fjord/document/document.h"
#include "fjord/document/json.h"
#include "fjord/rpc/thrift_transport.h"

namespace fjord::cli {
namespace {

using tuner::Constant;
using tuner::HardwareProfile;

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kPage = 4096;
constexpr int kRepetitions = 5;
/// Number of shares of the time, one for each measurement. Writing and reading the file comes in addition.
constexpr double kShares = 12;

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Uses the results, so that the compiler cannot remove the measured code.
std::atomic<std::uint64_t> sink_of_results{0};

/// A temporary file; the destructor removes it.
class ProbeFile {
 public:
  static Result<std::unique_ptr<ProbeFile>> create(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) return failure(path);
    return std::unique_ptr<ProbeFile>(new ProbeFile(path, file));
  }
  ~ProbeFile() {
    ::close(file_);
    ::unlink(path_.c_str());
  }
  ProbeFile(const ProbeFile&) = delete;
  ProbeFile& operator=(const ProbeFile&) = delete;

  static Status failure(const std::string& path) {
    return Status(errno == ENOSPC ? StatusCode::NoSpace : StatusCode::IoError,
                  fmt::format("{}: {}", path, std::strerror(errno)));
  }
  Status write(std::uint64_t offset, const std::vector<char>& data) {
    std::size_t done = 0;
    while (done < data.size()) {
      const ssize_t n = ::pwrite(file_, data.data() + done, data.size() - done, static_cast<off_t>(offset + done));
      if (n <= 0) return failure(path_);
      done += static_cast<std::size_t>(n);
    }
    return Status::ok();
  }
  Status sync() { return ::fdatasync(file_) == 0 ? Status::ok() : failure(path_); }
  /// Drops synced pages from the page cache, so that reads come from the device.
  void drop_cache() { static_cast<void>(::posix_fadvise(file_, 0, 0, POSIX_FADV_DONTNEED)); }
  void expect_random() { static_cast<void>(::posix_fadvise(file_, 0, 0, POSIX_FADV_RANDOM)); }
  void expect_sequential() { static_cast<void>(::posix_fadvise(file_, 0, 0, POSIX_FADV_SEQUENTIAL)); }
  Status read(std::uint64_t offset, std::vector<char>& into) const {
    const ssize_t n = ::pread(file_, into.data(), into.size(), static_cast<off_t>(offset));
    return n == static_cast<ssize_t>(into.size()) ? Status::ok() : failure(path_);
  }
  const std::string& path() const { return path_; }

 private:
  ProbeFile(std::string path, int file) : path_(std::move(path)), file_(file) {}
  std::string path_;
  int file_;
};

std::vector<char> random_bytes(std::size_t size, std::uint64_t seed) {
  std::vector<char> bytes(size);
  Random random(seed);
  for (std::size_t i = 0; i + 8 <= size; i += 8) {
    const std::uint64_t value = random.next();
    std::memcpy(bytes.data() + i, &value, 8);
  }
  return bytes;
}

/// Returns `kRepetitions` measurements of the mean time of one call of `what`. All of them together take `seconds`.
template <typename F>
std::vector<double> time_of(double seconds, F what) {
  std::vector<double> times;
  for (int i = 0; i < kRepetitions; ++i) {
    const double begin = now_s();
    double end = begin;
    std::uint64_t calls = 0;
    do {
      what();
      ++calls;
      end = now_s();
    } while (end - begin < seconds / kRepetitions);
    times.push_back((end - begin) / static_cast<double>(calls));
  }
  return times;
}

std::vector<double> rates_of(std::vector<double> times, double bytes) {
  for (double& time : times) time = bytes / time;
  return times;
}

class Calibration {
 public:
  Calibration(const CalibrateOptions& options, HardwareProfile& profile,
              const std::function<void(const std::string&)>& tell)
      : options_(options), profile_(profile), tell_(tell), share_(options.seconds / kShares) {}

  Status run() {
    FJORD_TRY(measure_disk());
    measure_cpu();
    measure_memory();
    return measure_round_trip();
  }

 private:
  void take(Constant constant, const std::vector<double>& values) {
    const bool is_taken = profile_.measured(constant, values);
    const tuner::ConstantDeclaration& declared = tuner::declaration_of(constant);
    const tuner::ConstantValue& value = profile_.at(constant);
    tell_(fmt::format("{:<22} {:>12.4g} {:<8} confidence {:.2f}{}", declared.name, value.value, declared.unit,
                      value.confidence,
                      is_taken ? "" : fmt::format("; {:.4g} was measured, which is not plausible", value.rejected)));
  }

  Status measure_disk() {
    FJORD_TRY_ASSIGN(const auto file, ProbeFile::create(options_.directory + "/fjord-calibrate.tmp"));
    const std::uint64_t bytes = std::max<std::uint64_t>(options_.file_bytes, 16 * kMiB) / kMiB * kMiB;
    FJORD_TRY(measure_writes(*file, bytes));
    FJORD_TRY(measure_sequential_reads(*file, bytes));
    FJORD_TRY(measure_random_reads(*file, bytes));
    FJORD_TRY(measure_syncs());
    take(Constant::FileOpenS, time_of(share_ / 4, [&] {
           const int opened = ::open(file->path().c_str(), O_RDONLY | O_CLOEXEC);
           if (opened >= 0) ::close(opened);
         }));
    return Status::ok();
  }

  Status measure_writes(ProbeFile& file, std::uint64_t bytes) {
    const std::vector<char> block = random_bytes(kMiB, 1);
    std::vector<double> rates;
    const std::uint64_t part = bytes / kRepetitions / kMiB * kMiB;
    std::uint64_t at = 0;
    for (int i = 0; i < kRepetitions; ++i) {
      const std::uint64_t end = i + 1 == kRepetitions ? bytes : at + part;
      const std::uint64_t first = at;
      const double begin = now_s();
      for (; at < end; at += kMiB) FJORD_TRY(file.write(at, block));
      FJORD_TRY(file.sync());
      rates.push_back(static_cast<double>(end - first) / (now_s() - begin));
    }
    take(Constant::SequentialWriteRate, rates);
    return Status::ok();
  }

  Status measure_sequential_reads(ProbeFile& file, std::uint64_t bytes) {
    file.expect_sequential();
    std::vector<char> block(kMiB);
    std::vector<double> rates;
    const double until = now_s() + 3 * share_;
    for (int i = 0; i < kRepetitions && (rates.empty() || now_s() < until); ++i) {
      file.drop_cache();
      const double begin = now_s();
      for (std::uint64_t at = 0; at < bytes; at += kMiB) FJORD_TRY(file.read(at, block));
      rates.push_back(static_cast<double>(bytes) / (now_s() - begin));
    }
    take(Constant::SequentialReadRate, rates);
    return Status::ok();
  }

  Status measure_random_reads(ProbeFile& file, std::uint64_t bytes) {
    file.expect_random();
    std::vector<double> alone;
    std::vector<double> together;
    for (int i = 0; i < kRepetitions; ++i) {
      file.drop_cache();
      alone.push_back(1 / read_rate(file, bytes, 1, static_cast<std::uint64_t>(i), share_ / kRepetitions));
      file.drop_cache();
      together.push_back(read_rate(file, bytes, 16, static_cast<std::uint64_t>(100 + i), share_ / kRepetitions));
    }
    take(Constant::RandomReadS, alone);
    take(Constant::RandomReadsPerS, together);
    return Status::ok();
  }

  /// Returns the reads of random pages per second with `threads` threads. Reads no page twice, so none comes from the
  /// cache.
  static double read_rate(const ProbeFile& file, std::uint64_t bytes, unsigned threads, std::uint64_t seed,
                          double seconds) {
    const std::uint64_t pages = bytes / kPage;
    std::vector<std::uint32_t> order(pages);
    std::iota(order.begin(), order.end(), 0U);
    Random random(seed);
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    std::atomic<std::size_t> next{0};
    const double begin = now_s();
    const auto work = [&] {
      std::vector<char> page(kPage);
      while (now_s() - begin < seconds) {
        const std::size_t at = next.fetch_add(1, std::memory_order_relaxed);
        if (at >= order.size() || !file.read(std::uint64_t{order[at]} * kPage, page)) return;
      }
    };
    std::vector<std::thread> workers;
    for (unsigned i = 1; i < threads; ++i) workers.emplace_back(work);
    work();
    for (std::thread& worker : workers) worker.join();
    return static_cast<double>(std::min(next.load(), order.size())) / (now_s() - begin);
  }

  Status measure_syncs() {
    FJORD_TRY_ASSIGN(const auto file, ProbeFile::create(options_.directory + "/fjord-calibrate-sync.tmp"));
    const std::vector<char> record = random_bytes(1024, 2);
    std::uint64_t at = 0;
    Status status;
    const std::vector<double> times = time_of(share_, [&] {
      if (!status) return;
      status = file->write(at, record);
      if (status) status = file->sync();
      at += record.size();
    });
    FJORD_TRY(status);
    take(Constant::SyncS, times);
    return Status::ok();
  }

  void measure_cpu() {
    const std::vector<char> document = random_bytes(kMiB, 3);
    take(Constant::HashRate, rates_of(time_of(share_ / 2,
                                              [&] {
                                                sink_of_results += hash64({document.data(), document.size()});
                                              }),
                                      static_cast<double>(kMiB)));
    const std::vector<std::string> schema = {
        "document probe { field title type string { header } field price type long { header } "
        "field city type string { header } field text type string { } }"};
    const auto types = DocumentTypeRepo::build(schema);
    const auto id = DocumentId::parse("id:probe:probe::1");
    if (!types || !id) return;
    const DocumentType* type = (*types)->find("probe");
    if (type == nullptr) return;
    const auto encoded = fields_from_json(
        *type, *id,
        "{\"title\": \"Some title of a listing\", \"price\": 1234, \"city\": \"Trondheim\", \"text\": \"" +
            std::string(640, 'x') + "\"}");
    if (!encoded) return;
    take(Constant::DecodeRate, rates_of(time_of(share_ / 2,
                                                [&] {
                                                  const auto view =
                                                      DocumentView::open(**types, encoded->header, encoded->body);
                                                  if (!view) return;
                                                  const auto read = view->document();
                                                  if (read) sink_of_results += read->fields().size();
                                                }),
                                        static_cast<double>(encoded->size())));
  }

  void measure_memory() {
    // The array is larger than the caches of a processor.
    const std::vector<char> from = random_bytes(64 * kMiB, 4);
    std::vector<char> to(from.size());
    take(Constant::CopyRate, rates_of(time_of(share_,
                                              [&] {
                                                std::memcpy(to.data(), from.data(), from.size());
                                                sink_of_results += static_cast<std::uint64_t>(to[from.size() / 2]);
                                              }),
                                      static_cast<double>(from.size())));
    // One random cycle through all elements: each read needs the result of the previous one.
    std::vector<std::uint32_t> next(16 * kMiB);
    std::iota(next.begin(), next.end(), 0U);
    Random random(5);
    for (std::size_t i = next.size() - 1; i > 0; --i) std::swap(next[i], next[random.below(i)]);
    std::uint32_t at = 0;
    constexpr int kSteps = 10'000;
    std::vector<double> times = time_of(share_ / 2, [&] {
      for (int i = 0; i < kSteps; ++i) at = next[at];
      sink_of_results += at;
    });
    for (double& time : times) time /= kSteps;
    take(Constant::MemoryAccessS, times);
  }

  /// Answers every request at once.
  class Echo final : public rpc::Service {
   public:
    bool handle(rpc::Request& request, rpc::Responder& respond) override {
      respond(rpc::error_reply(request, Status::ok()));
      return true;
    }
  };

  Status measure_round_trip() {
    MetricRegistry metrics;
    ThreadScheduler scheduler;
    const std::unique_ptr<Executor> executor = scheduler.make_executor("calibrate");
    Echo echo;
    FJORD_TRY_ASSIGN(const auto server, rpc::ThriftServer::listen({}, {&echo}, metrics));
    rpc::ThriftTransport transport({}, metrics);
    Status status;
    const std::vector<double> times = time_of(share_, [&] {
      if (!status) return;
      std::promise<Status> answer;
      rpc::call(transport, server->address(), rpc::CancelJob{"probe"}, seconds(5), *executor,
                [&](Result<rpc::CancelJobReply> reply) { answer.set_value(reply.status()); });
      status = answer.get_future().get();
    });
    FJORD_TRY(status);
    take(Constant::RoundTripS, times);
    return Status::ok();
  }

  const CalibrateOptions& options_;
  HardwareProfile& profile_;
  const std::function<void(const std::string&)>& tell_;
  double share_;
};

}  // namespace

Status calibrate(const CalibrateOptions& options, HardwareProfile& profile,
                 const std::function<void(const std::string&)>& tell) {
  return Calibration(options, profile, tell).run();
}

}  // namespace fjord::cli
