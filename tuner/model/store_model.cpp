#include "fjord/tuner/model/store_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <queue>
#include <vector>

#include "fjord/common/random.h"
#include "fjord/tuner/cost_model.h"

namespace fjord::tuner::model {
namespace {

constexpr double kMiB = 1 << 20;
constexpr int kClients = 32;
constexpr int kStripes = 2;
constexpr std::size_t kSlotsMax = 384;
constexpr double kPage = 4096;

/// Servers that serve in order of arrival. Keeps the time at which each is free.
class Servers {
 public:
  explicit Servers(std::size_t count) : free_(std::max<std::size_t>(1, count), 0.0) {}
  /// Occupies a server for `seconds`, from `now` or from when one is free. Returns the end.
  double take(double now, double seconds) {
    auto first = std::min_element(free_.begin(), free_.end());
    *first = std::max(now, *first) + seconds;
    return *first;
  }

 private:
  std::vector<double> free_;
};

/// The slots whose index is in memory, with LRU eviction. The number of slots is scaled down, so an exact list is
/// cheap.
class IndexCache {
 public:
  IndexCache(std::size_t slots, std::size_t capacity) : used_at_(slots, 0), capacity_(capacity) {
    for (std::size_t i = 0; i < std::min(slots, capacity); ++i) used_at_[i] = ++clock_, ++held_;
  }
  /// Returns whether the slot's index was in memory; loads it if not.
  bool use(std::size_t slot) {
    const bool hit = used_at_[slot] != 0;
    if (!hit && held_ >= capacity_) {
      std::size_t oldest = slot;
      for (std::size_t i = 0; i < used_at_.size(); ++i) {
        if (used_at_[i] != 0 && (oldest == slot || used_at_[i] < used_at_[oldest])) oldest = i;
      }
      if (oldest != slot) used_at_[oldest] = 0, --held_;
    }
    if (!hit) ++held_;
    used_at_[slot] = ++clock_;
    if (capacity_ == 0) used_at_[slot] = 0, --held_;
    return hit;
  }

 private:
  std::vector<std::uint64_t> used_at_;
  std::uint64_t clock_ = 0;
  std::size_t held_ = 0;
  std::size_t capacity_;
};

/// Popularity of documents, and the probability that a document of a given rank is in an LRU page cache. Che's
/// approximation: the document is there if it was requested within the time in which the cache is replaced once.
class Popularity {
 public:
  Popularity(double documents, double exponent) : n_(std::max(2.0, documents)), s_(exponent) {
    constexpr int kBins = 64;
    double low = 1;
    double total = 0;
    for (int i = 0; i < kBins; ++i) {
      const double high = std::max(low + 1, std::pow(n_, (i + 1.0) / kBins));
      const double middle = std::sqrt(low * high);
      bins_.push_back({high - low, std::pow(middle, -s_)});
      total += bins_.back().count * bins_.back().each;
      low = high;
      if (low >= n_) break;
    }
    for (Bin& bin : bins_) bin.each /= total;
  }
  void set_cache(double documents_held) {
    // Finds by bisection the number of requests in which the cache is replaced once.
    double low = std::max(1.0, documents_held);
    double high = low * 1e6;
    for (int i = 0; i < 16 && documents_held < n_; ++i) {
      const double middle = std::sqrt(low * high);
      double held = 0;
      for (const Bin& bin : bins_) held += bin.count * (1 - std::exp(-bin.each * middle));
      (held > documents_held ? high : low) = middle;
    }
    double sum = 0;
    for (Bin& bin : bins_) {
      sum += bin.count * bin.each;
      bin.up_to = sum;
      bin.cached = documents_held >= n_ ? 1 : documents_held <= 0 ? 0 : 1 - std::exp(-bin.each * low);
    }
  }
  /// Draws whether a requested document is in the cache.
  bool draw_is_cached(Random& random) const {
    const double at = random.uniform();
    const auto bin = std::lower_bound(bins_.begin(), bins_.end() - 1, at,
                                      [](const Bin& one, double value) { return one.up_to < value; });
    return random.uniform() < bin->cached;
  }

