#include "fjord/monitoring/metric_page.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <tuple>

namespace fjord {
namespace {

bool is_name_char(char c, bool first) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':' || (!first && c >= '0' && c <= '9');
}

std::optional<double> parse_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Parses one line `name{label="value",...} number [timestamp]`.
class LineParser {
 public:
  explicit LineParser(std::string_view line) : rest_(line) {}

  std::optional<MetricSample> parse() {
    MetricSample sample;
    sample.name = take_name();
    if (sample.name.empty()) return std::nullopt;
    if (take('{') && !take_labels(sample.labels)) return std::nullopt;
    skip_blanks();
    const std::size_t end = std::min(rest_.find_first_of(" \t"), rest_.size());
    const std::optional<double> value = parse_number(rest_.substr(0, end));
    if (!value) return std::nullopt;
    sample.value = *value;
    rest_.remove_prefix(end);
    skip_blanks();
    if (!rest_.empty() && !parse_number(rest_)) return std::nullopt;  // an optional timestamp
    return sample;
  }

 private:
  bool take(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void skip_blanks() {
    while (take(' ') || take('\t')) {
    }
  }

  std::string take_name() {
    std::size_t length = 0;
    while (length < rest_.size() && is_name_char(rest_[length], length == 0)) ++length;
    std::string name(rest_.substr(0, length));
    rest_.remove_prefix(length);
    return name;
  }

  bool take_labels(Labels& labels) {
    while (true) {
      skip_blanks();
      if (take('}')) return true;
      const std::string name = take_name();
      if (name.empty() || !take('=') || !take('"') || !take_text(labels[name])) return false;
      skip_blanks();
      if (!take(',') && (rest_.empty() || rest_.front() != '}')) return false;
    }
  }

  bool take_text(std::string& text) {
    while (!rest_.empty()) {
      char c = rest_.front();
      rest_.remove_prefix(1);
      if (c == '"') return true;
      if (c == '\\') {
        if (rest_.empty()) return false;
        c = rest_.front() == 'n' ? '\n' : rest_.front();
        rest_.remove_prefix(1);
      }
      text.push_back(c);
    }
    return false;
  }

  std::string_view rest_;
};

bool has_all(const Labels& labels, const Labels& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& one) {
    const auto found = labels.find(one.first);
    return found != labels.end() && found->second == one.second;
  });
}

/// Returns the increase of a counter. A counter that fell restarted at zero.
double rise(double before, double after) { return after >= before ? after - before : after; }

}  // namespace

Result<MetricPage> MetricPage::parse(std::string_view text) {
  MetricPage page;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.front() == '#') continue;
    std::optional<MetricSample> sample = LineParser(line).parse();
    if (!sample) return Status(StatusCode::Corruption, "line " + std::to_string(number) + " is not a metric");
    page.samples_.push_back(std::move(*sample));
  }
  std::sort(page.samples_.begin(), page.samples_.end(), [](const MetricSample& a, const MetricSample& b) {
    return std::tie(a.name, a.labels) < std::tie(b.name, b.labels);
  });
  return page;
}

std::pair<std::vector<MetricSample>::const_iterator, std::vector<MetricSample>::const_iterator> MetricPage::range(
    std::string_view name) const {
  const auto begin =
      std::lower_bound(samples_.begin(), samples_.end(), name,
                       [](const MetricSample& sample, std::string_view key) { return sample.name < key; });
  const auto end = std::find_if(begin, samples_.end(), [&](const MetricSample& sample) { return sample.name != name; });
  return {begin, end};
}

std::optional<double> MetricPage::sum(std::string_view name, const Labels& labels) const {
  std::optional<double> total;
  const auto [begin, end] = range(name);
  for (auto at = begin; at != end; ++at) {
    if (has_all(at->labels, labels)) total = total.value_or(0) + at->value;
  }
  return total;
}

const MetricSample* MetricPage::find(std::string_view name, const Labels& exactly) const {
  const auto [begin, end] = range(name);
  const auto at = std::lower_bound(
      begin, end, exactly, [](const MetricSample& sample, const Labels& labels) { return sample.labels < labels; });
  return at != end && at->labels == exactly ? &*at : nullptr;
}

std::optional<double> counter_increase(const MetricPage& before, const MetricPage& after, std::string_view name,
                                       const Labels& labels) {
  std::optional<double> total;
  const auto [begin, end] = after.range(name);
  for (auto at = begin; at != end; ++at) {
    if (!has_all(at->labels, labels)) continue;
    const MetricSample* old = before.find(name, at->labels);
    total = total.value_or(0) + rise(old == nullptr ? 0 : old->value, at->value);
  }
  return total;
}

HistogramPeriod HistogramPeriod::between(const MetricPage& before, const MetricPage& after, std::string_view name,
                                         const Labels& labels) {
  const std::string base(name);
  HistogramPeriod period;
  const auto [begin, end] = after.range(base + "_count");
  for (auto at = begin; at != end; ++at) {
    if (!has_all(at->labels, labels)) continue;
    const MetricSample* old_count = before.find(base + "_count", at->labels);
    // A restart resets a whole series: count, sum and buckets start at zero together.
    const bool began_again = old_count == nullptr || at->value < old_count->value;
    const auto difference = [&](const std::string& of, const Labels& exactly) {
      const MetricSample* now = after.find(of, exactly);
      const MetricSample* old = began_again ? nullptr : before.find(of, exactly);
      return (now == nullptr ? 0 : now->value) - (old == nullptr ? 0 : old->value);
    };
    HistogramPeriod series;
    series.count_ = difference(base + "_count", at->labels);
    series.sum_ = std::max(0.0, difference(base + "_sum", at->labels));
    const auto [first, last] = after.range(base + "_bucket");
    for (auto bucket = first; bucket != last; ++bucket) {
      Labels others = bucket->labels;
      const auto le = others.find("le");
      if (le == others.end()) continue;
      const std::optional<double> bound = parse_number(le->second);
      others.erase(le);
      if (!bound || others != at->labels) continue;
      series.buckets_[*bound] = difference(base + "_bucket", bucket->labels);
    }
    period.add(series);
  }
  return period;
}

void HistogramPeriod::add(const HistogramPeriod& other) {
  for (const auto& [bound, count] : other.buckets_) buckets_[bound] += count;
  count_ += other.count_;
  sum_ += other.sum_;
}

std::optional<double> HistogramPeriod::mean() const {
  if (count_ <= 0) return std::nullopt;
  return sum_ / count_;
}

std::optional<double> HistogramPeriod::quantile(double q) const {
  if (count_ <= 0 || buckets_.empty()) return std::nullopt;
  const double rank = std::clamp(q, 0.0, 1.0) * buckets_.rbegin()->second;
  double lower = 0;
  double below = 0;
  for (const auto& [bound, count] : buckets_) {
    if (count >= rank && count > below) {
      if (std::isinf(bound)) return lower;
      return lower + (bound - lower) * (rank - below) / (count - below);
    }
    lower = std::isinf(bound) ? lower : bound;
    below = std::max(below, count);
  }
  return lower;
}

}  // namespace fjord
