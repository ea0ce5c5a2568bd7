#include "affinity_faults.h"

#include <fmt/format.h>

#include "fjord/affinity/stored_table.h"
#include "workload_search.h"

namespace fjord::sim {
namespace {

constexpr std::uint64_t kTables = 8;

std::string random_table(std::uint64_t number, unsigned redundancy) {
  Random random(number);
  affinity::StoredTable table;
  table.corpus = random.chance(0.2) ? "song.title" : "keyword.text";
  table.method = "random";
  table.words = {"boots", "car", "mask", "new"};  // The table has no word "red".
  const unsigned replicas = random.chance(0.2) ? redundancy + 1 : redundancy;
  table.table = affinity::VotingTable(replicas, table.words.size());
  for (affinity::WordId word = 0; word < table.words.size(); ++word) {
    table.pages.push_back(1 + static_cast<std::uint32_t>(random.below(20)));
    std::vector<float> weights;
    for (unsigned r = 0; r < replicas; ++r) weights.push_back(static_cast<float>(random.below(5)));
    table.table.set(word, weights);
  }
  return affinity::encode_table(table);
}

class RandomVotingTables final : public search::VotingTableSource {
 public:
  explicit RandomVotingTables(unsigned redundancy) : redundancy_(redundancy) {}
  void read_part(std::uint64_t number, std::uint32_t part, Done done) override {
    if (number == kTables) return done(Status(StatusCode::Unavailable, "this table cannot be read"));
    const std::string bytes = random_table(number, redundancy_);
    const std::size_t half = bytes.size() / 2;
    done(search::TablePart{2, part == 0 ? bytes.substr(0, half) : bytes.substr(half)});
  }

 private:
  unsigned redundancy_;
};

}  // namespace

std::unique_ptr<search::VotingTableSource> random_voting_tables(unsigned redundancy) {
  return std::make_unique<RandomVotingTables>(redundancy);
}

void AffinityOperator::schedule() {
  const Duration pause(100'000 + cluster_.random().below(1'500'000));
  cluster_.scheduler().outside().post_after(pause, [this] {
    if (stopped_) return;
    if (operator_.is_idle()) change();
    schedule();
  });
}

void AffinityOperator::change() {
  Random& random = cluster_.random();
  ++changes_;
  std::string setting;
  switch (random.below(5)) {
    case 0:
    case 1:
      setting = fmt::format("search.affinity_table={}", random.below(kTables + 1));
      break;
    case 2:
      setting = fmt::format("search.affinity_shadow={}", random.chance(0.7));
      break;
    case 3:
      setting = fmt::format("search.affinity_multipliers={}", random.chance(0.7));
      break;
    default:
      // In some runs caches hold nothing, in others a few lists.
      setting = random.chance(0.5) ? fmt::format("search.cache_bytes={}B", random.below(4000))
                                   : fmt::format("search.cache_eviction={}", random.chance(0.5) ? "lfu" : "lru");
  }
  operator_.change_config(setting, {});
}

}  // namespace fjord::sim