 private:
  struct Bin {
    double count;
    double each;        ///< Probability that a request is for a given document of the bin.
    double up_to = 0;   ///< Probability of a document of this bin or an earlier one.
    double cached = 0;  ///< Probability that one of its documents is in the cache.
  };
  double n_;
  double s_;
  std::vector<Bin> bins_;
};

class Node {
 public:
  Node(const Workload& w, const SimulatedHardware& hw, const Settings& settings, std::uint64_t seed)
      : w_(w),
        hw_(hw),
        settings_(settings),
        random_(seed),
        shape_(shape_of(w, settings)),
        scale_(std::min(1.0, static_cast<double>(kSlotsMax) / shape_.slotfiles)),
        slots_(std::max<std::size_t>(1, static_cast<std::size_t>(shape_.slotfiles * scale_))),
        cpus_(static_cast<std::size_t>(hw.cores)),
        channels_(static_cast<std::size_t>(hw.channels)),
        indexes_(slots_, index_capacity()),
        popularity_(shape_.documents, w.key_skew) {
    // The kernel keeps this part of the cache for pages in repeated use while a scan runs through it.
    pages_ = std::max(0.0, shape_.page_bytes) * (w.scan_share > 0 ? 0.8 : 0.95);
    popularity_.set_cache(pages_ / std::max(kPage, w.document_bytes * 1.05));
    chance_cached_ = std::min(1.0, pages_ / (shape_.bytes * 1.08));
    swapping_ = shape_.page_bytes < 0;
  }

  Outcome run(int operations) {
    visitors_ = w_.scan_share > 0
                    ? static_cast<int>(std::min(static_cast<double>(settings_.visitors_max), std::ceil(shape_.buckets)))
                    : 0;
    visitors_ = std::min(visitors_, 256);
    customers_.resize(static_cast<std::size_t>(kClients + visitors_));
    for (int i = 0; i < kClients; ++i) events_.push({static_cast<double>(i) * 1e-6, i, false});
    for (int i = 0; i < visitors_; ++i) {
      // Each visitor starts at a random place of its bucket.
      customers_[static_cast<std::size_t>(kClients + i)].left_in_bucket = shape_.bucket_bytes * random_.uniform();
      events_.push({static_cast<double>(i) * 3e-5, kClients + i, false});
    }
    const int warm_up = operations / 5;
    int done = 0;
    double begin = 0;
    double scanned_before = 0;
    double end = 0;
    // Runs until enough operations and some dozen docblocks are done, but ends also if operations starve among visits.
    constexpr int kBlocks = 48;
    const auto is_enough = [&](int steps) {
      return steps > 12 * operations || (done >= operations + warm_up && (visitors_ == 0 || blocks_ >= kBlocks));
    };
    for (int steps = 0; !is_enough(steps); ++steps) {
      const Event event = events_.top();
      events_.pop();
      end = event.at;
      if (event.who < 0) {
        release(event.at, static_cast<std::size_t>(-1 - event.who));
      } else if (!event.is_served) {
        enter(event.at, event.who);
      } else if (event.who >= kClients) {
        events_.push({after_docblock(event.at, event.who), event.who, false});
        release_of(event.at, event.who);
      } else {
        const double answered = after_operation(event.at, event.who);
        if (++done > warm_up) latencies_.push_back(answered - customers_[static_cast<std::size_t>(event.who)].began);
        if (done == warm_up) begin = event.at, scanned_before = scanned_, blocks_ = 0;
        events_.push({answered, event.who, false});
        release_of(event.at, event.who);
      }
    }
    const double seconds = std::max(1e-9, end - begin);
    return outcome(static_cast<double>(latencies_.size()) / seconds, (scanned_ - scanned_before) / seconds);
  }

 private:
  struct Event {
    double at;
    int who;         ///< Index of the customer; -1 - i: stripe i has done some background work.
    bool is_served;  ///< The stripe has done its part.
    bool operator<(const Event& other) const { return at > other.at || (at == other.at && who > other.who); }
  };
  struct Customer {
    double began = 0;
    double bytes = 0;
    std::size_t slot = 0;
    bool is_read = false;
    double left_in_bucket = 0;
  };
  /// Serves one request at a time, in order of arrival.
  struct Stripe {
    bool is_busy = false;
    std::deque<int> waiting;   ///< Waiting customers; -1: background work.
    std::deque<double> later;  ///< CPU seconds of each piece of background work.
  };

