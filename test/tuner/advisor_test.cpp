#include "fjord/tuner/advisor.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <ctime>

#include "fjord/tuner/model/grid.h"
#include "fjord/tuner/seed_formulas.h"
#include "live_config.h"

namespace fjord::tuner {
namespace {

/// Returns the example, but all speed counts, so that there is something to advise.
Workload example() {
  Workload workload = parse_workload(example_workload(), "example").value();
  workload.headroom = 0;
  workload.give_up_max = 1;
  return workload;
}

/// Returns workloads of all kinds.
std::vector<Workload> workloads() {
  std::vector<Workload> all = {example()};
  for (const model::Scenario& scenario : model::held_out_scenarios()) all.push_back(scenario.workload);
  return all;
}

double input(const Advice& advice, const std::string& name) {
  for (const Input& one : advice.inputs) {
    if (one.name == name) return one.value;
  }
  FAIL("no input " << name);
  return 0;
}

double power_of_two(double x) { return std::pow(2.0, std::round(std::log2(x))); }
double clamp(double x, double low, double high) { return x < low ? low : x > high ? std::max(low, high) : x; }

/// The formulas again, each computed by hand from the inputs of one advice.
class ByHand {
 public:
  using Formula = double (ByHand::*)() const;

  explicit ByHand(const Advice& advice) : advice_(advice) {}

  /// Returns the value that the advice's formula gives; nullopt if this class does not have the formula.
  std::optional<double> value() const {
    static const std::map<std::string_view, Formula> formulas = {
        {"storage.file_bytes_max", &ByHand::file_bytes_max},
        {"storage.entries_max", &ByHand::entries_max},
        {"distributor.bucket_bytes_max", &ByHand::bucket_bytes_max},
        {"distributor.bucket_entries_max", &ByHand::bucket_entries_max},
        {"storage.held_bytes_max", &ByHand::held_bytes_max},
        {"storage.index_bytes_max", &ByHand::index_bytes_max},
        {"storage_options.docblock_bytes", &ByHand::docblock_bytes},
        {"storage.visitors_max", &ByHand::visitors_max},
        {"storage.journal_bytes_max", &ByHand::journal_bytes_max},
        {"cluster.distribution_bits", &ByHand::distribution_bits},
        {"maintenance.bytes_per_s", &ByHand::bytes_per_s},
        {"maintenance.bytes_per_s_min", &ByHand::bytes_per_s_min},
        {"storage.scrub_bytes_per_second", &ByHand::scrub_bytes_per_second},
        {"--output-buckets", &ByHand::output_buckets},
        {"--visitors-per-node", &ByHand::visitors_per_node},
    };
    const auto found = formulas.find(advice_.knob->name);
    return found == formulas.end() ? std::nullopt : std::optional((this->*found->second)());
  }

 private:
  /// Returns an input. The inputs about tuples are 0 if the formula in the text leaves them out.
  double in(const char* name) const {
    const bool is_optional =
        std::string_view(name) == "tuple_bytes_per_document" && advice_.formula.find(name) == std::string::npos;
    return is_optional ? 0.0 : input(advice_, name);
  }

