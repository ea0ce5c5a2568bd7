#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fjord/sim/sim_cluster.h"
#include "search_model.h"

namespace fjord::sim {

/// Schema of the documents that the search workload writes.
inline constexpr const char* kSearchSchema = R"(
document ad_group {
  field name type string { header index: group }
  field advertiser type int { header }
  field trust type double { header }
}
document keyword {
  field text type string { header index: keyword }
  field match type string { header }
  field bid_micros type long { header }
}
document ad {
  field title type string { header index: ad }
  field ctr type double { body }
}
)";

/// Clients that write groups, keywords and ads, and search for them, until they are told to stop. Each answer is
/// checked against the model.
class SearchWorkload {
 public:
  SearchWorkload(SimCluster& cluster, unsigned groups);

  void start();
  void stop() { stopped_ = true; }
  bool is_idle() const { return under_way_ == 0; }
  /// Reads all documents, then searches for each word until the answer is complete, and compares. Returns an empty
  /// string if all answers are right. Call when nothing is written any more.
  std::string check_at_rest();

  const std::string& failure() const { return failure_; }
  const SearchModel& model() const { return model_; }
  std::uint64_t complete() const { return complete_; }
  std::uint64_t partial() const { return partial_; }
  std::uint64_t failed() const { return failed_; }
  std::uint64_t hits() const { return hits_; }

 private:
  void write(std::size_t lane);
  void search();
  rpc::Search draw_search();
  Document draw_document();
  void send(rpc::Search request, std::function<void(bool complete)> done);
  void judge(const rpc::Search& request, const rpc::SearchReply& reply, MonotonicTime began);
  std::optional<search::SearchDocument> searched_form(const Document& document) const;
  bool read_all();

  SimCluster& cluster_;
  unsigned groups_;
  std::shared_ptr<const DocumentTypeRepo> types_;
  AsyncClient& writer_;
  AsyncClient& searcher_;
  SearchModel model_;
  std::vector<std::string> written_;  // Ids that were written, each once.
  // By lane: the document being written. Only one write of a document is in flight at a time.
  std::vector<std::string> busy_;
  std::size_t under_way_ = 0;
  std::uint64_t complete_ = 0;
  std::uint64_t partial_ = 0;
  std::uint64_t failed_ = 0;
  std::uint64_t hits_ = 0;
  bool stopped_ = false;
  std::string failure_;
};

}  // namespace fjord::sim