  /// Starts the next request of a client, or the next docblock of a visitor.
  void enter(double now, int who) {
    Customer& customer = customers_[static_cast<std::size_t>(who)];
    customer.began = now;
    customer.slot = random_.below(slots_);
    double at = now;
    if (who < kClients) {
      customer.is_read = random_.uniform() < w_.read_share();
      customer.bytes = document_bytes();
      at += hw_.round_trip_s * 0.5;
      // Work of the transport's threads, on any CPU.
      at = cpu(at, (customer.is_read ? 10e-6 : 5e-6) + customer.bytes / hw_.copy_rate * 2);
    } else if (customer.left_in_bucket <= 0) {
      customer.left_in_bucket = shape_.bucket_bytes * (0.7 + 0.6 * random_.uniform());
      at = cpu(at + hw_.round_trip_s * 3, 250e-6) + 0.6e-3;
    }
    // The request joins the queue at once: the time until `at` is short, or the same for all.
    queue(at, customer.slot % kStripes, who);
  }

  void queue(double now, std::size_t which, int who) {
    Stripe& stripe = stripes_[which];
    if (stripe.is_busy) {
      stripe.waiting.push_back(who);
    } else {
      stripe.is_busy = true;
      serve(now, which, who);
    }
  }
  void serve(double now, std::size_t which, int who) {
    if (who < 0) {
      const double seconds = stripes_[which].later.front();
      stripes_[which].later.pop_front();
      events_.push({cpu(now, seconds), -1 - static_cast<int>(which), true});
    } else {
      events_.push({who < kClients ? operation(now, who) : docblock(now, who), who, true});
    }
  }
  void release(double now, std::size_t which) {
    Stripe& stripe = stripes_[which];
    if (stripe.waiting.empty()) {
      stripe.is_busy = false;
      return;
    }
    const int next = stripe.waiting.front();
    stripe.waiting.pop_front();
    serve(now, which, next);
  }
  void release_of(double now, int who) { release(now, customers_[static_cast<std::size_t>(who)].slot % kStripes); }

  void later(double now, std::size_t slot, double seconds) {
    stripes_[slot % kStripes].later.push_back(seconds);
    queue(now, slot % kStripes, -1);
  }

  std::size_t index_capacity() const {
    const double slot_bytes = shape_.index_bytes / shape_.slotfiles;
    const double fit = static_cast<double>(settings_.index_bytes_max) / std::max(1.0, slot_bytes) * scale_;
    return static_cast<std::size_t>(std::min(fit, static_cast<double>(slots_)));
  }

  double cpu(double now, double seconds) { return cpus_.take(now, seconds * hw_.cpu_factor * (swapping_ ? 10 : 1)); }

  /// Reads come first, but background writes get at least a third of the device.
  double transfer(double now, double bytes, double rate) {
    const double seconds = bytes / rate;
    const bool is_shared = written_until_ > now + 1e-4;
    disk_free_ = std::max(now, disk_free_) + seconds * (is_shared ? 1.5 : 1);
    if (is_shared) written_until_ += seconds;
    return disk_free_;
  }
  /// Performs `seeks` seeks; a fraction is the probability of one more.
  double seek(double now, double seeks) {
    double count = std::floor(seeks);
    if (random_.uniform() < seeks - count) ++count;
    if (count == 0) return now;
    const bool is_shared = written_until_ > now + 1e-4;
    const double slower = (random_.uniform() < hw_.slow_read_share ? 10 : 1) * (swapping_ ? 10 : 1);
    // The further seeks are shorter: a disk arm moves less between near places.
    const double seconds = hw_.seek_s * slower + (count - 1) * hw_.seek_s * 0.8;
    if (is_shared) written_until_ += seconds / hw_.channels;
    return channels_.take(now, seconds * (is_shared ? 1.5 : 1));
  }
  double read(double now, double seeks, double bytes) { return transfer(seek(now, seeks), bytes, hw_.read_rate); }
  /// Adds disk work that can wait.
  void write_behind(double now, double seeks, double bytes_read, double bytes_written) {
    written_until_ = std::max(now, written_until_) + seeks * hw_.seek_s / hw_.channels + bytes_read / hw_.read_rate +
                     bytes_written / hw_.write_rate;
  }

  /// Does a stripe's part of a read or write. Returns when it ends.
  double operation(double now, int who) {
    const Customer& customer = customers_[static_cast<std::size_t>(who)];
    const double size = customer.bytes;
    double at = now;
    ++uses_;
    if (indexes_.use(customer.slot)) {
      ++index_hits_;
    } else {
      at = read(at, 1, shape_.entries_per_slotfile * 48);
      at = cpu(at, shape_.entries_per_slotfile * 0.3e-6);
    }
    at = cpu(at, (customer.is_read ? 5e-6 : 2.3e-6) + size / hw_.hash_rate + size / hw_.copy_rate * 2);
    if (!customer.is_read) return journal(at, size);
    const bool cached = popularity_.draw_is_cached(random_) || random_.uniform() < chance_cached_;
    ++reads_;
    if (cached) ++page_hits_;
    return cached ? at : read(at, 1, std::max(size, kPage));
  }