  double file_bytes_max() const {
    const double disk = std::min(in("sequential_read_rate"), in("sequential_write_rate")) / 2;
    return power_of_two(clamp(in("tuned") * in("disk_share") * in("rewrite_s") * disk,
                              std::max(4.0 * (1 << 20), 64 * in("document_bytes_p99")), 256.0 * (1 << 20)));
  }
  double entries_max() const {
    const double load =
        in("index_load_s_per_document") + in("index_disk_bytes_per_document") / in("sequential_read_rate");
    return clamp(power_of_two(in("tuned") * 2 * in("random_read_s") / load), 1024, 1 << 20);
  }
  double bucket_bytes_max() const {
    const double buckets = in("buckets_per_node") * in("nodes") / in("redundancy");
    const double most = in("slotfiles_max") * std::min(in("file_bytes_max"), in("entries_max") * in("document_bytes"));
    const double least = std::max(4.0 * (1 << 20), 19 * in("bucket_scan_s") * in("sequential_read_rate"));
    return power_of_two(clamp(in("tuned") * in("total_bytes") / buckets / in("fill"), least, most));
  }
  double bucket_entries_max() const {
    return clamp(power_of_two(2 * in("bucket_bytes_max") / in("document_bytes")), 1024,
                 in("slotfiles_max") * in("entries_max"));
  }
  double held_bytes_max() const {
    const double run = in("run_factor") * in("sequential_write_rate") / in("random_reads_per_s");
    return clamp(in("tuned") * 2 * in("slotfiles_per_node") * run, 32.0 * (1 << 20), in("memory_share") * in("memory"));
  }
  double index_bytes_max() const {
    return clamp(in("tuned") * 1.2 * in("documents_per_node") * in("index_bytes_per_document"), 64.0 * (1 << 20),
                 in("memory_share") * in("memory"));
  }
  double docblock_bytes() const {
    const double each =
        1 / in("sequential_read_rate") + 3 / in("copy_rate") + in("scan_cpu_s_per_document") / in("document_bytes");
    const double seconds = std::min(in("latency_share") * in("latency_target_s"), 10 * in("docblock_cpu_s"));
    return power_of_two(clamp(in("tuned") * seconds / each, 65'536, 8.0 * (1 << 20)));
  }
  double visitors_max() const {
    const double share = in("scan_share") / std::max(0.02, 1 - in("scan_share"));
    double most = static_cast<double>(seed::visitor_threads_cpu(static_cast<std::uint64_t>(in("cores"))));
    if (in("tuple_bytes_per_document") > 0) {
      const auto fit = seed::visitor_threads_memory(in("memory_share") * in("memory"), in("buckets_per_node"),
                                                    in("documents_per_node"), in("tuple_bytes_per_document"));
      most = std::min(most, std::max(1.0, static_cast<double>(fit)));
    }
    return clamp(std::ceil(in("tuned") * in("clients") * in("operation_stripe_s") / in("docblock_stripe_s") * share), 1,
                 most);
  }
  double journal_bytes_max() const {
    const double held = in("held_bytes_max");
    return clamp(4 * held, 64.0 * (1 << 20), std::max(2 * held, in("replay_s") * in("replay_rate")));
  }
  double distribution_bits() const {
    return std::max(in("distribution_bits"),
                    std::ceil(std::log2(in("buckets_per_node") * in("nodes") / in("redundancy"))));
  }
  double bytes_per_s() const {
    return in("share") * std::min({in("sequential_read_rate"), in("sequential_write_rate"), in("network_rate")});
  }
  double bytes_per_s_min() const { return std::min(4.0 * (1 << 20), in("maintenance_bytes_per_s") / 8); }
  double scrub_bytes_per_second() const {
    return clamp(in("bytes_per_node") / in("scrub_s"), 1 << 20, in("disk_share") * in("sequential_read_rate"));
  }
  double output_buckets() const {
    return std::max(static_cast<double>(seed::output_buckets_min(in("spread") * in("output_bytes"),
                                                                 in("bucket_bytes_max"), in("data_in_buckets"))),
                    2 * in("nodes"));
  }
  double visitors_per_node() const {
    return clamp(
        static_cast<double>(seed::visitor_threads_memory(in("memory_share") * in("memory"), in("buckets_per_node"),
                                                         in("documents_per_node"), in("tuple_bytes_per_document"))),
        1, static_cast<double>(seed::visitor_threads_cpu(static_cast<std::uint64_t>(in("cores")))));
  }

  const Advice& advice_;
};

}  // namespace

TEST_CASE("advisor: every changed knob can be computed again from the inputs that are shown") {
  std::size_t changed = 0;
  for (const Workload& workload : workloads()) {
    const Report report = advise(workload, HardwareProfile());
    for (const Advice& advice : report.advice) {
      CAPTURE(std::string(advice.knob->name));
      ++changed;
      // The advice is what the formula in its text gives,
      CHECK(value_of(*advice.knob, advice.formula, advice.inputs).value() == advice.new_value);
      // and what the formula gives if computed by hand.
      const std::optional<double> expected = ByHand(advice).value();
      REQUIRE(expected);
      const double rounding = advice.knob->unit == KnobUnit::Bytes ? 1 << 20 : 0.5;
      CHECK(std::abs(static_cast<double>(advice.new_value) - *expected) <=
            std::min(rounding, 0.5 + std::abs(*expected)));
      CHECK(report.after.*(advice.knob->member) == advice.new_value);
      CHECK(report.before.*(advice.knob->member) == advice.old_value);
      CHECK(advice.new_value != advice.old_value);
    }
  }
  CHECK(changed > 100);
}

TEST_CASE("advisor: every changed knob has a reason, a source, what binds it and what would change it") {
  for (const Workload& workload : workloads()) {
    const Report report = advise(workload, HardwareProfile());
    for (const Advice& advice : report.advice) {
      CAPTURE(std::string(advice.knob->name), advice.formula);
      CHECK_FALSE(advice.reason.empty());
      CHECK_FALSE(advice.source.empty());
      for (const Input& one : advice.inputs) CHECK_FALSE(one.origin.empty());
      CHECK_FALSE(advice.flips.empty());
      for (const Flip& flip : advice.flips) {
        std::vector<Input> inputs = advice.inputs;
        for (Input& one : inputs) {
          if (one.name == flip.input) one.value = flip.value;
        }
        CHECK(value_of(*advice.knob, advice.formula, inputs).value() == flip.advice);
        CHECK(flip.advice != advice.new_value);
      }
    }
    // Every knob is changed, kept with a reason, or was right before.
    for (const Kept& kept : report.kept) CHECK_FALSE(kept.why.empty());
  }
}

TEST_CASE("advisor: no advice is predicted to be worse than what is set, and gains lie in their intervals") {
  for (const Workload& workload : workloads()) {
    const Report report = advise(workload, HardwareProfile());
    CHECK(report.predicted_after.objective >= 0.999 * report.predicted_before.objective);
    CHECK(report.effect.low <= report.effect.gain);
    CHECK(report.effect.gain <= report.effect.high);
    CHECK(report.effect.low > 0);
    for (const Advice& advice : report.advice) {
      if (!advice.effect) continue;
      CHECK(advice.effect->low <= advice.effect->gain);
      CHECK(advice.effect->gain <= advice.effect->high);
    }
  }
}

TEST_CASE("advisor: what may be a loss is not advised, and it is said why") {
  int changes = 0;
  int put_back = 0;
  for (const Workload& workload : workloads()) {
    for (const double confidence : {1.0, 0.5}) {
      HardwareProfile profile;
      for (const ConstantDeclaration& one : constant_declarations()) {
        ConstantValue value = profile.at(one.id);
        value.confidence = confidence;
        profile.set(one.id, value);
      }
      const Report report = advise(workload, profile);
      for (const Advice& advice : report.advice) {
        if (!advice.effect || !report.predicted_before.fits) continue;
        CAPTURE(advice.knob->name, advice.effect->gain);
        CHECK(advice.effect->low > 0.99);  // Not 1: `low` is that of the formula, not of the final choice.
        ++changes;
      }
      for (const Kept& kept : report.kept) put_back += kept.why.find("may be a loss") != std::string::npos ? 1 : 0;
    }
  }
  CHECK(changes > 50);
  CHECK(put_back > 10);
}

TEST_CASE("advisor: speed that nobody asked for is not paid for with visits") {
  int changes = 0;
  for (const double wanted_share : {0.1, 3.0}) {
    for (Workload workload : workloads()) {
      const double now = predict(workload, HardwareProfile(), workload.current).operations_per_s;
      const double factor = wanted_share * now / (workload.reads_per_s + workload.writes_per_s);
      workload.reads_per_s *= factor;
      workload.writes_per_s *= factor;
      workload.headroom = 2;
      workload.give_up_max = 0.1;
      const Report report = advise(workload, HardwareProfile());
      const Prediction& before = report.predicted_before;
      const Prediction& after = report.predicted_after;
      CAPTURE(wanted_share, workload.scan_share, before.scan_bytes_per_s, after.scan_bytes_per_s,
              before.operations_per_s, after.operations_per_s);
      CHECK(after.scan_bytes_per_s >= 0.89 * before.scan_bytes_per_s);  // Values are rounded after the choice.
      CHECK(after.operations_per_s >= 0.89 * std::min(before.operations_per_s, 2 * wanted_share * now));
      CHECK(after.p99_s <= std::max(1.01 * workload.latency_target_s, before.p99_s / 0.89));
      changes += static_cast<int>(report.advice.size());
    }
  }
  CHECK(changes > 100);
}

TEST_CASE("advisor: what a change would take away is said where it is left") {
  Workload workload = example();
  workload.headroom = 2;
  workload.give_up_max = 0.1;
  workload.scan_share = 0.02;
  workload.current.visitors_max = 20;
  const auto says = [](const Report& report, const std::string& text) {
    return std::any_of(report.kept.begin(), report.kept.end(),
                       [&](const Kept& kept) { return kept.why.find(text) != std::string::npos; });
  };
  workload.reads_per_s = 1e7;
  CHECK(says(advise(workload, HardwareProfile()), "visits would fall from"));
  workload.give_up_max = 1;
  const Report free = advise(workload, HardwareProfile());
  CHECK_FALSE(says(free, "visits would fall from"));
  CHECK(free.after.visitors_max < 20);
  workload.reads_per_s = 10;
  workload.writes_per_s = 10;
  CHECK(advise(workload, HardwareProfile()).after.visitors_max == 20);
}

TEST_CASE("advisor: an uncertain profile makes the interval wider") {
  HardwareProfile sure;
  HardwareProfile unsure;
  for (const ConstantDeclaration& one : constant_declarations()) {
    sure.set(one.id, {one.default_value, Origin::Measured, 1.0, 0});
    unsure.set(one.id, {one.default_value, Origin::Default, 0.1, 0});
  }
  Workload workload = example();
  workload.disk_read_rate = workload.disk_write_rate = workload.disk_random_read_s = 0;
  workload.disk_iops = workload.disk_sync_s = workload.network_rate = 0;
  const Effect narrow = advise(workload, sure).effect;
  const Effect wide = advise(workload, unsure).effect;
  CHECK(wide.high / wide.low > narrow.high / narrow.low);
}

TEST_CASE("advisor: says when the latency target cannot be reached, by which settings ever") {
  Workload workload = example();
  workload.latency_target_s = 1e-5;
  const Report report = advise(workload, HardwareProfile());
  CHECK_FALSE(report.effect.reaches_target);
  CHECK(report.effect.p99_after_s > workload.latency_target_s);
  CHECK(report.effect.p99_before_s > report.effect.p99_after_s);
  CHECK(std::any_of(report.warnings.begin(), report.warnings.end(), [](const std::string& warning) {
    return warning.find("the target of 0.01 ms cannot be reached") != std::string::npos;
  }));
  for (const Advice& advice : report.advice) CHECK((!advice.effect || !advice.effect->reaches_target));
  workload.latency_target_s = 0.02;
  const Report reached = advise(workload, HardwareProfile());
  CHECK(reached.effect.reaches_target);
  for (const std::string& warning : reached.warnings) CHECK(warning.find("cannot be reached") == std::string::npos);
}

TEST_CASE("advisor: settings that do not fit in memory are made to fit") {
  Workload workload = example();
  workload.memory_bytes = 2.0 * (1ULL << 30);
  workload.current.held_bytes_max = 8LL << 30;
  const Report report = advise(workload, HardwareProfile());
  CHECK_FALSE(report.predicted_before.fits);
  CHECK(report.predicted_after.fits);
}

TEST_CASE("advisor: says when the cluster is too small, and when a constant is an old one") {
  Workload workload = example();
  workload.reads_per_s = 1e8;
  HardwareProfile profile;
  REQUIRE(profile.measured(Constant::CopyRate, std::vector<double>{5e9, 5e9}));
  REQUIRE_FALSE(profile.measured(Constant::CopyRate, std::vector<double>{1, 1}));
  const Report report = advise(workload, profile);
  const auto has = [&](const std::string& text) {
    return std::any_of(report.warnings.begin(), report.warnings.end(),
                       [&](const std::string& warning) { return warning.find(text) != std::string::npos; });
  };
  CHECK(has("operations a second are wanted"));
  CHECK(has("copy_rate is an old value"));
}

TEST_CASE("advisor: figures are what the formulas of the paper give") {
  Workload workload = example();
  const Report report = advise(workload, HardwareProfile());
  const auto figure = [&](const std::string& name) {
    for (const Figure& one : report.figures) {
      CHECK(evaluate(one.formula, one.inputs).value() == one.value);
      if (one.name == name) return one.value;
    }
    FAIL("no figure " << name);
    return 0.0;
  };
  const double buckets = shape_of(workload, report.after).buckets_total;
  CHECK(figure("traffic of one put") == traffic::put_traffic(2, 800));
  CHECK(figure("traffic of one get") == seed::get_traffic(800));
  CHECK(figure("tuples of one bucket in memory") == Approx(seed::tuple_memory_per_bucket(20e6, buckets, 30)));
  CHECK(figure("pause between buckets of a job") ==
        Approx(traffic::bucket_delay_s(3 * 20e6 * 30, 0.25 * 125e6 * 4, buckets)));
  CHECK(figure("removed documents are remembered for") == 2 * 86'400);
}

TEST_CASE("advisor: the names of the knobs are those of settings that exist, with their bounds") {
  int live = 0;
  for (const Knob& knob : knobs()) {
    CAPTURE(std::string(knob.name));
    if (knob.place != KnobPlace::Live) continue;
    ++live;
    const SettingDeclaration* setting = fleetcontroller::find_live_setting(knob.name);
    REQUIRE(setting != nullptr);
    CHECK(knob.min >= setting->min);
    CHECK(knob.max <= setting->max);
    const auto parsed = fleetcontroller::parse_setting(*setting, value_text(knob, Settings().*(knob.member)));
    REQUIRE(parsed.has_value());
    CHECK(*parsed == Settings().*(knob.member));
    if (setting->has_default()) {
      CHECK(setting->default_value == Settings().*(knob.member));
    }
  }
  CHECK(live >= 12);
}

TEST_CASE("advisor: takes less than a second of processor time") {
  const std::clock_t begin = std::clock();
  const Report report = advise(example(), HardwareProfile());
  const std::clock_t taken = std::clock() - begin;
  CHECK_FALSE(report.advice.empty());
#if defined(__SANITIZE_THREAD__)
  constexpr std::clock_t kLimit = 15 * CLOCKS_PER_SEC;  // It makes a program slower by a factor of up to 15.
#else
  constexpr std::clock_t kLimit = CLOCKS_PER_SEC;
#endif
  CHECK(taken < kLimit);  // Usually tens of milliseconds; more under the address sanitizer.
}

}  // namespace fjord::tuner
