#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/affinity/query_log.h"
#include "fjord/common/random.h"
#include "fjord/common/result.h"

namespace fjord::affinity {

/// Queries, as sequences of words, from which logs of queries are generated.
struct QuerySource {
  std::vector<std::string> vocabulary;       ///< By WordId.
  std::vector<std::vector<WordId>> queries;  ///< Words of each query in their order; a word may occur twice.
  std::vector<std::uint32_t> queries_with;   ///< By WordId: number of queries that have the word.
};

/// Parses lines `number<tab>query`; a colon may stand for the tab. Words are runs of letters, digits and underscores in
/// lower case. Lines that are not UTF-8 are read as Latin-1.
/// Errors: InvalidArgument names a line without a number, or says that there are no queries.
Result<QuerySource> parse_queries(std::string_view text);

/// Generates queries without a file. Each takes a piece of an earlier query and continues with words drawn by Zipf's
/// law, so that the same words occur together repeatedly. The queries have no topics.
QuerySource synthetic_queries(std::size_t queries, std::size_t words, Random& random);

enum class Split {
  Resample,  ///< The training, validation and test log are each drawn from all queries of the source.
  Disjoint,  ///< The queries of the source are first divided 5:1:4 among the three logs, by a hash.
};

enum class ListSizes {
  GrowWithUse,  ///< The number of pages of a list is proportional to the number of queries with its word.
  UnlikeUse,    ///< Lists grow more slowly than the use of their words; equally used words have unlike lists.
};

struct GeneratorOptions {
  std::size_t queries = 150'000;  ///< Number of queries in each log.
  Split split = Split::Resample;
  ListSizes sizes = ListSizes::GrowWithUse;
  std::size_t regions = 1;  ///< Each region has logs from its own part of the source; the parts overlap.
  std::uint64_t seed = 1;
};

struct LogSet {
  QueryLog train;
  QueryLog valid;
  QueryLog test;
};

/// Generated logs with the words that occur in them.
struct Corpus {
  std::vector<std::string> vocabulary;
  ListPages pages;
  std::vector<std::uint64_t> hashes;  ///< Hash of the text of each word.
  std::vector<LogSet> regions;
};

/// Generates logs of any length from a source. A query either repeats an earlier one of its log, or follows a query of
/// the source word by word and sometimes continues behind another occurrence of a word. The most frequent words count
/// as pinned in memory and are left out. Most queries get a rare word, drawn by a Pitman-Yor process. Equal options
/// give equal logs.
Corpus generate_logs(const QuerySource& source, const GeneratorOptions& options);

/// Returns the similarity of two logs, by the pages that each accesses for a word: the sum over all words of the
/// smaller of the two numbers, divided by the sum of the greater ones [CALB 2019, 5.5].
double weighted_jaccard(const QueryLog& a, const QueryLog& b, const ListPages& pages);

}  // namespace fjord::affinity