  /// Sends the answer from the stripe to the client. Returns when it arrives.
  double after_operation(double now, int who) {
    const Customer customer = customers_[static_cast<std::size_t>(who)];
    const double size = customer.bytes;
    const double at = cpu(now, 2e-6 + size / hw_.copy_rate);
    network_free_ = std::max(at, network_free_) + size * (customer.is_read ? 1 : 2) / hw_.network_rate;
    if (!customer.is_read) background(now, size, customer.slot);
    return network_free_ + hw_.round_trip_s * 0.5;
  }

  double journal(double now, double size) {
    double at = now;
    write_behind(now, 0, 0, size);
    // Seconds of pending disk work beyond which writers wait: the memory for pending writes is limited.
    constexpr double kBehind = 0.03;
    if (written_until_ - at > kBehind) at = written_until_ - kBehind;
    if (w_.sync) {
      const double batch = std::max(1.0, kClients * (1 - w_.read_share()) / kStripes / 2);
      at += hw_.sync_s / batch * (0.7 + 0.6 * random_.uniform());
    }
    return at;
  }

  /// Writes runs into slotfiles and rewrites slotfiles, in pieces of up to one MiB like the engine's steps. Each
  /// happens with the probability that makes the mean right.
  void background(double now, double size, std::size_t slot) {
    const double run = std::max(shape_.run_bytes, size);
    const double piece = std::min(run, kMiB);
    if (random_.uniform() < size / piece) {
      write_behind(now, 1.3 * piece / run + 0.2, 0, piece);
      later(now, slot, 20e-6 + piece / hw_.copy_rate * 2);
    }
    const double dead = 0.3;
    const double again = w_.overwrite_share * (1 - dead) / dead + (1 - w_.overwrite_share);
    const double step = std::min(kMiB, shape_.slotfile_bytes);
    if (random_.uniform() < size * again / step) {
      write_behind(now, 2 + step / std::max(run * 4, 64.0 * 1024), step, step);
      later(now, slot, 50e-6 + step / hw_.copy_rate * 3 + step / hw_.hash_rate);
    }
  }

  /// Does a stripe's part of one docblock. Returns when it ends.
  double docblock(double now, int who) {
    Customer& customer = customers_[static_cast<std::size_t>(who)];
    const double block = std::min(static_cast<double>(settings_.docblock_bytes), customer.left_in_bucket);
    customer.left_in_bucket -= block;
    customer.bytes = block;
    double at = cpu(now, 25e-6 + block / w_.document_bytes * 0.9e-6 + block / hw_.copy_rate * 1.5);
    if (pages_ >= shape_.bytes * 1.08) return at;
    const double fragment = std::min(shape_.slotfile_bytes, std::max(shape_.run_bytes, w_.document_bytes) * 5);
    const double files = block / shape_.slotfile_bytes;
    at += files * hw_.open_s;
    // Announced ranges are read in parallel, as far as the device can.
    const double ahead = std::clamp(8 * kMiB / fragment, 1.0, std::max(1.0, std::min(hw_.channels, 8.0)));
    const double seeks = files * 1.5 + block / fragment;
    // Reads that run in parallel with this one occupy the device too.
    if (ahead > 1) seek(at, seeks - seeks / ahead);
    return read(at, seeks / ahead, block + files * shape_.entries_per_slotfile * 48);
  }

  /// Does the visitor's own part. Returns when it wants the next docblock.
  double after_docblock(double now, int who) {
    const double block = customers_[static_cast<std::size_t>(who)].bytes;
    const double documents = block / w_.document_bytes;
    double at = cpu(now, 30e-6 + documents * (1.0e-6 + w_.map_s_per_document) + block / hw_.copy_rate * 1.5);
    if (w_.tuple_bytes_per_document > 0) {
      network_free_ = std::max(at, network_free_) + documents * w_.tuple_bytes_per_document *
                                                        static_cast<double>(w_.redundancy + 1) / hw_.network_rate;
      at = network_free_;
    }
    scanned_ += block;
    ++blocks_;
    return at + hw_.round_trip_s * 0.3;
  }

