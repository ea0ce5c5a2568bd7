#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fjord/document/document_format.h"
#include "fjord/document/json.h"
#include "task/accumulator.h"
#include "task/key_reducer.h"

/// The work of a task with an application in another process (mapreduce::BatchFunctions): with the engine's groups, but
/// without a cluster.
namespace fjord::test {

using Rows = std::map<std::string, std::string>;

/// Documents of a type, numbered from 0.
class BatchDocuments {
 public:
  /// `fields` returns the fields of a document as JSON.
  BatchDocuments(const DocumentTypeRepo& types, const std::string& type, int count,
                 const std::function<std::string(int)>& fields) {
    for (int i = 0; i < count; ++i) {
      const auto id = DocumentId::parse("id:t:" + type + "::" + std::to_string(i));
      auto encoded = fields_from_json(*types.find(type), *id, fields(i));
      if (!encoded) FAIL(encoded.error().to_string());
      encoded_.push_back(std::move(*encoded));
    }
    for (const EncodedDocument& document : encoded_) {
      auto view = DocumentView::open(types, document.header, document.body);
      REQUIRE(view);
      views.push_back(*view);
    }
  }
  std::vector<DocumentView> views;

 private:
  std::vector<EncodedDocument> encoded_;
};

/// Returns, by last digit, the sums of the numbers below `count`, without the number `without`.
inline Rows sums_by_digit(int count, int without = -1) {
  std::map<int, long long> sums;
  for (int i = 0; i < count; ++i) {
    if (i != without) sums[i % 10] += i;
  }
  Rows rows;
  for (const auto& [digit, sum] : sums) rows[std::to_string(digit)] = std::to_string(sum);
  return rows;
}

/// Maps the documents as the engine does in a task. Returns number and error of the failed ones.
inline Result<std::map<std::size_t, std::string>> map_all(mapreduce::Accumulator& table,
                                                          std::span<const DocumentView> documents) {
  REQUIRE(table.takes_many());
  std::map<std::size_t, std::string> failed;
  for (std::size_t done = 0; done < documents.size();) {
    FJORD_TRY_ASSIGN(const mapreduce::MappedDocuments mapped, table.map_many(documents.subspan(done)));
    for (const auto& [document, why] : mapped.failed) failed[done + document] = why.message();
    REQUIRE(mapped.documents > 0);
    done += mapped.documents;
  }
  return failed;
}

/// Checks that each document emits the same tuples alone and together with others.
inline void check_apart(mapreduce::Application& application, std::span<const DocumentView> documents,
                        std::size_t failed_expected) {
  const auto table = make_accumulator(application);
  std::size_t failed = 0;
  std::size_t most = 0;
  for (std::size_t done = 0; done < documents.size();) {
    const auto mapped = table->map_many_alone(documents.subspan(done));
    REQUIRE(mapped);
    REQUIRE(mapped->ends.size() == mapped->documents);
    failed += mapped->failed.size();
    most = std::max(most, mapped->documents);
    std::size_t begin = 0;
    for (std::size_t i = 0; i < mapped->documents; ++i) {
      std::string alone;
      const bool is_fine = table->map_alone(documents[done + i], alone).is_ok();
      CHECK(mapped->emitted.substr(begin, mapped->ends[i] - begin) == alone);
      CHECK(is_fine == std::none_of(mapped->failed.begin(), mapped->failed.end(),
                                    [&](const auto& one) { return one.document == i; }));
      begin = mapped->ends[i];
    }
    CHECK(begin == mapped->emitted.size());
    done += mapped->documents;
  }
  CHECK(failed == failed_expected);
  CHECK(most > 10);
  CHECK(table->drain(0) != nullptr);
  CHECK(table->groups() == 0);
}

inline Result<Rows> reduce_all(mapreduce::Application& application, mapreduce::TupleSource& source) {
  Rows rows;
  mapreduce::KeyReducer reducer(application, source);
  std::string key, json;
  for (;;) {
    FJORD_TRY_ASSIGN(const bool more, reducer.next(key, json));
    if (!more) return rows;
    rows[key] = json;
  }
}

inline Rows rows_of(const Result<Rows>& result) {
  if (!result) FAIL(result.error().to_string());
  return *result;
}

/// Returns the bytes of all tuples of a source, a line for each key.
inline std::string tuples_of(mapreduce::TupleSource& source) {
  std::string all;
  mapreduce::Tuple tuple;
  for (;;) {
    const auto more = source.next(tuple);
    if (!more) FAIL(more.error().to_string());
    if (!*more) return all;
    all += std::to_string(tuple.destination) + " " + std::string(tuple.key);
    for (const std::string_view value : tuple.values) all += " " + std::string(value);
    all += "\n";
  }
}

}  // namespace fjord::test