  double document_bytes() {
    // Draws one of two sizes, which have the workload's mean and 99th percentile.
    const double large = w_.document_bytes_p99;
    const double mean = w_.document_bytes;
    const double share = large > mean ? 0.02 : 0;
    if (random_.uniform() < share) return std::min(large, mean * 20);
    return std::max(mean * 0.2, (mean - share * std::min(large, mean * 20)) / (1 - share));
  }

  Outcome outcome(double operations_per_s, double scan_bytes_per_s) {
    Outcome result;
    const double nodes = static_cast<double>(w_.nodes);
    const double groups = std::max(1.0, shape_.buckets_total * static_cast<double>(w_.redundancy) / nodes);
    // Replicas are placed at random; the fullest of several nodes is a little more than one deviation above the mean.
    const double uneven = 1 + (nodes > 1 ? 1.2 / std::sqrt(groups) : 0);
    // A visit ends when its last bucket is read; visitors without a bucket are idle until then.
    const double idle = visitors_ > 0 ? 1 + 0.5 * visitors_ / std::max(1.0, shape_.buckets) : 1;
    result.operations_per_s = operations_per_s * nodes / uneven;
    result.scan_bytes_per_s = scan_bytes_per_s * nodes / uneven / idle;
    if (!latencies_.empty()) {
      const auto at = latencies_.begin() + static_cast<std::ptrdiff_t>(latencies_.size() * 99 / 100);
      std::nth_element(latencies_.begin(), at, latencies_.end());
      result.p99_s = *at;
    }
    result.page_hit = static_cast<double>(page_hits_) / std::max(1, reads_);
    result.index_hit = static_cast<double>(index_hits_) / std::max(1, uses_);
    result.objective = objective_of(w_, result.operations_per_s, result.scan_bytes_per_s, result.p99_s);
    return result;
  }

  const Workload& w_;
  const SimulatedHardware& hw_;
  const Settings& settings_;
  Random random_;
  NodeShape shape_;
  double scale_;
  std::size_t slots_;
  Servers cpus_;
  Servers channels_;
  IndexCache indexes_;
  Popularity popularity_;
  std::array<Stripe, kStripes> stripes_;
  std::vector<Customer> customers_;
  double disk_free_ = 0;
  double network_free_ = 0;
  double pages_ = 0;
  double chance_cached_ = 0;
  bool swapping_ = false;
  int visitors_ = 0;
  double scanned_ = 0;
  int blocks_ = 0;
  int uses_ = 0;
  int index_hits_ = 0;
  int reads_ = 0;
  int page_hits_ = 0;
  double written_until_ = 0;  ///< Time at which the disk will have done all pending writes.
  std::vector<double> latencies_;
  std::priority_queue<Event> events_;
};

}  // namespace

HardwareProfile probe(const SimulatedHardware& hw, std::uint64_t seed) {
  Random random(seed);
  HardwareProfile profile;
  const auto see = [&](Constant constant, double value) {
    std::array<double, 5> repetitions{};
    for (double& one : repetitions) one = value * (0.94 + 0.12 * random.uniform());
    static_cast<void>(profile.measured(constant, repetitions));
  };
  see(Constant::SyncS, hw.sync_s);
  see(Constant::SequentialReadRate, hw.read_rate);
  see(Constant::SequentialWriteRate, hw.write_rate);
  see(Constant::RandomReadS, hw.seek_s * (1 + 9 * hw.slow_read_share) + kPage / hw.read_rate);
  see(Constant::RandomReadsPerS, 1 / std::max(hw.seek_s / hw.channels, kPage / hw.read_rate));
  see(Constant::FileOpenS, hw.open_s);
  see(Constant::HashRate, hw.hash_rate);
  see(Constant::CopyRate, hw.copy_rate);
  see(Constant::RoundTripS, hw.round_trip_s);
  see(Constant::NetworkRate, hw.network_rate);
  see(Constant::DecodeRate, 500e6 / hw.cpu_factor);
  see(Constant::MemoryAccessS, 100e-9 * hw.cpu_factor);
  return profile;
}

Outcome simulate(const Workload& workload, const SimulatedHardware& hardware, const Settings& settings,
                 std::uint64_t seed, int operations) {
  return Node(workload, hardware, settings, seed).run(operations);
}

}  // namespace fjord::tuner::model
